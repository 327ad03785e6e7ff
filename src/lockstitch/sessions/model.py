"""What reading a session file gives: conversations, and what is wrong with each.

Positions are the format's own (a line, an element, a row); `Scan.word` names them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from lockstitch.core.findings import Finding
from lockstitch.core.items import Place
from lockstitch.core.mending import Policy
from lockstitch.dialects.base import Wire
from lockstitch.dialects.examination import Examination, Unread
from lockstitch.sessions.source import Source


@dataclass(slots=True, kw_only=True)
class Conversation:
    """One conversation of a file, as one reading found it."""

    findings: list[Finding]
    label: str = ""
    """Which one it is, where a file holds several."""
    line: int | None = None
    """The line that holds all of it, where it is on one."""
    captured: dict[Place, Wire] = field(default_factory=dict)
    """Outputs that may have to move back, as they are."""
    unread: Unread | None = None
    """The first record that looks like a call or an output and could not be read as one."""
    recognised: bool = True
    """Is any record one that the format knows?"""


def examined(
    examination: Examination,
    more: Iterable[Finding] = (),
    *,
    anchored: bool = False,
    label: str = "",
    line: int | None = None,
) -> Conversation:
    """The conversation that an examination has read. ``more`` are findings about its records."""
    findings = [*more, *examination.finish(anchored=anchored)]
    findings.sort(key=lambda finding: (finding.place, finding.code))
    return Conversation(
        findings=findings,
        label=label,
        line=line,
        captured=examination.captured,
        unread=examination.unread,
        recognised=examination.recognised,
    )


class Located(NamedTuple):
    """A finding, and where a person finds it."""

    finding: Finding
    label: str
    line: int | None
    """The line to look at; None where the file has none (a database)."""
    where: str
    """The place in words: ``line 11``, ``row 7``."""
    message: str


@dataclass(slots=True, kw_only=True)
class Scan:
    """One reading of a file."""

    format: str
    conversations: list[Conversation]
    records: int
    word: str = "line"
    """What a position is called: ``line``, ``item``, ``row``."""
    lines: Mapping[int, int] = field(default_factory=dict)
    """The line of a position, where a position is not a line."""
    linked: bool = False
    """Do records hang on each other, so that one that goes can change which others are live?"""
    facts: Any = None
    """What the format itself wants to remember until it writes."""

    def findings(self) -> list[Located]:
        """Every finding, in order of place."""
        found = [
            Located(
                finding,
                conversation.label,
                self._line(conversation, finding),
                self.where(finding.place),
                finding.say(self.where),
            )
            for conversation in self.conversations
            for finding in conversation.findings
        ]
        found.sort(key=lambda one: (one.line or 0, one.label, one.finding.place, one.finding.code))
        return found

    def where(self, place: Place) -> str:
        """A place in words, for a sentence."""
        return f"{self.word} {place.at}"

    def _line(self, conversation: Conversation, finding: Finding) -> int | None:
        if conversation.line is not None:
            return conversation.line
        if self.word == "line":
            return finding.place.at
        return self.lines.get(finding.place.at)


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
    removed: bool = False
    """Is what stood before gone, and nowhere else in the file?"""


class Sink(Protocol):
    """Where a format writes."""

    def write(self, data: bytes, /) -> int: ...


class Format(Protocol):
    """A kind of session file."""

    name: str

    def scan(self, source: Source, *, anchored: bool = False) -> Scan:
        """Read it once (twice, where a second reading is needed) and say what is wrong."""
        ...

    def write(self, source: Source, out: Sink, scan: Scan, policy: Policy) -> list[Change]:
        """Write it with the findings of ``scan`` mended; no changes means nothing to mend."""
        ...
