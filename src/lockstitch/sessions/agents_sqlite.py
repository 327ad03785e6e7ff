"""Databases of the OpenAI Agents SDK: `SQLiteSession` and `AdvancedSQLiteSession`.

A session is a conversation; with branches, each branch is one. Only what the SDK would give back
counts. Opening the file is in `agents_sqlite_opening`, writing in `agents_sqlite_writing`."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from itertools import islice

import msgspec

from lockstitch.core import rules
from lockstitch.core.findings import Finding
from lockstitch.core.items import Place
from lockstitch.core.mending import Policy
from lockstitch.core.pairing import read_through
from lockstitch.dialects.base import Dialect
from lockstitch.dialects.detection import DIALECTS, sign
from lockstitch.dialects.examination import Examination, Unread
from lockstitch.sessions import agents_sqlite_writing
from lockstitch.sessions.agents_sqlite_opening import is_sqlite, opened
from lockstitch.sessions.agents_sqlite_tables import (
    MAIN_BRANCH,
    Row,
    RowScan,
    Spot,
    Tables,
    Thread,
    decode,
    find_tables,
)
from lockstitch.sessions.model import Change, Scan, Sink, examined
from lockstitch.sessions.source import Source

LOOK_AT_ROWS = 200
"""Rows that are asked for their dialect. A history that has not called a tool by then is text,
which every dialect reads alike, or Responses items, which is what the SDK writes."""

__all__ = ["AgentsDatabase", "is_sqlite"]


class AgentsDatabase:
    """The format of the SDK's SQLite sessions."""

    name = "agents-sqlite"

    def __init__(self, dialect: Dialect | None = None) -> None:
        self._dialect = dialect

    def scan(self, source: Source, *, anchored: bool = False) -> Scan:
        scan = RowScan(format=self.name, conversations=[], records=0, word="row")
        with opened(source) as connection:
            found = find_tables(connection, source.name)
            for tables in found:
                scan.states[tables.messages] = tables.state(connection)
                suffix = f" of {tables.messages}" if len(found) > 1 else ""
                for session, branches in tables.threads(connection):
                    for branch in branches:
                        reading = _Reading(connection, tables, session, branch, self._dialect)
                        findings = reading.findings(anchored=anchored)
                        scan.records += reading.records
                        scan.conversations.append(
                            Thread(
                                findings=findings,
                                label=_label(session, branch, branches) + suffix,
                                tables=tables,
                                dialect=reading.dialect,
                                spots=reading.spots,
                                unread=reading.unread,
                                recognised=reading.recognised,
                            )
                        )
                        scan.repeated.update(
                            (at, spot.message) for at, spot in reading.spots.items() if at < 0
                        )
        return scan

    def write(self, source: Source, out: Sink, scan: Scan, policy: Policy) -> list[Change]:
        assert isinstance(scan, RowScan), "a scan of another format"
        return agents_sqlite_writing.write(source, out, scan, policy)


class _Reading:
    """One conversation. Pairing counts its rows; findings name their ids."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        tables: Tables,
        session: str,
        branch: str | None,
        dialect: Dialect | None,
    ) -> None:
        self._connection = connection
        self._tables = tables
        self._session = session
        self._branch = branch
        self.dialect = _detect(self._rows(), dialect)
        self.records = 0
        self.unread: Unread | None = None
        self.recognised = True
        self.spots: dict[int, Spot] = {}

    def _rows(self, *, data: bool = True) -> Iterable[Row]:
        return self._tables.rows(self._connection, self._session, self._branch, data=data)

    def findings(self, *, anchored: bool) -> list[Finding]:
        """What is wrong, in the order of the conversation. Fills `spots`."""
        examination, torn = read_through(Examination(self.dialect), self._read)
        self.records = examination.records + len(torn)
        conversation = examined(examination, torn, anchored=anchored)
        self.recognised = conversation.recognised
        counts = {count for finding in conversation.findings for count in _counts(finding)}
        if conversation.unread is not None:
            counts.add(conversation.unread.place.at)
        positions = self._locate(counts) if counts else {}
        if conversation.unread is not None:
            at = positions[conversation.unread.place.at]
            self.unread = Unread(Place(at), conversation.unread.sign)
        return [_placed(finding, positions) for finding in conversation.findings]

    def _read(self, examination: Examination) -> list[Finding]:
        """One pass; the rows that cannot be decoded."""
        torn: list[Finding] = []
        for count, row in enumerate(self._rows(), 1):
            wire = decode(row.data)
            if isinstance(wire, str):
                torn.append(Finding(rule=rules.UNDECODABLE, place=Place(count), detail=wire))
            else:
                examination.add(wire, count)
        return torn

    def _locate(self, counts: set[int]) -> dict[int, int]:
        """From counts of rows to positions in the database. Reads ids only, no data."""
        repeated: set[int] = set()
        if self._branch is not None:
            repeated = self._tables.repeated(self._connection, self._session, self._branch)
        positions: dict[int, int] = {}
        for count, row in enumerate(self._rows(data=False), 1):
            if count in counts:
                at = row.message
                if at in repeated and row.structure is not None:
                    at = -row.structure
                positions[count] = at
                self.spots[at] = Spot(row.structure, row.message)
        return positions


def _counts(finding: Finding) -> set[int]:
    """Every count that a finding names."""
    places = (finding.place, finding.other, finding.answer, finding.after)
    named = {place.at for place in places if place is not None}
    return named if finding.into is None else {*named, finding.into}


def _placed(finding: Finding, positions: Mapping[int, int]) -> Finding:
    """The finding with positions in place of counts."""

    def placed(place: Place | None) -> Place | None:
        return None if place is None else Place(positions[place.at], place.slot)

    return msgspec.structs.replace(
        finding,
        place=placed(finding.place),
        other=placed(finding.other),
        answer=placed(finding.answer),
        after=placed(finding.after),
        into=None if finding.into is None else positions[finding.into],
    )


def _detect(rows: Iterable[Row], otherwise: Dialect | None) -> Dialect:
    for row in islice(rows, LOOK_AT_ROWS):
        wire = decode(row.data)
        if isinstance(wire, str):
            continue
        # A message with a type is a Responses item, whatever the parts in it are called.
        name = "responses" if wire.get("type") == "message" else sign(wire)
        if name is not None:
            return DIALECTS[name]
    return otherwise or DIALECTS["responses"]


def _label(session: str, branch: str | None, branches: list[str | None]) -> str:
    if branch is None or branches == [MAIN_BRANCH]:
        return f"session {session}"
    return f"session {session} branch {branch}"
