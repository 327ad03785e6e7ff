"""What went over the wire, both ways, and which rules were broken.

An entry is cheap to keep: the bytes that were sent are held as they are and only made readable
when somebody reads. The oldest fall out beyond `MOST_RECORDED_BYTES`; how many is told. Text of a
client is made such that every entry can be written as JSON."""

import logging
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, TextIO

import msgspec

from lockstitch.emulator.decoding import decoded
from lockstitch.emulator.events import Event
from lockstitch.emulator.limits import (
    LONGEST_RECORDED_LINE_CHARACTERS,
    MOST_COUNTED_LINES,
    MOST_RECORDED_BYTES,
)
from lockstitch.emulator.refusals import Refused, shortened

# Headers and parameters whose value is a secret are recorded by name alone: those with such a word
# in their name, or such an ending.
SECRET_WORDS = ("auth", "cookie")
SECRET_ENDINGS = ("key", "token", "secret", "password")
# A browser has no other place for its key than the WebSocket's subprotocols.
SECRET_NAMES = frozenset({"sec-websocket-protocol"})
# These only end like one.
NOT_SECRET = frozenset({"idempotency-key", "sec-websocket-key"})
SECRET = "[secret]"
# Where requests are counted whose line is one too many.
OTHERS = "(others)"
# What one entry costs beside its bytes, so that empty frames count too.
_ENTRY_BYTES = 200

_encode = msgspec.json.Encoder().encode

log = logging.getLogger("lockstitch.emulator")


Headers = tuple[tuple[str, str], ...]
# Events that went out together: when, on which connection, as what, which, and their bytes.
Together = tuple[float, int, str, tuple[Event, ...], int]


class Entry(NamedTuple):
    """One thing that went over the wire. `sent` is from the emulator to the client."""

    number: int
    at: float
    connection: int
    sent: bool
    # request, response, frame (WebSocket), event (SSE), upgrade, close, cut
    kind: str
    # `POST /v1/responses`, a status, an event's name, or how the connection ended
    what: str
    data: bytes = b""
    headers: Headers = ()
    # The rule it broke, if it broke one; the fault that did it, if one did.
    broke: str | None = None
    fault: str | None = None
    # What stood after the `?` of a request's path.
    query: str = ""

    @property
    def size(self) -> int:
        """What it costs to keep, in bytes."""
        headers = sum(len(name) + len(value) for name, value in self.headers)
        return _ENTRY_BYTES + len(self.data) + len(self.query) + headers

    def readable(self) -> dict[str, Any]:
        """The entry as JSON can hold it; a body that is no JSON is given as text."""
        said: dict[str, Any] = {
            "number": self.number,
            "at": round(self.at, 6),
            "connection": self.connection,
            "direction": "out" if self.sent else "in",
            "kind": self.kind,
            "what": self.what,
        }
        if self.query:
            said["query"] = self.query
        if self.headers:
            said["headers"] = [list(header) for header in self.headers]
        if self.data:
            said["data"] = json_in(self.data)
        if self.broke:
            said["broke"] = self.broke
        if self.fault:
            said["fault"] = self.fault
        return said


def _entries_of(row: "Entry | Together", number: int) -> Iterator[Entry]:
    """The entries of a row, the first of them with this number."""
    if isinstance(row, Entry):
        yield row
        return
    at, connection, kind, events, _ = row
    for place, event in enumerate(events, number):
        yield Entry(place, at, connection, True, kind, event.name, event.data)


def json_in(data: bytes) -> Any:
    """The JSON of a body, a frame or an event; its text if it is none."""
    try:
        return decoded(data)
    except Refused:
        return data.decode("utf-8", "replace")


def public(headers: Any) -> Headers:
    """The headers without their secrets."""
    return tuple(
        (readable(str(name)), SECRET if is_secret(name) else readable(value))
        for name, value in headers.items()
    )


def public_query(query: str) -> str:
    """A query string, as it was sent, without its secrets."""
    parts = []
    for part in query.split("&"):
        name, equals, _ = part.partition("=")
        parts.append(f"{name}={SECRET}" if equals and is_secret(name) else part)
    return readable("&".join(parts))


def is_secret(name: str) -> bool:
    """Whether a header or parameter of this name holds a secret."""
    name = name.lower().replace("_", "-")
    if name in NOT_SECRET:
        return False
    if name in SECRET_NAMES or any(word in name for word in SECRET_WORDS):
        return True
    return name.endswith(SECRET_ENDINGS)


def readable(text: str) -> str:
    """Text that UTF-8 can hold: a byte that was none is spelled out."""
    return shortened(text, len(text))


class Record:
    """The entries of one run, and their totals."""

    def __init__(self, now: Callable[[], float], file: TextIO | None = None) -> None:
        self._now = now
        self._file = file
        self.unwritten: str | None = None
        """Why the file takes no more, if it does not."""
        self._watcher: Callable[[Entry], None] | None = None
        # Somebody wants each entry at once.
        self._heard = file is not None
        self._connections = 0
        self.reset()

    def watch(self, watcher: Callable[[Entry], None]) -> None:
        """Call `watcher` with each entry from now on."""
        self._watcher = watcher
        self._heard = True

    def reset(self) -> None:
        """Forget all. Connections that are open keep their numbers, and no other gets them."""
        self._rows: deque[Entry | Together] = deque()
        self._count = 0
        self._bytes = 0
        self.dropped = 0
        self.requests: Counter[str] = Counter()
        self.broken: Counter[str] = Counter()
        self.struck: Counter[str] = Counter()

    def connection(self) -> int:
        """A number for a connection or, over HTTP, for one exchange."""
        self._connections += 1
        return self._connections

    def received(  # noqa: PLR0917
        self,
        connection: int,
        kind: str,
        what: str,
        data: bytes = b"",
        headers: Headers = (),
        query: str = "",
    ) -> None:
        what = shortened(what, LONGEST_RECORDED_LINE_CHARACTERS)
        counted = what in self.requests or len(self.requests) < MOST_COUNTED_LINES
        self.requests[what if counted else OTHERS] += 1
        self._add(connection, False, kind, what, data, headers, query=query)

    def sent(self, connection: int, kind: str, what: str, data: bytes = b"") -> None:
        self._add(connection, True, kind, what, data)

    def refused(self, connection: int, rule: str, kind: str, what: str, data: bytes) -> None:
        """A refusal that was sent, and the rule that the client broke.

        A refusal that a fault asked for is nobody's fault."""
        if rule == "fault":
            self.sent(connection, kind, what, data)
            return
        self.broken[rule] += 1
        self._add(connection, True, kind, what, data, broke=rule)

    def struck_by(self, connection: int, fault: str, what: str, data: bytes = b"") -> None:
        self.struck[fault] += 1
        self._add(connection, True, "fault", what, data, fault=fault)

    def events(self, connection: int, kind: str, events: tuple[Event, ...], size: int) -> None:
        """What `sent` does, for events that go out together: nearly all that is recorded.

        They are one row, and `size` bytes; they become entries when somebody reads them."""
        self._rows.append((self._now(), connection, kind, events, size))
        self._count += len(events)
        self._bytes += size
        if self._heard or self._bytes > MOST_RECORDED_BYTES:
            self._added()

    def entries(self) -> Iterator[Entry]:
        """What is still recorded, oldest first."""
        number = self.dropped
        for row in self._rows:
            for entry in _entries_of(row, number + 1):
                number = entry.number
                yield entry

    def _add(  # noqa: PLR0917
        self,
        connection: int,
        sent: bool,
        kind: str,
        what: str,
        data: bytes,
        headers: Headers = (),
        broke: str | None = None,
        fault: str | None = None,
        query: str = "",
    ) -> None:
        self._count += 1
        at = self._now()
        entry = Entry(
            self._count, at, connection, sent, kind, what, data, headers, broke, fault, query
        )
        self._rows.append(entry)
        self._bytes += entry.size
        self._added()

    def _added(self) -> None:
        """Tell whoever listens of what is new, and drop what is too old."""
        rows = self._rows
        if self._heard:
            newest = rows[-1]
            first = self._count - (0 if isinstance(newest, Entry) else len(newest[3]) - 1)
            for entry in _entries_of(newest, first):
                self._tell(entry)
        while self._bytes > MOST_RECORDED_BYTES and len(rows) > 1:
            oldest = rows.popleft()
            if isinstance(oldest, Entry):
                self._bytes -= oldest.size
                self.dropped += 1
            else:
                self._bytes -= oldest[4]
                self.dropped += len(oldest[3])

    def _tell(self, entry: Entry) -> None:
        if self._watcher is not None:
            self._watcher(entry)
        if self._file is not None:
            with self._writing():
                self._file.write(_encode(entry.readable()).decode() + "\n")

    def flush(self) -> None:
        """What was recorded is in the file. Called when an exchange ends."""
        if self._file is not None:
            with self._writing():
                self._file.flush()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as problem:  # the disk is full: that is no reason to fail a client
            self._file = None
            self._heard = self._watcher is not None
            self.unwritten = problem.strerror or str(problem)
            log.error("the record cannot be written: %s", self.unwritten)

    def __repr__(self) -> str:
        entries, refusals = self._count, self.broken.total()
        return f"<Record {entries} entries, {refusals} refusals>"
