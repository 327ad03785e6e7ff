"""JSONL of request bodies: every line is a request, and so a conversation of its own."""

from __future__ import annotations

from typing import IO, Any

import msgspec

from lockstitch.core import mending, rules
from lockstitch.core.mending import Policy
from lockstitch.core.pairing import Pairing
from lockstitch.dialects.base import Dialect, Wire
from lockstitch.dialects.detection import detect
from lockstitch.dialects.rewriting import rewrite_all
from lockstitch.sessions.changes import ChangeLog
from lockstitch.sessions.documents import ANCHORS
from lockstitch.sessions.lines import lines
from lockstitch.sessions.model import Change, Conversation, Scan
from lockstitch.sessions.plain_lines import read_objects, undecodable
from lockstitch.sessions.source import Source
from lockstitch.sessions.splitting import LIST_FIELDS


def list_field(record: object) -> str | None:
    """The field of a request body that holds its items."""
    if isinstance(record, dict):
        for name in LIST_FIELDS:
            if isinstance(record.get(name), list):
                return name
    return None


class RequestBodies:
    """Recorded requests, one a line."""

    name = "requests"

    def __init__(self, dialect: Dialect | None = None) -> None:
        self._dialect = dialect

    def scan(self, source: Source, *, anchored: bool = False) -> Scan:
        broken: list[Conversation] = []
        records = 0
        for number, body, problem in read_objects(source):
            if body is None:
                broken.append(Conversation(findings=[undecodable(number, problem)], line=number))
                continue
            records += 1
            field = list_field(body)
            if field is None:
                continue
            history = _wires(body[field])
            dialect = self._dialect or detect(history)
            pairing = Pairing(dialect.order)
            for at, wire in enumerate(history):
                for item in dialect.read(wire):
                    pairing.add(item, at)
            behind_anchor = anchored or any(body.get(name) for name in ANCHORS)
            findings = pairing.finish(anchored=behind_anchor)
            if findings:
                broken.append(Conversation(findings=findings, label=field, line=number))
        return Scan(format=self.name, conversations=broken, records=records, word="item")

    def write(self, source: Source, out: IO[bytes], scan: Scan, policy: Policy) -> list[Change]:
        by_line = {one.line: one for one in scan.conversations}
        changes: list[Change] = []
        with source.open() as stream:
            for number, line in enumerate(lines(stream, source.name), 1):
                conversation = by_line.get(number)
                if conversation is None:
                    out.write(line)
                    continue
                log = ChangeLog(scan, line=number)
                if conversation.findings[0].rule is rules.UNDECODABLE:
                    log.removed(conversation.findings[0], line)
                else:
                    out.write(self._mended(line, conversation, policy, log))
                changes += log.all()
        return changes

    def _mended(
        self, line: bytes, conversation: Conversation, policy: Policy, log: ChangeLog
    ) -> bytes:
        edits = mending.plan(conversation.findings, policy)
        if not edits:
            return line
        log.expect(edits, conversation.label)
        body: dict[str, Any] = msgspec.json.decode(line)
        history = _wires(body[conversation.label])
        dialect = self._dialect or detect(history)
        mended, _, _ = rewrite_all(dialect, history, edits)
        new = msgspec.json.encode({**body, conversation.label: mended}) + b"\n"
        log.touched(mending.shown_at(edits[0])[0], [line], [new])
        return new


def _wires(history: list[Any]) -> list[Wire]:
    return [wire if isinstance(wire, dict) else {} for wire in history]
