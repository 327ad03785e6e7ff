"""A stream of a response that an upstream keeps, asked for again, on its way to a reader.

Whole events pass. The event that ends the response is held back: whoever asked shows it when it
is written down how the response ended."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Self

from lockstitch.gateway.doors.reading import Newer, Reader
from lockstitch.gateway.events import ERROR, ITEM_DONE, TERMINAL, Heard, Splitter
from lockstitch.gateway.lines import Asking, Headers, Line, LineFailure, is_event_stream
from lockstitch.gateway.upstreams import Reached
from lockstitch.upstream.sse import EventTooLarge


class Resumed:
    """One such stream. It is the `Hearing` of its line."""

    def __init__(self, newer: Newer) -> None:
        self.last: Heard | None = None
        """The event that ended the response, once it was heard."""
        self.whole = False
        """Did the upstream end the stream, rather than break it off?"""
        self.numbers: dict[bytes, int] = {}
        """The sequence numbers of the items that were heard."""
        self._newer = newer
        self._is_stream: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._splitter = Splitter()
        self._blocks: deque[bytes] = deque()
        self._over = False
        self._news = asyncio.Event()
        self._line: Line | None = None

    @classmethod
    async def ask(cls, upstream: Reached, asking: Asking, newer: Newer) -> Self | None:
        """The stream; None if there is none to be had. Raises `LineFailure` if none began."""
        resumed = cls(newer)
        resumed._line = await upstream.ask(asking, resumed)
        try:
            if await resumed._is_stream:
                return resumed
        except BaseException:
            resumed._line.leave()
            raise
        resumed._line.leave()
        return None

    async def write_to(self, reader: Reader) -> None:
        """Write what comes, until the stream is over, well or not. Raises `ClientGone`."""
        assert self._line is not None
        reader.news.set()
        self._news = reader.news
        reader.hold_back(self._line)
        try:
            while True:
                reader.news.clear()
                if self._blocks:
                    part = self._newer.of(self._blocks.popleft())
                    if part:
                        await reader.write(part)
                elif self._over:
                    return
                else:
                    await reader.wait()
        finally:
            reader.let_go(self._line)
            self._line.leave()

    # What the line calls.

    def begun(self, status: int, headers: Headers) -> None:
        self._begin(status == 200 and is_event_stream(headers))

    def heard(self, data: bytes) -> None:
        if self._over:
            return
        try:
            block, events = self._splitter.feed(data)
        except EventTooLarge:
            self._end()
            return
        for heard in events:
            event = heard.event
            if event.type == ITEM_DONE and isinstance(event.sequence_number, int):
                self.numbers[bytes(event.item)] = event.sequence_number
            elif event.type in TERMINAL or event.type == ERROR:
                self.last = heard
                block = block[: heard.start]
                self._over = True
                break
        if block:
            self._blocks.append(block)
        self._news.set()

    def ended(self) -> None:
        self.whole = True
        self._end()

    def broke(self, failure: LineFailure) -> None:
        if not self._is_stream.done():
            self._is_stream.set_exception(failure)
        self._end()

    def _begin(self, is_stream: bool) -> None:
        if not self._is_stream.done():
            self._is_stream.set_result(is_stream)

    def _end(self) -> None:
        self._over = True
        self._begin(False)
        self._news.set()
