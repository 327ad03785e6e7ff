"""A stream of a response that an upstream keeps, asked for again, on its way to a reader.

Whole events pass, up to the first call that the journal does not have. That, all behind it, and the
event that ends the response are held back: whoever asked shows them when it is written down how the
response ended."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence

from lockstitch.core.errors import NotAnItem
from lockstitch.dialects.reading import UNREADABLE
from lockstitch.gateway.deciding.listing import id_of
from lockstitch.gateway.doors.reading import AWAKE, AWAKE_SECONDS, Newer, Reader
from lockstitch.gateway.events import ERROR, ITEM_DONE, TERMINAL, Heard, Splitter, number_of
from lockstitch.gateway.keeping.exchanges import is_call
from lockstitch.gateway.lines import Asking, Headers, Line, LineFailure, is_event_stream
from lockstitch.gateway.upstreams import Reached
from lockstitch.upstream.sse import EventTooLarge


class Resumed:
    """One such stream. It is the `Hearing` of its line."""

    def __init__(self, newer: Newer, kept: Sequence[bytes], *, most_held_bytes: int) -> None:
        """``kept`` are the items that the journal has."""
        self.held: list[bytes] = []
        """The blocks that wait for the end."""
        self.calls: list[bytes] = []
        """The calls in them that the journal did not have."""
        self.last: Heard | None = None
        """The event that ended the response, once it was heard."""
        self.whole = False
        """Is there no use in asking for the rest? The upstream ended the stream, rather than break
        it off; or more would have to be held than may be."""
        self.items: dict[bytes, int | None] = {}
        """The items that were heard, each with the sequence number of its event."""
        self._newer = newer
        self._kept = {id_of(item) for item in kept} - {None}
        self._room = most_held_bytes
        self._is_stream: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._splitter = Splitter()
        self._blocks: deque[bytes] = deque()
        self._over = False
        self._news = asyncio.Event()
        self._line: Line | None = None

    async def ask(self, upstream: Reached, asking: Asking) -> bool:
        """Is there such a stream? Raises `LineFailure` if nothing began."""
        self._line = await upstream.ask(asking, self)
        is_stream = False
        try:
            is_stream = await self._is_stream
        finally:
            if not is_stream:
                self._line.leave()
        return is_stream

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
                elif not self.calls:
                    await reader.wait()
                elif not await reader.wait(AWAKE_SECONDS):
                    await reader.write(AWAKE)
        finally:
            reader.let_go(self._line)

    def leave(self) -> None:
        """Nobody reads it any more."""
        if self._line is not None:
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
        # A comment passes in any case: it keeps the connection awake.
        free = 0 if self.calls and events else len(block)
        for heard in events:
            event = heard.event
            if event.type == ITEM_DONE:
                item = bytes(event.item)
                self.items[item] = number_of(heard)
                if self._must_be_kept(item):
                    free = min(free, heard.start)
                    self.calls.append(item)
            elif event.type in TERMINAL or event.type == ERROR:
                self.last = heard
                block = block[: heard.start]
                self._over = True
                break
        if block[:free]:
            self._blocks.append(block[:free])
        self._hold(block[free:])
        self._news.set()

    def ended(self) -> None:
        self.whole = True
        self._end()

    def broke(self, failure: LineFailure) -> None:
        if not self._is_stream.done():
            self._is_stream.set_exception(failure)
        self._end()

    def _must_be_kept(self, item: bytes) -> bool:
        """Is it a call that the journal does not have? A client may run it at once."""
        try:
            return is_call(item) and id_of(item) not in self._kept
        except (NotAnItem, *UNREADABLE):
            return False  # nothing is promised of what is no item

    def _hold(self, block: bytes) -> None:
        if block:
            self.held.append(block)
            self._room -= len(block)
            if self._room < 0:
                self.last, self.whole = None, True
                self.held.clear()
                self._end()

    def _begin(self, is_stream: bool) -> None:
        if not self._is_stream.done():
            self._is_stream.set_result(is_stream)

    def _end(self) -> None:
        self._over = True
        self._begin(False)
        self._news.set()
