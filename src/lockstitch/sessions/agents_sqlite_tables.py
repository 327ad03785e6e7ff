"""The tables of an Agents SDK database: which they are, and the rows of each conversation.

What is wrong with the conversations is asked in `agents_sqlite`."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Final, NamedTuple

import msgspec

from lockstitch.core.items import Place
from lockstitch.dialects.base import Dialect, Wire
from lockstitch.sessions.errors import NotASession
from lockstitch.sessions.model import Conversation, Scan

STRUCTURE: Final = "message_structure"
USAGE: Final = "turn_usage"
"""Tables of `AdvancedSQLiteSession`; unlike the others their names are fixed."""

MAIN_BRANCH: Final = "main"

_USUAL_MESSAGES: Final = "agent_messages"
_MESSAGE_COLUMNS: Final = ("id", "session_id", "message_data")
_SESSION_COLUMNS: Final = ("session_id", "created_at", "updated_at")
_STRUCTURE_COLUMNS: Final = (
    "id",
    "session_id",
    "message_id",
    "branch_id",
    "message_type",
    "sequence_number",
    "user_turn_number",
    "tool_name",
)


class Row(NamedTuple):
    """One row of a conversation."""

    structure: int | None
    """Its row in `message_structure`, where the conversation is a branch."""
    message: int
    data: Any


class Spot(NamedTuple):
    """Where a position of a conversation is in the database."""

    structure: int | None
    message: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Tables:
    """One table of messages, and whether `message_structure` orders them into branches."""

    messages: str
    structured: bool

    def threads(self, connection: sqlite3.Connection) -> Iterator[tuple[str, list[str | None]]]:
        """Every session with its branches; a session without structure has the branch None."""
        plain = f"SELECT DISTINCT session_id FROM {quoted(self.messages)}"
        if self.structured:
            found = connection.execute(
                f"SELECT DISTINCT session_id, branch_id FROM {STRUCTURE}"
                " ORDER BY session_id, branch_id <> ?, branch_id",
                (MAIN_BRANCH,),
            )
            for session, branches in groupby(found, key=lambda row: row[0]):
                yield session, [branch for _, branch in branches]
            plain += f" EXCEPT SELECT session_id FROM {STRUCTURE}"
        for (session,) in connection.execute(f"{plain} ORDER BY session_id"):
            yield session, [None]

    def rows(
        self, connection: sqlite3.Connection, session: str, branch: str | None, *, data: bool = True
    ) -> Iterator[Row]:
        """The rows of one conversation, in the order in which the SDK gives them back."""
        messages = quoted(self.messages)
        wanted = "m.message_data" if data else "NULL"
        if branch is None:
            found = connection.execute(
                f"SELECT NULL, m.id, {wanted} FROM {messages} m"
                " WHERE m.session_id = ? ORDER BY m.id",
                (session,),
            )
        else:
            # CROSS JOIN walks the structure in its own order: nothing is sorted, rows stream.
            found = connection.execute(
                f"SELECT s.id, m.id, {wanted} FROM {STRUCTURE} s CROSS JOIN {messages} m"
                " ON m.id = s.message_id AND m.session_id = s.session_id"
                " WHERE s.session_id = ? AND s.branch_id = ? ORDER BY s.sequence_number, s.id",
                (session, branch),
            )
        return map(Row._make, found)

    def repeated(self, connection: sqlite3.Connection, session: str, branch: str) -> set[int]:
        """Messages that a branch holds more than once: two writers at a time could do that."""
        found = connection.execute(
            f"SELECT message_id FROM {STRUCTURE} WHERE session_id = ? AND branch_id = ?"
            " GROUP BY message_id HAVING COUNT(*) > 1",
            (session, branch),
        )
        return {message for (message,) in found}

    def state(self, connection: sqlite3.Connection) -> tuple[int, int]:
        """How many messages there are, and the newest: what every writer of the SDK changes."""
        query = f"SELECT COUNT(*), COALESCE(MAX(id), 0) FROM {quoted(self.messages)}"
        count, newest = connection.execute(query).fetchone()
        return count, newest


@dataclass(slots=True, kw_only=True)
class Thread(Conversation):
    """One conversation: a session, or one branch of it."""

    tables: Tables
    dialect: Dialect
    spots: dict[int, Spot]
    """Every position that a finding names. A position is the id of the message; of a message that
    stands in a branch more than once, its structure's id, negative: each is a place of its own."""


@dataclass(slots=True, kw_only=True)
class RowScan(Scan):
    """One reading of a database."""

    states: dict[str, tuple[int, int]] = field(default_factory=dict)
    """For each table of messages, what it held."""
    repeated: dict[int, int] = field(default_factory=dict)
    """From positions that are not messages' ids to those ids."""

    def row(self, at: int) -> int:
        return self.repeated.get(at, at)

    def where(self, place: Place) -> str:
        return f"{self.word} {self.row(place.at)}"


def decode(data: object) -> Wire | str:
    """The wire item of a row; if there is none, what is wrong with the row."""
    if not isinstance(data, str | bytes):
        return "the row holds no text"
    try:
        wire = msgspec.json.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        try:
            wire = json.loads(data)  # takes what the SDK takes: NaN, half a surrogate pair
        except RecursionError:
            return "the row is nested too deeply"
        except UnicodeDecodeError:
            return "the row is not UTF-8"
        except ValueError:
            return "the row is torn or not JSON"
    return wire if isinstance(wire, dict) else "the row is JSON, but not an item"


# --- which tables ------------------------------------------------------------------------------


_STORE_ID: Final = int.from_bytes(b"Lkst")
"""What a store of ours has as its `application_id`; stores themselves are not known here."""


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def columns_of(connection: sqlite3.Connection, table: str) -> list[str]:
    return [row[1] for row in connection.execute(f"PRAGMA table_info({quoted(table)})")]


def table_names(connection: sqlite3.Connection) -> list[str]:
    """Every real table; virtual ones may need an extension that is not there."""
    query = "SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0 ORDER BY name"
    return [name for (name,) in connection.execute(query)]


def is_store(connection: sqlite3.Connection) -> bool:
    """Is this a store of Lockstitch?"""
    return bool(connection.execute("PRAGMA application_id").fetchone() == (_STORE_ID,))


def find_tables(connection: sqlite3.Connection, name: str) -> list[Tables]:
    """The tables of messages, whatever they are called; raises `NotASession` if there are none."""
    columns = {table: set(columns_of(connection, table)) for table in table_names(connection)}
    messages = [
        table
        for table, its_columns in columns.items()
        if its_columns.issuperset(_MESSAGE_COLUMNS) and _numbered(connection, table)
    ]
    if not messages:
        if is_store(connection):
            raise NotASession(
                name,
                "is a store of Lockstitch, not a session.",
                f"Check what it holds: lockstitch check store:sqlite:///{name}",
            )
        raise _foreign(name, _MESSAGE_COLUMNS)
    if not any(its_columns.issuperset(_SESSION_COLUMNS) for its_columns in columns.values()):
        raise _foreign(name, _SESSION_COLUMNS)
    messages.sort(key=lambda table: (table != _USUAL_MESSAGES, table))
    owner = None
    if columns.get(STRUCTURE, set()).issuperset(_STRUCTURE_COLUMNS):
        owners = [row[2] for row in foreign_keys(connection, STRUCTURE) if row[3] == "message_id"]
        owner = owners[0] if owners else messages[0]
    return [Tables(messages=table, structured=table == owner) for table in messages]


def foreign_keys(connection: sqlite3.Connection, table: str) -> list[tuple[Any, ...]]:
    """Rows of (id, seq, table referred to, column, column referred to or None, ...)."""
    return connection.execute(f"PRAGMA foreign_key_list({quoted(table)})").fetchall()


def _numbered(connection: sqlite3.Connection, table: str) -> bool:
    """Is `id` the number of the row? Only then does it tell the order."""
    keys = [row for row in connection.execute(f"PRAGMA table_info({quoted(table)})") if row[5]]
    return [(row[1], row[2].upper()) for row in keys] == [("id", "INTEGER")]


def _foreign(name: str, columns: tuple[str, ...]) -> NotASession:
    return NotASession(
        name,
        "is a SQLite database, but not one of the Agents SDK (no table with the columns "
        f"{', '.join(columns)}), LangGraph or opencode.",
        "Name a database that one of them wrote.",
    )
