"""The upstream of the bench: streams what a request plans, over HTTP and WebSocket.

A process of its own, run as `python -m bench.gateway.upstream`. Prints its port, then answers every
line on standard input with what it was asked so far; ends when standard input does.
It checks nothing and is as cheap as Python gets: what it takes is taken from the relay."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
import threading
import time
from functools import cache
from typing import cast

from bench.gateway.answers import Plan, Transport, planned_in, script, stamped_now
from bench.gateway.frames import TEXT, FrameReader, accepted
from bench.gateway.loops import run_on_uvloop
from bench.gateway.timer import Timer

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_KEY = re.compile(rb"\r\nsec-websocket-key: *(\S+)", re.IGNORECASE)
_STREAM_HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n"
    b"Cache-Control: no-cache\r\nTransfer-Encoding: chunked\r\n\r\n"
)
_REFUSAL = b'{"error":{"message":"not planned","type":"invalid_request_error","code":null}}'
_REFUSAL_HEAD = (
    b"HTTP/1.1 404 Not Found\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
)

_GOLDEN = 0.6180339887
"""Its multiples, without what is before the point, lie evenly between 0 and 1, however many there
are; so the streams' beats lie in one pace."""

asked: dict[Transport, int] = {"http": 0, "websocket": 0}
timer = cache(Timer)


class Speaking:
    """One answer under way."""

    __slots__ = ("_began", "_ends", "_pace_ns", "_plan", "_said", "_transport", "_whole")

    def __init__(self, transport: asyncio.Transport, plan: Plan, over: Transport) -> None:
        asked[over] += 1
        told = script(plan.events, over, plan.stamped)
        self._whole, self._ends = told.answer(), told.ends
        self._transport, self._plan = transport, plan
        self._pace_ns, self._said = plan.pace_ms * 1_000_000, 0
        ahead = int(self._pace_ns * (sum(asked.values()) * _GOLDEN % 1))
        self._began = time.monotonic_ns() + ahead

    def speak(self) -> None:
        if not self._plan.pace_ms:
            self._transport.write(self._whole)
            return
        if self._transport.is_closing():
            return
        said = self._said
        event = self._whole[self._ends[said - 1] if said else 0 : self._ends[said]]
        self._transport.write(stamped_now(event) if self._plan.stamped else event)
        self._said = said = said + 1
        if said < len(self._ends):
            timer().call_at(self._began + said * self._pace_ns, self.speak)


class Connection(asyncio.Protocol):
    def __init__(self) -> None:
        self._kept = b""
        self._frames: FrameReader | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is none by its class

    def data_received(self, data: bytes) -> None:
        if self._frames is not None:
            self._heard(self._frames, data)
            return
        self._kept += data
        head, gap, body = self._kept.partition(b"\r\n\r\n")
        if not gap:
            return
        if key := _KEY.search(head):
            self._upgrade(key[1], body)
            return
        length = _LENGTH.search(head)
        needed = int(length[1]) if length else 0
        if len(body) >= needed:
            self._kept = body[needed:]
            self._answer(body[:needed])

    def _answer(self, request: bytes) -> None:
        plan = planned_in(request)
        if plan is None:
            self._transport.write(_REFUSAL_HEAD % len(_REFUSAL) + _REFUSAL)
            return
        self._transport.write(_STREAM_HEAD)
        Speaking(self._transport, plan, "http").speak()

    def _upgrade(self, key: bytes, rest: bytes) -> None:
        self._transport.write(
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Accept: %s\r\n\r\n" % accepted(key)
        )
        self._frames = FrameReader()
        self._heard(self._frames, rest)

    def _heard(self, frames: FrameReader, data: bytes) -> None:
        for opcode, payload in frames.read(data):
            plan = planned_in(payload) if opcode == TEXT else None
            if plan is not None:
                Speaking(self._transport, plan, "websocket").speak()


def _tell() -> None:
    for _ in sys.stdin:
        print(json.dumps(asked), flush=True)
    os._exit(0)


async def main() -> None:
    server = await asyncio.get_running_loop().create_server(
        Connection, "127.0.0.1", 0, backlog=1024
    )
    print(json.dumps(server.sockets[0].getsockname()[1]), flush=True)
    threading.Thread(target=_tell, daemon=True).start()
    await server.serve_forever()


if __name__ == "__main__":
    run_on_uvloop(main())
