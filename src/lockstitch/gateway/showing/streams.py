"""What one client sees of an answer: events in order, and some of them only when they are durable.

A stream outlives the attempts to fill it: it knows how much was shown, which decides whether an
attempt may be repeated. It keeps what it showed for a while, for a client that comes back."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

from lockstitch.gateway.deciding.retrying import Shown
from lockstitch.gateway.events import (
    ERROR,
    Heard,
    Splitter,
    as_sse,
    error_as_event,
    lone,
    without_stream_id,
)
from lockstitch.gateway.lines import Headers


class Sink(Protocol):
    """Where a client's events go to: an HTTP response, or a lane of a WebSocket."""

    passes: Callable[[bytes], None] | None
    """Takes an event as it came from an upstream that speaks as the client does: in its chunk of
    HTTP, or in the payload of its frame. None where that is not possible now."""
    framed: bool
    """Does the client speak WebSocket?"""

    def begin(self, status: int, headers: Headers) -> None: ...

    def show(self, block: bytes | None, events: Sequence[Heard]) -> None:
        """Events, with the bytes they came in if that was SSE."""
        ...

    def end(self) -> None: ...


LARGEST_LOG_BYTES = 4 * 1024 * 1024
"""The events of one response. One that is larger cannot be streamed again delta by delta."""


class Log:
    """The events of one response, as SSE, for who comes back."""

    def __init__(self) -> None:
        self.blocks: list[bytes] | None = []
        """None once it has grown too large to keep."""
        self.size = 0
        self.over = False
        self._followers: list[Callable[[bytes], None]] = []

    def add(self, block: bytes) -> None:
        if self.blocks is not None:
            self.blocks.append(block)
            self.size += len(block)
            if self.size > LARGEST_LOG_BYTES:
                self.drop()
        if self._followers:
            for tell in tuple(self._followers):  # one may stop while it is told
                tell(block)

    def end(self) -> None:
        self.over = True
        followers, self._followers = self._followers, []
        for tell in followers:
            tell(b"")

    def drop(self) -> None:
        self.blocks = None
        self.size = 0

    def since(self, number: int) -> bytes | None:
        """The events behind this sequence number; None if they are not kept."""
        if self.blocks is None:
            return None
        block, events = Splitter().feed(b"".join(self.blocks))
        for heard in events:
            at = heard.event.sequence_number
            if isinstance(at, int) and at > number:
                return block[heard.start :]
        return b""

    def follow(self, tell: Callable[[bytes], None]) -> Callable[[], None]:
        """Be told each further block, and an empty one at the end; what is returned stops it."""
        self._followers.append(tell)

        def stop() -> None:
            if tell in self._followers:
                self._followers.remove(tell)

        return stop


class Stream:
    """The events of one answer on their way to a client."""

    def __init__(self, sink: Sink, log: Log | None = None, *, visible: bool = True) -> None:
        self.sink = sink
        self.log = log
        self.visible = visible
        """Does the client see events as they come? One that asked for no stream sees nothing before
        the end."""
        self.shown = Shown.NOTHING
        self.begun = False
        """Has the head of the answer gone out?"""
        self._number = -1
        self._passed: bytes | None = None
        """The event that was passed on last, if its number was not looked at."""
        self.response: bytes = b""
        """The response as it was shown at its beginning."""
        self.events = 0
        self.broken: BaseException | None = None
        """Why what is held can never be shown."""
        self._held: deque[asyncio.Future[None] | tuple[bytes | None, Sequence[Heard]]] = deque()
        self._when_clear: asyncio.Future[None] | None = None

    @property
    def number(self) -> int:
        """The sequence number that was shown last."""
        if self._passed is not None:
            heard, self._passed = lone(self._passed), None
            if heard is not None:
                self._number = _last_number((heard,), self._number)
        return self._number

    def begin(self, status: int, headers: Headers) -> None:
        if not self.begun:
            self.begun = True
            self.sink.begin(status, headers)

    def show(self, block: bytes | None, events: Sequence[Heard]) -> None:
        """Show these events, behind all that is held."""
        if self.broken is not None:
            return  # what they stand behind was never shown
        if self._held:
            self._held.append((block, events))
            return
        self._out(block, events)

    def pass_on(self, raw: bytes, block: bytes, *, framed: bool = False) -> bool:
        """Show an event as it came, in its chunk or frame, if nothing is in its way. Was it shown?
        ``block`` is the event as a block of lines."""
        sink = self.sink
        passes = sink.passes
        if (
            passes is None
            or sink.framed is not framed
            or self._held
            or self.broken is not None
            or self.shown is not Shown.MORE
        ):
            return False
        self.events += 1
        self._passed = block
        if self.log is not None:
            self.log.add(block)
        passes(raw)
        return True

    def hold(self, until: asyncio.Future[None]) -> None:
        """Show nothing more before this is done."""
        self._held.append(until)
        until.add_done_callback(self._release)

    async def clear(self) -> None:
        """Wait until nothing is held any more. Raises what makes that impossible."""
        if self._held and self.broken is None:
            self._when_clear = asyncio.get_running_loop().create_future()
            await self._when_clear
        if self.broken is not None:
            raise self.broken

    def show_last(self, block: bytes, heard: Heard) -> None:
        """Show this, whatever is held: what could not be kept must not be seen."""
        self._held.clear()
        self._out(block, (heard,))

    def end(self) -> None:
        self.sink.end()
        if self.log is not None:
            self.log.end()

    def _release(self, done: asyncio.Future[None]) -> None:
        _failure(done)  # looked at, also where one before it failed
        held = self._held
        while held and self.broken is None:
            first = held[0]
            if isinstance(first, asyncio.Future):
                if not first.done():
                    return
                held.popleft()
                self.broken = _failure(first)
            else:
                held.popleft()
                self._out(*first)
        if self._when_clear is not None and not self._when_clear.done():
            self._when_clear.set_result(None)

    def _out(self, block: bytes | None, events: Sequence[Heard]) -> None:
        self.events += len(events)
        if events:
            self._number, self._passed = _last_number(events, self.number), None
        if self.log is not None:
            self.log.add(block if block is not None else _as_sse(events))
        self.sink.show(block, events)


def _failure(done: asyncio.Future[None]) -> BaseException | None:
    return asyncio.CancelledError() if done.cancelled() else done.exception()


def _last_number(events: Sequence[Heard], before: int) -> int:
    for heard in reversed(events):
        number = heard.event.sequence_number
        if isinstance(number, int):
            return number
    return before


def _as_sse(events: Sequence[Heard]) -> bytes:
    return b"".join(sse_of(heard) for heard in events)


def sse_of(heard: Heard) -> bytes:
    """An event of a WebSocket as it goes over SSE."""
    data = heard.data if heard.event.stream_id is None else without_stream_id(heard.data)
    if heard.event.type == ERROR:
        number = heard.event.sequence_number
        data = error_as_event(data, number if isinstance(number, int) else 0)
    return as_sse(heard.event.type, data)
