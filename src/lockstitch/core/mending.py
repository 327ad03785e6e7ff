"""Mending: from findings to edits, each with its reason and, where it settles a call, an outcome.

A plan is data; dialects carry it out. What really happened comes before anything we make up
(`outcomes.settlement_text`), no call is removed but one that was cut off while the model wrote it,
and the same findings always give the same plan. The policy is a value; its default loses nothing
that is not kept in the report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Literal, TypeAlias, TypeVar

from msgspec import Struct

from lockstitch.core import rules
from lockstitch.core.errors import CannotMend, UnknownPolicy
from lockstitch.core.families import Family
from lockstitch.core.findings import Finding
from lockstitch.core.items import Part, Place
from lockstitch.core.outcomes import Evidence, Settlement, settlement

MOST_ROUNDS = 8
"""One edit can uncover another finding (a removed message leaves its reasoning alone). No history
is known that needs more than three rounds; past this many mending gives up and changes nothing."""


class Policy(Struct, frozen=True, kw_only=True):
    """What mending may do."""

    settle: bool = True
    """Give an open call an output: what the evidence says, or that the outcome is unknown."""
    drop_orphans: bool = True
    """Remove an output that has no call."""
    move_outputs: bool = True
    """Move an output to where its call wants it."""
    drop_incomplete: bool = True
    """Remove a call that was cut off before its arguments were complete: it cannot have run."""
    keep: Literal["first", "last"] = "first"
    """Which of two outputs of one call stays."""

    def __post_init__(self) -> None:
        if self.keep not in {"first", "last"}:
            raise UnknownPolicy(f"keep is {self.keep!r}. Choose one of: 'first', 'last'.")


class Settle(Struct, frozen=True, kw_only=True):
    """Write an output for a call that has none."""

    reason: Finding
    family: Family
    key: str | None
    after: Place
    into: int | None
    settlement: Settlement


class Drop(Struct, frozen=True, kw_only=True):
    """Remove an item; what it was goes into the report."""

    reason: Finding
    place: Place


class Move(Struct, frozen=True, kw_only=True):
    """Take an output from where it is and put it behind its call."""

    reason: Finding
    place: Place
    after: Place
    into: int | None


class Retype(Struct, frozen=True, kw_only=True):
    """Make an output one of its call's family."""

    reason: Finding
    place: Place
    family: Family


class Rekey(Struct, frozen=True, kw_only=True):
    """Give a call, or its output, a call id of its own."""

    reason: Finding
    place: Place
    old: str
    new: str


class StripId(Struct, frozen=True, kw_only=True):
    """Remove the id of an item that must stay, where another has the same."""

    reason: Finding
    place: Place
    nth: int = 2
    """Of the items with this id, in order, for types that must have one."""


class Reword(Struct, frozen=True, kw_only=True):
    """Replace what an output says by what really happened."""

    reason: Finding
    place: Place
    settlement: Settlement


Edit: TypeAlias = Settle | Drop | Move | Retype | Rekey | StripId | Reword


_Known = Mapping[str, Evidence]


def plan(
    findings: Iterable[Finding],
    policy: Policy | None = None,
    *,
    evidence: Mapping[str, Evidence] | None = None,
) -> list[Edit]:
    """The edits that mend these findings. ``evidence`` is what the caller knows of calls, by id."""
    policy = policy if policy is not None else Policy()
    known = evidence if evidence is not None else {}
    findings = list(findings)
    # Ids first. While two open calls share one, an edit to "the output of that id" could hit the
    # wrong pair; everything else is planned in the next round, when each call has its own.
    reused = [f for f in findings if f.rule is rules.ID_REUSED_WHILE_OPEN]
    if reused:
        return _ids_of_their_own(reused)
    parted = {f.place for f in findings if f.rule is rules.REASONING_PARTED}
    edits: list[Edit] = []
    removed: set[Place] = set()
    uses: Counter[str | None] = Counter()
    for finding in _in_order(findings, policy, known):
        if finding.rule is rules.DUPLICATE_ITEM_ID:
            uses[finding.key] += 1
        for edit in _planned(finding, policy, known):
            if finding.rule is rules.DUPLICATE_ITEM_ID:
                edit = _numbered(edit, uses[finding.key] + 1)  # noqa: PLW2901
            if isinstance(edit, Drop) and finding.other in parted:
                # Of two copies of reasoning, the one goes that leads to nothing.
                edit = Drop(reason=finding, place=finding.other)  # noqa: PLW2901
            if isinstance(edit, Drop | Move):
                if edit.place in removed:
                    continue  # two rules can want the same item gone; once is enough
                removed.add(edit.place)
            edits.append(edit)
    return [e for e in edits if isinstance(e, Drop | Move | Settle) or e.place not in removed]


def _numbered(edit: Edit, nth: int) -> Edit:
    """An edit to the n-th item with one id, so that each gets an id of its own."""
    if isinstance(edit, StripId):
        return StripId(reason=edit.reason, place=edit.place, nth=nth)
    if isinstance(edit, Rekey):
        new = f"{edit.old}_ls{nth}"
        return Rekey(reason=edit.reason, place=edit.place, old=edit.old, new=new)
    return edit


def _planned(finding: Finding, policy: Policy, known: _Known) -> list[Edit]:
    planner = _PLANNERS.get(finding.rule.code)
    return planner(finding, policy, known) if planner is not None else []


def _in_order(findings: list[Finding], policy: Policy, known: _Known) -> list[Finding]:
    """Reasoning waits while anything else goes or moves: its neighbour may come back to it."""
    others = [f for f in findings if f.rule is not rules.REASONING_PARTED]
    for finding in others:
        if any(isinstance(edit, Drop | Move) for edit in _planned(finding, policy, known)):
            return others
    return findings


def _ids_of_their_own(reused: list[Finding]) -> list[Edit]:
    """The second call under an id becomes ``id_ls2``, the third ``id_ls3``, with their outputs.
    The mark keeps clear of ids that the history has already, which would swap outputs."""
    edits: list[Edit] = []
    uses: Counter[str] = Counter()
    for finding in reused:
        old = finding.key
        if old is None:
            continue
        uses[old] += 1
        new = f"{old}_ls{uses[old] + 1}"
        places = [finding.place] if finding.answer is None else [finding.place, finding.answer]
        edits += [Rekey(reason=finding, place=place, old=old, new=new) for place in places]
    return edits


_Planner = Callable[[Finding, Policy, _Known], list[Edit]]


def _settle(finding: Finding, policy: Policy, known: _Known) -> list[Edit]:
    if not policy.settle or finding.family is None or finding.after is None:
        return []
    evidence = known.get(finding.key or "") or finding.evidence
    return [
        Settle(
            reason=finding,
            family=finding.family,
            key=finding.key,
            after=finding.after,
            into=finding.into,
            settlement=settlement(evidence),
        )
    ]


def _orphan(finding: Finding, policy: Policy, known: _Known) -> list[Edit]:
    return [Drop(reason=finding, place=finding.place)] if policy.drop_orphans else []


def _incomplete(finding: Finding, policy: Policy, known: _Known) -> list[Edit]:
    if (finding.key or "") in known:
        return _settle(finding, policy, known)
    places = [place for place in (finding.place, finding.answer) if place is not None]
    return [Drop(reason=finding, place=place) for place in places if policy.drop_incomplete]


def _half_pair(finding: Finding, policy: Policy, known: _Known) -> list[Edit]:
    if finding.family is None:
        return _orphan(finding, policy, known)
    return _settle(finding, policy, known)


def _move(finding: Finding, policy: Policy, known: _Known) -> list[Edit]:
    if not policy.move_outputs or finding.after is None:
        return []
    return [Move(reason=finding, place=finding.place, after=finding.after, into=finding.into)]


def _second(finding: Finding, policy: Policy, known: _Known) -> list[Edit]:
    last = finding.supersedes or (policy.keep == "last" and not finding.stands_in)
    if last and finding.other is not None and finding.after is not None:
        return [
            Drop(reason=finding, place=finding.other),
            Move(reason=finding, place=finding.place, after=finding.after, into=finding.into),
        ]
    return [Drop(reason=finding, place=finding.place)]


def _wrong_family(finding: Finding, policy: Policy, known: _Known) -> list[Edit]:
    if finding.answer is not None or finding.family is None:
        return [Drop(reason=finding, place=finding.place)]
    return [Retype(reason=finding, place=finding.place, family=finding.family)]


def _drop(finding: Finding, policy: Policy, known: _Known) -> list[Edit]:
    return [Drop(reason=finding, place=finding.place)]


def _parted(finding: Finding, policy: Policy, known: _Known) -> list[Edit]:
    if finding.answer is not None and finding.after is not None and policy.move_outputs:
        move = Move(reason=finding, place=finding.answer, after=finding.after, into=finding.into)
        return [move]
    return _drop(finding, policy, known)


def _duplicate(finding: Finding, policy: Policy, known: _Known) -> list[Edit]:
    if finding.family is not None and finding.key is not None:
        # The id also joins the call to its output: both get another.
        old, new = finding.key, f"{finding.key}_ls2"
        places = [finding.place] if finding.answer is None else [finding.place, finding.answer]
        return [Rekey(reason=finding, place=place, old=old, new=new) for place in places]
    if finding.part in (Part.CALL, Part.OUTPUT):
        return [StripId(reason=finding, place=finding.place)]
    return [Drop(reason=finding, place=finding.place)]


def _contradicted(finding: Finding, policy: Policy, known: _Known) -> list[Edit]:
    said = settlement(finding.evidence)
    return [Reword(reason=finding, place=finding.place, settlement=said)]


_PLANNERS: dict[str, _Planner] = {
    rules.NO_OUTPUT.code: _settle,
    rules.ORPHAN_OUTPUT.code: _orphan,
    rules.OUTPUT_BEFORE_CALL.code: _move,
    rules.SECOND_OUTPUT.code: _second,
    rules.WRONG_FAMILY.code: _wrong_family,
    rules.REASONING_PARTED.code: _parted,
    rules.DUPLICATE_ITEM_ID.code: _duplicate,
    rules.NOT_ADJACENT.code: _move,
    rules.GROUP_INCOMPLETE.code: _settle,
    rules.HALF_PAIR_LEFT.code: _half_pair,
    rules.CONTRADICTED.code: _contradicted,
    rules.UNANSWERED_APPROVAL.code: _settle,
    rules.INCOMPLETE_CALL.code: _incomplete,
}
"""A rule that is not here is about the file; the session format mends it."""


SETTLED_AT_ONCE = frozenset(
    rule.code
    for rule in (
        rules.NO_OUTPUT,
        rules.GROUP_INCOMPLETE,
        rules.ORPHAN_OUTPUT,
        rules.SECOND_OUTPUT,
        rules.HALF_PAIR_LEFT,
        rules.CONTRADICTED,
        rules.UNANSWERED_APPROVAL,
        rules.UNDECODABLE,
        rules.ORDINAL,
    )
)
"""Rules whose mending, with the default policy, uncovers nothing: open calls get their output, and
outputs that answer nothing go. A history with only these findings is whole after one round."""


_State = TypeVar("_State")


def in_rounds(
    state: _State,
    step: Callable[[_State], _State | None],
    left: Callable[[_State], Iterable[object]],
) -> _State:
    """Repeat ``step``, which examines a history, plans and rewrites it, until it returns None:
    nothing is left to do. Raises `CannotMend` past `MOST_ROUNDS`, with the findings that ``left``
    gives for the last state; nothing was changed then."""
    for _ in range(MOST_ROUNDS):
        changed = step(state)
        if changed is None:
            return state
        state = changed
    named = "; ".join(str(finding) for finding in islice(left(state), 3))
    if not named:
        return state
    raise CannotMend(
        f"Still not valid after {MOST_ROUNDS} rounds of repairs: {named}. Nothing was changed. "
        "Please report this history."
    )


def describe(edit: Edit) -> str:
    """What an edit does, in a few words for a report."""
    match edit:
        case Settle():
            return f"added an output for {edit.key or 'the call'} ({edit.settlement.outcome.value})"
        case Drop():
            return "removed its output" if edit.place == edit.reason.answer else "removed it"
        case Move():
            return "moved it after its call"
        case Retype():
            return f"made its type {edit.family.output_type}"
        case Rekey():
            return f"gave it the id {edit.new}"
        case StripId():
            return "removed its id"
        case Reword():
            return f"replaced it by what happened ({edit.settlement.outcome.value})"


def shown_at(edit: Edit) -> list[int]:
    """The positions at which an edit shows: where something goes, and where something comes."""
    where = [] if isinstance(edit, Settle) else [edit.place.at]
    if isinstance(edit, Settle | Move):
        where += [edit.after.at] if edit.into is None else [edit.into, edit.after.at]
    return where
