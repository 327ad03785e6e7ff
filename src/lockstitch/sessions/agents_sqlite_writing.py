"""Writing an Agents SDK database back: the edits of each conversation, carried out on a copy.

How rows are changed, removed and put between others is in `agents_sqlite_rows`."""

from __future__ import annotations

import json
import shutil
import sqlite3
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from lockstitch.core import mending, rules
from lockstitch.core.findings import Finding
from lockstitch.core.mending import Edit, Policy, Settle
from lockstitch.dialects.base import Wire
from lockstitch.dialects.rewriting import Rewriter, capture
from lockstitch.sessions.agents_sqlite_opening import copied
from lockstitch.sessions.agents_sqlite_rows import Fate, Made, Rows
from lockstitch.sessions.agents_sqlite_tables import RowScan, Tables, Thread, decode, quoted
from lockstitch.sessions.errors import CannotWrite
from lockstitch.sessions.model import Change, Sink
from lockstitch.sessions.source import Source


def write(source: Source, out: Sink, scan: RowScan, policy: Policy) -> list[Change]:
    """Write the database with the findings of ``scan`` mended, as one file."""
    plans = [_Plan(thread, policy) for thread in scan.conversations if isinstance(thread, Thread)]
    plans = [plan for plan in plans if plan.edits or plan.torn]
    if not plans:
        return []
    return write_copy(source, out, lambda connection: _mend(connection, source.name, scan, plans))


def write_copy(
    source: Source, out: Sink, change: Callable[[sqlite3.Connection], list[Change]]
) -> list[Change]:
    """Write a copy of a database, as one file, after ``change`` has changed it in one transaction.
    The copy passes SQLite's integrity check."""
    with tempfile.TemporaryDirectory(prefix="lockstitch-") as folder:
        path = Path(folder, "mended.db")
        with copied(source, path) as connection:
            changes = change(connection)
        with path.open("rb") as mended:
            shutil.copyfileobj(mended, out)
    return changes


def changed_meanwhile(name: str) -> CannotWrite:
    """The error for a database that somebody wrote to between reading and writing."""
    return CannotWrite(
        f"{name}: it changed while it was being mended. Nothing was changed. "
        "Stop the program that writes it, then try again."
    )


def _mend(
    connection: sqlite3.Connection, name: str, scan: RowScan, plans: list[_Plan]
) -> list[Change]:
    fates: defaultdict[Tables, list[Fate]] = defaultdict(list)
    for tables in {plan.thread.tables for plan in plans}:
        if tables.state(connection) != scan.states[tables.messages]:
            raise changed_meanwhile(name)
    for plan in plans:
        fates[plan.thread.tables] += plan.decide(connection)
    for tables, its_fates in fates.items():
        Rows(connection, tables).carry_out(its_fates)
    return [change for plan in plans for change in plan.changes(scan)]


# --- what becomes of each row ------------------------------------------------------------------


class _Plan:
    """The edits of one conversation."""

    def __init__(self, thread: Thread, policy: Policy) -> None:
        self.thread = thread
        self.edits = mending.plan(thread.findings, policy)
        self.torn = [one for one in thread.findings if one.rule is rules.UNDECODABLE]
        self._fates: dict[int, Fate] = {}

    def decide(self, connection: sqlite3.Connection) -> list[Fate]:
        """What becomes of the rows; nothing is changed yet."""
        dialect, spots = self.thread.dialect, self.thread.spots
        query = f"SELECT message_data FROM {quoted(self.thread.tables.messages)} WHERE id = ?"

        def fetch(at: int) -> Any:
            return connection.execute(query, (spots[at].message,)).fetchone()[0]

        def item(at: int) -> Wire:
            wire = decode(fetch(at))
            assert not isinstance(wire, str), "edits are about items"
            return wire

        for finding in self.torn:
            at = finding.place.at
            self._fates[at] = Fate(spot=spots[at], before=_bytes(fetch(at)))
        rewriter = Rewriter(dialect, self.edits, capture(dialect, self.edits, item))
        for at in sorted(rewriter.positions()):
            wire = item(at)
            left, arrivals, _ = rewriter.rewrite(at, wire)
            self._fates[at] = Fate(
                spot=spots[at],
                before=None if left is wire else _bytes(fetch(at)),
                left=None if left is wire or left is None else _made(left),
                arrivals=tuple(map(_made, arrivals)),
            )
        return list(self._fates.values())

    def changes(self, scan: RowScan) -> list[Change]:
        """What was done, for the report; a row shows with the first edit that touched it."""
        shown: set[int] = set()

        def change(finding: Finding, done: str, positions: Iterable[int]) -> Change:
            fresh = [at for at in positions if at in self._fates and at not in shown]
            shown.update(fresh)
            fates = [self._fates[at] for at in fresh]
            return Change(
                code=finding.code,
                at=scan.row(finding.place.at),
                what=f"{finding.say(scan.where)}: {done}",
                before=[fate.before for fate in fates if fate.before is not None],
                after=[data for fate in fates for data in fate.after],
                label=self.thread.label,
            )

        made = [change(one, "removed it", [one.place.at]) for one in self.torn]
        made += [change(one.reason, mending.describe(one), _touched(one)) for one in self.edits]
        return sorted(made, key=lambda one: (one.at, one.code))


def _touched(edit: Edit) -> list[int]:
    """Every position where an edit can show."""
    touched = [] if isinstance(edit, Settle) else [edit.place.at]
    if isinstance(edit, Settle | mending.Move):
        touched.append(edit.after.at)
        if edit.into is not None:
            touched.append(edit.into)
    return list(dict.fromkeys(touched))


def _bytes(data: object) -> bytes:
    return data if isinstance(data, bytes) else str(data).encode()


def _made(wire: Wire) -> Made:
    """A row as the SDK would write it, and what it would say about it in the structure."""
    kind = "other"
    if wire.get("role") in ("user", "assistant"):
        kind = wire["role"]
    elif wire.get("type"):
        kind = str(wire["type"])
    tool = "tool_search" if kind == "tool_search_output" else wire.get("name")
    return Made(json.dumps(wire), kind, None if tool is None else str(tool))
