"""From a target to a plan: a three-way merge of what the caller saw, what it wants, and what is
there now. Changes nothing. What the edits look like, and in which order they go,
is in `drafting`; what differs, in `comparing`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain, repeat
from typing import Final

from lockstitch.core.items import Part
from lockstitch.dialects.base import Wire
from lockstitch.mirror.chain import Record
from lockstitch.mirror.comparing import check_once, difference, resolved
from lockstitch.mirror.context import Context
from lockstitch.mirror.drafting import Draft, Hunk, NewId
from lockstitch.mirror.edits import ROOT, Kept, Plan, Why
from lockstitch.mirror.flight import Standing

_OUTPUT: Final = Part.OUTPUT


def plan(context: Context, target: Sequence[Wire], base: int, new_id: NewId) -> Plan:
    """See `Mirror.plan`."""
    draft = Draft(context, base, new_id)
    order = context.chain.order()
    found = difference(context, target)
    first, last = found.first, found.last
    named = {record.id for record in found.matched}
    draft.wants = lambda record: record.id in named or not first <= record.index < last
    moving = _moving(draft, found.ordered, found.stay)
    start = order[first - 1].id if first else ROOT
    anchor: str | None = start
    staying = chain(sorted(found.stay), repeat(last))
    furthest, ahead = first - 1, next(staying)
    held: set[str] = set()
    for wire, item_id, record in found.entries:
        if record is None:
            if anchor is None:
                _place_in_doubt(draft, wire, item_id)
            else:
                anchor = draft.place(wire, item_id, anchor)
        elif item_id not in moving:
            held.add(item_id)
            if record.index == ahead:
                anchor, furthest, ahead = item_id, ahead, next(staying)
            elif furthest < record.index < ahead:  # an output, where its call is
                anchor, furthest = item_id, record.index
            if wire is not record.wire and draft.changed(record, wire):
                draft.replace(record, wire)
        elif moving[item_id] and anchor is not None:
            draft.move(record, wire, anchor)
    _take_away(draft, order[first:last], start, held, named)
    if anchor is not None and last == len(order):
        _to_the_end(draft, order, anchor)
    return draft.finish()


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
    check_once([*chain.from_iterable(inserted.values()), *added])
    draft = Draft(context, base, new_id)
    taken = dict.fromkeys(context.resolve(item_id) for item_id in removed)
    draft.wants = lambda record: record.id not in taken
    for wire, item_id, record in resolved(context, changed, whole=changed):
        if record is None:
            draft.gone.append(item_id)
        elif draft.changed(record, wire):
            draft.replace(record, wire)
    for behind, wires in inserted.items():
        _place_all(draft, wires, _place_of(context, behind))
    end = _end(context)
    _place_all(draft, added, end)
    if end is not None and end in draft.hunks and draft.hunks[end].new:
        draft.tail = draft.hunks[end].new[-1].wire["id"]
    records = [record for item_id in taken if (record := context.chain.alive(item_id)) is not None]
    draft.together = True
    draft.hunk(ROOT).going.extend(_whole(draft, _may_go(draft, _staying(draft, records))))
    return draft.finish()


# --- new items -----------------------------------------------------------------------------------


def _place_in_doubt(draft: Draft, wire: Wire, item_id: str) -> None:
    """Behind an item that may or may not be there: an output has its call to stand behind, and
    everything else waits."""
    if str(wire.get("type")).endswith("_output"):
        draft.place(wire, item_id, ROOT)
    elif draft.context.flight.creating(item_id) is None:
        draft.waiting.append(item_id)


def _place_all(draft: Draft, wires: Sequence[Wire], anchor: str | None) -> None:
    for wire, item_id, record in resolved(draft.context, wires):
        if record is not None:
            continue  # it is there
        if anchor is None:
            _place_in_doubt(draft, wire, item_id)
        else:
            anchor = draft.place(wire, item_id, anchor)


def _place_of(context: Context, behind: str) -> str | None:
    """What an item stands behind that goes behind this one, or behind its tombstone; None if nobody
    knows it, or if it is in doubt."""
    item_id = context.resolve(behind)
    if item_id == ROOT:
        return ROOT
    sent = context.flight.creating(item_id)
    if sent is not None:
        return None if sent.standing is Standing.IN_DOUBT else item_id
    record = context.chain.get(item_id)
    return None if record is None else context.chain.nearest(record) or ROOT


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


def _moving(draft: Draft, ordered: list[Record], stay: set[int]) -> dict[str, bool]:
    """Items that are not where the target has them, and whether they are made again there."""
    if len(stay) == len(ordered):
        return {}
    links, movable, wants = draft.context.links, draft.movable, draft.wants
    moving: dict[str, bool] = {}
    for record in ordered:
        if record.index in stay:
            continue
        partner = record.partner
        moves = links and movable(record)
        if partner is None:
            moves = moves and record.item.part is not _OUTPUT
        elif wants(partner):  # a pair moves whole
            moves = moves and movable(partner)
            moving[partner.id] = moves
        else:
            moves = False
        moving[record.id] = moves
    why = Why.FIXED if links else Why.UNLINKED
    draft.kept.extend(Kept(item_id, why) for item_id, moves in moving.items() if not moves)
    return moving


# --- what goes -----------------------------------------------------------------------------------


def _staying(draft: Draft, records: list[Record]) -> list[Record]:
    """Those that are not on their way out already."""
    replaced, deletes = draft.replaced, draft.context.flight.deletes
    if not replaced and not deletes:
        return records
    return [one for one in records if one.id not in replaced and one.id not in deletes]


def _may_go(draft: Draft, records: list[Record]) -> list[Record]:
    """Of these, which the caller does without, those that nothing keeps here."""
    base, kept, keeps = draft.base, draft.kept, draft.keeps
    free: list[Record] = []
    for record in records:
        why = keeps(record)
        if why is None:
            free.append(record)
        elif record.added_at <= base:
            kept.append(Kept(record.id, why))
    return free


def _whole(draft: Draft, candidates: list[Record]) -> list[Record]:
    """Those of which no half stays."""
    ids = {record.id for record in candidates}
    halves = {
        one: None
        for one in candidates
        if (partner := one.partner) is not None
        and partner.id not in ids
        and not _leaving(draft.context, partner)
    }
    if not halves:
        return candidates
    draft.kept.extend(Kept(one.id, Why.HALF) for one in halves)
    return [one for one in candidates if one not in halves]


def _leaving(context: Context, record: Record) -> bool:
    """Is it on its way out for good? One that a copy takes the place of is not."""
    return (
        context.flight.deleting(record.id) is not None and context.resolve(record.id) == record.id
    )


def _take_away(
    draft: Draft, middle: list[Record], start: str, held: set[str], named: set[str]
) -> None:
    """Of these items, those that the target does not name; ``start`` is what they stand behind."""
    others = [record for record in middle if record.id not in named] if named else middle
    others = _staying(draft, others)
    if not others:
        return
    is_stray = draft.context.is_stray
    strays = {one: None for one in others if one.copy_of is not None and is_stray(one)}
    free = [record for record in others if record not in strays] if strays else others
    going = _whole(draft, _may_go(draft, free))
    going += strays
    if not draft.hunks:  # nothing new that they could have to wait for
        draft.hunk(start).going.extend(going)
        return
    ids = {record.id for record in going}
    hunk: Hunk | None = None
    anchor = start
    for record in middle:
        if record.id in held:
            anchor, hunk = record.id, None
        elif record.id in ids:
            hunk = hunk or draft.hunk(anchor)
            hunk.going.append(record)
