"""Claude Code transcripts: one record a line, Messages among them, linked by `parentUuid`.

What counts is what would be resumed: a compaction boundary starts anew, and what a rewind left
behind is gone. Sidechains (subagents) are conversations of their own. One message of the API can
be spread over several lines; lines of one turn are joined when it is sent."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import IO, Any, Final

import msgspec

from lockstitch.core.items import Part, Place
from lockstitch.core.mending import Policy
from lockstitch.core.pairing import OpenCall, Pairing
from lockstitch.core.seen import SeenIds, SeenKeys
from lockstitch.dialects.base import Wire
from lockstitch.dialects.messages import Messages
from lockstitch.sessions.cutting import DeadRange, DeadRanges, bury, replaced_at, take_back
from lockstitch.sessions.line_writing import LineWriter
from lockstitch.sessions.model import Change, Conversation, Scan
from lockstitch.sessions.plain_lines import read_objects, undecodable
from lockstitch.sessions.source import Source

REMEMBERED_LINES = 20_000
"""How far back a rewind is recognised. Beyond it the lines between are taken to be live."""


class _Lines(Messages):
    """Messages whose results are lines of their own, as Claude Code writes them."""

    answers_join_turn = False


_DIALECT: Final = _Lines()


class ClaudeTranscript:
    """The format of `~/.claude/projects/*/*.jsonl`."""

    name = "claude-code"

    def scan(self, source: Source, *, anchored: bool = False) -> Scan:
        survey = _Survey()
        while True:
            reading = _Reading(survey)
            reading.read(source)
            suspects = {
                chain: one.pairing.suspects()
                for chain, one in reading.chains.items()
                if any(one.pairing.suspects())
            }
            if survey.first and (suspects or reading.dead):
                survey = _Survey(reading.dead, suspects, first=False)
                continue
            return reading.result(anchored=anchored)

    def write(self, source: Source, out: IO[bytes], scan: Scan, policy: Policy) -> list[Change]:
        links = _Links()
        writer = LineWriter(scan, _DIALECT, links, policy)
        if writer.idle:
            return []
        writer.write(source, out, links.relink)
        return writer.log.all()


# --- reading -----------------------------------------------------------------------------------


@dataclass(slots=True)
class _Survey:
    """What the first reading learned that the second needs."""

    dead: list[DeadRange] = field(default_factory=list)
    suspects: dict[str, tuple[set[str], set[str]]] = field(default_factory=dict)
    first: bool = True


@dataclass(slots=True)
class _Chain:
    """One conversation of the file: the main one, or a sidechain."""

    label: str
    pairing: Pairing
    captured: dict[Place, Wire] = field(default_factory=dict)


class _Reading:
    def __init__(self, survey: _Survey) -> None:
        self.survey = survey
        self.chains: dict[str, _Chain] = {}
        self.undecodable: list[Any] = []
        self.records = 0
        self.dead: list[DeadRange] = []
        self._known: dict[str, int] = {}
        self._turns: list[int] = []
        self._begun = False

    def read(self, source: Source) -> None:
        dead = DeadRanges(self.survey.dead)
        for number, record, problem in read_objects(source):
            if record is None:
                self.undecodable.append(undecodable(number, problem))
                continue
            self.records += 1
            chain = self._chain(record)
            range_ = dead.at(number) if not chain.label else None
            if range_ is None and not chain.label:
                self._follow(record, number, chain)
            for wire, item in _items(record):
                if range_ is not None:
                    take_back(chain.pairing, item, range_)
                    continue
                finding = chain.pairing.add(item, number)
                if finding is not None:
                    chain.captured[finding.place] = _DIALECT.take(wire, {item.slot})[1][0]

    def _chain(self, record: dict[str, Any]) -> _Chain:
        name = ""
        if record.get("isSidechain") is True:
            agent = record.get("agentId")
            name = f"sidechain {agent}" if isinstance(agent, str) else "sidechain"
        chain = self.chains.get(name)
        if chain is None:
            chain = self.chains[name] = _Chain(name, self._pairing(name))
        return chain

    def _pairing(self, name: str) -> Pairing:
        suspects = self.survey.suspects.get(name)
        if suspects is None:
            return Pairing(_DIALECT.order)
        ids = SeenIds(suspects[0])
        keys: SeenKeys[OpenCall] = SeenKeys(suspects[1])
        return Pairing(_DIALECT.order, ids=ids, keys=keys)

    def _follow(self, record: dict[str, Any], number: int, chain: _Chain) -> None:
        """Keep track of the links: a boundary starts anew, a prompt further up is a rewind."""
        uuid = record.get("uuid")
        if not isinstance(uuid, str):
            return
        parent = record.get("parentUuid")
        kind = record.get("type")
        if kind == "system" and record.get("subtype") == "compact_boundary":
            cut = replaced_at(chain.pairing, number)
            chain.pairing = self._pairing("")
            chain.pairing.cut.update(cut)
            chain.captured.clear()
            self._turns.clear()
        elif _is_prompt(record) and self.survey.first:
            # A prompt without a parent goes back to before everything.
            before = self._known.get(parent) if isinstance(parent, str) else 0
            left = [turn for turn in self._turns if before is not None and turn > before]
            if left:
                self.dead = bury(DeadRange(Place(left[0]), number), self.dead)
                self._turns = self._turns[: len(self._turns) - len(left)]
        if kind == "assistant" or _is_prompt(record):
            self._turns.append(number)
            del self._turns[:-REMEMBERED_LINES]
        self._known[uuid] = number
        if len(self._known) > REMEMBERED_LINES:
            del self._known[next(iter(self._known))]

    def result(self, *, anchored: bool) -> Scan:
        conversations = [
            Conversation(
                label=chain.label,
                findings=chain.pairing.finish(anchored=anchored),
                captured=chain.captured,
            )
            for chain in self.chains.values()
        ]
        conversations.append(Conversation(findings=self.undecodable))
        return Scan(format="claude-code", conversations=conversations, records=self.records)


def _items(record: dict[str, Any]) -> Iterator[tuple[Wire, Any]]:
    message = record.get("message")
    if record.get("type") in ("user", "assistant") and isinstance(message, dict):
        for item in _DIALECT.read(message):
            yield message, item


def _is_prompt(record: dict[str, Any]) -> bool:
    """Something that a person typed: where a rewind can begin."""
    if record.get("type") != "user" or record.get("isMeta") is True:
        return False
    return all(item.part is Part.INPUT for _, item in _items(record))


# --- writing -----------------------------------------------------------------------------------

_PARENT: Final = re.compile(rb'"parentUuid"\s*:\s*"([^"\\]+)"')
_COPIED: Final = ("isSidechain", "userType", "cwd", "sessionId", "version", "gitBranch", "agentId")


class _Links:
    """New lines become part of the chain; lines that go are bridged."""

    def __init__(self) -> None:
        self._instead: dict[str, Any] = {}
        """For a parent, the line that its children hang on now."""

    def open(self, record: dict[str, Any]) -> Wire:
        message: Wire = record["message"]
        return message

    def close(self, record: dict[str, Any], wire: Wire) -> dict[str, Any]:
        return {**record, "message": wire}

    def drop(self, record: dict[str, Any]) -> None:
        parent = record.get("parentUuid")
        self._instead[str(record.get("uuid"))] = self._instead.get(str(parent), parent)

    def make(self, record: dict[str, Any], wire: Wire) -> dict[str, Any]:
        anchor = str(record.get("uuid"))
        parent = self._instead.get(anchor, record.get("uuid"))
        uuid = self._instead[anchor] = _derived_uuid(anchor, wire)
        copied: dict[str, Any] = {name: record[name] for name in _COPIED if name in record}
        return {
            "parentUuid": parent,
            **copied,
            "type": "user",
            "message": wire,
            "uuid": uuid,
            "timestamp": record.get("timestamp"),
        }

    def relink(self, line: bytes, new: bool) -> bytes:
        """The line, hung on what stands in its parent's place now."""
        if not self._instead:
            return line
        found = _PARENT.search(line)
        if found is None or found[1].decode(errors="replace") not in self._instead:
            return line
        record = msgspec.json.decode(line)
        instead = self._instead.get(str(record.get("parentUuid")), _MISSING)
        if instead is _MISSING or instead == record.get("uuid"):
            return line
        return msgspec.json.encode({**record, "parentUuid": instead}) + b"\n"


_MISSING: Final = object()


def _derived_uuid(parent: str, wire: Wire) -> str:
    """The same mending always gives the same line."""
    digest = hashlib.sha256(parent.encode() + msgspec.json.encode(wire)).hexdigest()
    return f"{digest[:8]}-{digest[8:12]}-5{digest[13:16]}-8{digest[17:20]}-{digest[20:32]}"
