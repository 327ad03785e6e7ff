"""Databases of opencode. Every session is a conversation, also those of its subagents.

Only what opencode would send counts (`opencode_context`). The tables are in `opencode_tables`,
writing in `opencode_writing`."""

from __future__ import annotations

import sqlite3
from functools import partial
from typing import Any

from lockstitch.core import rules
from lockstitch.core.findings import Finding
from lockstitch.core.items import Place
from lockstitch.core.mending import Policy
from lockstitch.core.pairing import read_through
from lockstitch.dialects.detection import by_name
from lockstitch.dialects.examination import Examination
from lockstitch.sessions import opencode_writing
from lockstitch.sessions.agents_sqlite_opening import opened
from lockstitch.sessions.model import Change, Scan, Sink, examined
from lockstitch.sessions.opencode_context import Head, head_of, parts_sent, sent
from lockstitch.sessions.opencode_tables import (
    SessionConversation,
    SessionRow,
    SessionScan,
    TornPart,
    is_opencode,
    messages,
    refuse_next_form,
    sessions,
    state,
)
from lockstitch.sessions.source import Source


class OpencodeDatabase:
    """The format of opencode's SQLite database."""

    name = "opencode"

    def scan(self, source: Source, *, anchored: bool = False) -> Scan:
        scan = SessionScan(format=self.name, conversations=[], records=0, word="message")
        with opened(source) as connection:
            refuse_next_form(connection, source.name)
            scan.state = state(connection)
            for session in sessions(connection):
                conversation, records = _read_session(connection, session)
                scan.conversations.append(conversation)
                scan.records += records
        return scan

    def write(self, source: Source, out: Sink, scan: Scan, policy: Policy) -> list[Change]:
        assert isinstance(scan, SessionScan), "a scan of another format"
        return opencode_writing.write(source, out, scan, policy)


def holds_opencode(source: Source) -> bool:
    """Is this SQLite database one of opencode?"""
    with opened(source) as connection:
        return is_opencode(connection)


def _read_session(
    connection: sqlite3.Connection, session: SessionRow
) -> tuple[SessionConversation, int]:
    """A session, and how many messages it has."""
    heads: list[Head] = []
    for message in messages(connection, session.id):
        info: dict[str, Any] = message.info if isinstance(message.info, dict) else {}
        heads.append(head_of(message.id, info, message.parts))
    live = sent(heads, session.revert)
    start = Examination(by_name("opencode"))
    examination, torn = read_through(start, partial(_feed, connection, session, live))
    found = examined(examination, torn, label=f"session {session.id}")
    conversation = SessionConversation(
        findings=found.findings,
        label=found.label,
        captured=found.captured,
        unread=found.unread,
        # A session in which nothing is live yet, or any more, has nothing to be recognised in.
        recognised=found.recognised or not examination.records,
        messages={at: head.id for at, head in enumerate(heads, 1)} if found.findings else {},
    )
    return conversation, len(heads)


def _feed(
    connection: sqlite3.Connection, session: SessionRow, live: range, examination: Examination
) -> list[Finding]:
    """Examine the messages that are sent; the rows that cannot be decoded, sent or not: opencode
    cannot read a session that has one."""
    torn: list[Finding] = []
    for at, message in enumerate(messages(connection, session.id)):
        if isinstance(message.info, str):
            torn.append(Finding(rule=rules.UNDECODABLE, place=Place(at + 1), detail=message.info))
            continue
        torn += [
            Finding(rule=rules.UNDECODABLE, place=Place(at + 1, slot), detail=part.problem)
            for slot, part in enumerate(message.parts)
            if isinstance(part, TornPart)
        ]
        if at in live:
            wire = message.wire()
            wire["parts"] = parts_sent(wire["parts"], message.id, session.revert)
            examination.add(wire, at + 1)
    return torn
