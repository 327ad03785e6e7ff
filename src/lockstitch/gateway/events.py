"""Events of the Responses API as the gateway sees them: peeked at, and handed on as they came.

Bytes in, whole events out, with their bytes. Over SSE an event is a block of lines; in a WebSocket
it is a frame. Pure; who writes them where is in `streams`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from lockstitch.dialects.characters import read_whole, whole_characters
from lockstitch.dialects.reading import UNREADABLE
from lockstitch.upstream.sse import LARGEST_EVENT_BYTES, EventTooLarge

CREATED: Final = "response.created"
QUEUED: Final = "response.queued"
IN_PROGRESS: Final = "response.in_progress"
ITEM_DONE: Final = "response.output_item.done"
COMPLETED: Final = "response.completed"
INCOMPLETE: Final = "response.incomplete"
FAILED: Final = "response.failed"
CANCELLED: Final = "response.cancelled"
ERROR: Final = "error"

BEGINNING: Final = frozenset({CREATED, QUEUED, IN_PROGRESS})
"""Events that say that there is a response, and nothing of what it says."""

TERMINAL: Final = frozenset({COMPLETED, INCOMPLETE, FAILED, CANCELLED})
"""Events that end a response."""

WATCHED: Final = BEGINNING | TERMINAL | {ITEM_DONE, ERROR}
"""Events that anything follows from. All others only pass."""

_NONE: Final = Raw(b"")


class Event(Struct, gc=False):
    """What is read of an event. A field that an unknown event may use for something else is
    anything."""

    type: str = ""
    sequence_number: Any = None
    output_index: Any = None
    stream_id: Any = None
    item: Raw = _NONE
    response: Raw = _NONE
    error: Raw = _NONE


class Heard(Struct, gc=False):
    """One whole event."""

    event: Event
    data: bytes
    """Its JSON, as it came."""
    start: int = 0
    """Where it begins in the bytes it came with."""


_decode = msgspec.json.Decoder(Event).decode
_MUTE: Final = Event()

_UNREAD: Final = object()
"""In place of a sequence number that nobody has asked for yet."""


def number_of(heard: Heard) -> int | None:
    """The sequence number of an event, if it has one."""
    number = heard.event.sequence_number
    if number is _UNREAD:
        number = peeked(heard.data).sequence_number
    return number if isinstance(number, int) else None


def peeked(data: bytes) -> Event:
    """What is read of an event. Of what is no JSON object nothing is, and it passes."""
    try:
        return _decode(data)
    except UNREADABLE:
        return _peeked_again(data)


def _peeked_again(data: bytes) -> Event:
    try:
        return _decode(whole_characters(data))
    except UNREADABLE:
        return _MUTE


# As numbers: to look for one byte as bytes takes ten times as long.
_LINE_FEED: Final = 10
_CARRIAGE_RETURN: Final = 13


def lone(block: bytes) -> Heard | None:
    """The event in these bytes, if they are one event with one line of data; None where they may be
    anything else. It is how models speak, word by word, and how nearly everything comes."""
    at = block.find(b"data:")
    if (
        at < 0
        or not block.startswith(b"data: {", at)
        or block.find(b"\n", at) != len(block) - 2
        or block[-1] != _LINE_FEED
        or (at and block[at - 1] != _LINE_FEED)
        or _CARRIAGE_RETURN in block
    ):
        return None
    data = block[at + 6 : -2]
    try:
        return Heard(_decode(data), data)
    except UNREADABLE:
        return None


_PLAIN: Final = rb'\{"type": ?"(response\.(?!output_item\.done")[a-z_]+\.[a-z_.]+)",'
"""All events that are watched have a name of one word, but for that of an item."""

_PLAIN_BEGINNING: Final = re.compile(
    rb"([0-9a-f]{1,6})\r\n(?:event: [a-z_.]+\n)?data: " + _PLAIN
).match
_PLAIN_END: Final = b"}\n\n\r\n"
_AROUND_A_CHUNK: Final = 4

BEGINNINGS_KNOWN: Final = 4096
"""Of chunks and frames that are shorter than this: words of a model are, and there are no more."""

_beginnings: Final[dict[int, tuple[bytes, int]]] = {}
"""What a plain chunk of so many bytes began with, the last time, and how long that is. Most begin
as one before them, with the same length and the same type: that is told in a tenth of the time."""


def is_plain(chunk: bytes) -> bool:
    """Is this a whole chunk of HTTP, with one event that nothing follows from, as from nearly all?
    No, where it may be anything else."""
    known = _beginnings.get(len(chunk))
    # Cut out and compared: a method of bytes takes longer, much of it for its arguments.
    if known is None or chunk[: known[1]] != known[0]:
        known = _plain_beginning(chunk)
        if known is None:
            return False
    # All behind the beginning is one line. A carriage return would end it, too.
    line = chunk[known[1] : -5]
    return chunk[-5:] == _PLAIN_END and _LINE_FEED not in line and _CARRIAGE_RETURN not in line


def _plain_beginning(chunk: bytes) -> tuple[bytes, int] | None:
    """Up to where the type of the event ends, if it is plain, and the length true; and how long
    that is."""
    found = _PLAIN_BEGINNING(chunk)
    if found is None:
        return None
    length, size = found[1], len(chunk)
    if int(length, 16) + len(length) + _AROUND_A_CHUNK != size:
        return None
    beginning = (found[0], found.end())
    if size < BEGINNINGS_KNOWN:
        _beginnings[size] = beginning
    return beginning


def block_in_chunk(chunk: bytes) -> bytes:
    """The block of lines in a chunk that is plain."""
    return chunk[chunk.index(b"\n") + 1 : -2]


_PLAIN_FRAME: Final = re.compile(_PLAIN).match

_frame_beginnings: Final[dict[int, tuple[bytes, int]]] = {}
"""The same for frames, which have no length of their own before them."""


def is_plain_frame(payload: bytes) -> bool:
    """Is this an event that nothing follows from, and that belongs to no lane? No, where it may be
    anything else."""
    known = _frame_beginnings.get(len(payload))
    if known is None or payload[: known[1]] != known[0]:
        found = _PLAIN_FRAME(payload)
        if found is None:
            return False
        if len(payload) < BEGINNINGS_KNOWN:
            _frame_beginnings[len(payload)] = (found[0], found.end())
    return (
        payload.find(b'"stream_id"') < 0
        and _LINE_FEED not in payload
        and _CARRIAGE_RETURN not in payload
    )


def block_in_frame(payload: bytes) -> bytes:
    """The block of lines for an event in a frame, if all of it belongs there: no name of a lane."""
    return as_sse(peeked(payload).type, payload)


class Splitter:
    """One SSE stream, as it comes in pieces of any size."""

    __slots__ = ("_briefly", "_looked", "rest", "watched")

    def __init__(self, *, briefly: bool = False) -> None:
        """``briefly``: of events that nothing follows from only the type is read, and `number_of`
        reads on."""
        self._briefly = briefly
        self.watched: Sequence[int] = ()
        """Which of the events that were split last something follows from, by their places; where
        they are read ``briefly``."""
        self.rest = bytearray()
        """The beginning of an event whose end has not come."""
        self._looked = 0
        """How much of the rest is known to hold no end of an event."""

    def feed(self, piece: bytes) -> tuple[bytes, list[Heard]]:
        """The bytes of the events that are whole now, and the events. Comments have bytes too."""
        self.watched = ()
        rest = self.rest
        if rest:
            rest += piece
            end = _end(rest, max(self._looked - LONGEST_END_BYTES, 0))
            if end < 0:
                self._wait()
                return b"", []
            piece = bytes(rest[:end])
            del rest[:end]
        else:
            end = _end(piece, 0)
            if end != len(piece):
                rest += piece[max(end, 0) :]
            if end < 0:
                self._wait()
                return b"", []
            if rest:
                piece = piece[:end]
        self._looked = 0
        if not self._briefly:
            return piece, _split(piece)
        heard, self.watched = _split_briefly(piece)
        return piece, heard

    def _wait(self) -> None:
        self._looked = len(self.rest)
        if self._looked > LARGEST_EVENT_BYTES:
            raise EventTooLarge(f"An event is larger than {LARGEST_EVENT_BYTES:,} bytes")


LONGEST_END_BYTES: Final = 4
"""An event ends with an empty line: two line ends, each of which may be CR, LF, or both."""

_ENDS: Final = re.compile(rb"(?:\r\n|\n|\r(?!\n))(?:\r\n|\n|\r(?!\n))")
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"


def _end(data: bytes | bytearray, start: int) -> int:
    """Where the last whole event ends; -1 if none does."""
    if data.find(b"\r", start) < 0:
        found = data.rfind(b"\n\n", start)
        return found + 2 if found >= 0 else -1
    end = -1
    for match in _ENDS.finditer(data, start):
        end = match.end()
    return end


def _split(block: bytes) -> list[Heard]:
    if _CARRIAGE_RETURN in block:
        return _split_lines(block)
    heard: list[Heard] = []
    start = 0
    for part in block.split(b"\n\n"):
        at = part.find(b"data:")
        if (
            at >= 0
            and part.startswith(b"data: {", at)
            and (at == 0 or part[at - 1] == _LINE_FEED)
            and part.find(b"\n", at) < 0
        ):
            data = part[at + 6 :]
        else:
            data = _data(part)
        if data:
            # As `peeked` does: a burst is hundreds of these.
            try:
                event = _decode(data)
            except UNREADABLE:
                event = _peeked_again(data)
            heard.append(Heard(event, data, start))
        start += len(part) + 2
    return heard


def _split_briefly(block: bytes) -> tuple[list[Heard], list[int]]:
    """The same, but of events that nothing follows from only the type is read. And the places of
    those that something follows from."""
    watched: list[int] = []
    if _CARRIAGE_RETURN in block:
        heard = _split_lines(block)
        watched += [n for n, one in enumerate(heard) if one.event.type in WATCHED]
        return heard, watched
    heard = []
    add = heard.append
    start, size = 0, len(block)
    head, at, end, event = _NO_HEAD
    while start < size:
        # A burst is hundreds of events. Most begin as the one before, and end with the line.
        if block.startswith(head, start):
            stop = block.find(b"\n", start + end)
            if block.startswith(b"\n\n", stop):
                add(Heard(event, block[start + at : stop], start))
                start = stop + 2
                continue
        stop = block.find(b"\n\n", start)
        part = block[start : stop if stop >= 0 else size]
        if data := _data(part):
            one = peeked(data)
            if one.type in WATCHED:
                watched.append(len(heard))
            add(Heard(one, data, start))
            head, at, end, event = _head(part, one)
        start += len(part) + 2
    return heard, watched


_NO_HEAD: Final = (b"\r", 0, 0, _MUTE)
"""Nothing that is split there begins so."""

_PLAIN_LINES: Final = re.compile(rb"(?:event: [a-z_.]+\n)?data: " + _PLAIN).match


def _head(part: bytes, event: Event) -> tuple[bytes, int, int, Event]:
    """What events of the same type begin with, if nothing follows from them; where their data
    begins, where the head ends, and what is read of them."""
    found = _PLAIN_LINES(part)
    if found is None or found[1] != event.type.encode():
        return _NO_HEAD
    data = found[0].index(b"{")
    return found[0], data, found.end(), Event(type=event.type, sequence_number=_UNREAD)


def _data(part: bytes) -> bytes:
    """What stands behind `data:`. Nearly every event is one name and one line of data."""
    part = part.removeprefix(_BYTE_ORDER_MARK)
    if part.startswith(b"data:"):
        data = part[5:]
    else:
        at = part.find(b"\ndata:")
        if at < 0:
            return b""
        data = part[at + 6 :]
    if _LINE_FEED in data:
        lines = (line for line in part.split(b"\n") if line.startswith(b"data:"))
        return b"\n".join(line[5:].removeprefix(b" ") for line in lines)
    return data.removeprefix(b" ")


def _split_lines(block: bytes) -> list[Heard]:
    """The same for lines that end with CR, or in both ways."""
    heard: list[Heard] = []
    start = 0
    for match in _ENDS.finditer(block):
        lines = block[start : match.start()].replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        data = _data(lines)
        if data:
            heard.append(Heard(peeked(data), data, start))
        start = match.end()
    return heard


def as_sse(type: str, data: bytes) -> bytes:
    """An event as a block of lines. JSON has no line feeds of its own unless it was set out in
    lines; then they are white space. A type that is no word cannot be a line."""
    if _LINE_FEED in data or _CARRIAGE_RETURN in data:
        data = data.replace(b"\r", b" ").replace(b"\n", b" ")
    if not type.isascii() or not type.isprintable():
        return b"data: %b\n\n" % data
    return b"event: %b\ndata: %b\n\n" % (type.encode(), data)


def with_stream_id(data: bytes, stream_id: str) -> bytes:
    """An event as it goes to a lane of a WebSocket. What is no object goes as it is."""
    event = peeked(data)
    if event is _MUTE or event.stream_id is not None:
        try:
            return changed(data, {"stream_id": stream_id})
        except UNREADABLE:
            return data
    named = b'{"stream_id":' + msgspec.json.encode(stream_id)
    rest = data.lstrip()[1:].lstrip()
    return named + (rest if rest.startswith(b"}") else b"," + rest)


def error_as_frame(data: bytes) -> bytes:
    """An `error` event of a stream in the form that it has in a WebSocket."""
    event = peeked(data)
    if event.error or event is _MUTE:
        return data
    said = fields_of(data)
    inner = {"type": Raw(b'"server_error"'), **_some(said, "code", "message", "param")}
    frame = {"type": ERROR, "status": STREAM_ERROR_STATUS, "error": inner}
    return msgspec.json.encode(frame | _some(said, "sequence_number", "stream_id"))


def _some(fields: dict[str, Raw], *names: str) -> dict[str, Raw]:
    return {name: fields[name] for name in names if name in fields}


def error_as_event(data: bytes, number: int) -> bytes:
    """An error frame of a WebSocket in the form that it has in a stream of events."""
    event = peeked(data)
    if not event.error:
        return data
    try:
        inner = fields_of(bytes(event.error))
    except UNREADABLE:
        return data
    none = Raw(b"null")
    code = inner.get("code", none)
    flat = {
        "type": ERROR,
        "code": inner.get("type", none) if bytes(code) == b"null" else code,
        "message": inner.get("message", none),
        "param": inner.get("param", none),
        "sequence_number": number,
    }
    return msgspec.json.encode(flat)


STREAM_ERROR_STATUS: Final = 500
"""An event has no status; what failed in the middle of an answer failed at the server."""

_decode_fields: Final = msgspec.json.Decoder(dict[str, Raw]).decode


def fields_of(data: bytes | Raw) -> dict[str, Raw]:
    """The fields of a JSON object, each value as it came, but for halves of characters
    (`whole_characters`). Raises what is `UNREADABLE`."""
    return read_whole(_decode_fields, bytes(data))


def without_stream_id(data: bytes) -> bytes:
    """An event of a lane as it goes over SSE."""
    return changed(data, {}, drop=("stream_id",))


def changed(data: bytes, fields: dict[str, Any], *, drop: Iterable[str] = ()) -> bytes:
    """A JSON object with these fields set; the bytes of all others stay as they came."""
    found = fields_of(data)
    for name in drop:
        found.pop(name, None)
    for name, value in fields.items():
        found[name] = value if isinstance(value, Raw) else Raw(msgspec.json.encode(value))
    return msgspec.json.encode(found)


def with_response(data: bytes, fields: dict[str, Any]) -> bytes:
    """An event whose response has these fields set."""
    response = peeked(data).response
    if not response or not fields:
        return data
    return changed(data, {"response": Raw(changed(bytes(response), fields))})


class Body(Struct, gc=False):
    """What is read of a response."""

    id: str | None = None
    status: str | None = None
    model: Any = None
    output: list[Raw] | None = None
    error: Any = None
    previous_response_id: Any = None


_bodies = msgspec.json.Decoder(Body)


def body_of(response: Raw | bytes) -> Body:
    """What is read of a response; nothing, where it is none."""
    try:
        return read_whole(_bodies.decode, bytes(response) or b"{}")
    except UNREADABLE:
        return Body()
