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
    number_of,
    without_stream_id,
)
from lockstitch.gateway.lines import Headers
from lockstitch.gateway.showing.passages import Passage, block_of


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
        self.passage = Passage()
        """What it has passed on belongs behind the blocks."""
        self._blocks: list[bytes] | None = []
        self._raw: list[range] = []
        """Which of the blocks are as they came: nobody has asked for their lines."""
        self._size = 0
        self.over = False
        self._followers: list[Callable[[bytes], None]] = []

    @property
    def kept(self) -> bool:
        """Not once it has grown too large."""
        self._put_away()
        return self._blocks is not None

    @property
    def blocks(self) -> list[bytes] | None:
        """Lines of whole events; None if they are not kept."""
        self._put_away()
        blocks = self._blocks
        if blocks is not None and self._raw:
            for places in self._raw:
                blocks[places.start : places.stop] = map(
                    block_of, blocks[places.start : places.stop]
                )
            self._raw.clear()
        return blocks

    @property
    def size(self) -> int:
        """How many bytes came to be kept."""
        self._put_away()
        return self._size

    @property
    def followed(self) -> bool:
        return bool(self._followers)

    def add(self, block: bytes) -> None:
        self._put_away()
        self._keep((block,))
        if self._followers:
            for tell in tuple(self._followers):  # one may stop while it is told
                tell(block)

    def add_frames(self, events: Sequence[Heard]) -> None:
        """Events that came in frames."""
        if self._followers or not all(map(_is_its_own_line, events)):
            self.add(b"".join(map(sse_of, events)))
        else:
            self._put_away()
            self._keep([heard.data for heard in events], raw=True)

    def end(self) -> None:
        self._put_away()
        self.over = True
        followers, self._followers = self._followers, []
        for tell in followers:
            tell(b"")

    def _put_away(self) -> None:
        if self.passage.waiting:
            self._keep(self.passage.put_away(), raw=True)

    def _keep(self, blocks: Sequence[bytes], *, raw: bool = False) -> None:
        kept = self._blocks
        if kept is None:
            return
        if raw:
            self._raw.append(range(len(kept), len(kept) + len(blocks)))
        kept += blocks
        self._size += sum(map(len, blocks))
        if self._size > LARGEST_LOG_BYTES:
            self.drop()

    def drop(self) -> None:
        self._blocks = None
        self._raw.clear()
        self._size = 0

    def since(self, number: int) -> bytes | None:
        """The events behind this sequence number; None if they are not kept."""
        blocks = self.blocks
        if blocks is None:
            return None
        block, events = Splitter().feed(b"".join(blocks))
        for heard in events:
            at = heard.event.sequence_number
            if isinstance(at, int) and at > number:
                return block[heard.start :]
        return b""

    def follow(self, tell: Callable[[bytes], None]) -> Callable[[], None]:
        """Be told each further block, and an empty one at the end; what is returned stops it."""
        self._put_away()
        self.passage.close()
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
        self.response: bytes = b""
        """The response as it was shown at its beginning."""
        self._events = 0
        self._passage = log.passage if log is not None else Passage()
        self.broken: BaseException | None = None
        """Why what is held can never be shown."""
        self._held: deque[asyncio.Future[None] | tuple[bytes | None, Sequence[Heard]]] = deque()
        self._when_clear: asyncio.Future[None] | None = None

    @property
    def events(self) -> int:
        """How many events were shown."""
        return self._events + self._passage.events

    @property
    def number(self) -> int:
        """The sequence number that was shown last."""
        passage = self._passage
        last = passage.waiting[-1] if passage.waiting else passage.last
        heard = None if last is None else lone(block_of(last))
        number = None if heard is None else number_of(heard)
        return self._number if number is None else number

    def _number_behind(self, events: Sequence[Heard]) -> int:
        for heard in reversed(events):
            number = number_of(heard)
            if number is not None:
                return number
        return self.number

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

    def passage(self, *, framed: bool) -> Passage:
        """The short way for events of a line that speaks so, open if nothing is in the way now."""
        sink, log = self.sink, self.log
        if (
            sink.framed is not framed
            or log is None
            or log.followed
            or self._held
            or self.broken is not None
            or self.shown is not Shown.MORE
        ):
            self._passage.close()
        else:
            self._passage.open(sink.passes)
        return self._passage

    def hold(self, until: asyncio.Future[None]) -> None:
        """Show nothing more before this is done."""
        self._passage.close()
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
        self._events += len(events)
        if events:
            # Nearly always the last one has a number, and it was read.
            number = events[-1].event.sequence_number
            self._number = number if type(number) is int else self._number_behind(events)
        if self.log is not None:
            if block is None:
                self.log.add_frames(events)
            else:
                self.log.add(block)
            self._passage.last = None
        self.sink.show(block, events)


def _failure(done: asyncio.Future[None]) -> BaseException | None:
    return asyncio.CancelledError() if done.cancelled() else done.exception()


def _is_its_own_line(heard: Heard) -> bool:
    """Does an event of a WebSocket go over SSE with its very bytes? `block_of` finds it so."""
    event = heard.event
    return event.stream_id is None and event.type != ERROR and heard.data.startswith(b"{")


def sse_of(heard: Heard) -> bytes:
    """An event of a WebSocket as it goes over SSE."""
    data = heard.data if heard.event.stream_id is None else without_stream_id(heard.data)
    if heard.event.type == ERROR:
        number = heard.event.sequence_number
        data = error_as_event(data, number if isinstance(number, int) else 0)
    return as_sse(heard.event.type, data)
