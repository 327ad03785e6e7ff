"""Claude Code transcripts: one record a line, Messages among them, linked by `parentUuid`.

What counts is what would be resumed (`dead_lines`). Sidechains (subagents) are conversations of
their own. One message of the API can be spread over several lines; lines of one turn are joined
when it is sent. Writing keeps the links whole (`_Relinking`)."""

from __future__ import annotations

import hashlib
import re
from array import array
from bisect import bisect_left
from enum import Enum
from typing import Any, Final

from lockstitch.core.findings import Finding
from lockstitch.core.items import Part, Place
from lockstitch.core.mending import Policy
from lockstitch.core.outcomes import Evidence, Outcome, stands_in
from lockstitch.core.pairing import Pairing, Watch, read_through
from lockstitch.dialects import signs
from lockstitch.dialects.base import Answers, Wire, as_json
from lockstitch.dialects.examination import Examination, Unread
from lockstitch.dialects.messages import Messages
from lockstitch.sessions.cutting import DeadRange, DeadRanges, take_back
from lockstitch.sessions.line_writing import LineWriter
from lockstitch.sessions.lines import decoded, encoded
from lockstitch.sessions.model import Change, Conversation, Scan, Sink, examined
from lockstitch.sessions.plain_lines import read_objects, undecodable
from lockstitch.sessions.source import Source


class _Lines(Messages):
    """Messages whose results are lines of their own, as Claude Code writes them."""

    answers = Answers.BEFORE_TURN


_DIALECT: Final = _Lines()
_MESSAGE_TYPES: Final = ("user", "assistant")
NO_LINK: Final = 1
"""The parent of a record that does not name one, not even as null: it is taken to hang on the line
before, like one whose parent is not in the file."""
_ENVELOPE: Final = frozenset({"type", "uuid", "parentUuid", "sessionId", "toolUseResult"})
"""Fields of a record that hold no message."""


class ClaudeTranscript:
    """The format of `~/.claude/projects/*/*.jsonl`."""

    name = "claude-code"

    def scan(self, source: Source, *, anchored: bool = False) -> Scan:
        dead, last = dead_lines(source)
        reading, _ = read_through(_Reading(dead, {}), lambda one: one.read(source))
        # If the last message goes, a line that was left behind must not become the last.
        return reading.result(anchored=anchored, stays=last if dead else None)

    def write(self, source: Source, out: Sink, scan: Scan, policy: Policy) -> list[Change]:
        links = _Relinking()
        writer = LineWriter(scan, _DIALECT, links, policy, stays=scan.facts)
        if writer.idle:
            return []
        writer.write(source, out, links)
        return writer.log.all()


# --- reading -----------------------------------------------------------------------------------


class _Reading:
    """One pass over the lines."""

    def __init__(self, dead: list[DeadRange], watches: dict[str, Watch | None]) -> None:
        self._ranges = dead
        self._dead = DeadRanges(dead)
        self._watches = watches
        self._chains: dict[str, Examination] = {}
        self._undecodable: list[Finding] = []
        self._unread: Unread | None = None
        self._records = 0

    def again(self) -> _Reading | None:
        """A fresh reading, if any conversation needs a second one."""
        watches = {label: one.pairing.to_watch() for label, one in self._chains.items()}
        return _Reading(self._ranges, watches) if any(watches.values()) else None

    def read(self, source: Source) -> None:
        for number, record, problem in read_objects(source):
            if record is None:
                self._undecodable.append(undecodable(number, problem))
                continue
            self._records += 1
            message = _message(record)
            if message is None:
                self._expect_no_call(record, number)
                continue
            label = _label(record)
            range_ = self._dead.at(number) if not label else None
            chain = self._chain(label)
            if range_ is None:
                chain.add(message, number)
                continue
            for item in _DIALECT.read(message):
                take_back(chain.pairing, item, range_, message.get("content"), number)

    def _chain(self, label: str) -> Examination:
        chain = self._chains.get(label)
        if chain is None:
            pairing = Pairing(_DIALECT.order, watch=self._watches.get(label), read=_read_result)
            chain = self._chains[label] = Examination(_DIALECT, pairing=pairing)
        return chain

    def _expect_no_call(self, record: dict[str, Any], number: int) -> None:
        """A record that is not a message. Those of known types may mention calls; a message in
        another one, or in another field, may hold them."""
        if self._unread is not None:
            return
        sign = None
        if record.get("type") in _MESSAGE_TYPES:
            rest = {name: value for name, value in record.items() if name not in _ENVELOPE}
            sign = signs.sign_within(rest)
        elif isinstance(message := record.get("message"), dict):
            items = _DIALECT.read(message)
            if any(item.unread or item.part in (Part.CALL, Part.OUTPUT) for item in items):
                sign = f"a message in a record of type `{record.get('type')}`"
        if sign is not None:
            self._unread = Unread(Place(number), sign)

    def result(self, *, anchored: bool, stays: int | None) -> Scan:
        conversations = [
            examined(chain, anchored=anchored, label=label) for label, chain in self._chains.items()
        ]
        conversations.append(Conversation(findings=self._undecodable, unread=self._unread))
        return Scan(
            format="claude-code",
            conversations=conversations,
            records=self._records,
            linked=True,
            facts=stays,
        )


def _message(record: dict[str, Any]) -> Wire | None:
    """The message of a record, if it is one."""
    message = record.get("message")
    if record.get("type") in _MESSAGE_TYPES and isinstance(message, dict):
        return message
    return None


def _label(record: dict[str, Any]) -> str:
    """The conversation that a record is of: the main one, or a sidechain."""
    if not _is_sidechain(record):
        return ""
    agent = record.get("agentId")
    return f"sidechain {agent}" if isinstance(agent, str) else "sidechain"


def _read_result(content: Any, at: int) -> Evidence | None:
    """How a call ended, from a result that a rewind left behind."""
    for block in content if isinstance(content, list) else ():
        if isinstance(block, dict) and block.get("type") == "tool_result":
            said = block.get("content")
            text = said if isinstance(said, str) else as_json(said).decode()
            if stands_in(text):
                return None
            failed = block.get("is_error") is True
            summary = "failed" if failed else "finished"
            return Evidence(Outcome.FINISHED, summary, text, at, failed=failed)
    return None


def _is_sidechain(record: dict[str, Any]) -> bool:
    return record.get("isSidechain") is True


# --- what is live ------------------------------------------------------------------------------


class _Link(Enum):
    """What a line is to the chain."""

    OTHER = 0
    MESSAGE = 1
    RESULT = 2
    BOUNDARY = 3


def dead_lines(source: Source) -> tuple[list[DeadRange], int | None]:
    """Lines that a resumed conversation does not have: rewinds and compactions left them behind;
    and the line of its last message.

    Live is the last line and what it hangs on, step by step; results of a live use, because
    parallel results hang on their uses and not on each other; and lines of one message of the
    API."""
    links = _Links.read(source)
    live = links.ancestors_of_the_last()
    dead: list[DeadRange] = []
    start: int | None = None
    for n, number in enumerate(links.numbers):
        above = None if live[n] else links.above(n)
        if above is not None and live[above]:
            live[n] = links.kinds[n] == _Link.RESULT.value or links.same_message(n, above)
        if live[n] and start is not None:
            by = "compaction" if links.kinds[n] == _Link.BOUNDARY.value else "rollback"
            dead.append(DeadRange(Place(start), number, by))
            start = None
        elif not live[n] and start is None:
            start = number
    return dead, links.last_message()


class _Links:
    """The chain: a few numbers for each line, whatever the lines hold."""

    def __init__(self) -> None:
        self.numbers, self.messages = array("q"), array("q")
        self._ids, self._parents = array("q"), array("q")
        self.kinds = bytearray()
        self._by_id: array[int] = array("q")

    @classmethod
    def read(cls, source: Source) -> _Links:
        links = cls()
        for number, record, _ in read_objects(source):
            if record is not None and not _is_sidechain(record):
                links._add(record, number)
        links._by_id = array("q", sorted(range(len(links._ids)), key=links._ids.__getitem__))
        return links

    def _add(self, record: dict[str, Any], number: int) -> None:
        uuid, parent = record.get("uuid"), record.get("parentUuid")
        if not isinstance(uuid, str):
            return
        message = record.get("message")
        message_id = message.get("id") if isinstance(message, dict) else None
        self.numbers.append(number)
        self._ids.append(hash(uuid))
        said = parent is not None or "parentUuid" in record
        self._parents.append(hash(parent) if isinstance(parent, str) else 0 if said else NO_LINK)
        self.messages.append(hash(message_id) if isinstance(message_id, str) else 0)
        self.kinds.append(_link(record).value)

    def above(self, n: int) -> int | None:
        """The line that line ``n`` hangs on; the nearest, if there are several of that name."""
        parent = self._parents[n]
        if not parent:
            return None
        if n and self._ids[n - 1] == parent:
            return n - 1
        ids, by_id = self._ids, self._by_id
        found: int | None = None
        at = bisect_left(by_id, parent, key=ids.__getitem__)
        while at < len(by_id) and ids[by_id[at]] == parent and by_id[at] < n:
            found = by_id[at]
            at += 1
        return found

    def same_message(self, n: int, above: int | None) -> bool:
        """Is line ``n`` of one message of the API with what it hangs on? Results of its first
        uses can stand between."""
        while above is not None and self.kinds[above] == _Link.RESULT.value:
            above = self.above(above)
        return above is not None and self.messages[n] == self.messages[above] != 0

    def _last(self) -> int:
        n = len(self._ids) - 1
        while n >= 0 and self.kinds[n] == _Link.OTHER.value:
            n -= 1
        return n

    def last_message(self) -> int | None:
        """The line of the last message, if there is one."""
        n = self._last()
        return self.numbers[n] if n >= 0 else None

    def ancestors_of_the_last(self) -> bytearray:
        """A mark for each line that the last one hangs on. A parent that is not in the file (a
        torn line, another session) is taken to be the line before: the rest must not be lost
        over it."""
        live = bytearray(len(self._ids))
        n = self._last()
        live[n + 1 :] = b"\1" * (len(live) - n - 1)
        while n >= 0:
            live[n] = 1
            if self.kinds[n] == _Link.BOUNDARY.value or not self._parents[n]:
                break
            above = self.above(n)
            n = above if above is not None else n - 1
        return live


def _link(record: dict[str, Any]) -> _Link:
    kind = record.get("type")
    if kind == "system" and record.get("subtype") == "compact_boundary":
        return _Link.BOUNDARY
    if kind not in ("user", "assistant"):
        return _Link.OTHER
    message = _message(record)
    items = _DIALECT.read(message) if message is not None else ()
    if items and all(item.part is Part.OUTPUT for item in items):
        return _Link.RESULT
    return _Link.MESSAGE


# --- writing -----------------------------------------------------------------------------------

_LINKS: Final = re.compile(rb'"(?:parentUuid|uuid)"\s*:\s*"([^"\\]+)"')
_COPIED: Final = ("isSidechain", "userType", "cwd", "sessionId", "version", "gitBranch", "agentId")


class _Relinking:
    """New lines become part of the chain; lines that go are bridged."""

    def __init__(self) -> None:
        self._instead: dict[str, Any] = {}
        """For a parent, the line that its children hang on now."""
        self._own: dict[str, str] = {}
        """For a line, the new line that was put before it."""

    def open(self, record: dict[str, Any]) -> Wire:
        message: Wire = record["message"]
        return message

    def close(self, record: dict[str, Any], wire: Wire) -> dict[str, Any]:
        return {**record, "message": wire}

    def drop(self, record: dict[str, Any]) -> None:
        parent, uuid = record.get("parentUuid"), record.get("uuid")
        if isinstance(uuid, str):
            self._instead[uuid] = self._instead.get(str(parent), parent)

    def make(self, record: dict[str, Any], wire: Wire) -> dict[str, Any]:
        anchor = record.get("uuid")
        if not isinstance(anchor, str):
            return self._new(record, wire)
        parent = self._instead.get(anchor, anchor)
        uuid = self._instead[anchor] = _derived_uuid(anchor, wire)
        return {"parentUuid": parent, **self._new(record, wire, uuid)}

    def make_before(self, record: dict[str, Any], wire: Wire) -> dict[str, Any]:
        old, anchor = record.get("parentUuid"), record.get("uuid")
        if not isinstance(anchor, str):
            return self._new(record, wire)
        uuid = self._own[anchor] = _derived_uuid(anchor, wire)
        return {"parentUuid": self._instead.get(str(old), old), **self._new(record, wire, uuid)}

    def _new(self, record: dict[str, Any], wire: Wire, uuid: str | None = None) -> dict[str, Any]:
        """A line like ``record``. Beside one that is no part of the chain, neither is it."""
        copied: dict[str, Any] = {name: record[name] for name in _COPIED if name in record}
        link = {} if uuid is None else {"uuid": uuid}
        time = record.get("timestamp")
        return {**copied, "type": "user", "message": wire, **link, "timestamp": time}

    def many(self, block: list[bytes]) -> list[bytes]:
        if not self._instead and not self._own:
            return block
        return [self.one(line, False) for line in block]

    def one(self, line: bytes, new: bool) -> bytes:
        """The line, hung on what stands in its parent's place now."""
        if not self._instead and not self._own:
            return line
        found = _LINKS.findall(line)
        if not any(self._knows(one.decode(errors="replace")) for one in found):
            return line
        record = decoded(line)
        uuid, parent = record.get("uuid"), record.get("parentUuid")
        instead = self._own.get(str(uuid), self._instead.get(str(parent), parent))
        if instead in (parent, uuid):
            return line
        return encoded({**record, "parentUuid": instead})

    def _knows(self, uuid: str) -> bool:
        return uuid in self._instead or uuid in self._own


def _derived_uuid(parent: str, wire: Wire) -> str:
    """The same mending always gives the same line."""
    named = parent.encode(errors="backslashreplace")
    digest = hashlib.sha256(named + as_json(wire)).hexdigest()
    return f"{digest[:8]}-{digest[8:12]}-5{digest[13:16]}-8{digest[17:20]}-{digest[20:32]}"
