"""JSONL of request bodies: every line is a request, and so a conversation of its own."""

from __future__ import annotations

from typing import Any

from lockstitch.core import mending, rules
from lockstitch.core.items import Place
from lockstitch.core.mending import Policy
from lockstitch.dialects import signs
from lockstitch.dialects.base import Dialect
from lockstitch.dialects.detection import detect
from lockstitch.dialects.examination import Unread, examine
from lockstitch.dialects.rewriting import rewrite_all
from lockstitch.sessions.changes import ChangeLog
from lockstitch.sessions.documents import is_anchored, may_hide_calls
from lockstitch.sessions.lines import decoded, encoded, numbered_lines
from lockstitch.sessions.model import Change, Conversation, Scan, Sink, examined
from lockstitch.sessions.plain_lines import read_objects, undecodable
from lockstitch.sessions.source import Source
from lockstitch.sessions.splitting import LIST_FIELDS


def list_path(record: object) -> tuple[str, ...] | None:
    """Where a recorded request keeps its items: in itself, or in its `body` (a batch file)."""
    if not isinstance(record, dict):
        return None
    for name in LIST_FIELDS:
        if isinstance(record.get(name), list):
            return (name,)
    body = record.get("body")
    if isinstance(body, dict):
        return next(
            (("body", name) for name in LIST_FIELDS if isinstance(body.get(name), list)), None
        )
    return None


class RequestBodies:
    """Recorded requests, one a line."""

    name = "requests"

    def __init__(self, dialect: Dialect | None = None) -> None:
        self._dialect = dialect

    def scan(self, source: Source, *, anchored: bool = False) -> Scan:
        broken: list[Conversation] = []
        records = 0
        recognised = False
        for number, body, problem in read_objects(source):
            if body is None:
                broken.append(Conversation(findings=[undecodable(number, problem)], line=number))
                continue
            records += 1
            path = list_path(body)
            if path is None:
                sign = signs.sign_within(body, level=signs.DEEPEST_LEVEL + 2)
                if sign is not None:
                    unread = Unread(Place(0), sign)
                    broken.append(Conversation(findings=[], line=number, unread=unread))
                continue
            *outer, field = path
            request = body[outer[0]] if outer else body
            history = request[field]
            dialect = detect(history, self._dialect)
            behind_anchor = anchored or is_anchored(field, request)
            examination = examine(dialect, history)
            for name, value in request.items():
                if name != field and may_hide_calls(name, value):
                    examination.expect_no_calls(value, f"`{name}`, a second list")
            recognised = recognised or examination.recognised
            one = examined(examination, anchored=behind_anchor, label=".".join(path), line=number)
            if one.findings or one.unread is not None:
                broken.append(one)
        for one in broken:
            one.recognised = recognised  # one request may hold nothing that is known
        return Scan(
            format=self.name,
            conversations=broken or [Conversation(findings=[], recognised=recognised)],
            records=records,
            word="item",
        )

    def write(self, source: Source, out: Sink, scan: Scan, policy: Policy) -> list[Change]:
        by_line = {one.line: one for one in scan.conversations}
        changes: list[Change] = []
        with source.open() as stream:
            for number, line in numbered_lines(stream, source.name, blank=out.write):
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
        record: dict[str, Any] = decoded(line)
        *outer, field = conversation.label.split(".")
        request = record[outer[0]] if outer else record
        history = request[field]
        dialect = detect(history, self._dialect)
        request[field], _, _ = rewrite_all(dialect, history, edits)
        new = encoded(record)
        log.touched(mending.shown_at(edits[0])[0], [line], [new])
        return new
