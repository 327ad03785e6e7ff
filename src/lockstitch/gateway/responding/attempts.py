"""One try at an answer: hears a line to an upstream, shows it to the client, writes it down.

An event that nothing follows from passes in the same block of bytes that it came in. What is to be
done after a try that failed is decided in `retrying`; who tries is `answering`."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

from lockstitch.dialects.reading import UNREADABLE
from lockstitch.gateway.deciding.retrying import Shown
from lockstitch.gateway.events import (
    BEGINNING,
    CREATED,
    ERROR,
    FAILED,
    ITEM_DONE,
    TERMINAL,
    WATCHED,
    Heard,
    Splitter,
    as_sse,
    body_of,
    lone,
    peeked,
    with_response,
)
from lockstitch.gateway.keeping.recordings import Recording
from lockstitch.gateway.lines import Headers, LineFailure, is_event_stream
from lockstitch.gateway.responding.passing import Collected, Whole
from lockstitch.gateway.showing.streams import Stream
from lockstitch.upstream.said import Said, said_in, said_in_frame
from lockstitch.upstream.sse import EventTooLarge

EVENT_STREAM: Headers = (
    ("content-type", "text/event-stream; charset=utf-8"),
    ("cache-control", "no-cache"),
)
"""For events that came over a WebSocket, which has no heads."""


class Ended(Struct, frozen=True):
    """The answer was streamed to its end."""


class Refused(Struct, frozen=True):
    """The upstream gave up before anything was said, in an event."""

    said: Said
    heard: Heard


class Broken(Struct, frozen=True):
    """The line broke, or ended before the answer did."""

    failure: LineFailure


Outcome: TypeAlias = Whole | Ended | Refused | Broken


QUIET = BEGINNING | TERMINAL | {ERROR}
"""Events that say nothing of an answer but that it begins or ends."""


_ALONE = (0,)
"""The place of an event that came by itself."""


class _Then(Enum):
    """What is done with one event."""

    PASS = "pass"
    DROP = "drop"
    HOLD = "hold"
    STOP = "stop"


class Attempt:
    """Listens to one answer. It is the `Hearing` of a line."""

    def __init__(
        self,
        stream: Stream,
        recording: Recording,
        *,
        framed: bool = False,
        restored: Mapping[str, Any] | None = None,
    ) -> None:
        self.stream = stream
        self.recording = recording
        self.outcome: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self.begins: float | None = None
        """When the first bytes of the answer came, on the loop's clock."""
        self._pieces = 0
        self._framed = framed
        self._passage = passage = stream.passage(framed=framed)
        self.passed, self.passed_frame = passage.chunk, passage.frame
        self._again = stream.shown is not Shown.NOTHING
        self.restored = dict(restored or {})
        """Fields of the response that say what the client asked, where the upstream was asked
        otherwise."""
        self._splitter = Splitter(briefly=True)
        self._told: Collected | None = None
        """What there is of an answer that comes whole."""
        self._status = 200
        self.headers: Headers = EVENT_STREAM

    # --- what the line calls -------------------------------------------------------------------

    def begun(self, status: int, headers: Headers) -> None:
        self.begins = asyncio.get_running_loop().time()
        self._status, self.headers = status, headers
        if status != 200 or not is_event_stream(headers):
            self._told = Collected(status, headers)

    def heard(self, data: bytes) -> None:
        if self.outcome.done():
            return
        self._pieces += 1
        if self._told is not None:
            try:
                self._told.add(data)
            except LineFailure as failure:
                self._end(Broken(failure))
            return
        self._hear(data)
        if self._splitter.rest or self.outcome.done():
            self._passage.close()
        else:
            self.stream.passage(framed=self._framed)

    def _hear(self, data: bytes) -> None:
        block: bytes | None
        events: Sequence[Heard]
        watched: Sequence[int]
        if self._framed:
            if self.begins is None:  # a frame has no head before it
                self.begins = asyncio.get_running_loop().time()
            one = Heard(peeked(data), data)
            block, events, watched = None, (one,), _ALONE if one.event.type in WATCHED else ()
        elif not self._splitter.rest and (found := lone(data)) is not None:
            block, events, watched = data, (found,), _ALONE if found.event.type in WATCHED else ()
        else:
            try:
                block, events = self._splitter.feed(data)
                watched = self._splitter.watched
            except EventTooLarge as error:
                self._end(Broken(LineFailure(f"{error}.", sent=True)))
                return
        if watched:
            self._watch(block, events, watched)
        elif events:
            if self.stream.shown is Shown.MORE:
                self.stream.show(block, events)
            else:
                self._show(block, events, Shown.MORE)
        elif block and self.stream.begun:
            self.stream.show(block, ())  # a comment, to keep the connection awake

    @property
    def pieces(self) -> int:
        """How often anything was heard."""
        return self._pieces + self._passage.events

    def ended(self) -> None:
        if self.outcome.done():
            return
        if self._told is not None:
            self._end(self._told.whole())
        else:
            self._end(Broken(LineFailure("The stream ended before the answer did.", sent=True)))

    def broke(self, failure: LineFailure) -> None:
        if not self.outcome.done():
            self._end(Broken(failure))

    # --- what follows from an event ------------------------------------------------------------

    def _watch(self, block: bytes | None, events: Sequence[Heard], watched: Sequence[int]) -> None:
        """``watched``: where something follows from an event."""
        waiting = 0
        """The first event of the block that was not dealt with."""
        shown = self.stream.shown
        for before, n in enumerate(watched):
            heard = events[n]
            # All that is not watched says something.
            if self.stream.visible and (n > before or heard.event.type not in QUIET):
                shown = Shown.MORE
            then, told = self._decide(heard, shown)
            if then is _Then.PASS and told is heard:
                continue
            self._show_part(block, events, waiting, n)
            waiting = n + 1
            if then is _Then.STOP:
                self._end(Refused(self._said(heard), heard))
                return
            if then is _Then.HOLD:
                durable = self.recording.durable()
                if durable is not None:
                    self.stream.hold(durable)
            if told is heard and then is not _Then.DROP:
                self._show_part(block, events, n, n + 1)
            elif then is not _Then.DROP:
                self._show_one(told, block is not None)
            if heard.event.type in TERMINAL or heard.event.type == ERROR:
                self._end(Ended())
                return
        self._show_part(block, events, waiting, len(events))

    def _decide(self, heard: Heard, shown: Shown) -> tuple[_Then, Heard]:
        event = heard.event
        number = event.sequence_number if isinstance(event.sequence_number, int) else None
        if event.type == ITEM_DONE:
            index = event.output_index if isinstance(event.output_index, int) else None
            must = self.recording.done(bytes(event.item), index, number) if event.item else False
            return (_Then.HOLD if must else _Then.PASS), heard
        if event.type in BEGINNING:
            if event.type == CREATED:
                response = body_of(event.response).id
                if response is not None:
                    self.recording.opened(response)
            if self._again:
                return _Then.DROP, heard  # it was tried before: the client knows that it began
            told = self.restore(heard)
            if event.type == CREATED:
                self.stream.response = bytes(told.event.response)
            return _Then.PASS, told
        if event.type == ERROR:
            if shown is not Shown.MORE:
                return _Then.STOP, heard
            self.recording.cut()
            return _Then.HOLD, heard  # it ends the stream, as a terminal event would
        if event.type == FAILED and shown is not Shown.MORE:
            return _Then.STOP, heard
        told = self.restore(heard)
        self.recording.ended(event.type, number, told.event.response)
        return _Then.HOLD, told

    def restore(self, heard: Heard) -> Heard:
        """An event whose response says of its request what the client asked."""
        if not self.restored:
            return heard
        try:
            data = with_response(heard.data, self.restored)
        except UNREADABLE:
            return heard
        return Heard(peeked(data), data)

    def _said(self, heard: Heard) -> Said:
        if heard.event.type == FAILED:
            return said_in(body_of(heard.event.response).error or {})
        try:
            body = msgspec.json.decode(heard.data)
        except UNREADABLE:
            return Said()
        return said_in_frame(body) if self._framed else said_in(body)

    # --- showing -------------------------------------------------------------------------------

    def _show_part(
        self, block: bytes | None, events: Sequence[Heard], start: int, end: int
    ) -> None:
        part = events[start:end]
        if not part:
            return
        if block is not None:
            to = events[end].start if end < len(events) else len(block)
            block = block[part[0].start : to]
        shown = Shown.BEGUN
        for heard in part:
            if heard.event.type not in BEGINNING:
                shown = Shown.MORE
                break
        self._show(block, part, shown)

    def _show_one(self, heard: Heard, as_lines: bool) -> None:
        """An event that is not as it came."""
        block = as_sse(heard.event.type, heard.data) if as_lines else None
        more = heard.event.type not in BEGINNING
        self._show(block, (heard,), Shown.MORE if more else Shown.BEGUN)

    def _show(self, block: bytes | None, events: Sequence[Heard], shown: Shown) -> None:
        stream = self.stream
        if not stream.begun:
            stream.begin(self._status, self.headers)
        if stream.visible:
            stream.shown = max(stream.shown, shown)
        stream.show(block, events)

    def _end(self, outcome: Outcome) -> None:
        self._passage.close()
        if not self.outcome.done():
            self.outcome.set_result(outcome)
