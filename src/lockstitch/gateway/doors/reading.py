"""A client that reads a stream again, at its own pace.

What it is to read is there already, or comes slowly: whoever writes waits for it, so that no more
than one mark's worth is held for a client that does not read. Live answers go another way, in
which nobody is woken for an event (`sinks`)."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final, Self

from aiohttp import web

from lockstitch.gateway.events import Splitter
from lockstitch.gateway.headers import to_client
from lockstitch.gateway.lines import Line
from lockstitch.gateway.responding.attempts import EVENT_STREAM
from lockstitch.gateway.showing.streams import Log
from lockstitch.gateway.wire import ClientStream, Flow
from lockstitch.gateway.world import Caller, World

AWAKE = b": waiting\n\n"
"""A comment, so that nobody on the way takes a silent connection for a dead one."""

AWAKE_SECONDS: Final = 15.0
"""How often a client that waits is told so. Most proxies give up after a silent minute."""


class ClientGone(Exception):
    """The client went away, or was given up."""


class Reader:
    """One such client. To its own flow it is the line that is held back."""

    def __init__(self, client: ClientStream, caller: Caller, *, patience_seconds: float) -> None:
        self._client = client
        self._caller = caller
        self._free = asyncio.Event()
        self._free.set()
        self._gone = False
        self.news = asyncio.Event()
        """Set by whoever has something to write; and if the client goes away."""
        self._flow = Flow(client, self._lost, patience_seconds=patience_seconds)
        self._flow.follow(self)

    @classmethod
    async def begin(cls, world: World, caller: Caller, request: web.BaseRequest) -> Self:
        """Send the head of a stream. Raises `ClientGone`."""
        limits = world.config.limits
        try:
            client = await ClientStream.begin(
                request,
                200,
                to_client(EVENT_STREAM, caller.own_headers),
                high_water=limits.unread_bytes,
                low_water=limits.drained_bytes,
            )
        except ConnectionError:
            raise ClientGone from None
        return cls(client, caller, patience_seconds=limits.unread_seconds)

    async def write(self, block: bytes) -> None:
        """Write whole events, and wait until there is room for more. Raises `ClientGone`."""
        self._check()
        self._client.write(block)
        await self._free.wait()
        self._check()

    async def wait(self, seconds: float | None = None) -> bool:
        """Wait for news, for so long; did any come? Raises `ClientGone`."""
        try:
            async with asyncio.timeout(seconds):
                await self.news.wait()
        except TimeoutError:
            pass
        self._check()
        return self.news.is_set()

    def hold_back(self, line: Line) -> None:
        """This line fills it: it is paused with the client."""
        self._flow.follow(line)

    def let_go(self, line: Line) -> None:
        self._flow.forget(line)

    def end(self) -> web.StreamResponse:
        """The stream is over; what the door returns."""
        self._flow.stop()
        self._client.end()
        return self._client.response

    # What the flow calls.

    def pause(self) -> None:
        self._free.clear()

    def resume(self) -> None:
        self._free.set()

    def leave(self) -> None:
        self._lost()

    def _lost(self) -> None:
        self._gone = True
        self._free.set()
        self.news.set()

    def _check(self) -> None:
        if self._gone or self._client.gone:
            raise ClientGone


class Newer:
    """Passes the events behind a sequence number, and remembers the last that it saw."""

    def __init__(self, after: int) -> None:
        self._after = after
        self.number = after
        """The last that the client has."""
        self.told = False
        """Did any pass?"""
        self.seen = -1
        """The last that came by here; -1 for none."""

    def of(self, block: bytes) -> bytes:
        """What of a block of whole events the client does not have."""
        whole, events = Splitter().feed(block)
        if not events:
            return whole  # a comment
        start: int | None = None
        for heard in events:
            at = heard.event.sequence_number
            if isinstance(at, int):
                self.seen = at
                is_new = at > self._after
            else:
                is_new = self.seen >= self._after  # it belongs where it stands
            if is_new and start is None:
                start = heard.start
        self.number = max(self.number, self.seen)
        self.told = self.told or start is not None
        return b"" if start is None else whole[start:]


async def follow(reader: Reader, log: Log, newer: Newer, *, most_waiting_bytes: int) -> bool:
    """Write what a log has and gets, until it is over. False, if a part of it was dropped before
    the client could read it. Raises `ClientGone`."""
    if log.blocks is None:
        return False
    added, taken = len(log.blocks), 0
    late: deque[bytes] = deque()
    """What comes when the log is not kept any more."""
    waiting_bytes = 0

    def tell(block: bytes) -> None:
        nonlocal added, waiting_bytes
        if log.blocks is not None:
            added = len(log.blocks)
        elif waiting_bytes <= most_waiting_bytes:
            late.append(block)
            waiting_bytes += len(block)
        reader.news.set()

    stop = log.follow(tell)
    try:
        while True:
            reader.news.clear()
            blocks = log.blocks
            if blocks is None and (taken < added or waiting_bytes > most_waiting_bytes):
                return False
            if blocks is not None and taken < len(blocks):
                block = blocks[taken]
                taken += 1
            elif late:
                block = late.popleft()
                waiting_bytes -= len(block)
            elif log.over:
                return True
            else:
                await reader.wait()
                continue
            part = newer.of(block)
            if part:
                await reader.write(part)
    finally:
        stop()
