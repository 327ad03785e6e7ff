"""Writing a Codex rollout back: mended items, whole lines, ordinals that rise by one."""

from __future__ import annotations

import re
from typing import IO, Any, Final

import msgspec

from lockstitch.core import rules
from lockstitch.core.families import Family
from lockstitch.core.findings import Finding
from lockstitch.core.items import Place
from lockstitch.core.mending import Policy
from lockstitch.core.outcomes import Settlement
from lockstitch.dialects.base import Wire
from lockstitch.dialects.responses import Responses
from lockstitch.sessions.line_writing import LineWriter
from lockstitch.sessions.model import Change, Scan
from lockstitch.sessions.source import Source


def write(source: Source, out: IO[bytes], scan: Scan, policy: Policy) -> list[Change]:
    """Write the rollout with the findings of ``scan`` mended."""
    paginated = bool(scan.facts)
    findings = scan.conversations[0].findings
    writer = LineWriter(scan, _Rollout(), _Envelope(paginated), policy)
    headless = any(finding.rule is rules.NO_HEADER for finding in findings)
    miscounted = [finding for finding in findings if finding.rule is rules.ORDINAL]
    if writer.idle and not headless and not miscounted:
        return []
    numbering = _Numbering() if paginated else None
    if headless:
        header = _header(source, paginated)
        line = msgspec.json.encode(header) + b"\n"
        out.write(numbering(line, True) if numbering else line)
        writer.log.add(
            Change(
                code=rules.NO_HEADER.code,
                at=1,
                what="the rollout does not begin with a session_meta record: wrote one",
                after=[line],
            )
        )
    writer.write(source, out, numbering)
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

    def retype(self, wire: Wire, slot: int, family: Family) -> Wire:
        if not slot:
            return super().retype(wire, 0, family)
        return self._replace(wire, slot, [super().retype(self.read_slot(wire, slot), 0, family)])

    def rekey(self, wire: Wire, slot: int, old: str, new: str) -> Wire:
        if not slot:
            return super().rekey(wire, 0, old, new)
        return self._replace(wire, slot, [super().rekey(self.read_slot(wire, slot), 0, old, new)])

    def reword(self, wire: Wire, slot: int, said: Settlement) -> Wire:
        if not slot:
            return super().reword(wire, 0, said)
        return self._replace(wire, slot, [super().reword(self.read_slot(wire, slot), 0, said)])

    def strip_id(self, wire: Wire, slot: int) -> Wire:
        if not slot:
            return super().strip_id(wire, 0)
        return self._replace(wire, slot, [super().strip_id(self.read_slot(wire, slot), 0)])


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

    def __init__(self) -> None:
        self._next: int | None = None
        self._was = 0
        """The ordinal that the next line has, if the file was right so far."""

    def __call__(self, line: bytes, new: bool) -> bytes:
        ordinal = self._next
        if ordinal is None or new:
            return self._looked_at(line, new)
        # The usual line: {"timestamp":"2026-11-15T19:21:20.951Z","ordinal":7,… with the ordinal
        # that follows the one before. Anything else is looked at closely.
        was = self._was
        token = b'","ordinal":%d,' % was
        if not line.startswith(token, _AT) or line.find(b'"', len(_BEFORE)) != _AT:
            return self._looked_at(line, new)
        self._next = ordinal + 1
        self._was = was + 1
        if was == ordinal:
            return line
        return line[:_AT] + b'","ordinal":%d,' % ordinal + line[_AT + len(token) :]

    def _looked_at(self, line: bytes, new: bool) -> bytes:
        if not line.strip():
            return line
        record = msgspec.json.decode(line)
        had = record.get("ordinal")
        if not new:
            self._was = (had if isinstance(had, int) else self._was) + 1
        if self._next is None:
            self._next = had if isinstance(had, int) and not new else 0
        ordinal = self._next
        self._next += 1
        if had == ordinal:
            return line
        return msgspec.json.encode(_with_ordinal(record, ordinal)) + b"\n"


_BEFORE: Final = b'{"timestamp":"'
_AT: Final = len(_BEFORE) + len("2026-11-15T19:21:20.951Z")


def _with_ordinal(record: dict[str, Any], ordinal: int) -> dict[str, Any]:
    """The record with its ordinal where Codex writes it: behind the timestamp."""
    rest = {name: value for name, value in record.items() if name not in ("timestamp", "ordinal")}
    return {"timestamp": record.get("timestamp"), "ordinal": ordinal, **rest}


_THREAD: Final = re.compile(
    r"rollout-(\d{4}-\d\d-\d\d)T(\d\d)-(\d\d)-(\d\d)-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})"
)


def _header(source: Source, paginated: bool) -> dict[str, Any]:
    """A header from what the file's name and its first records still tell."""
    named = _THREAD.search(source.path.name)
    time, thread, cwd = "1970-01-01T00:00:00.000Z", "", ""
    if named is not None:
        time = f"{named[1]}T{named[2]}:{named[3]}:{named[4]}.000Z"
        thread = named[5]
    with source.open() as stream:
        for line in stream.read(1 << 20).split(b"\n"):
            try:
                record = msgspec.json.decode(line)
                payload = record["payload"]
                thread = thread or str(payload.get("thread_id") or "")
                if record["type"] == "turn_context" and not cwd:
                    cwd = str(payload.get("cwd") or "")
            except (
                msgspec.MsgspecError,
                UnicodeDecodeError,
                RecursionError,
                KeyError,
                TypeError,
                AttributeError,
            ):
                continue
    payload = {
        "id": thread or "00000000-0000-0000-0000-000000000000",
        "timestamp": time,
        "cwd": cwd,
        "originator": "lockstitch",
        "cli_version": "0.0.0",
        "source": "cli",
    }
    if paginated:
        payload["history_mode"] = "paginated"
    header: dict[str, Any] = {"timestamp": time}
    if paginated:
        header["ordinal"] = 0
    return {**header, "type": "session_meta", "payload": payload}
