"""What a target has in common with what is there: the bare difference, from which plans are made.

Most of a context is as it was, so both ends that are the same are set aside first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

from lockstitch.core.items import Part
from lockstitch.dialects.base import Wire
from lockstitch.mirror.chain import Record
from lockstitch.mirror.context import Context
from lockstitch.mirror.errors import NotATarget
from lockstitch.mirror.ordering import ends_in_common, longest_run

_OUTPUT: Final = Part.OUTPUT


class Entries(Struct, eq=False):
    """Items of a target, the id under which each is or will be at the provider, and its record."""

    wires: Sequence[Wire]
    ids: Sequence[str]
    records: Sequence[Record | None]

    def __iter__(self) -> Iterator[tuple[Wire, str, Record | None]]:
        return zip(self.wires, self.ids, self.records, strict=True)


class Difference(Struct, eq=False):
    """A target, compared with what is there."""

    first: int
    """So many items at the start are as the target has them."""
    last: int
    """And so are the items from this one on."""
    entries: Entries
    """What the target has in between."""
    matched: list[Record]
    """Those of them that are there, in the order of the target."""
    ordered: list[Record]
    """Those of these whose order matters: an output is where its call is."""
    stay: set[int]
    """The indexes of those that can stay: a longest run that is in order."""


def difference(context: Context, target: Sequence[Wire]) -> Difference:
    order = context.chain.order()
    first, end = _ends_in_common(context, target, order)
    last = len(order) - end
    entries = resolved(context, target[first : len(target) - end], whole=target)
    matched = [] if first == last else list(filter(None, entries.records))
    for record in matched:
        if not first <= record.index < last:
            raise _twice(record.id)
    ordered = [one for one in matched if one.partner is None or one.item.part is not _OUTPUT]
    stay = longest_run([record.index for record in ordered])
    return Difference(first, last, entries, matched, ordered, stay)


def _ends_in_common(
    context: Context, target: Sequence[Wire], order: list[Record]
) -> tuple[int, int]:
    """How many items at the start, and at the end, are there as the target has them."""
    first, end = ends_in_common(list(target), context.chain.wires())
    for record in context.unsettled():
        first = min(first, record.index)
        end = min(end, len(order) - record.index - 1)
    return first, end


def resolved(context: Context, target: Sequence[Wire], *, whole: Sequence[Wire] = ()) -> Entries:
    """The items of a target, without copies of ours that failed to take a place: they go.

    A snapshot from the moment in between has an item and the copy that takes its place; a target
    made from it names both, and means the copy, or what has taken the place of that since."""
    ids = _ids(target)
    _check_once(ids)
    if context.names.knows_any(ids):
        return _renamed(context, target, ids, {wire.get("id") for wire in whole})
    return Entries(target, ids, context.chain.all_alive(ids))


def check_once(wires: Sequence[Wire]) -> None:
    """Raises `NotATarget` if an item is among these twice, or has no id."""
    _check_once(_ids(wires))


def _renamed(
    context: Context, target: Sequence[Wire], ids: list[str], named: set[object]
) -> Entries:
    found: dict[str, tuple[Wire, Record | None]] = {}
    for wire, given in zip(target, ids, strict=True):
        item_id = context.resolve(given)
        if item_id != given and item_id in named:
            continue
        if item_id in found:
            if context.names.is_older(given, found[item_id][0]["id"]):
                continue
            del found[item_id]
        record = context.chain.alive(item_id)
        if record is None or not context.is_stray(record):
            found[item_id] = (wire, record)
    wires = [wire for wire, _ in found.values()]
    return Entries(wires, list(found), [record for _, record in found.values()])


def _ids(target: Sequence[Wire]) -> list[str]:
    ids: list[str] = [wire.get("id", "") for wire in target]
    if not all(ids) or not all(issubclass(kind, str) for kind in set(map(type, ids))):
        raise NotATarget("An item of the target has no id. Give it one: ids tell items apart.")
    return ids


def _check_once(ids: Sequence[str]) -> None:
    if len(set(ids)) != len(ids):
        raise _twice(next(one for one in ids if ids.count(one) > 1))


def _twice(item_id: str) -> NotATarget:
    return NotATarget(f"The target has {item_id} twice. An item stands at one place.")
