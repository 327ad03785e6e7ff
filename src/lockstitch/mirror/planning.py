"""From a target to a plan: a three-way merge of what the caller saw, what it wants, and what is
there now. Changes nothing. What the edits look like, and in which order they go,
is in `drafting`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice, takewhile
from operator import eq

from lockstitch.core.items import Part
from lockstitch.dialects.base import Wire, text_of
from lockstitch.mirror.chain import Record
from lockstitch.mirror.context import Context
from lockstitch.mirror.drafting import Draft, Hunk, NewId
from lockstitch.mirror.edits import ROOT, Kept, Plan, Why
from lockstitch.mirror.errors import NotATarget
from lockstitch.mirror.flight import Standing
from lockstitch.mirror.ordering import staying


def plan(context: Context, target: Sequence[Wire], base: int, new_id: NewId) -> Plan:
    """See `Mirror.plan`."""
    draft = Draft(context, base, new_id)
    order = context.chain.order()
    first, end = _ends_in_common(context, target, order)
    last = len(order) - end
    entries = _resolved(context, target[first : len(target) - end], _named(context, target))
    matched = [record for _, _, record in entries if record is not None]
    for one in matched:
        if not first <= one.index < last:
            raise _twice(one.id)
    named = {record.id for record in matched}
    draft.wants = lambda record: not first <= record.index < last or record.id in named
    moving = _moving(draft, matched)
    start = order[first - 1].id if first else ROOT
    anchor: str | None = start
    held: set[str] = set()  # items that stay, in the order of the target
    for wire, item_id, record in entries:
        if record is None:
            if anchor is None:
                _place_in_doubt(draft, wire, item_id)
            else:
                anchor = draft.place(wire, item_id, anchor)
        elif item_id not in moving:
            anchor = item_id
            held.add(item_id)
            if draft.changed(record, wire):
                draft.replace(record, wire)
        elif moving[item_id] and anchor is not None:
            _move(draft, record, wire, anchor)
    _take_away(draft, order[first:last], start, held)
    if anchor is not None and not end:
        _to_the_end(draft, order, anchor)
    return draft.finish()


def _ends_in_common(
    context: Context, target: Sequence[Wire], order: list[Record]
) -> tuple[int, int]:
    """How many items at the start, and at the end, are there as the target has them."""
    wires = [record.wire for record in order]
    first = _run_in_common(target, wires)
    rest = min(len(target), len(order)) - first
    end = _run_in_common(islice(reversed(target), rest), reversed(wires))
    if context.names:
        first = _run(map(context.stands, order[:first]))
        end = _run(map(context.stands, reversed(order[len(order) - end :])))
    return first, end


def _run_in_common(some: Iterable[Wire], others: Iterable[Wire]) -> int:
    return _run(map(eq, some, others))


def _run(good: Iterable[bool]) -> int:
    """How many are good, up to the first that is not."""
    return len(list(takewhile(bool, good)))


def _twice(item_id: str) -> NotATarget:
    return NotATarget(f"The target has {item_id} twice. An item stands at one place.")


def plan_changes(
    context: Context,
    base: int,
    new_id: NewId,
    *,
    added: Sequence[Wire],
    inserted: Mapping[str, Sequence[Wire]],
    changed: Sequence[Wire],
    removed: Sequence[str],
) -> Plan:
    """See `Mirror.plan_changes`."""
    draft = Draft(context, base, new_id)
    taken = {context.resolve(item_id) for item_id in removed}
    draft.wants = lambda record: record.id not in taken
    for wire, item_id, record in _resolved(context, changed, _named(context, changed)):
        if record is None:
            draft.gone.append(item_id)
        elif draft.changed(record, wire):
            draft.replace(record, wire)
    for behind, wires in inserted.items():
        after = context.resolve(behind)
        there = after == ROOT or context.chain.alive(after) or context.flight.creating(after)
        _place_all(draft, wires, after if there else None)
    end = _end(context)
    _place_all(draft, added, end)
    if end is not None and end in draft.hunks and draft.hunks[end].new:
        draft.tail = draft.hunks[end].new[-1].wire["id"]
    records = [record for item_id in taken if (record := context.chain.alive(item_id)) is not None]
    replaced = draft.replaced()
    candidates = [one for one in records if one.id not in replaced and _may_go(draft, one)]
    draft.together = True
    draft.hunk(ROOT).going.extend(_whole(draft, candidates))
    return draft.finish()


def _named(context: Context, target: Iterable[Wire]) -> set[object]:
    """The ids in a target, as given; needed only where one item can go by two of them."""
    return {wire.get("id") for wire in target} if context.names else set()


def _resolved(
    context: Context, target: Iterable[Wire], named: set[object]
) -> list[tuple[Wire, str, Record | None]]:
    """The items of a target, without copies of ours that failed to take a place: they go.

    A snapshot from the moment in between has an item and the copy that takes its place; a target
    made from it names both, and means the copy."""
    found: dict[str, tuple[Wire, str, Record | None]] = {}
    alive, any_names = context.chain.alive, bool(context.names)
    for wire in target:
        item_id = text_of(wire.get("id"))
        if item_id is None:
            raise NotATarget("An item of the target has no id. Give it one: ids tell items apart.")
        if any_names:
            given, item_id = item_id, context.resolve(item_id)
            if item_id != given and item_id in named:
                continue
        if item_id in found:
            raise _twice(item_id)
        found[item_id] = (wire, item_id, alive(item_id))
    if any_names:
        return [one for one in found.values() if one[2] is None or not context.is_stray(one[2])]
    return list(found.values())


# --- new items -----------------------------------------------------------------------------------


def _place_in_doubt(draft: Draft, wire: Wire, item_id: str) -> None:
    """Behind an item that may or may not be there: an output has its call to stand behind, and
    everything else waits."""
    if str(wire.get("type")).endswith("_output"):
        draft.place(wire, item_id, ROOT)
    elif draft.context.flight.creating(item_id) is None:
        draft.waiting.append(item_id)


def _place_all(draft: Draft, wires: Iterable[Wire], anchor: str | None) -> None:
    for wire, item_id, record in _resolved(draft.context, wires, set()):
        if record is not None:
            continue  # it is there
        if anchor is None:
            _place_in_doubt(draft, wire, item_id)
        else:
            anchor = draft.place(wire, item_id, anchor)


def _end(context: Context) -> str | None:
    """What an item stands behind that goes to the end; None if that is in doubt."""
    sent = context.flight.creating(context.tail) if context.tail else None
    if sent is not None:
        return None if sent.standing is Standing.IN_DOUBT else sent.edit.item_id
    last = context.chain.last()
    return ROOT if last is None else last.id


def _to_the_end(draft: Draft, order: list[Record], anchor: str) -> None:
    """What the caller appended goes behind what came since, not in front of it."""
    hunk = draft.hunks.get(anchor)
    if hunk is None or not hunk.new:
        return
    draft.tail = hunk.new[-1].wire["id"]
    record = draft.context.chain.alive(anchor)
    if record is None or any(new.copy_of is record for new in hunk.new) or hunk.going:
        return
    flight = draft.context.flight
    later = order[record.index + 1 :]
    if later and not any(draft.wants(one) or flight.deleting(one.id) for one in later):
        draft.hunks.setdefault(later[-1].id, draft.hunks.pop(anchor))


# --- moves ---------------------------------------------------------------------------------------


def _moving(draft: Draft, matched: list[Record]) -> dict[str, bool]:
    """Items that are not where the target has them, and whether they are made again there."""
    stay = staying([record.index for record in matched])
    if len(stay) == len(matched):
        return {}
    away = {record.id: record for at, record in enumerate(matched) if at not in stay}
    links = draft.context.links
    for partner in [one.partner for one in away.values() if one.partner is not None]:
        if draft.wants(partner):  # a pair moves whole
            away[partner.id] = partner
    movable = {record.id for record in away.values() if links and draft.movable(record)}
    moving: dict[str, bool] = {}
    for item_id, record in away.items():
        moves = item_id in movable
        if record.partner is not None:
            moves = moves and record.partner.id in movable
        elif record.item.part is Part.OUTPUT:
            moves = False
        moving[item_id] = moves
        if not moves:
            draft.kept.append(Kept(item_id, Why.FIXED if links else Why.UNLINKED))
    return moving


def _move(draft: Draft, record: Record, wire: Wire, anchor: str) -> None:
    if record.item.part is Part.OUTPUT:
        return  # it goes with its call
    new = draft.copy(record, wire)
    partner = record.partner
    if partner is not None:
        new.output = draft.copy(partner, partner.wire)
    draft.hunk(anchor).new.append(new)


# --- what goes -----------------------------------------------------------------------------------


def _may_go(draft: Draft, record: Record) -> bool:
    if draft.context.flight.deleting(record.id) is not None:
        return False  # on its way
    why = draft.keeps(record)
    if why is not None and record.added_at <= draft.base:
        draft.kept.append(Kept(record.id, why))
    return why is None


def _whole(draft: Draft, candidates: list[Record]) -> Iterable[Record]:
    """Those of which no half stays."""
    ids = {record.id for record in candidates}
    for record in candidates:
        partner = record.partner
        if partner is None or partner.id in ids or _leaving(draft.context, partner):
            yield record
        else:
            draft.kept.append(Kept(record.id, Why.HALF))


def _leaving(context: Context, record: Record) -> bool:
    """Is it on its way out for good? One that a copy takes the place of is not."""
    return (
        context.flight.deleting(record.id) is not None and context.resolve(record.id) == record.id
    )


def _take_away(draft: Draft, middle: list[Record], start: str, held: set[str]) -> None:
    """Of these items, those that the target does without; ``start`` is what they stand behind."""
    going = _going(draft, [record for record in middle if not draft.wants(record)])
    hunk: Hunk | None = None
    anchor = start
    for record in middle if going else ():
        if record.id in held:
            anchor, hunk = record.id, None
        elif record.id in going:
            hunk = hunk or draft.hunk(anchor)
            hunk.going.append(record)


def _going(draft: Draft, others: list[Record]) -> set[str]:
    """Of these, which are deleted: copies of ours that took nobody's place, and what may go."""
    context = draft.context
    replaced = draft.replaced()
    strays = {record.id for record in others if context.is_stray(record)} if context.names else ()
    candidates = [
        record
        for record in others
        if record.id not in replaced and record.id not in strays and _may_go(draft, record)
    ]
    going = {record.id for record in _whole(draft, candidates)}
    going.update(one for one in strays if context.flight.deleting(one) is None)
    return going
