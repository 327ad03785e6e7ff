"""The rows of an Agents SDK database, edited: what each becomes, and how that is carried out.

A message that several branches share is edited once where they agree, and parted where they do
not. Ids tell the order, so rows behind a new one move up, and whatever refers to them follows."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from lockstitch.sessions.agents_sqlite_tables import (
    STRUCTURE,
    USAGE,
    Spot,
    Tables,
    columns_of,
    foreign_keys,
    quoted,
    table_names,
)


class Made(NamedTuple):
    """A row that is new or changed."""

    text: str
    kind: str
    tool: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fate:
    """What becomes of one row in one conversation."""

    spot: Spot
    before: bytes | None
    """Its data, if it is gone or changed."""
    left: Made | None = None
    """What it is changed to."""
    arrivals: tuple[Made, ...] = ()
    """New rows behind it."""

    @property
    def gone(self) -> bool:
        return self.before is not None and self.left is None

    @property
    def after(self) -> list[bytes]:
        made = self.arrivals if self.left is None else (self.left, *self.arrivals)
        return [one.text.encode() for one in made]


class Rows:
    """The rows of one table of messages, in a transaction."""

    def __init__(self, connection: sqlite3.Connection, tables: Tables) -> None:
        self._connection = connection
        self._execute = connection.execute
        self._tables = tables
        self._messages = quoted(tables.messages)

    def carry_out(self, fates: Iterable[Fate]) -> None:
        of_message: defaultdict[int, list[Fate]] = defaultdict(list)
        for fate in fates:
            of_message[fate.spot.message].append(fate)
        holders = self._holders(of_message)
        shared = [
            _Shared(message, of_message[message], holders.get(message, 1))
            for message in sorted(of_message)
        ]
        self._make_room([(one.message, one.size) for one in shared if one.size])
        columns = columns_of(self._connection, self._tables.messages)
        moved = 0
        for one in shared:
            one.message += moved
            moved += one.size
            for new, made in one.number():
                self._insert_like(
                    self._tables.messages, columns, one.message, id=new, message_data=made.text
                )
            if one.in_place is not None:
                query = f"UPDATE {self._messages} SET message_data = ? WHERE id = ?"
                self._execute(query, (one.in_place.text, one.message))
        if self._tables.structured:
            self._restructure(shared)
        self._remove([one.message for one in shared if one.may_be_gone])

    def _holders(self, messages: Iterable[int]) -> dict[int, int]:
        """How many rows of the structure refer to each message."""
        if not self._tables.structured:
            return {}
        self._keep("touched", "id INTEGER PRIMARY KEY", [(message,) for message in messages])
        query = (
            f"SELECT message_id, COUNT(*) FROM {STRUCTURE} WHERE message_id IN"
            " (SELECT id FROM temp.lockstitch_touched) GROUP BY message_id"
        )
        return dict(self._execute(query).fetchall())

    # --- messages ------------------------------------------------------------------------------

    def _make_room(self, wanted: list[tuple[int, int]]) -> None:
        """Move rows up so that behind each of these messages so many ids are free."""
        if not wanted:
            return
        total = 0
        room: list[tuple[int, int]] = []
        for message, size in wanted:
            total += size
            room.append((message, total))
        self._keep("room", "behind INTEGER PRIMARY KEY, shift INTEGER", room)
        columns = [(self._tables.messages, "id"), *self._references()]
        tops = [f"SELECT MAX({quoted(c)}) AS top FROM {quoted(t)}" for t, c in columns]
        (top,) = self._execute(f"SELECT MAX(top) FROM ({' UNION ALL '.join(tops)})").fetchone()
        newest = self._last_id()
        for table, column in columns:
            self._shift(table, column, lowest=wanted[0][0], top=top)
        if newest is not None:
            query = "UPDATE sqlite_sequence SET seq = ? WHERE name = ?"
            self._execute(query, (newest + total, self._tables.messages))

    def _shift(self, table: str, column: str, *, lowest: int, top: int) -> None:
        name, field = quoted(table), quoted(column)
        # Far away first: a number must never meet one that has yet to move.
        self._execute(
            f"UPDATE {name} SET {field} = {field} + ? + (SELECT shift FROM temp.lockstitch_room"
            f" WHERE behind < {name}.{field} ORDER BY behind DESC LIMIT 1) WHERE {field} > ?",
            (top - lowest, lowest),
        )
        query = f"UPDATE {name} SET {field} = {field} - ? WHERE {field} > ?"
        self._execute(query, (top - lowest, top))

    def _references(self) -> list[tuple[str, str]]:
        """Columns that hold ids of messages: the structure's, and those of foreign tables."""
        found = {
            (table, key[3])
            for table in table_names(self._connection)
            for key in foreign_keys(self._connection, table)
            if key[2].lower() == self._tables.messages.lower() and key[4] in (None, "id")
        }
        if self._tables.structured:
            found.add((STRUCTURE, "message_id"))
        return sorted(found)

    def _last_id(self) -> int | None:
        """The last id that was ever given, where SQLite keeps count of it."""
        if "sqlite_sequence" not in table_names(self._connection):
            return None
        query = "SELECT seq FROM sqlite_sequence WHERE name = ?"
        row = self._execute(query, (self._tables.messages,)).fetchone()
        return None if row is None else row[0]

    def _remove(self, messages: list[int]) -> None:
        """Remove messages, except those that a branch still holds."""
        self._keep("gone", "id INTEGER PRIMARY KEY", [(message,) for message in messages])
        query = f"DELETE FROM {self._messages} WHERE id IN (SELECT id FROM temp.lockstitch_gone)"
        if self._tables.structured:
            query += f" AND id NOT IN (SELECT message_id FROM {STRUCTURE})"
        self._execute(query)

    # --- structure -----------------------------------------------------------------------------

    def _restructure(self, shared: list[_Shared]) -> None:
        """Let the branches hold what they now should, in order."""
        arrivals: dict[int, list[tuple[int, Made]]] = {}
        gone: list[int] = []
        for one in shared:
            for fate in one.fates:
                structure = fate.spot.structure
                if structure is None:
                    continue
                if fate.gone:
                    gone.append(structure)
                if fate.left is not None:
                    self._repoint(structure, one.id_of(fate.left), fate.left)
                if fate.arrivals:
                    arrivals[structure] = one.ids_of(fate.arrivals)
        self._line_up({structure: len(made) for structure, made in arrivals.items()})
        columns = [name for name in columns_of(self._connection, STRUCTURE) if name != "id"]
        query = f"SELECT sequence_number FROM {STRUCTURE} WHERE id = ?"
        for structure, new in arrivals.items():
            (number,) = self._execute(query, (structure,)).fetchone()
            for n, (message, made) in enumerate(new, number + 1):
                self._insert_like(
                    STRUCTURE,
                    columns,
                    structure,
                    message_id=message,
                    sequence_number=n,
                    message_type=made.kind,
                    tool_name=made.tool,
                )
        self._leave(gone)

    def _repoint(self, structure: int, message: int, made: Made) -> None:
        query = f"UPDATE {STRUCTURE} SET message_id = ? WHERE id = ?"
        self._execute(query, (message, structure))
        self._execute(
            f"UPDATE {STRUCTURE} SET message_type = ?, tool_name = ?"
            " WHERE id = ? AND message_type <> ?",
            (made.kind, made.tool, structure, made.kind),
        )

    def _line_up(self, wanted: Mapping[int, int]) -> None:
        """Move sequence numbers up so that behind each of these rows so many are free."""
        query = f"SELECT session_id, sequence_number, branch_id FROM {STRUCTURE} WHERE id = ?"
        twins = (
            f"SELECT EXISTS (SELECT 1 FROM {STRUCTURE} WHERE session_id = ? AND"
            " sequence_number = ? AND branch_id = ? AND id > ?)"
        )
        points: list[tuple[str, int, int, int]] = []
        for structure, size in wanted.items():
            row = self._execute(query, (structure,)).fetchone()
            # Two writers at a time could give a number twice: the twin goes behind the new rows.
            (twin,) = self._execute(twins, (*row, structure)).fetchone()
            points.append((row[0], row[1], structure, size + twin))
        totals: defaultdict[str, int] = defaultdict(int)
        later: list[tuple[str, int, int, int]] = []
        for session, number, structure, size in sorted(points):
            totals[session] += size
            later.append((session, number, structure, totals[session]))
        self._keep(
            "later",
            "session_id TEXT, number INTEGER, structure INTEGER, shift INTEGER,"
            " PRIMARY KEY (session_id, number, structure)",
            later,
        )
        self._execute(
            f"UPDATE {STRUCTURE} SET sequence_number = sequence_number + COALESCE("
            "(SELECT shift FROM temp.lockstitch_later p"
            f" WHERE p.session_id = {STRUCTURE}.session_id"
            f" AND (p.number, p.structure) < ({STRUCTURE}.sequence_number, {STRUCTURE}.id)"
            " ORDER BY p.number DESC, p.structure DESC LIMIT 1), 0)"
            " WHERE session_id IN (SELECT session_id FROM temp.lockstitch_later)"
        )

    def _leave(self, gone: list[int]) -> None:
        """Take rows out of their branches; a turn that is empty then has no usage either."""
        query = f"SELECT session_id, branch_id, user_turn_number FROM {STRUCTURE} WHERE id = ?"
        turns = [self._execute(query, (structure,)).fetchone() for structure in gone]
        for structure in gone:
            self._execute(f"DELETE FROM {STRUCTURE} WHERE id = ?", (structure,))
        if USAGE not in table_names(self._connection):
            return
        of_turn = "session_id = ? AND branch_id = ? AND user_turn_number = ?"
        for turn in dict.fromkeys(turns):
            self._execute(
                f"DELETE FROM {USAGE} WHERE {of_turn}"
                f" AND NOT EXISTS (SELECT 1 FROM {STRUCTURE} WHERE {of_turn})",
                (*turn, *turn),
            )

    # --- both ----------------------------------------------------------------------------------

    def _insert_like(self, table: str, columns: list[str], like: int, **values: object) -> None:
        """A new row that is like another, but for these values. So it has its time, too: the same
        database is always mended to the same rows."""
        taken = ", ".join("?" if name in values else quoted(name) for name in columns)
        given = [values[name] for name in columns if name in values]
        self._execute(
            f"INSERT INTO {quoted(table)} ({', '.join(map(quoted, columns))})"
            f" SELECT {taken} FROM {quoted(table)} WHERE id = ?",
            (*given, like),
        )

    def _keep(self, name: str, columns: str, rows: Sequence[tuple[object, ...]]) -> None:
        """A table of our own, outside the file, so that SQLite can join with it."""
        table = f"temp.lockstitch_{name}"
        self._execute(f"DROP TABLE IF EXISTS {table}")
        self._execute(f"CREATE TABLE {table} ({columns})")
        if rows:
            places = ", ".join("?" * len(rows[0]))
            self._connection.executemany(f"INSERT INTO {table} VALUES ({places})", rows)


class _Shared:
    """One message, and what becomes of it in every conversation that has edits for it."""

    def __init__(self, message: int, fates: list[Fate], holders: int) -> None:
        self.message = message
        self.fates = fates
        changed = [fate.left for fate in fates if fate.left is not None]
        staying = holders - sum(fate.gone for fate in fates)
        alike = len(changed) == staying and len(set(changed)) == 1
        self.in_place: Made | None = changed[0] if alike else None
        """What it becomes for all who hold it."""
        self.may_be_gone = (bool(changed) and not alike) or any(fate.gone for fate in fates)
        copies = [] if alike else [(made,) for made in changed]
        runs = [*copies, *(fate.arrivals for fate in fates if fate.arrivals)]
        self._runs: dict[tuple[Made, ...], int] = dict.fromkeys(runs, 0)
        """New rows behind it: for each run of them, the id of the first."""

    @property
    def size(self) -> int:
        return sum(map(len, self._runs))

    def number(self) -> list[tuple[int, Made]]:
        """Give the new rows the ids behind the message."""
        numbered: list[tuple[int, Made]] = []
        for run in self._runs:
            self._runs[run] = self.message + len(numbered) + 1
            numbered += [(self._runs[run] + n, made) for n, made in enumerate(run)]
        return numbered

    def id_of(self, left: Made) -> int:
        return self.message if self.in_place is not None else self._runs[(left,)]

    def ids_of(self, run: tuple[Made, ...]) -> list[tuple[int, Made]]:
        return [(self._runs[run] + n, made) for n, made in enumerate(run)]
