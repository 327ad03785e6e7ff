"""The load clients of the bench: many connections that ask for planned answers and read them.

A process of its own, run as `python -m bench.gateway.load`. Each line on standard input is an
`Order` in JSON, each line printed what came of it. Bytes are only gathered while the
clock runs; whether every answer was whole is checked afterwards."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from dataclasses import asdict, dataclass
from typing import cast

from bench.gateway.answers import KEY, STAMPED, Plan, Transport, numbered
from bench.gateway.frames import CLOSE, PING, PONG, TEXT, FrameReader, masked_frame
from bench.gateway.loops import run_on_uvloop

_END = b"0\r\n\r\n"
_PASSED = {"http": b"HTTP/1.1 200", "websocket": b"HTTP/1.1 101"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    port: int
    transport: Transport = "http"
    connections: int
    answers: int = 1
    """On each connection, one after the other."""
    events: int
    pace_ms: int = 0
    stamped: bool = False
    spread_seconds: float = 0.0
    """Over which the connections begin, so that they do not beat in time."""
    limit_seconds: float = 120.0

    @property
    def plan(self) -> Plan:
        return Plan(self.events, self.pace_ms, self.stamped)

    def line(self) -> str:
        return json.dumps(asdict(self))


class Caller(asyncio.Protocol):
    """One connection. `done` ends when all its answers are there."""

    def __init__(self, order: Order) -> None:
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.delays_ns: list[int] = []
        self._order = order
        self._left = order.answers

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is none by its class
        self.begin()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.done.done():
            self.fail(f"the connection was closed before the answer was whole ({exc})")

    def data_received(self, data: bytes) -> None:
        if self._order.stamped:
            now = time.monotonic_ns()
            stamps = (int(stamp) for stamp in STAMPED.findall(data))
            self.delays_ns += [now - stamp for stamp in stamps if stamp]
        self.read(data)

    def answered(self) -> None:
        self._left -= 1
        if self._left:
            self.ask()
        elif not self.done.done():
            self.done.set_result(None)
            self._transport.close()

    def fail(self, why: str) -> None:
        if not self.done.done():
            self.done.set_exception(RuntimeError(why))
        self._transport.close()

    def begin(self) -> None:
        self.ask()

    def ask(self) -> None:
        raise NotImplementedError

    def read(self, data: bytes) -> None:
        raise NotImplementedError

    def check(self) -> None:
        """Every answer had every event, and its end."""
        raise NotImplementedError


class HttpCaller(Caller):
    def __init__(self, order: Order) -> None:
        super().__init__(order)
        body = order.plan.asked("http")
        self._request = (
            b"POST /v1/responses HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAuthorization: Bearer %s\r\n"
            b"Accept: text/event-stream\r\nContent-Type: application/json\r\n"
            b"Content-Length: %d\r\n\r\n%s" % (order.port, KEY.encode(), len(body), body)
        )
        self._all: list[list[bytes]] = []

    def ask(self) -> None:
        self._pieces: list[bytes] = []
        self._all.append(self._pieces)
        self._tail = b""
        self._transport.write(numbered(self._request))

    def read(self, data: bytes) -> None:
        if not self._pieces and not data.startswith(_PASSED["http"]):
            self.fail(f"the answer was {data[:600].decode(errors='replace')}")
            return
        self._pieces.append(data)
        self._tail = data[-5:] if len(data) >= 5 else (self._tail + data)[-5:]
        if self._tail == _END:
            self.answered()

    def check(self) -> None:
        for pieces in self._all:
            said = _dechunked(b"".join(pieces).partition(b"\r\n\r\n")[2])
            events = said.count(b"\ndata: {") + said.startswith(b"data: {")
            if events != self._order.events or b'"response.completed"' not in said[-20_000:]:
                raise RuntimeError(
                    f"an answer had {events} events instead of {self._order.events}: it ended "
                    f"with {said[-300:].decode(errors='replace')}"
                )


class WebSocketCaller(Caller):
    def __init__(self, order: Order) -> None:
        super().__init__(order)
        self._request = masked_frame(order.plan.asked("websocket"))
        self._head: bytes | None = b""
        self._frames = FrameReader()
        self._ends: list[bytes] = []

    def begin(self) -> None:
        self._transport.write(
            b"GET /v1/responses HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAuthorization: Bearer %s\r\n"
            b"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
            b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
            % (self._order.port, KEY.encode())
        )

    def ask(self) -> None:
        self._heard = 0
        self._transport.write(numbered(self._request))

    def read(self, data: bytes) -> None:
        if self._head is not None:
            self._head += data
            head, gap, data = self._head.partition(b"\r\n\r\n")
            if not head.startswith(_PASSED["websocket"][: len(head)]):
                self.fail(f"the upgrade was answered {self._head[:600].decode(errors='replace')}")
            if not gap:
                return
            self._head = None
            self.ask()
        for opcode, payload in self._frames.read(data):
            if opcode == TEXT:
                self._heard += 1
                if self._heard == self._order.events:
                    self._ends.append(payload)
                    self.answered()
            elif opcode == PING:
                self._transport.write(masked_frame(payload, PONG))
            elif opcode == CLOSE:
                self.fail(f"the WebSocket was closed: {payload!r}")

    def check(self) -> None:
        for end in self._ends:
            if b'"response.completed"' not in end:
                raise RuntimeError(
                    f"frame {self._order.events} of an answer was not its end: {end[:300]!r}"
                )


def _dechunked(body: bytes) -> bytes:
    pieces: list[bytes] = []
    at = 0
    while True:
        line_end = body.index(b"\r\n", at)
        size = int(body[at:line_end].partition(b";")[0], 16)
        if not size:
            return b"".join(pieces)
        pieces.append(body[line_end + 2 : line_end + 2 + size])
        at = line_end + 2 + size + 2


async def _drive(order: Order) -> dict[str, object]:
    loop = asyncio.get_running_loop()
    make = HttpCaller if order.transport == "http" else WebSocketCaller
    callers: list[Caller] = [make(order) for _ in range(order.connections)]
    start = time.monotonic()

    async def call(n: int, caller: Caller) -> None:
        await asyncio.sleep(order.spread_seconds * n / order.connections)
        await loop.create_connection(lambda: caller, "127.0.0.1", order.port)
        await caller.done

    async with asyncio.timeout(order.limit_seconds):
        await asyncio.gather(*(call(n, caller) for n, caller in enumerate(callers)))
    seconds = time.monotonic() - start
    for caller in callers:
        caller.check()
    return {
        "seconds": seconds,
        "delays_ms": [delay / 1e6 for caller in callers for delay in caller.delays_ns],
    }


def main() -> None:
    for line in sys.stdin:
        try:
            told = run_on_uvloop(_drive(Order(**json.loads(line))))
        except (RuntimeError, OSError, TimeoutError) as failure:
            told = {"failure": str(failure) or type(failure).__name__}
        print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main()
