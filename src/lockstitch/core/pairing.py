"""Pairing: one pass over a history that knows which calls are open, and what is wrong.

Every item costs O(1), whatever came before it. The same pass serves a whole history and an
anchored delta (where a lone output is right: its call is behind the anchor). Calls are joined to
outputs by order of appearance, never by a global set of ids: models re-use ids in later rounds.
What to do about a finding is not decided here (`mending`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, Protocol, Self, TypeAlias, TypeVar

from msgspec import Struct, field

from lockstitch.core import rules
from lockstitch.core.families import Family
from lockstitch.core.findings import Finding
from lockstitch.core.groups import Cut, Group, OpenCall, Queue
from lockstitch.core.items import Item, Part, Place
from lockstitch.core.outcomes import Evidence, Outcome, denies_running, stands_in
from lockstitch.core.seen import SeenIds, SeenKeys


class Order(Enum):
    """Where a dialect wants the outputs of a group of calls."""

    ANYWHERE = "anywhere behind the call"
    NEXT = "directly behind the message that made the calls"
    NEXT_TURN = "at the start of the turn that follows the calls"
    BEFORE_INPUT = "before the next message from outside"


Witness: TypeAlias = Callable[[Any, int], Evidence | None]
"""Reads testimony: whatever was passed to `Pairing.witness`, and where it stood."""


class Watch(Struct, frozen=True):
    """What a second reading must settle; see `seen`."""

    ids: set[str] | None = None
    keys: set[str] | None = None


# Bound once: looking a member up in its enum costs more than all else that `add` does to it.
_CALL, _OUTPUT, _REASONING = Part.CALL, Part.OUTPUT, Part.REASONING
_MODEL, _INPUT, _REFERENCE, _OTHER = Part.MODEL, Part.INPUT, Part.REFERENCE, Part.OTHER
_MODEL_SIDE = frozenset({_CALL, _REASONING, _MODEL})

KEYLESS = ""
"""The key under which calls without one are joined by position."""


class Pairing(Struct, eq=False):
    """The state of one pass. Feed it with `add`; ask `finish` for what is wrong."""

    order: Order = Order.ANYWHERE
    watch: Watch | None = None
    """What an earlier reading left to be settled."""
    cut: dict[str, Cut] = {}
    """Calls that were taken away: their outputs are half pairs, not orphans."""
    read: Witness | None = None
    _ids: SeenIds = field(default_factory=SeenIds)
    _keys: SeenKeys[OpenCall] = field(default_factory=SeenKeys)
    """Keys of calls that have their output."""
    _adjacent: bool = False
    _punctual: bool = False
    _open: dict[str, OpenCall] = {}
    """The call that the next output with this key answers."""
    _queued: dict[str, Queue] = {}
    """Further calls under the same key, in order."""
    _orphans: dict[str, list[tuple[Item, Place]]] = {}
    _denied: dict[str, tuple[OpenCall, Place, str]] = {}
    _passed: list[OpenCall] = []
    """Open calls that no later output can answer: their key means another call by now."""
    _reused: list[OpenCall] = []
    _with_early: list[OpenCall] = []
    _same_id: list[tuple[OpenCall, int]] = []
    _dangling: list[tuple[Item, int]] = []
    _group: Group | None = None
    _stray: list[tuple[Item, Place]] = []
    """Requests for approval of calls that are not there."""
    _decided: list[OpenCall] = []
    """Calls whose approval was answered by the last wire item: whoever continues the conversation
    runs them, or tells the model that they were denied."""
    _decided_at: int = -1
    _last_input: int = -1
    _last_reference: int = -1
    _first_reference: int | None = None
    _findings: list[Finding] = []

    def __post_init__(self) -> None:
        self._adjacent = self.order is Order.NEXT or self.order is Order.NEXT_TURN
        self._punctual = self.order is Order.BEFORE_INPUT
        if self.watch is not None:
            self._ids = SeenIds(self.watch.ids)
            self._keys = SeenKeys(self.watch.keys)

    def __repr__(self) -> str:
        return f"<Pairing {self.order.name}, open: {[call.item.key for call in self.open_calls()]}>"

    # --- the state, at any point ---------------------------------------------------------------

    def open_calls(self) -> list[OpenCall]:
        """The calls that have no output so far, in the order they were made."""
        if not self._open and not self._passed:
            return []
        queued = [call for queue in self._queued.values() for call in queue.calls()]
        calls = [*self._open.values(), *queued, *self._passed]
        by_place = {(call.at, call.item.slot): call for call in calls}  # an alias names it twice
        return [by_place[place] for place in sorted(by_place)]

    def open_call(self, key: str) -> OpenCall | None:
        """The call that an output with this key would answer now."""
        return self._open.get(key)

    def to_watch(self) -> Watch | None:
        """What another reading must settle because this one could only suspect it."""
        if not self._ids.suspects and not self._keys.suspects:
            return None
        return Watch(self._ids.to_watch(), self._keys.to_watch())

    def again(self) -> Pairing | None:
        """A fresh pass for a second reading; None if all is certain."""
        watch = self.to_watch()
        if watch is None:
            return None
        return Pairing(self.order, watch=watch, cut=self.cut, read=self.read)

    # --- feeding -------------------------------------------------------------------------------

    def add(self, item: Item, at: int) -> Finding | None:
        """Take the next item. Returns a finding for which this output may have to move back: keep
        the output, where the history is not kept."""
        part = item.part
        if part is _OUTPUT:
            if self._decided and self._decided_at != at:
                self._decided.clear()
            return self._output(item, at)
        if item.about is not None and part is _OTHER:
            call = self._asked_about(item.about)
            if call is not None:
                self._decide(call, item.approved, at)
            return None
        if self._decided:
            self._decided.clear()
        if item.id is not None:
            before = self._ids.add(item.id, at)
            if before is not None:
                self._found_duplicate(item, Place(at, item.slot), before)
        if part is _REASONING:
            if item.id is not None:
                self._dangling.append((item, at))
        elif self._dangling:
            if part is _INPUT:
                self._part_reasoning("a message from outside", None, Place(at, item.slot))
            else:
                self._dangling.clear()
        if self._adjacent:
            self._may_interrupt(item, at)
        if part is _CALL:
            self._call(item, at)
        elif part is _INPUT:
            self._last_input = at
            if self._group is not None and self._group.last_at != at:
                self._group.sealed = True
        elif part is _REFERENCE:
            self._last_reference = at
            if self._first_reference is None:
                self._first_reference = at
        return None

    def wait_for(self, call: Item, at: int) -> None:
        """Take a call that stands before everything that is added, and wants its output."""
        self._call(call, at)

    def witness(self, key: str, testimony: object, at: int) -> None:
        """Note that something, at ``at``, tells how the call with this key ended."""
        call = self._open.get(key)
        if call is not None:
            call.testimony = testimony
            call.testimony_at = at
        elif self._denied and key in self._denied:
            call, place, text = self._denied.pop(key)
            call.testimony = testimony
            call.testimony_at = at
            self._contradict(call, place, text)

    def lose(self, key: str, cut: Cut) -> None:
        """Note that the output of an open call existed, and was cut away."""
        call = self._open.get(key)
        if call is not None:
            call.cut = cut

    # --- calls and outputs ---------------------------------------------------------------------

    def _call(self, item: Item, at: int) -> None:
        if item.lone and item.key is None:
            return  # the server ran it, and nothing names it
        family = item.family
        assert family is not None
        about = None
        if item.about is not None:
            about = self._asked_about(item.about)
            if about is None:
                self._stray.append((item, Place(at, item.slot)))
                return
        group = self._group
        if family.by_server or item.lone or about is not None:
            group = Group()
        elif (
            group is None
            or group.sealed
            or (group.last_at != at and (self.order is Order.NEXT or family.inline))
        ):
            group = self._group = Group()
        group.calls += 1
        group.last_at = at
        group.last_slot = item.slot
        call = OpenCall(item, at, group)
        if about is not None:
            call.about = about
            about.asked = True
        if item.joining_id is not None:
            before = self._ids.add(item.joining_id, at)
            if before is not None:
                self._same_id.append((call, before))
        key = item.key if item.key is not None else KEYLESS
        by_name = family.by_name and key == item.name
        if family.by_name and self._open:
            self._pass_over(key if item.alias is None else item.alias, group)
        if family.inline:
            self._pass_by(key, at)
        waiting = self._open.get(key)
        if waiting is None:
            self._open[key] = call
        elif self._adjacent and waiting.item.partial and waiting.item.alias is None:
            # Nobody answers a call that was cut off once its id is used for another.
            self._found(rules.INCOMPLETE_CALL, waiting.place, waiting)
            self._open[key] = call
        else:
            if key != KEYLESS and not by_name:
                call.first = waiting
                self._reused.append(call)
            self._wait(key, call)
        if self._orphans and not by_name:
            # Outputs that came too early can only be meant for the next call with their key. A name
            # is no such sign: tools are called again and again.
            alias = key if item.alias is None or family.by_name else item.alias
            early = self._orphans.pop(key, []) + self._orphans.pop(alias, [])
            if early:
                call.early = early
                self._with_early.append(call)
        if item.alias is not None and item.alias != key:
            if item.alias not in self._open:
                self._open[item.alias] = call
            else:
                self._wait(item.alias, call)

    def _pass_by(self, key: str, at: int) -> None:
        """A call that holds its own output never gets it from a later wire item: from ``at`` on,
        its key means another call."""
        first = self._open.get(key)
        if first is None or first.at == at:
            return
        self._passed.append(self._open.pop(key))
        queue = self._queued.pop(key, None)
        if queue is not None:
            self._passed += queue.calls()

    def _asked_about(self, key: str) -> OpenCall | None:
        """The call that a request for approval asks about: the last one under its key."""
        first = self._open.get(key)
        if first is None:
            return self._keys.find(key)  # it has its output
        queue = self._queued.get(key)
        waiting = [first] if queue is None else [first, *queue.calls()]
        calls = [call for call in waiting if call.item.about is None]
        return max(calls, key=lambda call: call.place, default=None)

    def _decide(self, call: OpenCall, approved: bool, at: int) -> None:
        """The approval of a call was answered."""
        call.asked = True
        call.approved = approved
        if call.answer_at is None and self._last_input < call.at:
            self._decided.append(call)
            self._decided_at = at

    def _wait(self, key: str, call: OpenCall) -> None:
        queue = self._queued.get(key)
        if queue is None:
            queue = self._queued[key] = Queue(key)
        queue.add(call)

    def _pass_over(self, name: str, group: Group) -> None:
        """A call of a new group: from now on the tool's name alone means the calls of this one."""
        first = self._open.get(name)
        if first is None or first.group is group:
            return
        del self._open[name]
        queue = self._queued.pop(name, None)
        older = [first] if queue is None else [first, *queue.calls()]
        # Those that have an id are still open under it.
        self._passed += [call for call in older if call.item.key == name]

    def _without_id(self, name: str) -> OpenCall | None:
        """The first open call that only this tool name joins to its output."""
        first = self._open.get(name)
        if first is None:
            return None
        queue = self._queued.get(name)
        waiting = [first] if queue is None else [first, *queue.heads()]
        named = [call for call in waiting if call.item.key == name == call.item.name]
        return min(named, key=lambda call: call.place, default=None)

    def _output(self, item: Item, at: int) -> Finding | None:
        finding = None
        key = item.key if item.key is not None else KEYLESS
        call = self._open.get(key)
        if call is None:
            if item.alias is not None:
                call = self._without_id(item.alias)
                key = key if call is None else item.alias
        elif call.item.key != key and call.item.family is not None and call.item.family.by_name:
            call = self._without_id(key) or call  # neither has an id
        if call is not None and call.item.family is not item.family:
            call = self._accepting(call, item, key)
        parted = None
        if self._dangling:
            parted = self._part_reasoning("an output", call, Place(at, item.slot))
        if call is None:
            if not item.lone:
                finding = self._unasked(item, key, Place(at, item.slot))
        elif call.item.family is item.family or _accepts(call.item.family, item.family):
            finding = self._answer(call, item, key, at)
        else:
            finding = self._wrong_family(call, item, Place(at, item.slot))
        group = self._group
        family = item.family
        if group is not None and not (family is not None and family.by_server):
            elsewhere = group.last_at != at
            if elsewhere or (family is not None and family.inline):
                group.sealed = True
            if elsewhere and group.into is None and not item.misplaced:
                group.into = at  # whatever call it answers: the turn that follows begins here
        if item.id is not None:
            before = self._ids.add(item.id, at)
            if before is not None and (finding is None or finding.rule is not rules.SECOND_OUTPUT):
                self._found_duplicate(item, Place(at, item.slot), before)
        return finding or parted

    def _accepting(self, first: OpenCall, item: Item, key: str) -> OpenCall | None:
        """Of the open calls under a key, the one that an output of this family is meant for."""
        queue = self._queued.get(key)
        waiting = [first] if queue is None else [first, *queue.heads()]
        named = [call for call in waiting if _names(call, key, item)]
        fitting = [call for call in named if _accepts(call.item.family, item.family)]
        return min(fitting or named, key=lambda call: call.place, default=None)

    def _answer(self, call: OpenCall, item: Item, key: str, at: int) -> Finding | None:
        """An output that answers an open call."""
        call.answer_at = at
        call.answer_slot = item.slot
        call.answer_note = note = item.note
        if call.item.alias is None and not self._queued:
            del self._open[key]
            if key:
                self._keys.close(key, call)
        else:
            self._close(call)
        if call.wrong is not None:
            self._overtaken(call)
        finding = None
        group = call.group
        group.answered += 1
        if self._adjacent:
            finding = self._adjacency(call, item, at)
        elif self._punctual:
            finding = self._punctuality(call, item, at)
        if call.about is not None:
            self._decide(call.about, item.approved, at)
        if (note is not None or call.item.lone) and _may_be_incomplete(call.item):
            self._stood_in_for_incomplete(call, note)
        if self._denied:
            self._denied.pop(key, None)  # what is told of this id from now on is told of this call
        # Only testimony contradicts a denial, and without a witness nobody reads any.
        if self.read is not None and note is not None and denies_running(note):
            if call.testimony is not None:
                self._contradict(call, Place(at, item.slot), note)
            else:
                self._denied[key] = (call, Place(at, item.slot), note)
        return finding

    def _stood_in_for_incomplete(self, call: OpenCall, note: str | None) -> None:
        """A call that was cut off cannot have run. An output that somebody made up for it goes
        with it; a real one shows that the call was taken as it is. Of a call that is in a message
        which is never sent (`lone`), no output is real."""
        made_up = call.item.lone or (note is not None and stands_in(note))
        if made_up and call.item.incomplete:
            self._found(rules.INCOMPLETE_CALL, call.place, call, answer=call.answer)

    def _adjacency(self, call: OpenCall, item: Item, at: int) -> Finding | None:
        """In a dialect that wants outputs at once: is this one where it belongs?"""
        group = call.group
        place = Place(at, item.slot)
        if call.item.family is not None and call.item.family.by_server:
            # The server answers within the model's own turn. A result in the very message of its
            # call has no better place, whoever's message that is.
            if (item.misplaced and at != call.at) or self._last_input > call.at:
                between = Place(self._last_input) if self._last_input > call.at else None
                return self._found(rules.NOT_ADJACENT, place, call, other=between)
            return None
        if item.misplaced:
            return self._found(rules.NOT_ADJACENT, place, call)
        if group.into is None and at != group.last_at:
            group.into = at
        apart = call.item.family is not None and call.item.family.one_message and at != group.into
        if group.interrupted is not None or apart:
            return self._found(rules.NOT_ADJACENT, place, call, other=group.interrupted)
        return None

    def _punctuality(self, call: OpenCall, item: Item, at: int) -> Finding | None:
        """In a dialect that wants outputs before the next message from outside: is this one there,
        and in a message of the right side?"""
        family = call.item.family
        assert family is not None
        by_server = item.family is not None and item.family.by_server
        between = Place(self._last_input) if self._last_input > call.at else None
        about = call.about
        if between is None and about is not None and about.answer_at not in (None, at):
            assert about.item.family is not None
            if not about.item.family.by_server:
                between = about.answer  # whoever finds the approval last runs the call again
        if between is not None:
            return self._found(rules.NOT_ADJACENT, Place(at, item.slot), call, other=between)
        if item.misplaced or (by_server and not family.by_server):
            return self._found(rules.NOT_ADJACENT, Place(at, item.slot), call)
        return None

    def _close(self, call: OpenCall) -> None:
        """Take a call out of every queue it stands in."""
        for key in (call.item.key if call.item.key is not None else KEYLESS, call.item.alias):
            if key is None:
                continue
            queue = self._queued.get(key)
            if self._open.get(key) is not call:
                if queue is not None:
                    queue.remove(call)
            elif queue is not None:
                self._open[key] = queue.take_first()
            else:
                del self._open[key]
            if queue is not None and not queue:
                del self._queued[key]
            if key:
                self._keys.close(key, call)

    def _overtaken(self, call: OpenCall) -> None:
        """The right output came after one of the wrong family: that one answers nothing."""
        assert call.wrong is not None
        item, place = call.wrong
        call.wrong = None
        self._found(
            rules.WRONG_FAMILY,
            place,
            call,
            other=call.place,
            answer=call.answer,
            detail=_output_type(item),
        )

    def _unasked(self, item: Item, key: str, place: Place) -> Finding | None:
        """An output that no open call waits for."""
        call = self._keys.find(key)
        if call is not None and not _names(call, key, item):
            call = None
        if call is None:
            self._orphans.setdefault(key, []).append((item, place))
            return None
        fits = _accepts(call.item.family, item.family)
        placeholder = item.note is not None and stands_in(item.note)
        real = call.placeholder and fits and not placeholder
        found = self._found(
            rules.SECOND_OUTPUT,
            place,
            call,
            other=call.answer,
            supersedes=real,
            stands_in=placeholder and not call.placeholder,
        )
        if real:
            call.answer_at, call.answer_slot = place.at, place.slot
            call.answer_note = item.note
        return found

    def _wrong_family(self, call: OpenCall, item: Item, place: Place) -> Finding | None:
        if call.wrong is None:
            call.wrong = (item, place)
            return None
        return self._found(rules.SECOND_OUTPUT, place, call, other=call.wrong[1])

    # --- neighbours ----------------------------------------------------------------------------

    def _may_interrupt(self, item: Item, at: int) -> None:
        """In a dialect that wants outputs at once: does this item come between?"""
        group = self._group
        if group is None or group.last_at == at:
            return
        if (
            self.order is Order.NEXT_TURN
            and not group.sealed
            and (item.part in _MODEL_SIDE or item.part is _OTHER)
        ):
            return
        if group.into is None and item.part is _INPUT:
            group.into = at
        if group.answered < group.calls and group.interrupted is None:
            group.interrupted = Place(at, item.slot)

    def _part_reasoning(
        self, by: str, answered: OpenCall | None, place: Place | None
    ) -> Finding | None:
        """Something that the model did not say follows reasoning. If it is the output of a call
        made before that, it only stands in the wrong place."""
        finding = None
        late = answered is not None and answered.at < self._dangling[0][1]
        for item, at in self._dangling:
            finding = self._found(
                rules.REASONING_PARTED,
                Place(at, item.slot),
                answered if late else None,
                key=item.id,
                answer=place if late else None,
                detail=by,
            )
        self._dangling.clear()
        return finding if late else None

    # --- the end -------------------------------------------------------------------------------

    def finish(self, *, anchored: bool = False) -> list[Finding]:
        """Everything that is wrong, in order of place. ``anchored``: a delta behind an anchor."""
        if not (
            self._open
            or self._passed
            or self._findings
            or self._orphans
            or self._dangling
            or self._reused
            or self._same_id
            or self._with_early
            or self._stray
        ):
            return self._findings
        if self._dangling:
            self._part_reasoning("nothing", None, None)
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
        for call, before in self._same_id:
            if call.first is None:
                self._found(
                    rules.DUPLICATE_ITEM_ID,
                    call.place,
                    call,
                    key=call.item.joining_id,
                    other=Place(before),
                    answer=call.answer,
                    part=_CALL,
                )
        if anchored:
            for item, place in self._orphans.pop(KEYLESS, ()):
                self._orphan(item, place)  # no call can be meant, whatever the anchor holds
            for outputs in self._orphans.values():
                for item, place in outputs[1:]:
                    first = outputs[0][1]
                    self._found(rules.SECOND_OUTPUT, place, None, key=item.key, other=first)
        else:
            orphans = [one for outputs in self._orphans.values() for one in outputs]
            orphans += [one for call in self._with_early for one in call.early or ()]
            for item, place in orphans:
                self._orphan(item, place)
        for item, place in self._stray:
            self._orphan(item, place)
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
        if item.lone and item.partial:
            self._found(rules.INCOMPLETE_CALL, call.place, call)
            return
        if item.lone or (family.by_server and self._last_input < call.at):
            return
        if self._decided and call in self._decided:
            return
        if self._last_reference > call.at:
            return
        early = self._claim_early(call)
        if early is not None:
            self._found(rules.OUTPUT_BEFORE_CALL, early, call, other=call.place)
            group.answered += 1
            return
        evidence = self._evidence(call)
        about = call.about
        # Nobody was asked about a call that was cut off, whatever its request says.
        cut_off = item.incomplete and (evidence is None or call.asked)
        if cut_off or (about is not None and about.item.incomplete):
            self._found(rules.INCOMPLETE_CALL, call.place, call)
        elif call.cut is not None:
            self._found(
                rules.HALF_PAIR_LEFT,
                call.place,
                call,
                other=Place(call.cut.at),
                evidence=evidence,
                detail=call.cut.by,
            )
        elif family.asks_first:
            self._found(rules.UNANSWERED_APPROVAL, call.place, call, evidence=evidence)
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

    def _claim_early(self, call: OpenCall) -> Place | None:
        for n, (item, place) in enumerate(call.early or ()):
            if _accepts(call.item.family, item.family):
                assert call.early is not None
                del call.early[n]
                return place
        return None

    def _orphan(self, item: Item, place: Place) -> None:
        hidden = self._first_reference is not None and self._first_reference < place.at
        if hidden and item.key is not None:
            return  # the call may be behind the reference
        cut = self.cut.get(item.key or KEYLESS)
        if cut is not None:
            self._found(
                rules.HALF_PAIR_LEFT, place, None, key=item.key, other=Place(cut.at), detail=cut.by
            )
        else:
            self._found(rules.ORPHAN_OUTPUT, place, None, key=item.key, name=item.name)

    def _evidence(self, call: OpenCall) -> Evidence | None:
        if call.testimony is not None and self.read is not None:
            return self.read(call.testimony, call.testimony_at)
        asks_first = call.item.family is not None and call.item.family.asks_first
        if asks_first or (call.asked and call.approved is None):
            # An approval that nobody gave: the act it asks for cannot have begun.
            return Evidence(Outcome.NEVER_STARTED, "was never approved", "Nobody approved it.")
        if call.approved is False:
            return Evidence(Outcome.NEVER_STARTED, "was denied", "Its approval was denied.")
        return None

    # --- making findings -----------------------------------------------------------------------

    def _contradict(self, call: OpenCall, place: Place, text: str) -> None:
        evidence = self._evidence(call)
        if evidence is None or evidence.outcome is not Outcome.FINISHED:
            return
        if text.strip() not in evidence.text:  # else it is what the tool itself said
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
            part=item.part,
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
        part: Part | None = None,
        supersedes: bool = False,
        stands_in: bool = False,
        detail: str = "",
    ) -> Finding:
        family: Family | None = None
        after: Place | None = None
        into: int | None = None
        if call is not None:
            key = call.item.key if key is None else key
            name, family = call.item.name, call.item.family
            beside = family is not None and (family.by_server or family.inline)
            group = call.group
            after = call.place if beside else Place(group.last_at, group.last_slot)
            into = group.into if self.order is Order.NEXT_TURN else None
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
            part=part,
            supersedes=supersedes,
            stands_in=stands_in,
            detail=detail,
        )
        self._findings.append(finding)
        return finding


_Result = TypeVar("_Result")


class Repeatable(Protocol):
    """A pass that can ask to be made once more: a `Pairing`, or several that are fed together."""

    def again(self) -> Self | None: ...


_Pass = TypeVar("_Pass", bound=Repeatable)


def read_through(start: _Pass, read: Callable[[_Pass], _Result]) -> tuple[_Pass, _Result]:
    """Feed a pass with ``read``; feed a second one where the first could only suspect something
    (see `seen`). Returns the pass that is certain, and what ``read`` returned for it."""
    result = read(start)
    again = start.again()
    return (start, result) if again is None else (again, read(again))


def answered(calls: Sequence[Item], items: Sequence[Sequence[Item]]) -> bool:
    """Are these the outputs of these calls, one for each, and nothing else?

    Then a pass over them has nothing to find, in any order that a dialect wants, and need not be
    made. Whatever a pass would have to think about is answered with no."""
    waiting: dict[str | None, Family] = {}
    for call in calls:
        key, family = call.key, call.family
        if key is None or key in waiting or family is None or family.by_server:
            return False
        if call.lone or call.alias is not None or call.joining_id is not None:
            return False
        waiting[key] = family
    for parts in items:
        for item in parts:
            if item.part is not _OUTPUT or item.id is not None or item.misplaced:
                return False
            family = item.family
            if family is None or waiting.pop(item.key, None) is not family:
                return False
    return not waiting


def _may_be_incomplete(call: Item) -> bool:
    """A quick look before a close one: arguments that are complete end with a brace."""
    return call.partial or (call.arguments is not None and not call.arguments.endswith("}"))


def _accepts(call: Family | None, output: Family | None) -> bool:
    return call is not None and output is not None and call.accepts(output)


def _names(call: OpenCall, key: str, output: Item) -> bool:
    """Does an output with this key mean this call? A second key (an alias) joins outputs of the
    call's own family alone."""
    family = call.item.family
    return (
        (call.item.key or KEYLESS) == key
        or family is output.family
        or (family is not None and family.by_name and _accepts(family, output.family))
    )


def _output_type(item: Item) -> str:
    return item.family.output_type if item.family is not None else "an output"
