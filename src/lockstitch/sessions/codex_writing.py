"""Writing a Codex rollout back: mended items, whole lines, ordinals that rise by one.

Codex points into a rollout with ordinals by byte offset and by ordinal: its own index
(`thread_history_1.sqlite`) does, and every fork and every revert of the thread (`history_base`).
So bytes stay where they are, as far as that can be: a removed line leaves a line of its length, a
shortened one is filled up, and an output goes to the end if no message stands behind its call."""

from __future__ import annotations

import io
import re
from typing import Any, Final, NamedTuple

from lockstitch.core import rules
from lockstitch.core.families import Family
from lockstitch.core.findings import Finding
from lockstitch.core.items import Place
from lockstitch.core.mending import Policy
from lockstitch.core.outcomes import Settlement
from lockstitch.dialects.base import Wire
from lockstitch.dialects.responses import Responses
from lockstitch.sessions.line_writing import LineWriter
from lockstitch.sessions.lines import decoded, encoded, numbered_lines
from lockstitch.sessions.model import Change, Scan, Sink
from lockstitch.sessions.source import Source


class Numbers(NamedTuple):
    """What reading a rollout learned of its ordinals."""

    paginated: bool
    """It has ordinals."""
    spent: frozenset[int]
    """Lines that are torn and used up an ordinal: the line behind them skips one."""
    last_said: int
    """The last line that holds a message, reasoning or a compaction. An output for a call behind
    it can stand anywhere behind the call, at the end of the file too."""


def write(source: Source, out: Sink, scan: Scan, policy: Policy) -> list[Change]:
    """Write the rollout with the findings of ``scan`` mended."""
    paginated, spent, last_said = scan.facts
    findings = scan.conversations[0].findings
    writer = LineWriter(scan, _Rollout(), _Envelope(paginated), policy)
    headless = any(finding.rule is rules.NO_HEADER for finding in findings)
    miscounted = [finding for finding in findings if finding.rule is rules.ORDINAL]
    if writer.idle and not headless and not miscounted:
        return []
    torn = {finding.place.at for finding in findings if finding.rule is rules.UNDECODABLE}
    numbering = None
    if headless:
        header, first = _header(source, paginated)
        line = encoded(header)
        if paginated:
            numbering = _Numbering(torn, spent, first=first)
        if numbering is not None and 1 in torn:
            numbering.header = line  # it stands in place of what is left of the first line
        else:
            out.write(line)
        writer.log.add(
            Change(
                code=rules.NO_HEADER.code,
                at=1,
                what="the rollout does not begin with a session_meta record: wrote one",
                after=[line],
            )
        )
    elif paginated:
        numbering = _Numbering(torn, spent)
    if numbering is None:
        writer.write(source, out)  # nothing points into a file without ordinals
    else:
        writer.write(source, out, numbering, fill=numbering.fill, late=last_said)
    for finding in miscounted:
        writer.log.add(_renumbered(finding))
    return writer.log.all()


def _renumbered(finding: Finding) -> Change:
    return Change(
        code=finding.code, at=finding.place.at, what=f"{finding.detail}: numbered the lines anew"
    )


class _Rollout(Responses):
    """Responses items, and the items inside a `compacted` record: slot n is the n-th of them."""

    def read_slot(self, wire: Wire, slot: int) -> Wire:
        item: Wire = wire["replacement_history"][slot - 1]
        return item

    def _replace(self, wire: Wire, slot: int, items: list[Wire], *, drop: int = 1) -> Wire:
        """The compacted payload with one item replaced by these, its metadata kept in step."""
        history = list(wire["replacement_history"])
        history[slot - 1 : slot - 1 + drop] = items
        changed = {**wire, "replacement_history": history}
        metadata = wire.get("replacement_history_metadata")
        if isinstance(metadata, list) and len(metadata) == len(wire["replacement_history"]):
            metadata = list(metadata)
            kept = metadata[slot - 1 : slot] if drop and items else []
            metadata[slot - 1 : slot - 1 + drop] = kept or [
                {"client_authored": False} for _ in items
            ]
            changed["replacement_history_metadata"] = metadata
        return changed

    def take(self, wire: Wire, slots: set[int]) -> tuple[Wire | None, list[Wire]]:
        if slots == {0}:
            return super().take(wire, slots)
        taken = [self.read_slot(wire, slot) for slot in sorted(slots)]
        for slot in sorted(slots, reverse=True):
            wire = self._replace(wire, slot, [])
        return wire, taken

    def beside(self, family: Family, after: Place) -> bool:
        return after.slot > 0

    def put_beside(self, wire: Wire, slot: int, output: Wire) -> Wire:
        return self._replace(wire, slot + 1, [output], drop=0)

    def retype(self, wire: Wire, slot: int, family: Family, name: str | None = None) -> Wire:
        if not slot:
            return super().retype(wire, 0, family, name)
        item = super().retype(self.read_slot(wire, slot), 0, family, name)
        return self._replace(wire, slot, [item])

    def rekey(self, wire: Wire, slot: int, old: str, new: str) -> Wire:
        if not slot:
            return super().rekey(wire, 0, old, new)
        return self._replace(wire, slot, [super().rekey(self.read_slot(wire, slot), 0, old, new)])

    def reword(self, wire: Wire, slot: int, said: Settlement) -> Wire:
        if not slot:
            return super().reword(wire, 0, said)
        return self._replace(wire, slot, [super().reword(self.read_slot(wire, slot), 0, said)])

    def strip_id(self, wire: Wire, slot: int, nth: int = 2) -> Wire:
        if not slot:
            return super().strip_id(wire, 0, nth)
        return self._replace(wire, slot, [super().strip_id(self.read_slot(wire, slot), 0, nth)])


class _Envelope:
    """`{timestamp, ordinal?, type, payload}`."""

    def __init__(self, paginated: bool) -> None:
        self._paginated = paginated

    def open(self, record: dict[str, Any]) -> Wire:
        payload: Wire = record["payload"]
        return payload

    def close(self, record: dict[str, Any], wire: Wire) -> dict[str, Any]:
        return {**record, "payload": wire}

    def drop(self, record: dict[str, Any]) -> None:
        pass  # nothing refers to a line

    def make(self, record: dict[str, Any], wire: Wire) -> dict[str, Any]:
        # The time of the call: the same file must always be mended to the same bytes.
        new: dict[str, Any] = {"timestamp": record.get("timestamp")}
        if self._paginated:
            new["ordinal"] = 0  # numbered when it is written
        return {**new, "type": "response_item", "payload": wire}

    def make_before(self, record: dict[str, Any], wire: Wire) -> dict[str, Any]:
        return self.make(record, wire)


class _Numbering:
    """Ordinals that rise by one from the first line's; a line that is right keeps its bytes."""

    def __init__(self, torn: set[int], spent: frozenset[int], *, first: int | None = None) -> None:
        self._torn = torn
        self._spent = spent
        self._next = first
        self._was = first or 0
        """The ordinal that the next line has, if the file was right so far."""
        self.header = b""
        """What the first line to be filled is filled with."""

    def one(self, line: bytes, new: bool) -> bytes:
        return self._looked_at(line, new)

    def many(self, block: list[bytes]) -> list[bytes]:
        """The usual line is {"timestamp":"2026-11-15T19:21:20.951Z","ordinal":7,… with the ordinal
        that follows the one before. Anything else is looked at closely."""
        written: list[bytes] = []
        was, ordinal = self._was, self._next
        for line in block:
            if line.isspace():
                written.append(line)
                continue
            token = b'","ordinal":%d,' % was
            usual = line.startswith(token, _AT) and line.find(b'"', len(_BEFORE)) == _AT
            if not usual or ordinal is None:
                self._was, self._next = was, ordinal
                written.append(self._looked_at(line, False))
                was, ordinal = self._was, self._next
                continue
            if was != ordinal:
                rest = line[_AT + len(token) :]
                changed = b'%b","ordinal":%d,%b' % (line[:_AT], ordinal, rest)
                size = len(line)
                written.append(changed if len(changed) >= size else _stretched(changed, size))
            else:
                written.append(line)
            was += 1
            ordinal += 1
        self._was, self._next = was, ordinal
        return written

    def fill(self, number: int, line: bytes) -> bytes:
        """A line that says nothing, as long as the removed one: a note with its ordinal, or
        spaces where it had none of its own."""
        length = len(line.rstrip(b"\r\n"))
        if self.header:
            header, self.header = self.header, b""
            return header[:-1].ljust(length) + b"\n"
        head = _HEAD.match(line)
        had = int(head[2]) if head is not None else self._was
        torn = number in self._torn
        if self._next is None or ((had < self._was or torn) and number not in self._spent):
            return b" " * length + b"\n"
        time = head[1] if head is not None else b"1970-01-01T00:00:00.000Z"
        note = _NOTE % (time, self._next)
        self._was = (self._was if torn else had) + 1
        self._next += 1
        return note.ljust(length) + b"\n"

    def _looked_at(self, line: bytes, new: bool) -> bytes:
        if not line.strip():
            return line
        record = decoded(line)
        had = record.get("ordinal")
        if had.__class__ is not int:  # not even `true` or `7.0`, which Python takes for numbers
            had = None
        if not new or had:  # a changed line has its ordinal, a new one has 0
            self._was = (self._was if had is None else had) + 1
        if self._next is None:
            self._next = had if had is not None and not new else 0
        ordinal = self._next
        self._next += 1
        if had == ordinal:
            return line
        return _stretched(encoded(_with_ordinal(record, ordinal)), len(line))


_BEFORE: Final = b'{"timestamp":"'
_HEAD: Final = re.compile(rb'\{"timestamp":"([0-9TZ:.+-]{20,32})","ordinal":([0-9]{1,15}),')
_NOTE: Final = (
    b'{"timestamp":"%b","ordinal":%d,"type":"event_msg","payload":'
    b'{"type":"warning","message":"[lockstitch] A record was removed here."}}'
)
"""An event that Codex reads and does nothing about."""
_AT: Final = len(_BEFORE) + len("2026-11-15T19:21:20.951Z")


def _stretched(line: bytes, length: int) -> bytes:
    """The line with spaces behind it, where it must be longer."""
    return line[:-1].ljust(length - 1) + b"\n" if line.endswith(b"\n") else line.ljust(length)


def _with_ordinal(record: dict[str, Any], ordinal: int) -> dict[str, Any]:
    """The record with its ordinal where Codex writes it: behind the timestamp."""
    rest = {name: value for name, value in record.items() if name not in ("timestamp", "ordinal")}
    return {"timestamp": record.get("timestamp"), "ordinal": ordinal, **rest}


_THREAD: Final = re.compile(
    r"rollout-(\d{4}-\d\d-\d\d)T(\d\d)-(\d\d)-(\d\d)-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})"
)


def _header(source: Source, paginated: bool) -> tuple[dict[str, Any], int]:
    """A header from what the file's name and its first records still tell, and the ordinal of the
    record behind it.

    Codex 0.166 takes a session_meta only with a record timestamp and with id, timestamp, cwd,
    originator and cli_version in its payload; without one of them it starts a new thread."""
    named = _THREAD.search(source.path.name)
    time = thread = cwd = ""
    first: int | None = None
    with source.open() as stream:
        for _, line in numbered_lines(io.BytesIO(stream.read(1 << 20)), source.name):
            try:
                record = decoded(line)
                payload = record["payload"]
                # The name of the file has the time too, but in the writer's own time zone.
                time = time or str(record.get("timestamp") or "")
                thread = thread or str(payload.get("thread_id") or "")
                if first is None and isinstance(record.get("ordinal"), int):
                    first = record["ordinal"]
                if record["type"] == "turn_context" and not cwd:
                    cwd = str(payload.get("cwd") or "")
            except (
                ValueError,
                RecursionError,
                KeyError,
                TypeError,
                AttributeError,
            ):
                continue
    if named is not None:
        time = time or f"{named[1]}T{named[2]}:{named[3]}:{named[4]}.000Z"
        thread = named[5]
    time = time or "1970-01-01T00:00:00.000Z"
    payload = {
        "id": thread or "00000000-0000-0000-0000-000000000000",
        "timestamp": time,
        "cwd": cwd,
        "originator": "lockstitch",
        "cli_version": "0.0.0",
        "source": "cli",
    }
    header: dict[str, Any] = {"timestamp": time}
    first = max(first or 1, 1)
    if paginated:
        payload["history_mode"] = "paginated"
        header["ordinal"] = first - 1
    return {**header, "type": "session_meta", "payload": payload}, first
