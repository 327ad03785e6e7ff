"""Writing a line format with its edits: untouched lines go through byte for byte.

A format says how a wire item sits in its record (`Envelope`); everything else is the same for
all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import IO, Any, Protocol

import msgspec

from lockstitch.core import mending, rules
from lockstitch.core.findings import Finding
from lockstitch.core.items import Place
from lockstitch.core.mending import Edit, Policy
from lockstitch.dialects.base import Dialect, Wire
from lockstitch.dialects.rewriting import Rewriter
from lockstitch.sessions.changes import ChangeLog
from lockstitch.sessions.lines import BLOCK_BYTES, lines
from lockstitch.sessions.model import Scan
from lockstitch.sessions.source import Source


class Envelope(Protocol):
    """How a format wraps wire items into records."""

    def open(self, record: dict[str, Any]) -> Wire:
        """The wire item of a record."""
        ...

    def close(self, record: dict[str, Any], wire: Wire) -> dict[str, Any]:
        """The record with another wire item in it."""
        ...

    def drop(self, record: dict[str, Any]) -> None:
        """Take note that the record is not written."""
        ...

    def make(self, record: dict[str, Any], wire: Wire) -> dict[str, Any]:
        """A new record for a wire item that follows ``record``."""
        ...

    def make_before(self, record: dict[str, Any], wire: Wire) -> dict[str, Any]:
        """A new record for a wire item that stands before ``record``."""
        ...


Touch = Callable[[bytes, bool], bytes]
"""Last touch on every line that is written: its bytes, and whether it is new or changed."""


class LineWriter:
    """A plan over the lines of one file."""

    def __init__(self, scan: Scan, dialect: Dialect, envelope: Envelope, policy: Policy) -> None:
        self._envelope = envelope
        self.log = ChangeLog(scan)
        edits: list[Edit] = []
        captured: dict[Place, Wire] = {}
        self._torn: dict[int, tuple[Finding, str]] = {}
        for conversation in scan.conversations:
            planned = mending.plan(conversation.findings, policy)
            edits += planned
            self.log.expect(planned, conversation.label)
            captured.update(conversation.captured)
            for finding in conversation.findings:
                if finding.rule is rules.UNDECODABLE:
                    self._torn[finding.place.at] = (finding, conversation.label)
        self._rewriter = Rewriter(dialect, edits, captured, first=1)
        self._busy = {*self._torn, *self._rewriter.positions()}

    @property
    def idle(self) -> bool:
        """Is there nothing to do?"""
        return not self._busy

    def write(self, source: Source, out: IO[bytes], touch: Touch | None = None) -> None:
        busy = self._busy
        pending: list[bytes] = []
        number = size = 0
        with source.open() as stream:
            for line in lines(stream, source.name):
                number += 1
                if number not in busy:
                    written = line if touch is None else touch(line, False)
                    pending.append(written)
                    size += len(written)
                    if size > BLOCK_BYTES:
                        out.write(b"".join(pending))
                        pending.clear()
                        size = 0
                elif number in self._torn:
                    finding, label = self._torn[number]
                    self.log.removed(finding, line, label)
                else:
                    pending += self._rewritten(number, line, touch)
        out.write(b"".join(pending))

    def _rewritten(self, number: int, line: bytes, touch: Touch | None) -> list[bytes]:
        record = msgspec.json.decode(line)
        wire = self._envelope.open(record)
        left, arrivals, ahead = self._rewriter.rewrite(number, wire)
        if left is None:
            self._envelope.drop(record)
        written = [(_line(self._envelope.make_before(record, one)), True) for one in ahead]
        if left is wire:
            # A last line without a newline gets one: the next record would be glued on.
            whole = line if line.endswith(b"\n") or not arrivals else line + b"\n"
            written.append((whole, False))
        elif left is not None:
            written.append((_line(self._envelope.close(record, left)), True))
        written += [(_line(self._envelope.make(record, one)), True) for one in arrivals]
        if touch is not None:
            written = [(touch(one, new), new) for one, new in written]
        before = [] if left is wire else [line]
        self.log.touched(number, before, [one for one, new in written if new])
        return [one for one, _ in written]


def _line(record: dict[str, Any]) -> bytes:
    return msgspec.json.encode(record) + b"\n"
