"""The tables of an opencode database: its sessions, their messages, and the parts of each message.

What is wrong with the sessions is asked in `opencode`."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from lockstitch.dialects import signs
from lockstitch.dialects.base import Wire
from lockstitch.sessions.agents_sqlite_tables import columns_of, decode, table_names
from lockstitch.sessions.errors import CannotRead
from lockstitch.sessions.model import Conversation, Scan
from lockstitch.sessions.opencode_context import Revert, revert_of

_SESSION_COLUMNS: Final = frozenset({"id", "directory"})
_MESSAGE_COLUMNS: Final = frozenset({"id", "session_id", "time_created", "data"})
_PART_COLUMNS: Final = frozenset({"id", "message_id", "data"})
_NEXT_TABLE: Final = "session_message"
"""A later form of opencode's sessions. The versions known to us have the table, and leave it
empty."""


class Message(NamedTuple):
    """One message as it is in the database."""

    id: str
    info: Wire | str
    """The decoded row; if there is none, what is wrong with it."""
    parts: list[Any]
    """The decoded parts, each with its id; a `TornPart` where one cannot be decoded."""

    def wire(self) -> Wire:
        """The message as opencode's own API gives it."""
        assert not isinstance(self.info, str), "the row can be decoded"
        return {"info": {**self.info, "id": self.id}, "parts": self.parts}


class TornPart(NamedTuple):
    """A part that cannot be decoded."""

    id: str
    problem: str


class SessionRow(NamedTuple):
    """A session, and from where on it is reverted."""

    id: str
    revert: Revert | None


@dataclass(slots=True, kw_only=True)
class SessionConversation(Conversation):
    """One session. A position counts its messages, from 1 on."""

    messages: dict[int, str]
    """The id of the message at every position."""


@dataclass(slots=True, kw_only=True)
class SessionScan(Scan):
    """One reading of a database."""

    state: tuple[Any, ...] = field(default=())
    """What every writer of opencode changes."""


def is_opencode(connection: sqlite3.Connection) -> bool:
    """Does a database have opencode's tables?"""
    tables = {"session": _SESSION_COLUMNS, "message": _MESSAGE_COLUMNS, "part": _PART_COLUMNS}
    names = table_names(connection)
    return all(
        name in names and wanted.issubset(columns_of(connection, name))
        for name, wanted in tables.items()
    )


def sessions(connection: sqlite3.Connection) -> list[SessionRow]:
    """Every session that has messages, the oldest first."""
    revert = "s.revert" if "revert" in columns_of(connection, "session") else "NULL"
    found = connection.execute(
        f"SELECT m.session_id, {revert} FROM message m LEFT JOIN session s ON s.id = m.session_id"
        " GROUP BY m.session_id ORDER BY MIN(m.time_created), m.session_id"
    )
    return [SessionRow(session, revert_of(decode(reverted))) for session, reverted in found]


def messages(connection: sqlite3.Connection, session: str) -> Iterator[Message]:
    """The messages of a session, in the order in which opencode sends them."""
    yield from _messages(connection, "m.session_id = ?", session)


def message_by_id(connection: sqlite3.Connection, message: str) -> Message:
    """One message."""
    (found,) = _messages(connection, "m.id = ?", message)
    return found


def _messages(connection: sqlite3.Connection, which: str, value: str) -> Iterator[Message]:
    found = connection.execute(
        "SELECT m.id, m.data, p.id, p.data FROM message m LEFT JOIN part p ON p.message_id = m.id"
        f" WHERE {which} ORDER BY m.time_created, m.id, p.id",
        (value,),
    )
    current: Message | None = None
    for message, info, part, data in found:
        if current is None or current.id != message:
            if current is not None:
                yield current
            current = Message(message, decode(info), [])
        if part is not None:
            read = decode(data)
            if isinstance(read, str):
                current.parts.append(TornPart(part, read))
            else:
                current.parts.append({**read, "id": part})
    if current is not None:
        yield current


def state(connection: sqlite3.Connection) -> tuple[Any, ...]:
    """What every writer of opencode changes: how many messages and parts, and the newest change."""
    return tuple(
        connection.execute(
            f"SELECT COUNT(*), MAX(rowid), TOTAL(LENGTH(data)) FROM {table}"
        ).fetchone()
        for table in ("message", "part")
    )


def refuse_next_form(connection: sqlite3.Connection, name: str) -> None:
    """Raises `CannotRead` if there are calls in the table that is not read."""
    if _NEXT_TABLE not in table_names(connection):
        return
    if "data" not in columns_of(connection, _NEXT_TABLE):
        return
    for (data,) in connection.execute(f"SELECT data FROM {_NEXT_TABLE}"):
        sign = signs.sign_within(decode(data))
        if sign is not None:
            raise CannotRead(
                name,
                f"holds tool calls ({sign}) in the table {_NEXT_TABLE}, a form of opencode's "
                "sessions that is not known.",
                "Export the session and check that file: opencode export SESSION_ID > FILE",
            )
