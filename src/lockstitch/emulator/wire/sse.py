"""Server-sent events on one HTTP response: the sink of every streaming HTTP answer."""

import asyncio
from collections.abc import Awaitable, Callable

from aiohttp import web

from lockstitch.emulator.events import Event
from lockstitch.emulator.faults import Fault
from lockstitch.emulator.wire.delivery import (
    ABNORMAL,
    RESET_GRACE_SECONDS,
    part_of,
    tear_down,
)
from lockstitch.emulator.wire.reception import Exchange


class SseSink:
    """Server-sent events on one HTTP response."""

    __slots__ = ("_cut", "_exchange", "_heads", "_named", "_record", "_response")

    def __init__(self, exchange: Exchange, *, named: bool = True) -> None:
        self._exchange = exchange
        self._record = exchange.world.record
        self._named = named
        # What stands before the JSON, for each name of event.
        self._heads: dict[str, bytes] = {}
        self._cut = False
        self._response = web.StreamResponse(
            headers={"Content-Type": "text/event-stream", "Cache-Control": "no-cache"}
        )

    async def open(self, headers: dict[str, str] | None = None) -> None:
        self._response.headers.update(headers or {})
        if self._exchange.lost is None:
            await self._response.prepare(self._exchange.request)
            self._exchange.streaming = True
            self._record.sent(self._exchange.connection, "response", "200")

    def framed(self, *events: Event) -> bytes:
        parts: list[bytes] = []
        for event in events:
            head = self._heads.get(event.name)
            if head is None:
                head = b"event: %b\ndata: " % event.name.encode() if self._named else b"data: "
                self._heads[event.name] = head
            parts += (head, event.data, b"\n\n")
        return b"".join(parts)

    async def send(self, *events: Event) -> None:
        if self._exchange.lost is not None:
            return
        framed = self.framed(*events)
        self._record.events(self._exchange.connection, "event", events, len(framed))
        await self._response.write(framed)

    async def drip(self, event: Event, size: int, pause: Callable[[], Awaitable[None]]) -> None:
        if self._exchange.lost is not None:
            return
        framed = self.framed(event)
        self._record.events(self._exchange.connection, "event", (event,), len(framed))
        for start in range(0, len(framed), size):
            await self._response.write(framed[start : start + size])
            await pause()

    async def cut(self, how: str, event: Event | None, fault: Fault) -> None:
        self._cut = True
        if event is not None and self._response.prepared:
            part = part_of(how, self.framed(event), event.data)
            if part:
                await self._response.write(part)
        if how == "close" and self._response.prepared:
            await self._response.write_eof()
        elif how == "reset":
            # What was said before the reset has to arrive: a reset discards unread bytes.
            await asyncio.sleep(RESET_GRACE_SECONDS)
            tear_down(self._exchange.request.transport)
        elif self._exchange.request.transport is not None:
            self._exchange.request.transport.close()

    async def close(self, code: int, fault: Fault) -> None:
        await self.cut("close" if code != ABNORMAL else "reset", None, fault)

    def struck(self, fault: Fault) -> None:
        self._record.struck_by(self._exchange.connection, fault.text, str(fault.point))

    async def end(self) -> web.StreamResponse:
        if self._exchange.lost is None and self._response.prepared and not self._cut:
            await self._response.write_eof()
        return self._response
