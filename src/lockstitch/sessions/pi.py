"""Sessions of pi and OpenClaw: one entry a line, linked by `id` and `parentId` into a tree.

What counts is what pi would send when it resumes (`pi_tree`). Writing keeps the links whole
(`pi_writing`)."""

from __future__ import annotations

from typing import Any, Final

from lockstitch.core import rules
from lockstitch.core.findings import Finding
from lockstitch.core.groups import Cut
from lockstitch.core.items import Part, Place
from lockstitch.core.mending import Policy
from lockstitch.core.outcomes import Evidence, Outcome, stands_in
from lockstitch.core.pairing import Pairing, Watch, read_through
from lockstitch.dialects import signs
from lockstitch.dialects.base import Wire, as_json, text_of
from lockstitch.dialects.examination import Examination, Unread
from lockstitch.dialects.pi import Pi
from lockstitch.sessions import pi_writing
from lockstitch.sessions.cutting import DeadRange, DeadRanges, take_back
from lockstitch.sessions.model import Change, Conversation, Scan, Sink, examined
from lockstitch.sessions.pi_tree import PiTree
from lockstitch.sessions.plain_lines import read_objects, undecodable
from lockstitch.sessions.source import Source

_DIALECT: Final = Pi()
_SILENT: Final = frozenset(
    {
        "session",
        "compaction",
        "custom",
        "label",
        "model_change",
        "session_info",
        "thinking_level_change",
    }
)
"""Entries that are not sent. What extensions keep in `custom` may be anything."""


class PiSession:
    """The format of `~/.pi/agent/sessions/*/*.jsonl`, which OpenClaw writes too."""

    name = "pi"

    def scan(self, source: Source, *, anchored: bool = False) -> Scan:
        tree = PiTree.read(source)
        reading, _ = read_through(_Reading(tree, None), lambda one: one.read(source))
        return reading.result(anchored=anchored)

    def write(self, source: Source, out: Sink, scan: Scan, policy: Policy) -> list[Change]:
        return pi_writing.write(source, out, scan, policy)


class _Reading:
    """One pass over the lines."""

    def __init__(self, tree: PiTree, watch: Watch | None) -> None:
        self._tree = tree
        self._ranges = tree.dead_ranges()
        self._dead = DeadRanges(self._ranges)
        pairing = Pairing(_DIALECT.order, watch=watch, read=_read_result)
        self._examination = Examination(_DIALECT, pairing=pairing)
        self._problems: list[Finding] = []
        self._unread: Unread | None = None
        self._records = 0

    def again(self) -> _Reading | None:
        """A fresh reading, if a second one is needed."""
        watch = self._examination.pairing.to_watch()
        return None if watch is None else _Reading(self._tree, watch)

    def read(self, source: Source) -> None:
        if self._tree.header is None:
            detail = "the session does not begin with its header"
            place = Place(self._tree.first_line or 1)
            self._problems.append(Finding(rule=rules.NO_HEADER, place=place, detail=detail))
        for number, record, problem in read_objects(source):
            if record is None:
                self._problems.append(undecodable(number, problem))
                continue
            self._records += 1
            range_ = self._dead.at(number)
            message = _message(record)
            if message is None:
                self._expect_no_call(record, number)
            elif range_ is None:
                self._examination.add(message, number)
            else:
                self._take_back(message, range_, number)

    def _take_back(self, message: Wire, range_: DeadRange, number: int) -> None:
        """Pass a message that is not sent; it can take half a pair with it."""
        pairing = self._examination.pairing
        for item in _DIALECT.read(message):
            if item.lone:
                continue
            take_back(pairing, item, range_, message, number)
            if range_.by == "compaction" and item.key is not None and item.key in pairing.cut:
                pairing.cut[item.key] = Cut(self._tree.compaction or range_.end, range_.by)

    def _expect_no_call(self, record: dict[str, Any], number: int) -> None:
        """An entry that is not a message. Those of known types may mention calls; any other may
        hold them."""
        if self._unread is not None or text_of(record.get("type")) in _SILENT:
            return
        sign = signs.sign_within({name: one for name, one in record.items() if name != "type"})
        if sign is None and isinstance(message := record.get("message"), dict):
            items = _DIALECT.read(message)
            if any(item.unread or item.part in (Part.CALL, Part.OUTPUT) for item in items):
                sign = f"a message in an entry of type `{record.get('type')}`"
        if sign is not None:
            self._unread = Unread(Place(number), sign)

    def result(self, *, anchored: bool) -> Scan:
        return Scan(
            format="pi",
            conversations=[
                examined(self._examination, anchored=anchored),
                Conversation(findings=self._problems, unread=self._unread),
            ],
            records=self._records,
            linked=True,
            facts=self._tree,
        )


def _message(record: dict[str, Any]) -> Wire | None:
    """The message that pi sends for an entry, if it does."""
    kind = record.get("type")
    if kind == "message":
        message = record.get("message")
        return message if isinstance(message, dict) else None
    if kind == "custom_message":
        return {"role": "custom", "content": record.get("content") or ""}
    if kind == "branch_summary":
        return {"role": "branchSummary", "content": ""} if record.get("summary") else None
    return None


def _read_result(message: Any, at: int) -> Evidence | None:
    """How a call ended, from a result that is not on the branch to resume."""
    said = message.get("content")
    parts = (
        [part.get("text") for part in said if isinstance(part, dict)] if type(said) is list else []
    )
    texts = [text for text in parts if isinstance(text, str)]
    text = "\n".join(texts) if parts and len(texts) == len(parts) else as_json(said).decode()
    if isinstance(said, str):
        text = said
    if stands_in(text):
        return None
    failed = message.get("isError") is True
    return Evidence(Outcome.FINISHED, "failed" if failed else "finished", text, at, failed=failed)
