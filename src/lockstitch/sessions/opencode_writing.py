"""Writing an opencode database back: the edits of each session, carried out on a copy.

Only rows of `part` change: a part gets another `data`, or goes. A row of `message` goes only if it
cannot be decoded."""

from __future__ import annotations

import sqlite3
from functools import partial
from typing import Any

from lockstitch.core import mending, rules
from lockstitch.core.mending import Edit, Policy
from lockstitch.dialects.base import Wire, as_json, without
from lockstitch.dialects.detection import by_name
from lockstitch.dialects.rewriting import Rewriter, capture
from lockstitch.sessions.agents_sqlite_writing import changed_meanwhile, write_copy
from lockstitch.sessions.changes import ChangeLog
from lockstitch.sessions.model import Change, Sink
from lockstitch.sessions.opencode_tables import (
    Message,
    SessionConversation,
    SessionScan,
    TornPart,
    message_by_id,
    state,
)
from lockstitch.sessions.source import Source


def write(source: Source, out: Sink, scan: SessionScan, policy: Policy) -> list[Change]:
    """Write the database with the findings of ``scan`` mended, as one file."""
    plans = [
        _Plan(one, policy) for one in scan.conversations if isinstance(one, SessionConversation)
    ]
    plans = [plan for plan in plans if plan.edits or plan.torn]
    if not plans:
        return []
    return write_copy(source, out, partial(_mend, source.name, scan, plans))


def _mend(
    name: str, scan: SessionScan, plans: list[_Plan], connection: sqlite3.Connection
) -> list[Change]:
    if state(connection) != scan.state:
        raise changed_meanwhile(name)
    return [change for plan in plans for change in plan.carry_out(connection, scan)]


class _Plan:
    """The edits of one session."""

    def __init__(self, conversation: SessionConversation, policy: Policy) -> None:
        self._conversation = conversation
        self.edits: list[Edit] = mending.plan(conversation.findings, policy)
        self.torn = [one for one in conversation.findings if one.rule is rules.UNDECODABLE]

    def carry_out(self, connection: sqlite3.Connection, scan: SessionScan) -> list[Change]:
        """Change the rows; what was done."""
        log = ChangeLog(scan)
        label = self._conversation.label
        log.expect(self.edits, label)

        def message_at(at: int) -> Message:
            return message_by_id(connection, self._conversation.messages[at])

        def wire_at(at: int) -> Wire:
            return message_at(at).wire()

        dialect = by_name("opencode")
        rewriter = Rewriter(dialect, self.edits, capture(dialect, self.edits, wire_at))
        rewritten = {}
        for at in sorted(rewriter.positions()):
            wire = wire_at(at)
            rewritten[at] = wire, rewriter.rewrite(at, wire).left
        for finding in self.torn:
            message = message_at(finding.place.at)
            log.removed(finding, _remove_torn(connection, message, finding.place.slot), label)
        for at, (wire, left) in rewritten.items():
            assert left is not None, "messages stay"
            before, after = _update(connection, wire["parts"], left["parts"])
            log.touched(at, before, after)
        return log.all()


def _update(
    connection: sqlite3.Connection, old: list[Any], new: list[Any]
) -> tuple[list[bytes], list[bytes]]:
    """Write the parts that are not as they were, and remove those that are gone."""
    before: list[bytes] = []
    after: list[bytes] = []
    stays = {_id(part): part for part in new}
    for part in old:
        row = _id(part)
        now = stays.get(row)
        if now is part:
            continue
        before.append(_data(connection, row))
        if now is None:
            connection.execute("DELETE FROM part WHERE id = ?", (row,))
            continue
        data = as_json(without(now, "id"))
        after.append(data)
        connection.execute("UPDATE part SET data = ? WHERE id = ?", (data.decode(), row))
    return before, after


def _remove_torn(connection: sqlite3.Connection, message: Message, slot: int) -> bytes:
    """Remove a row that cannot be decoded, a message with its parts; what it held."""
    if not isinstance(message.info, str):
        part = _id(message.parts[slot])
        data = _data(connection, part)
        connection.execute("DELETE FROM part WHERE id = ?", (part,))
        return data
    query = "SELECT data FROM message WHERE id = ?"
    ((data,),) = connection.execute(query, (message.id,)).fetchall()
    connection.execute("DELETE FROM part WHERE message_id = ?", (message.id,))
    connection.execute("DELETE FROM message WHERE id = ?", (message.id,))
    return _bytes(data)


def _id(part: Any) -> str:
    return part.id if isinstance(part, TornPart) else part["id"]


def _data(connection: sqlite3.Connection, part: str) -> bytes:
    ((data,),) = connection.execute("SELECT data FROM part WHERE id = ?", (part,)).fetchall()
    return _bytes(data)


def _bytes(data: object) -> bytes:
    return data if isinstance(data, bytes) else str(data).encode(errors="surrogatepass")
