"""What reading a session file gives: conversations, and what is wrong with each.

Positions are the format's own (a line, an element, a row); `Scan.word` names them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import IO, Any, Protocol

from lockstitch.core.findings import Finding
from lockstitch.core.items import Place
from lockstitch.core.mending import Policy
from lockstitch.dialects.base import Wire
from lockstitch.sessions.source import Source


@dataclass(slots=True, kw_only=True)
class Conversation:
    """One conversation of a file, as one reading found it."""

    findings: list[Finding]
    label: str = ""
    """Which one it is, where a file holds several."""
    captured: dict[Place, Wire] = field(default_factory=dict)
    """Outputs that may have to move back, as they are."""


@dataclass(slots=True, kw_only=True)
class Scan:
    """One reading of a file."""

    format: str
    conversations: list[Conversation]
    records: int
    word: str = "line"
    """What a position is called: ``line``, ``item``, ``row``."""
    lines: Mapping[Place, int] = field(default_factory=dict)
    """The line of a place, where a position is not a line."""
    facts: Any = None
    """What the format itself wants to remember until it writes."""

    def findings(self) -> list[tuple[Finding, str]]:
        """Every finding with the label of its conversation, in order of place."""
        found = [
            (finding, conversation.label)
            for conversation in self.conversations
            for finding in conversation.findings
        ]
        found.sort(key=lambda pair: (pair[1], pair[0].place, pair[0].rule.code))
        return found

    def where(self, place: Place) -> str:
        """A place in words, for a sentence."""
        return f"{self.word} {place.at}"

    def line(self, finding: Finding) -> int | None:
        """The line to look at."""
        if self.word == "line":
            return finding.place.at
        return self.lines.get(finding.place)


@dataclass(slots=True, kw_only=True)
class Change:
    """One edit as it was carried out, for the report and the diff."""

    code: str
    at: int
    what: str
    """In words: what was wrong, and what was done."""
    before: list[bytes] = field(default_factory=list)
    after: list[bytes] = field(default_factory=list)
    label: str = ""


class Format(Protocol):
    """A kind of session file."""

    name: str

    def scan(self, source: Source, *, anchored: bool = False) -> Scan:
        """Read it once (twice, where a second reading is needed) and say what is wrong."""
        ...

    def write(self, source: Source, out: IO[bytes], scan: Scan, policy: Policy) -> list[Change]:
        """Write it with the findings of ``scan`` mended; no changes means nothing to mend."""
        ...
