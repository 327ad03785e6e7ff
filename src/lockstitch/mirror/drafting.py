"""A plan while it is being made: what is new and where, what goes, and the edits that follow.

Three orders make a plan safe when one of its edits is refused:
- New items between two that stay are sent last first, each behind the same item that is known to
  be there. So each one has a predecessor, whichever of the others is refused.
- An output is sent once its call is acknowledged.
- What goes is deleted last, once what stands in its place is there; and an output once its call
  is gone, so that a pair that cannot be deleted whole stays whole."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeAlias

from msgspec import Struct

from lockstitch.core import families
from lockstitch.core.items import Part
from lockstitch.dialects.base import Wire
from lockstitch.mirror.chain import Record
from lockstitch.mirror.context import Context
from lockstitch.mirror.edits import (
    Create,
    Delete,
    Edit,
    Kept,
    Plan,
    Retrieve,
    Unplaceable,
    Why,
    WhyNot,
)
from lockstitch.mirror.flight import Standing, Tracked
from lockstitch.mirror.saying import creatable, half, same

NewId: TypeAlias = Callable[[str], str]
"""Gives an id that was never used; told what for: ``item``, ``event`` or ``group``."""

_REMAKEABLE: Final = ("message", families.FUNCTION.call_type, families.FUNCTION.output_type)
"""What a client may create. Anything else is made by the server, or we do not know it: its type may
be no text at all, so these are looked through and not hashed."""


# Bound once: members of an enum are slow to look up, and these run for every item.
_CALL: Final = Part.CALL
_OUTPUT: Final = Part.OUTPUT


class New(Struct, eq=False, gc=False):
    """An item to create, and its output."""

    wire: Wire
    copy_of: Record | None = None
    was: str | None = None
    """The id that the caller knows it by, where that was used before."""
    calls: str | None = None
    answers: str | None = None
    needs: str | None = None
    output: New | None = None
    event_id: str = ""

    def join(self, joined: tuple[Part, str | None] | None) -> None:
        """Note which half of a pair it is."""
        if joined is None:
            return
        if joined[0] is _CALL:
            self.calls = joined[1]
        else:
            self.answers = joined[1]

    def create(self, event_id: str, previous: str | None, group: str | None) -> Create:
        self.event_id = event_id
        return Create(
            event_id=event_id,
            item=self.wire,
            previous_item_id=previous,
            needs=self.needs,
            group=group if self.copy_of is None else None,
            copy_of=self.was,
            calls=self.calls,
            answers=self.answers,
        )


class Hunk(Struct, eq=False):
    """What changes between two items that stay."""

    new: list[New]
    going: list[Record]


class Draft:
    """All that was decided so far, and the rules for deciding about one item."""

    def __init__(self, context: Context, base: int, new_id: NewId) -> None:
        self.context = context
        self.base = base
        self.new_id = new_id
        self.wants: Callable[[Record], bool] = lambda record: False
        """Does the target have this item, which is there?"""
        self.hunks: dict[str, Hunk] = {}
        self.loose: list[tuple[New, str]] = []
        """Outputs, with the items they stand behind."""
        self.copied: list[New] = []
        self.replaced: set[str] = set()
        """Ids of the items that something else takes the place of."""
        self.kept: list[Kept] = []
        self.unplaceable: list[Unplaceable] = []
        self.waiting: list[str] = []
        self.gone: list[str] = []
        self.tail: str | None = None
        self.together = False
        """All of it is one change: nothing goes before everything new is there."""
        self._calls: dict[str, New] = {}
        self._answered: dict[str, set[str]] = {}
        """Ids of the calls, there or on their way, that this plan gives an output, by key."""

    def hunk(self, anchor: str) -> Hunk:
        found = self.hunks.get(anchor)
        if found is None:
            found = self.hunks[anchor] = Hunk([], [])
        return found

    # --- may it go, may it be made again -------------------------------------------------------

    def keeps(self, record: Record) -> Why | None:
        """Why this item, which the caller saw and does without, stays; None if it may go."""
        if record.known_at is None or record.known_at > self.base:
            is_copy = record.copy_of is not None and record.added_at > self.base
            return Why.CHANGED if is_copy else Why.UNFINISHED
        if record.item.part is _CALL and record.partner is None:
            # A call that was cut short is never carried out: nobody will answer it.
            return None if record.wire.get("status") == "incomplete" else Why.IN_FLIGHT
        return None

    def remakeable(self, record: Record) -> bool:
        """Can it be created again?"""
        known_at = record.known_at
        return (
            known_at is not None
            and known_at <= self.base
            and record.wire.get("type", "message") in _REMAKEABLE
            and record.id not in self.context.flight.deletes
            and (record.partner is not None or record.item.part is not _CALL)
        )

    def movable(self, record: Record) -> bool:
        return not record.truncated and not record.spoken and self.remakeable(record)

    def changed(self, record: Record, wire: Wire) -> bool:
        """Has the caller changed it? What the provider changed since is not undone."""
        now = record.wire
        if wire is now or same(wire, now):
            return False
        seen = self._seen(record)
        return seen is not None and (seen is now or not same(wire, seen))

    def _seen(self, record: Record) -> Wire | None:
        """What the caller saw of an item, or of the one whose place it took since; None if that is
        nothing."""
        found: Record | None = record
        while found is not None and found.added_at > self.base:
            found = self.context.chain.get(found.copy_of) if found.copy_of is not None else None
        if found is None or (found.gone_at is not None and found.gone_at <= self.base):
            return None
        return found.wire_at(self.base)

    # --- one item of the target ----------------------------------------------------------------

    def replace(self, record: Record, wire: Wire) -> None:
        """A copy directly behind the old one, under an id of its own; then the old one goes."""
        made = creatable(wire)
        if made is None or not self.remakeable(record):
            self.kept.append(Kept(record.id, self.keeps(record) or Why.FIXED))
            return
        if not self.context.links and self.context.chain.last() is not record:
            self.kept.append(Kept(record.id, Why.UNLINKED))
            return
        self.hunk(record.id).new.insert(0, self.copy(record, made))

    def move(self, record: Record, wire: Wire, anchor: str) -> None:
        """A copy behind ``anchor``, of a call with its output; then the old one goes."""
        partner = record.partner
        if partner is None:
            self.hunk(anchor).new.append(self.copy(record, wire))
        elif record.item.part is _CALL:
            new = self.copy(record, wire)
            new.output = self.copy(partner, partner.wire)
            self.hunk(anchor).new.append(new)

    def copy(self, record: Record, wire: Wire) -> New:
        made = wire.copy()
        made["id"] = self.new_id("item")
        new = New(made, record, record.id)
        if wire is not record.wire:
            new.join(half(made))
        elif record.partner is not None:
            new.join((record.item.part, record.item.key))
        self.copied.append(new)
        self.replaced.add(record.id)
        return new

    def place(self, wire: Wire, id: str, anchor: str) -> str | None:
        """An item that is not there, behind ``anchor``. Gives what the next one stands behind;
        None if that is in doubt."""
        create = self.context.flight.creating(id)
        if create is not None:
            if create.standing is not Standing.IN_DOUBT:
                return id
            self.waiting.append(id)
            return None
        stone = self.context.chain.get(id)
        if stone is not None and stone.added_at <= self.base < (stone.gone_at or 0):
            self.gone.append(id)
            return anchor
        made = creatable(wire)
        if made is None:
            self.unplaceable.append(Unplaceable(id, None, WhyNot.NOTHING_SAID))
            return anchor
        new = New(made)
        if stone is not None:
            # An id is never used twice: late events about the first would be taken for the second.
            new = New(made | {"id": self.new_id("item")}, was=id)
        elif made.get("id") != id:
            new = New(made | {"id": id})
        kind = wire.get("type", "message")
        if kind != "message":
            new.join(half(wire))
            if new.answers is not None or kind == families.FUNCTION.output_type:
                self._place_output(new, new.answers, id)
                return anchor
            if new.calls is not None:
                self._calls[new.calls] = new
        self.hunk(anchor).new.append(new)
        return anchor

    def _place_output(self, new: New, key: str | None, id: str) -> None:
        context = self.context
        answered = self._answered.get(key or "", set())
        call = context.pairs.call_for(key, len(answered)) if key is not None else None
        why: WhyNot | None = None
        if key is None:
            why = WhyNot.NO_CALL
        elif key in self._calls:
            why = WhyNot.ANSWERED if self._calls[key].output else None
            if why is None:
                self._calls[key].output = new
        elif (sent := context.flight.calling(key)) is not None:
            why = self._behind_sent_call(new, key, id, sent)
        elif call is None or context.flight.deleting(call.id) is not None:
            why = WhyNot.NO_CALL
        elif context.flight.answering(key) is not None:
            why = WhyNot.ANSWERED
        elif (answer := call.partner) is not None:
            why = self._instead(new, answer)
        else:
            why = self._behind(new, key, call.id)
        if why is not None:
            self.unplaceable.append(Unplaceable(id, key, why))

    def _behind_sent_call(self, new: New, key: str, id: str, sent: Tracked) -> WhyNot | None:
        if self.context.flight.answering(key) is not None:
            return WhyNot.ANSWERED
        if sent.standing is Standing.IN_DOUBT:
            self.waiting.append(id)
            return None
        new.needs = sent.edit.event_id
        return self._behind(new, key, sent.edit.item_id)

    def _behind(self, new: New, key: str, call: str) -> WhyNot | None:
        """An output behind the item that is its call."""
        answered = self._answered.setdefault(key, set())
        if call in answered:
            return WhyNot.ANSWERED
        answered.add(call)
        self.loose.append((new, call))
        return None

    def _instead(self, new: New, answer: Record) -> WhyNot | None:
        """Another output for an answered call: instead of the one that the caller gave up."""
        if self.wants(answer) or not self.remakeable(answer):
            return WhyNot.ANSWERED
        if answer.id in self.replaced:
            return WhyNot.ANSWERED
        new.copy_of, new.was = answer, answer.id
        self.copied.append(new)
        self.replaced.add(answer.id)
        self.loose.append((new, answer.id))
        return None

    # --- the plan ------------------------------------------------------------------------------

    def finish(self) -> Plan:
        flight, links = self.context.flight, self.context.links
        edits: list[Edit] = [
            Retrieve(event_id=self.new_id("event"), item_id=item_id)
            for item_id in dict.fromkeys([*flight.in_doubt(), *self.context.questioned])
            if flight.retrieving(item_id) is None
        ]
        shared = self.new_id("group") if self.together and self._anything_fresh() else None
        going: list[tuple[list[Record], str | None]] = []
        for anchor, hunk in self.hunks.items():
            fresh = any(new.copy_of is None for new in hunk.new)
            group = self.new_id("group") if fresh and hunk.going and not shared else shared
            if links:
                self._create(edits, reversed(hunk.new), anchor, group)
            else:
                self._create(edits, hunk.new, None, group)
            going.append((hunk.going, group))
        for new, behind in self.loose:
            self._create(edits, [new], behind if links else None, shared)
        self._delete(edits, going)
        return Plan(
            version=self.context.version,
            edits=tuple(edits),
            kept=tuple(self.kept),
            unplaceable=tuple(self.unplaceable),
            waiting=tuple(self.waiting),
            gone=tuple(self.gone),
            tail=self.tail,
        )

    def _anything_fresh(self) -> bool:
        created = [new for hunk in self.hunks.values() for new in hunk.new]
        return any(new.copy_of is None for new in (*created, *(new for new, _ in self.loose)))

    def _create(
        self, edits: list[Edit], news: Iterable[New], previous: str | None, group: str | None
    ) -> None:
        new_id, links = self.new_id, self.context.links
        for new in news:
            edits.append(new.create(new_id("event"), previous, group))
            output = new.output
            if output is not None:
                output.needs = new.event_id
                behind = new.wire["id"] if links else None
                edits.append(output.create(new_id("event"), behind, group))

    def _delete(self, edits: list[Edit], going: list[tuple[list[Record], str | None]]) -> None:
        """What goes, each with the group that it waits for, and what was copied. An output whose
        call goes too goes once its call is gone."""
        new_id = self.new_id
        calls: dict[str, str] = {}  # the event that deletes the call, by the id of its output
        outputs: list[tuple[Record, str | None]] = []
        leaving = [(record, group, False) for records, group in going for record in records]
        leaving += self._copied_away()
        for record, needs, both in leaving:
            partner = record.partner
            if partner is None:
                edits.append(Delete(event_id=new_id("event"), item_id=record.id, needs=needs))
            elif record.item.part is _OUTPUT:
                outputs.append((record, needs))
            else:
                event_id = new_id("event")
                if both or not self.wants(partner):
                    calls[partner.id] = event_id
                edits.append(Delete(event_id=event_id, item_id=record.id, needs=needs))
        for record, needs in outputs:
            after = calls.get(record.id, needs)
            edits.append(Delete(event_id=new_id("event"), item_id=record.id, needs=after))

    def _copied_away(self) -> Iterator[tuple[Record, str | None, bool]]:
        """Each item that a copy takes the place of, what its delete needs, and whether its output
        was copied too."""
        for new in self.copied:
            output = new.output
            if new.copy_of is not None:
                event_id = new.event_id if output is None else output.event_id
                yield new.copy_of, event_id, output is not None
