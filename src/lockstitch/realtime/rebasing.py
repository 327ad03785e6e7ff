"""A target that was made from the context of an earlier session, for the one that took its place.

The items are there again under their ids. Pure: what the caller saw, wanted, and what is there."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet

from lockstitch.dialects.base import Wire
from lockstitch.mirror.saying import same
from lockstitch.realtime.limits import MOST_NAMES_REMEMBERED


def rebased(
    target: Sequence[Wire],
    shown: Sequence[Wire],
    decided: AbstractSet[str],
    now: Sequence[Wire],
    names: Mapping[str, str],
) -> list[Wire]:
    """The target as it is meant now: what came since the caller looked stays, behind what it
    stands behind; what went since stays away; what the caller has not changed is as it is now.

    ``shown``: what the caller saw; ``decided``: the ids of those of it that it can have decided
    about. ``names``: ids of items that took another's place."""
    there = {wire["id"]: wire for wire in now}
    was = {wire["id"]: wire for wire in shown}
    known = {current(item_id, names) for item_id in was}
    meant: dict[str, Wire] = {}
    for wire in target:
        item_id = wire["id"]
        name = current(item_id, names)
        seen = was.get(item_id)
        if name not in there and name in known:
            continue
        if name in there and seen is not None and (item_id not in decided or same(wire, seen)):
            meant.setdefault(name, there[name])
        else:
            meant[name] = wire if name == item_id else wire | {"id": name}
    given_up = {current(item_id, names) for item_id in decided} | left_over(decided, there, names)
    behind: dict[str | None, list[Wire]] = {}
    anchor: str | None = None
    for wire in now:
        if wire["id"] in meant:
            anchor = wire["id"]
        elif wire["id"] not in given_up:
            behind.setdefault(anchor, []).append(wire)
    result = list(behind.get(None, ()))
    for name, wire in meant.items():
        result.append(wire)
        result += behind.get(name, ())
    return result


def rename(names: dict[str, str], copies: Mapping[str, str]) -> None:
    """Note that items took the place of others. Beyond the limit the oldest names are forgotten."""
    for name, copy in copies.items():
        names.pop(copy, None)  # it is there: whatever stood in its place before does so no more
        names.pop(name, None)
        names[name] = copy
    while len(names) > MOST_NAMES_REMEMBERED:
        del names[next(iter(names))]


def current(id: str, names: Mapping[str, str]) -> str:
    """The id of the item that stands in the place of this one."""
    name = id
    while name in names:
        name = names[name]
    return name


def is_superseded(id: str, others: Collection[str], names: Mapping[str, str]) -> bool:
    """Is one of the others a later name of the same item?"""
    name = id
    while name in names:
        name = names[name]
        if name in others:
            return True
    return False


def left_over(ids: Iterable[str], there: Container[str], names: Mapping[str, str]) -> set[str]:
    """Names of these items that are there although a copy is there, too: the connection was lost
    after the copy had come, and before they went."""
    left: set[str] = set()
    for item_id in ids:
        last = current(item_id, names)
        name = item_id
        while name != last and last in there:
            if name in there:
                left.add(name)
            name = names[name]
    return left
