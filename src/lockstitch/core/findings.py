"""A finding: one thing that is wrong, where, and with whom; and how it is said to people.

Findings are data. Mending plans from them, the command line prints them, a library author reads
their fields; the sentence is made last, because only the reader's side knows how to name a place
("line 11", "item 3")."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from lockstitch.core import rules
from lockstitch.core.families import Family
from lockstitch.core.items import Part, Place
from lockstitch.core.outcomes import Evidence, Outcome
from lockstitch.core.rules import Rule


class Finding(Struct, frozen=True, kw_only=True):
    """One thing that is wrong in a history."""

    rule: Rule
    place: Place
    """Where to look."""
    key: str | None = None
    """The call id, or the item id for rules about item ids."""
    name: str | None = None
    family: Family | None = None
    """The family of the call, where there is one."""
    other: Place | None = None
    """The other party: the call of an output, the first of two outputs, the cause of a cut."""
    answer: Place | None = None
    """The output of the call, where the finding is about the call."""
    after: Place | None = None
    """The last call made together with this one: outputs belong behind it."""
    into: int | None = None
    """The message that outputs of this call belong into, in dialects that have such."""
    evidence: Evidence | None = None
    part: Part | None = None
    """What the item is, for rules about any item."""
    supersedes: bool = False
    """The other output only stands in for this one, which is what really came."""
    stands_in: bool = False
    """This output only stands in for the other, which is what really came."""
    detail: str = ""
    """More words for the sentence."""

    @property
    def code(self) -> str:
        return self.rule.code

    @property
    def message(self) -> str:
        """The finding in one sentence, for a list of items."""
        return self.say(lambda place: f"item {place.at}")

    def say(self, where: Callable[[Place], str]) -> str:
        """The finding in one sentence; ``where`` names a place."""
        return _SENTENCES[self.rule.code](self, where)

    def __str__(self) -> str:
        return f"{self.code} {self.message}"


_Where = Callable[[Place], str]


def _call(finding: Finding) -> str:
    key = finding.key or "a call without an id"
    return f"{key} ({finding.name})" if finding.name else key


def _a(word: str) -> str:
    return "an" if word[:1] in "aeiou" else "a"


def _at(finding: Finding, where: _Where) -> str:
    return f" ({where(finding.other)})" if finding.other is not None else ""


def _evidence(finding: Finding, where: _Where) -> str:
    evidence = finding.evidence
    if evidence is None or evidence.outcome is Outcome.UNKNOWN:
        return ""
    line = f" ({where(Place(evidence.at))})" if evidence.at is not None else ""
    return f"; it {evidence.summary}{line}"


def _no_output(finding: Finding, where: _Where) -> str:
    return f"{_call(finding)} has no output{_evidence(finding, where)}"


def _orphan(finding: Finding, where: _Where) -> str:
    if finding.key is None:
        return "output without a call id" + (f" ({finding.name})" if finding.name else "")
    return f"output for {_call(finding)} has no call"


def _early(finding: Finding, where: _Where) -> str:
    return f"output for {_call(finding)} comes before its call{_at(finding, where)}"


def _second(finding: Finding, where: _Where) -> str:
    first = f"; the first is at {where(finding.other)}" if finding.other is not None else ""
    return f"second output for {_call(finding)}{first}"


def _reused(finding: Finding, where: _Where) -> str:
    first = f"its first call{_at(finding, where)}"
    return f"{_call(finding)} is used again before {first} has an output"


def _family(finding: Finding, where: _Where) -> str:
    family = finding.family
    call = f"{_a(family.call_type)} {family.call_type}" if family else "a call"
    return f"{finding.detail} answers {_call(finding)}, which is {call}{_at(finding, where)}"


def _reasoning(finding: Finding, where: _Where) -> str:
    return f"reasoning {finding.key} is followed by {finding.detail}, not by what it led to"


def _duplicate(finding: Finding, where: _Where) -> str:
    return f"item id {finding.key} is already used{_at(finding, where)}"


def _adjacent(finding: Finding, where: _Where) -> str:
    between = f"; {where(finding.other)} comes between" if finding.other is not None else ""
    return f"output for {_call(finding)} does not follow its call at once{between}"


def _incomplete(finding: Finding, where: _Where) -> str:
    return f"{_call(finding)} has no output, {finding.detail}{_evidence(finding, where)}"


def _half(finding: Finding, where: _Where) -> str:
    cause = f" by the {finding.detail}{_at(finding, where)}"
    if finding.family is None:
        return f"output for {_call(finding)} has no call: it was cut away{cause}"
    return f"{_call(finding)} has no output: it was cut away{cause}{_evidence(finding, where)}"


def _contradicted(finding: Finding, where: _Where) -> str:
    return (
        f"output for {_call(finding)} says that it did not run ({finding.detail})"
        f"{_evidence(finding, where)}"
    )


def _unapproved(finding: Finding, where: _Where) -> str:
    return f"{_call(finding)} asks for approval, and nobody answered"


def _partial(finding: Finding, where: _Where) -> str:
    return f"{_call(finding)} was cut off before its arguments were complete"


def _plain(finding: Finding, where: _Where) -> str:
    return finding.detail


_SENTENCES: dict[str, Callable[[Finding, _Where], str]] = {
    rules.NO_OUTPUT.code: _no_output,
    rules.ORPHAN_OUTPUT.code: _orphan,
    rules.OUTPUT_BEFORE_CALL.code: _early,
    rules.SECOND_OUTPUT.code: _second,
    rules.ID_REUSED_WHILE_OPEN.code: _reused,
    rules.WRONG_FAMILY.code: _family,
    rules.REASONING_PARTED.code: _reasoning,
    rules.DUPLICATE_ITEM_ID.code: _duplicate,
    rules.NOT_ADJACENT.code: _adjacent,
    rules.GROUP_INCOMPLETE.code: _incomplete,
    rules.HALF_PAIR_LEFT.code: _half,
    rules.CONTRADICTED.code: _contradicted,
    rules.UNANSWERED_APPROVAL.code: _unapproved,
    rules.INCOMPLETE_CALL.code: _partial,
    rules.UNDECODABLE.code: _plain,
    rules.ORDINAL.code: _plain,
    rules.NO_HEADER.code: _plain,
}
