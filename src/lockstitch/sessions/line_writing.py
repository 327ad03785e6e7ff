"""Writing a line format with its edits: untouched lines go through byte for byte.

A format says how a wire item sits in its record (`Envelope`); everything else is the same for
all of them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from typing import Any, Protocol

from lockstitch.core import mending, rules
from lockstitch.core.findings import Finding
from lockstitch.core.items import Place
from lockstitch.core.mending import Edit, Policy
from lockstitch.dialects.base import Dialect, Wire
from lockstitch.dialects.rewriting import Rewriter
from lockstitch.sessions.changes import ChangeLog
from lockstitch.sessions.lines import BLOCK_BYTES, blank_lines, decoded, encoded, lines
from lockstitch.sessions.model import Scan, Sink
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


class Touch(Protocol):
    """Last touch on every line that is written."""

    def one(self, line: bytes, new: bool) -> bytes:
        """A line, as it is to be written; ``new``: it is new or changed."""
        ...

    def many(self, block: list[bytes]) -> list[bytes]:
        """Lines that nothing else happens to. Nearly all are such, so this one is fast."""
        ...


Fill = Callable[[int, bytes], bytes]
"""What stands in place of a line that is removed, as long as it: the line's number, its bytes."""


class LineWriter:
    """A plan over the lines of one file."""

    def __init__(
        self,
        scan: Scan,
        dialect: Dialect,
        envelope: Envelope,
        policy: Policy,
        *,
        stays: int | None = 1,
    ) -> None:
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
        self._rewriter = Rewriter(dialect, edits, captured, stays=stays)
        self._busy = {*self._torn, *self._rewriter.positions()}
        self._fill: Fill | None = None
        self._late: int | None = None
        self._at_end: list[tuple[int, list[bytes]]] = []

    @property
    def idle(self) -> bool:
        """Is there nothing to do?"""
        return not self._busy

    def write(
        self,
        source: Source,
        out: Sink,
        touch: Touch | None = None,
        *,
        fill: Fill | None = None,
        late: int | None = None,
    ) -> None:
        """Write every line. With ``fill`` nothing behind a removed or shortened line moves; new
        records for lines behind ``late`` go to the end of the file."""
        self._fill, self._late = fill, late
        self._at_end = []
        stops = sorted(self._busy)
        last = b""
        number = 0
        with source.open() as stream:
            reader = lines(stream, source.name)
            while True:
                # No edit is about a blank line, and a file may have millions of them.
                if skipped := blank_lines(reader):
                    number += skipped.count(b"\n")
                    out.write(skipped)
                    last = skipped
                    continue
                block = reader.readlines(BLOCK_BYTES)
                if not block:
                    break
                in_block = bisect_right(stops, number + len(block))
                written = self._block(block, number, stops[:in_block], touch)
                del stops[:in_block]
                number += len(block)
                out.write(b"".join(written))
                last = written[-1] if written else last
        if self._at_end and last and not last.endswith(b"\n"):
            out.write(b"\n")  # the next record would be glued on
        for number, later in self._at_end:
            made = [touch.one(one, True) for one in later] if touch is not None else later
            self.log.touched(number, [], made)
            out.write(b"".join(made))

    def _block(
        self, block: list[bytes], before: int, stops: list[int], touch: Touch | None
    ) -> list[bytes]:
        """What is written for a block of lines, of which the plan names those at ``stops``."""
        written: list[bytes] = []
        start = 0
        for number in stops:
            at = number - before - 1
            quiet = block[start:at]
            written += quiet if touch is None else touch.many(quiet)
            written += self._stop(number, block[at], touch)
            start = at + 1
        quiet = block[start:] if start else block
        return written + (quiet if touch is None else touch.many(quiet))

    def _stop(self, number: int, line: bytes, touch: Touch | None) -> list[bytes]:
        if number not in self._torn:
            here, later = self._rewritten(number, line, touch)
            if later:
                self._at_end.append((number, later))
            return here
        finding, label = self._torn[number]
        self.log.removed(finding, line, label)
        return [] if self._fill is None else [self._fill(number, line)]

    def _rewritten(
        self, number: int, line: bytes, touch: Touch | None
    ) -> tuple[list[bytes], list[bytes]]:
        """What stands in place of a line, and what is to be written at the end."""
        record = decoded(line)
        wire = self._envelope.open(record)
        left, arrivals, ahead = self._rewriter.rewrite(number, wire)
        if left is None:
            self._envelope.drop(record)
        written = [(encoded(self._envelope.make_before(record, one)), True) for one in ahead]
        made = [encoded(self._envelope.make(record, one)) for one in arrivals]
        later: list[bytes] = []
        if self._late is not None and number > self._late:
            made, later = [], made
        if left is wire:
            # A last line without a newline gets one: the next record would be glued on.
            whole = line if line.endswith(b"\n") or not made else line + b"\n"
            written.append((whole, False))
        elif left is not None:
            changed = encoded(self._envelope.close(record, left))
            written.append((self._as_long(line, changed), True))
        written += [(one, True) for one in made]
        filling = [self._fill(number, line)] if left is None and self._fill is not None else []
        if touch is not None:
            written = [(touch.one(one, new), new) for one, new in written]
        before = [] if left is wire else [line]
        self.log.touched(number, before, [one for one, new in written if new])
        return filling + [one for one, _ in written], later

    def _as_long(self, line: bytes, changed: bytes) -> bytes:
        """The changed line, with spaces behind it where the line before was longer."""
        missing = len(line) - len(changed)
        if self._fill is None or missing <= 0:
            return changed
        return changed[:-1] + b" " * missing + b"\n"
