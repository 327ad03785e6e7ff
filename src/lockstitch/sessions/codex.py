"""Codex rollouts: one record a line, Responses items among them.

What counts is what Codex would resume from: the newest `compacted` record replaces everything
before it, and turns that a `thread_rolled_back` event took back are gone. Writing is in
`codex_writing`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final

import msgspec

from lockstitch.core import rules
from lockstitch.core.findings import Finding
from lockstitch.core.groups import Cut
from lockstitch.core.items import Item, Part, Place
from lockstitch.core.mending import Policy
from lockstitch.core.pairing import Pairing, Watch
from lockstitch.core.rules import Rule
from lockstitch.dialects import signs
from lockstitch.dialects.base import Wire, text_of
from lockstitch.dialects.examination import Unread
from lockstitch.dialects.responses import Responses, classify
from lockstitch.sessions import codex_writing
from lockstitch.sessions.codex_records import (
    LEGACY_ENDS,
    RECORD_TYPES,
    SHORT_OUTPUT_BYTES,
    Payload,
    Record,
    decode_record,
    lenient_record,
    read_evidence,
)
from lockstitch.sessions.codex_turns import dead_ranges
from lockstitch.sessions.codex_writing import Numbers
from lockstitch.sessions.cutting import DeadRange, DeadRanges, replaced_at, take_back
from lockstitch.sessions.lines import decoded, lines, problem_of, skip_blank_lines
from lockstitch.sessions.model import Change, Conversation, Scan, Sink
from lockstitch.sessions.source import Source

_RESPONSES: Final = Responses()
_OTHER: Final = Part.OTHER
_SAID: Final = ("message", "reasoning")
_NO_ORDINAL: Final = -1
"""No record has this ordinal: the first one is always looked at closely."""


@dataclass(slots=True)
class _Survey:
    """What one reading learned that the next one needs."""

    watch: Watch | None = None
    dead: list[DeadRange] = field(default_factory=list)
    undone: set[int] = field(default_factory=set)
    """Lines of compactions that rollbacks undid."""
    turns: bool = False
    """Rollbacks were met, and the dead ranges are known."""
    halves: frozenset[str] = frozenset()
    """Keys of calls that a compaction kept without their output: look for it before the cut."""
    last: bool = False
    """Everything is known that another reading could need."""


class CodexRollout:
    """The format of `rollout-*.jsonl`."""

    name = "codex"

    def scan(self, source: Source, *, anchored: bool = False) -> Scan:
        survey = _Survey()
        while True:
            reading = _Reading(survey)
            reading.read(source)
            if reading.rolled_back and not survey.turns:
                dead, undone = dead_ranges(source)
                survey = _Survey(dead=dead, undone=undone, turns=True)
                continue
            watch = reading.pairing.to_watch()
            halves = frozenset(reading.halves())
            if (watch is not None or halves) and not survey.last:
                survey = replace(survey, watch=watch, halves=halves, last=True)
                continue
            return reading.result(anchored=anchored)

    def write(self, source: Source, out: Sink, scan: Scan, policy: Policy) -> list[Change]:
        return codex_writing.write(source, out, scan, policy)


class _Reading:
    """One pass over the lines."""

    def __init__(self, survey: _Survey) -> None:
        self.survey = survey
        self.dead = DeadRanges(survey.dead)
        self.pairing = self._pairing({})
        self.findings: list[Finding] = []
        self.captured: dict[Place, Wire] = {}
        self.cut_outputs: dict[str, tuple[bytes, int]] = {}
        self.unread: Unread | None = None
        self.rolled_back = False
        self.header = False
        self.paginated: bool | None = None
        self.torn: set[int] = set()
        self.spent: set[int] = set()
        self.records = self.not_records = self.last_said = 0

    def _pairing(self, cut: dict[str, Cut]) -> Pairing:
        return Pairing(watch=self.survey.watch, cut=cut, read=read_evidence)

    def read(self, source: Source) -> None:
        """Feed every line. This loop is the hot path: one decode and one `add` for each line, and
        names bound beforehand."""
        number = blank = 0
        next_ordinal = _NO_ORDINAL
        last_said = 0
        dead = self.dead if self.survey.dead else None
        halves = self.survey.halves
        add, witness = self.pairing.add, self.pairing.witness
        with source.open() as stream:
            reader = lines(stream, source.name)
            for line in reader:
                number += 1
                try:
                    record = decode_record(line)
                    if not line.isascii():
                        line.decode()
                except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                    if line.isspace():
                        skipped = skip_blank_lines(reader)
                        blank += 1 + skipped
                        number += skipped
                        continue
                    found = self._undecoded(line, number)
                    if found is None:
                        continue
                    record = found
                kind = record.type
                payload = record.payload
                if payload is None:
                    if kind is None:
                        self._torn_line(number, "is not a rollout record")
                        continue
                    payload = Payload()
                ordinal = record.ordinal
                if ordinal == next_ordinal and ordinal.__class__ is int:
                    next_ordinal += 1
                elif self.paginated is not False:
                    next_ordinal = self._count(record, payload, number, next_ordinal)
                if dead is not None:
                    range_ = dead.at(number)
                    if range_ is not None:
                        self._dead(record, payload, line, number, range_)
                        add, witness = self.pairing.add, self.pairing.witness
                        continue
                if kind == "response_item":
                    if payload.type in _SAID:
                        last_said = number
                    if 0 < len(payload.output) <= SHORT_OUTPUT_BYTES:
                        self._read_short_output(payload)
                    if halves and text_of(payload.call_id) in halves:
                        self._before_the_cut(payload, line, number)
                    item = classify(payload)
                    if item.part is _OTHER:
                        self._unknown(item, line, number)
                    finding = add(item, number)
                    if finding is not None:
                        self.captured[Place(number)] = decoded(line)["payload"]
                elif kind == "event_msg":
                    event = payload.type
                    if event == "item_completed":
                        done = payload.item
                        if done is not None and done.id.__class__ is str:
                            witness(done.id, line, number)
                    elif event in LEGACY_ENDS:
                        if payload.call_id.__class__ is str:
                            witness(payload.call_id, line, number)
                    elif event == "thread_rolled_back":
                        self.rolled_back = True
                elif kind == "compacted":
                    last_said = number
                    self._compacted(payload, number)
                    add, witness = self.pairing.add, self.pairing.witness
                elif text_of(kind) not in RECORD_TYPES:
                    self._unknown(None, line, number)
        self.records = number - blank - self.not_records
        self.last_said = last_said

    # --- the file ------------------------------------------------------------------------------

    def _undecoded(self, line: bytes, number: int) -> Record | None:
        """A line that is no record at first sight: an odd one, or a torn one."""
        problem = problem_of(line)
        record = lenient_record(line) if problem is None else None
        if record is None:
            self._torn_line(number, problem or "is not a rollout record")
        return record

    def _torn_line(self, number: int, problem: str) -> None:
        self.not_records += 1
        self.torn.add(number)
        self._found(rules.UNDECODABLE, number, f"the line {problem}")
        self._expect_header(None, None, number)

    def _count(self, record: Record, payload: Payload, number: int, expected: int) -> int:
        """An ordinal that is not the expected one; the one to expect next. (Only some files have
        ordinals.)"""
        ordinal = record.ordinal
        if self.paginated is None:
            self._expect_header(record, payload, number)
            self.paginated = payload.history_mode == "paginated" or ordinal is not None
            if not self.paginated:
                return _NO_ORDINAL
            expected = ordinal if ordinal.__class__ is int else 0
        if ordinal.__class__ is not int:
            self._found(rules.ORDINAL, number, f"the line has no ordinal; expected {expected}")
            return expected
        if ordinal < expected:
            self._found(rules.ORDINAL, number, f"ordinal {ordinal} is repeated")
            return expected
        # Torn lines just before may have used up ordinals; they have findings of their own.
        torn = 0
        while number - 1 - torn in self.torn:
            torn += 1
        self.spent.update(number - 1 - n for n in range(min(torn, ordinal - expected)))
        if ordinal > expected + torn:
            self._found(rules.ORDINAL, number, f"ordinal {ordinal} skips {expected}")
        return int(ordinal) + 1

    def _expect_header(self, record: Record | None, payload: Payload | None, number: int) -> None:
        if self.header:
            return
        self.header = True
        if record is None or record.type != "session_meta" or payload is None or not payload.id:
            self._found(
                rules.NO_HEADER, number, "the rollout does not begin with a session_meta record"
            )

    def _found(self, rule: Rule, number: int, detail: str) -> None:
        self.findings.append(Finding(rule=rule, place=Place(number), detail=detail))

    # --- what happens to the history -----------------------------------------------------------

    def _unknown(self, item: Item | None, line: bytes, number: int) -> None:
        """A response item that is not known, or (without ``item``) a record of a type that is not:
        neither may be a call in disguise."""
        if self.unread is not None:
            return
        record = decoded(line)
        payload = record.get("payload")
        sign = None
        if not isinstance(payload, dict):
            sign = signs.sign_within(record)
        elif item is not None:
            sign = item.unread or _RESPONSES.read(payload)[0].unread
        elif _RESPONSES.read(payload)[0].part in (Part.CALL, Part.OUTPUT):
            sign = f"an item in a record of type `{record.get('type')}`"
        if sign is not None:
            self.unread = Unread(Place(number), sign)

    def _read_short_output(self, payload: Payload) -> None:
        try:
            text = msgspec.json.decode(payload.output)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return
        payload.output = text

    def _before_the_cut(self, payload: Payload, line: bytes, number: int) -> None:
        """An output that a compaction may have cut off; or a call, of which earlier outputs with
        its id say nothing."""
        if payload.output:
            self.cut_outputs[payload.call_id] = (line, number)
        else:
            self.cut_outputs.pop(payload.call_id, None)

    def _compacted(self, payload: Payload, number: int) -> None:
        """The replacement history replaces everything; what it cut in half is remembered."""
        if number in self.survey.undone:
            return
        self.pairing = self._pairing(replaced_at(self.pairing, number))
        self.captured.clear()
        for wire, item in _replacement(payload):
            if self.dead.hold(Place(number, item.slot)):
                continue
            if item.unread is not None and self.unread is None:
                self.unread = Unread(Place(number), item.unread)
            finding = self.pairing.add(item, number)
            if finding is not None:
                self.captured[Place(number, item.slot)] = wire

    def _dead(
        self, record: Record, payload: Payload, line: bytes, number: int, range_: DeadRange
    ) -> None:
        """A record that a later rollback took back, or a compaction that begins live."""
        if record.type == "compacted" and Place(number) < range_.start:
            self._compacted(payload, number)
        elif record.type == "response_item":
            take_back(self.pairing, classify(payload), range_, line, number)

    # --- the end -------------------------------------------------------------------------------

    def halves(self) -> Iterator[str]:
        """Calls that a compaction kept, and that have no output behind it."""
        for call in self.pairing.open_calls():
            if call.item.slot and call.item.key:
                yield call.item.key

    def result(self, *, anchored: bool) -> Scan:
        for call in self.pairing.open_calls():
            if call.item.slot and call.cut is None:
                call.cut = Cut(call.at, "compaction")
        for key, (line, number) in self.cut_outputs.items():
            half = self.pairing.open_call(key)
            if half is not None and half.testimony is None:
                self.pairing.witness(key, line, number)
        findings = self.findings + self.pairing.finish(anchored=anchored)
        findings.sort(key=lambda finding: (finding.place, finding.rule.code))
        return Scan(
            format="codex",
            conversations=[
                Conversation(findings=findings, captured=self.captured, unread=self.unread)
            ],
            records=self.records,
            facts=Numbers(bool(self.paginated), frozenset(self.spent), self.last_said),
        )


def _replacement(payload: Payload) -> Iterator[tuple[Wire, Item]]:
    """The items of a replacement history; slots count from 1, slot 0 is the record itself."""
    try:
        history = decoded(bytes(payload.replacement_history))
    except (ValueError, RecursionError):
        return
    if not isinstance(history, list):
        return
    for n, wire in enumerate(history, 1):
        if isinstance(wire, dict):
            (item,) = _RESPONSES.read(wire)
            yield wire, msgspec.structs.replace(item, slot=n)
