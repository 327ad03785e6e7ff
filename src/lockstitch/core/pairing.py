"""Pairing: one pass over a history that knows which calls are open, and what is wrong.

Every item costs O(1), whatever came before it. The same pass serves a whole history and an
anchored delta (where a lone output is right: its call is behind the anchor). Calls are joined to
outputs by order of appearance, never by a global set of ids: models re-use ids in later rounds.
What to do about a finding is not decided here (`mending`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum

from msgspec import Struct

from lockstitch.core import rules
from lockstitch.core.families import Family
from lockstitch.core.findings import Finding
from lockstitch.core.items import Item, Part, Place
from lockstitch.core.outcomes import Evidence, Outcome, denies_running
from lockstitch.core.seen import Seen


class Order(Enum):
    """Where a dialect wants the outputs of a group of calls."""

    ANYWHERE = "anywhere behind the call"
    NEXT = "directly behind the message that made the calls"
    NEXT_TURN = "at the start of the turn that follows the calls"


class Testimony(Struct, frozen=True):
    """Something outside the pair that tells how a call ended; read only if it is needed."""

    at: int
    read: Callable[[], Evidence | None]


class Cut(Struct, frozen=True):
    """What took one half of a pair away."""

    at: int
    by: str
    """``compaction`` or ``rollback``."""


class _Group:
    """Calls that the model made at once."""

    __slots__ = ("answered", "calls", "interrupted", "into", "last", "sealed")

    def __init__(self) -> None:
        self.calls = 0
        self.answered = 0
        self.last = Place(0)
        self.sealed = False
        self.into: int | None = None
        self.interrupted: Place | None = None


class OpenCall:
    """A call that waits for its output."""

    __slots__ = ("answer", "cut", "first", "group", "item", "place", "testimony", "wrong")

    def __init__(self, item: Item, place: Place, group: _Group) -> None:
        self.item = item
        self.place = place
        self.group = group
        self.testimony: Testimony | None = None
        self.answer: Place | None = None
        self.wrong: tuple[Item, Place] | None = None
        self.first: OpenCall | None = None
        self.cut: Cut | None = None

    def __repr__(self) -> str:
        return f"<OpenCall {self.item.key} ({self.item.name}) at {self.place}>"

    def evidence(self) -> Evidence | None:
        if self.testimony is not None:
            return self.testimony.read()
        if self.item.family is not None and self.item.family.asks_first:
            # An approval that nobody gave: the act it asks for cannot have begun.
            return Evidence(Outcome.NEVER_STARTED, "was never approved", "Nobody approved it.")
        return None


_MODEL_SIDE = frozenset({Part.CALL, Part.REASONING, Part.MODEL})
_FOLLOWED_BY = {Part.INPUT: "a message from outside", Part.OUTPUT: "an output"}

KEYLESS = ""
"""The key under which calls without one are joined by position."""


class Pairing:
    """The state of one pass. Feed it with `add`; ask `finish` for what is wrong."""

    def __init__(
        self,
        order: Order = Order.ANYWHERE,
        *,
        ids: Seen[int] | None = None,
        keys: Seen[OpenCall] | None = None,
        cut: Mapping[str, Cut] | None = None,
    ) -> None:
        self.order = order
        self._adjacent = order is not Order.ANYWHERE
        self.ids: Seen[int] = Seen() if ids is None else ids
        self.keys: Seen[OpenCall] = Seen() if keys is None else keys
        """Keys of calls that have their output."""
        self._cut = {} if cut is None else cut
        """Calls that were taken away before this history begins."""
        self._open: dict[str, list[OpenCall]] = {}
        self._orphans: dict[str, list[tuple[Item, Place]]] = {}
        self._denied: dict[str, tuple[OpenCall, Place, str]] = {}
        self._reused: list[OpenCall] = []
        self._dangling: list[tuple[Item, Place]] = []
        self._group: _Group | None = None
        self._last_input = -1
        self._last_reference = -1
        self._first_reference: int | None = None
        self._findings: list[Finding] = []

    def __repr__(self) -> str:
        return f"<Pairing {self.order.name}, open: {[call.item.key for call in self.open_calls()]}>"

    # --- the state, at any point ---------------------------------------------------------------

    def open_calls(self) -> Iterator[OpenCall]:
        """The calls that have no output so far, in the order they were made."""
        calls = {call.place: call for queue in self._open.values() for call in queue}
        return iter([calls[place] for place in sorted(calls)])

    def open_call(self, key: str) -> OpenCall | None:
        """The call that an output with this key would answer now."""
        queue = self._open.get(key)
        return queue[0] if queue else None

    def suspects(self) -> tuple[set[str], set[str]]:
        """Item ids and keys that need a second reading; see `seen`."""
        return self.ids.suspects, self.keys.suspects

    # --- feeding -------------------------------------------------------------------------------

    def add(self, item: Item, at: int) -> Finding | None:
        """Take the next item. Returns a finding that is certain already and about this item."""
        part = item.part
        if part is Part.OUTPUT:
            return self._output(item, at)
        if item.id is not None:
            before = self.ids.add(item.id, at)
            if before is not None:
                self._found_duplicate(item, Place(at, item.slot), before)
        if part is Part.REASONING:
            if item.id is not None:
                self._dangling.append((item, Place(at, item.slot)))
        elif self._dangling:
            if part is Part.INPUT:
                self._part_reasoning(_FOLLOWED_BY[part])
            else:
                self._dangling.clear()
        if self._adjacent:
            self._may_interrupt(item, at)
        if part is Part.CALL:
            self._call(item, at)
        elif part is Part.INPUT:
            self._last_input = at
            self._seal()
        elif part is Part.REFERENCE:
            self._last_reference = at
            if self._first_reference is None:
                self._first_reference = at
        return None

    def witness(self, key: str, testimony: Testimony) -> None:
        """Note that something tells how the call with this key ended."""
        queue = self._open.get(key)
        if queue:
            queue[0].testimony = testimony
        elif key in self._denied:
            call, place, text = self._denied.pop(key)
            call.testimony = testimony
            self._contradict(call, place, text)

    def lose(self, key: str, cut: Cut) -> None:
        """Note that the output of an open call existed, and was cut away."""
        queue = self._open.get(key)
        if queue:
            queue[0].cut = cut

    # --- calls and outputs ---------------------------------------------------------------------

    def _call(self, item: Item, at: int) -> None:
        key = item.key if item.key is not None else KEYLESS
        place = Place(at, item.slot)
        family = item.family
        assert family is not None
        group = self._group
        if family.by_server or item.lone:
            group = _Group()
        elif group is None or group.sealed or (self.order is Order.NEXT and group.last.at != at):
            group = self._group = _Group()
        group.calls += 1
        group.last = place
        call = OpenCall(item, place, group)
        queue = self._open.setdefault(key, [])
        if queue and key != KEYLESS:
            call.first = queue[0]
            self._reused.append(call)
        queue.append(call)
        if item.alias is not None and item.alias != key:
            self._open.setdefault(item.alias, []).append(call)

    def _output(self, item: Item, at: int) -> Finding | None:
        if self._dangling:
            self._part_reasoning(_FOLLOWED_BY[Part.OUTPUT])
        place = Place(at, item.slot)
        key = item.key if item.key is not None else KEYLESS
        queue = self._open.get(key)
        if queue is None:
            finding = None if item.lone else self._unasked(item, key, place)
            self._check_id(item, place, finding)
            self._seal()
            return finding
        call = queue[0]
        family, output_family = call.item.family, item.family
        assert family is not None
        assert output_family is not None
        if family is not output_family and not family.accepts(output_family):
            finding = self._wrong_family(call, item, place)
            self._check_id(item, place, finding)
            self._seal()
            return finding
        self._close(call, place)
        finding = None
        group = call.group
        group.answered += 1
        if self._adjacent and not family.by_server:
            if group.into is None and at != group.last.at:
                group.into = at
            if group.interrupted is not None:
                finding = self._found(rules.NOT_ADJACENT, place, call, other=group.interrupted)
        if not family.by_server:
            self._seal()
        if item.note is not None and denies_running(item.note):
            if call.testimony is not None:
                self._contradict(call, place, item.note)
            else:
                self._denied[key] = (call, place, item.note)
        self._check_id(item, place, finding)
        return finding

    def _close(self, call: OpenCall, place: Place) -> None:
        call.answer = place
        for name in (call.item.key if call.item.key is not None else KEYLESS, call.item.alias):
            if name is None:
                continue
            queue = self._open.get(name)
            if queue and call in queue:
                queue.remove(call)
                if not queue:
                    del self._open[name]
                if name:
                    self.keys.replace(name, call)
        if call.wrong is not None:
            # The right output came after one of the wrong family: that one answers nothing.
            item, wrong_place = call.wrong
            self._found(
                rules.WRONG_FAMILY,
                wrong_place,
                call,
                other=call.place,
                answer=place,
                detail=_output_type(item),
            )
            call.wrong = None

    def _unasked(self, item: Item, key: str, place: Place) -> Finding | None:
        """An output that no open call waits for."""
        call = self.keys.find(key)
        if call is None:
            self._orphans.setdefault(key, []).append((item, place))
            return None
        return self._found(rules.SECOND_OUTPUT, place, call, other=call.answer)

    def _wrong_family(self, call: OpenCall, item: Item, place: Place) -> Finding | None:
        if call.wrong is None:
            call.wrong = (item, place)
            return None
        return self._found(rules.SECOND_OUTPUT, place, call, other=call.wrong[1])

    def _check_id(self, item: Item, place: Place, finding: Finding | None) -> None:
        if item.id is None:
            return
        before = self.ids.add(item.id, place.at)
        if before is not None and (finding is None or finding.rule is not rules.SECOND_OUTPUT):
            self._found_duplicate(item, place, before)

    # --- neighbours ----------------------------------------------------------------------------

    def _seal(self) -> None:
        if self._group is not None:
            self._group.sealed = True

    def _may_interrupt(self, item: Item, at: int) -> None:
        """In a dialect that wants outputs at once: does this item come between?"""
        group = self._group
        if group is None or group.last.at == at:
            return
        if (
            self.order is Order.NEXT_TURN
            and not group.sealed
            and (item.part in _MODEL_SIDE or item.part is Part.OTHER)
        ):
            return
        if group.into is None and item.part is Part.INPUT:
            group.into = at
        if group.answered < group.calls and group.interrupted is None:
            group.interrupted = Place(at, item.slot)

    def _part_reasoning(self, follower: str) -> None:
        for item, place in self._dangling:
            self._found(rules.REASONING_PARTED, place, None, key=item.id, detail=follower)
        self._dangling.clear()

    # --- the end -------------------------------------------------------------------------------

    def finish(self, *, anchored: bool = False) -> list[Finding]:
        """Everything that is wrong, in order of place. ``anchored``: a delta behind an anchor."""
        if self._dangling:
            self._part_reasoning("nothing")
        for call in self.open_calls():
            self._settle_open(call)
        for call in self._reused:
            assert call.first is not None
            self._found(
                rules.ID_REUSED_WHILE_OPEN,
                call.place,
                call,
                other=call.first.place,
                answer=call.answer or (call.wrong[1] if call.wrong else None),
            )
        if not anchored:
            for key, outputs in self._orphans.items():
                for item, place in outputs:
                    self._orphan(key, item, place)
        self._findings.sort(key=lambda finding: (finding.place, finding.rule.code))
        return self._findings

    def _settle_open(self, call: OpenCall) -> None:
        item, group = call.item, call.group
        family = item.family
        assert family is not None
        if call.wrong is not None:
            wrong, place = call.wrong
            self._found(
                rules.WRONG_FAMILY, place, call, other=call.place, detail=_output_type(wrong)
            )
            return
        if item.lone or (family.by_server and self._last_input < call.place.at):
            return
        if self._last_reference > call.place.at:
            return
        early = self._claim_early(item, call.place)
        if early is not None:
            self._found(rules.OUTPUT_BEFORE_CALL, early, call, other=call.place)
            group.answered += 1
            return
        evidence = call.evidence()
        if call.cut is not None:
            self._found(
                rules.HALF_PAIR_LEFT,
                call.place,
                call,
                other=Place(call.cut.at),
                evidence=evidence,
                detail=call.cut.by,
            )
        elif group.answered and group.calls > group.answered:
            has = "has one" if group.answered == 1 else "have one"
            self._found(
                rules.GROUP_INCOMPLETE,
                call.place,
                call,
                evidence=evidence,
                detail=f"while {group.answered} of the {group.calls} calls made at once {has}",
            )
        else:
            self._found(rules.NO_OUTPUT, call.place, call, evidence=evidence)

    def _claim_early(self, call: Item, place: Place) -> Place | None:
        assert call.family is not None
        for key in (call.key, call.alias):
            orphans = self._orphans.get(key) if key else None
            if not orphans:
                continue
            for n, (item, early) in enumerate(orphans):
                assert item.family is not None
                if early < place and call.family.accepts(item.family):
                    del orphans[n]
                    return early
        return None

    def _orphan(self, key: str, item: Item, place: Place) -> None:
        if self._first_reference is not None and self._first_reference < place.at:
            return  # the call may be behind the reference
        cut = self._cut.get(key)
        if cut is not None:
            self._found(
                rules.HALF_PAIR_LEFT, place, None, key=item.key, other=Place(cut.at), detail=cut.by
            )
        else:
            self._found(rules.ORPHAN_OUTPUT, place, None, key=item.key, name=item.name)

    # --- making findings -----------------------------------------------------------------------

    def _contradict(self, call: OpenCall, place: Place, text: str) -> None:
        evidence = call.evidence()
        if evidence is not None and evidence.outcome is Outcome.FINISHED:
            said = " ".join(text.split())
            said = said if len(said) <= 40 else said[:37] + "..."
            self._found(rules.CONTRADICTED, place, call, evidence=evidence, detail=f'"{said}"')

    def _found_duplicate(self, item: Item, place: Place, before: int) -> None:
        self._found(
            rules.DUPLICATE_ITEM_ID,
            place,
            None,
            key=item.id,
            other=Place(before),
            detail=item.part.value,
        )

    def _found(
        self,
        rule: rules.Rule,
        place: Place,
        call: OpenCall | None,
        *,
        key: str | None = None,
        name: str | None = None,
        other: Place | None = None,
        answer: Place | None = None,
        evidence: Evidence | None = None,
        detail: str = "",
    ) -> Finding:
        family: Family | None = None
        after: Place | None = None
        into: int | None = None
        if call is not None:
            key, name, family = call.item.key, call.item.name, call.item.family
            after = call.place if family is not None and family.by_server else call.group.last
            into = call.group.into
        finding = Finding(
            rule=rule,
            place=place,
            key=key,
            name=name,
            family=family,
            other=other,
            answer=answer,
            after=after,
            into=into,
            evidence=evidence,
            detail=detail,
        )
        self._findings.append(finding)
        return finding


def _output_type(item: Item) -> str:
    return item.family.output_type if item.family is not None else "an output"


def pair(
    items: Iterable[tuple[Item, int]], order: Order = Order.ANYWHERE, *, anchored: bool = False
) -> list[Finding]:
    """What is wrong with a whole history, given as core items with their positions."""
    pairing = Pairing(order)
    for item, at in items:
        pairing.add(item, at)
    return pairing.finish(anchored=anchored)
