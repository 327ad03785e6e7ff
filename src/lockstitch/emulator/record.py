"""What went over the wire, both ways, and which rules were broken.

An entry is cheap to keep: the bytes that were sent are held as they are and only made readable
when somebody reads. The oldest fall out beyond `MOST_RECORDED_BYTES`; how many is told."""

from collections import Counter, deque
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TextIO

import msgspec

from lockstitch.emulator.limits import MOST_RECORDED_BYTES

# Headers whose value is a secret: recorded by name alone.
# A browser has no other place for its key than the WebSocket's subprotocols.
SECRET_HEADERS = frozenset(
    {
        "authorization",
        "x-api-key",
        "api-key",
        "cookie",
        "set-cookie",
        "sec-websocket-protocol",
    }
)
# What one entry costs beside its bytes, so that empty frames count too.
_ENTRY_BYTES = 200

_encode = msgspec.json.Encoder().encode


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
    headers: tuple[tuple[str, str], ...] = ()
    # The rule it broke, if it broke one; the fault that did it, if one did.
    broke: str | None = None
    fault: str | None = None

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
        if self.headers:
            said["headers"] = [list(header) for header in self.headers]
        if self.data:
            said["data"] = json_in(self.data)
        if self.broke:
            said["broke"] = self.broke
        if self.fault:
            said["fault"] = self.fault
        return said


def json_in(data: bytes) -> Any:
    """The JSON of a body, a frame or an SSE event; its text if it is none."""
    for start in (0, data.find(b"data: ") + 6):
        try:
            return msgspec.json.decode(data[start:])
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            continue
    return data.decode("utf-8", "replace")


def public(headers: Any) -> tuple[tuple[str, str], ...]:
    """The headers without their secrets."""
    return tuple(
        (name, "[secret]" if name.lower() in SECRET_HEADERS else value)
        for name, value in headers.items()
    )


class Record:
    """The entries of one run, and their totals."""

    def __init__(self, now: Callable[[], float], file: TextIO | None = None) -> None:
        self._now = now
        self._file = file
        # Called with each entry, for whoever looks on.
        self.watch: Callable[[Entry], None] | None = None
        self.reset()

    def reset(self) -> None:
        self._entries: deque[Entry] = deque()
        self._bytes = 0
        self._connections = 0
        self.dropped = 0
        self.requests: Counter[str] = Counter()
        self.broken: Counter[str] = Counter()
        self.struck: Counter[str] = Counter()
        self._number = 0

    def connection(self) -> int:
        """A number for a connection or, over HTTP, for one exchange."""
        self._connections += 1
        return self._connections

    def received(
        self,
        connection: int,
        kind: str,
        what: str,
        data: bytes = b"",
        headers: tuple[tuple[str, str], ...] = (),
    ) -> None:
        self.requests[what] += 1
        self._add(connection, False, kind, what, data, headers)

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

    def entries(self) -> Iterator[Entry]:
        return iter(self._entries)

    def _add(  # noqa: PLR0917
        self,
        connection: int,
        sent: bool,
        kind: str,
        what: str,
        data: bytes,
        headers: tuple[tuple[str, str], ...] = (),
        broke: str | None = None,
        fault: str | None = None,
    ) -> None:
        self._number += 1
        entry = Entry(
            self._number,
            self._now(),
            connection,
            sent,
            kind,
            what,
            data,
            headers,
            broke,
            fault,
        )
        self._entries.append(entry)
        self._bytes += len(data) + _ENTRY_BYTES
        while self._bytes > MOST_RECORDED_BYTES and len(self._entries) > 1:
            gone = self._entries.popleft()
            self._bytes -= len(gone.data) + _ENTRY_BYTES
            self.dropped += 1
        if self.watch is not None:
            self.watch(entry)
        if self._file is not None:
            self._file.write(_encode(entry.readable()).decode() + "\n")

    def flush(self) -> None:
        """What was recorded is in the file. Called when an exchange ends."""
        if self._file is not None:
            self._file.flush()

    def __repr__(self) -> str:
        return f"<Record {self._number} entries, {sum(self.broken.values())} refusals>"
