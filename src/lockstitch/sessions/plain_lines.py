"""Plain JSONL: one item or message a line, all of them one conversation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lockstitch.core import rules
from lockstitch.core.findings import Finding
from lockstitch.core.items import Place
from lockstitch.core.mending import Policy
from lockstitch.core.pairing import read_through
from lockstitch.dialects.base import Dialect, Wire
from lockstitch.dialects.detection import detect
from lockstitch.dialects.examination import Examination
from lockstitch.sessions.line_writing import LineWriter
from lockstitch.sessions.lines import decoded, numbered_lines, problem_of
from lockstitch.sessions.model import Change, Scan, Sink, examined
from lockstitch.sessions.source import Source


class PlainLines:
    """Items or messages, one a line. The dialect counts where the lines do not tell it."""

    name = "jsonl"

    def __init__(self, dialect: Dialect | None = None) -> None:
        self._dialect = dialect

    def scan(self, source: Source, *, anchored: bool = False) -> Scan:
        dialect = detect((wire for _, wire, _ in read_objects(source)), self._dialect)

        def read(one: Examination) -> list[Finding]:
            torn: list[Finding] = []
            for number, wire, problem in read_objects(source):
                if wire is None:
                    torn.append(undecodable(number, problem))
                else:
                    one.add(wire, number)
            return torn

        examination, torn = read_through(Examination(dialect), read)
        return Scan(
            format=self.name,
            conversations=[examined(examination, torn, anchored=anchored)],
            records=examination.records,
            facts=dialect,
        )

    def write(self, source: Source, out: Sink, scan: Scan, policy: Policy) -> list[Change]:
        writer = LineWriter(scan, scan.facts, Bare(), policy)
        if writer.idle:
            return []
        writer.write(source, out)
        return writer.log.all()


class Bare:
    """No envelope: the record is the wire item."""

    def open(self, record: dict[str, Any]) -> Wire:
        return record

    def close(self, record: dict[str, Any], wire: Wire) -> dict[str, Any]:
        return wire

    def drop(self, record: dict[str, Any]) -> None:
        pass  # nothing refers to a line

    def make(self, record: dict[str, Any], wire: Wire) -> dict[str, Any]:
        return wire

    def make_before(self, record: dict[str, Any], wire: Wire) -> dict[str, Any]:
        return self.make(record, wire)


def read_objects(source: Source) -> Iterator[tuple[int, dict[str, Any] | None, str]]:
    """Each line that is not blank: its number and its object, or None and what is wrong."""
    with source.open() as stream:
        for number, line in numbered_lines(stream, source.name):
            try:
                record = decoded(line)
            except (ValueError, RecursionError):
                yield number, None, problem_of(line) or "cannot be decoded"
                continue
            if isinstance(record, dict):
                yield number, record, ""
            else:
                yield number, None, "is not an object"


def undecodable(number: int, problem: str) -> Finding:
    return Finding(rule=rules.UNDECODABLE, place=Place(number), detail=f"the line {problem}")
