"""What a caller had seen of a context, inferred from the context that it wants. Pure.

LiveKit hands over what is wanted; nothing says when the caller took the copy that it edited. So:
- The copy was taken after the last item that both sides share had come into the agent's context.
- What the agent's context held for certain by then, and the caller does not want, it gave up.
- All else is in doubt, and what is in doubt stays."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import pairwise
from operator import itemgetter
from typing import Final, NamedTuple


class Stay(NamedTuple):
    """When an item came into the agent's context: after one moment, and by another.

    The two are the same where it is known exactly."""

    after: int
    by: int


_after: Final[Callable[[Stay], int]] = itemgetter(0)


def seen(
    lacking: Collection[str], target: Sequence[str], held: Mapping[str, Stay]
) -> frozenset[str]:
    """Those that the target is lacking and that its author had before it for certain.

    ``held``: the agent's context, so far as it is known. An empty target is no copy of anything:
    it clears all that the agent's context holds."""
    if not target:
        return frozenset(held.keys() & lacking)
    copied = max(map(_after, filter(None, map(held.get, target))), default=None)
    if copied is None:
        return frozenset()
    stays = zip(lacking, map(held.get, lacking), strict=True)
    return frozenset([one for one, stay in stays if stay is not None and stay.by <= copied])


def unmoved(target: Sequence[str], remote: Sequence[str], copied: Sequence[str]) -> list[str]:
    """The target with the items that are there in the order they have there.

    An agent's context has an order of its own: items come into it when they were spoken, or when
    a tool starts. What stands as it stood in the copy was not moved by the caller. New items stand
    behind what they follow in the target, and at the end if nothing that is there follows them."""
    places = {one: at for at, one in enumerate(copied)}
    kept = [places[one] for one in target if one in places]
    if any(one > other for one, other in pairwise(kept)):
        return list(target)
    wanted, there = set(target), set(remote)
    behind: dict[str | None, list[str]] = {None: []}
    anchor: str | None = None
    for one in target:
        if one in there:
            anchor = one
            behind[one] = []
        else:
            behind[anchor].append(one)
    last = behind[anchor]
    behind[anchor] = []
    ordered = list(behind[None])
    for one in remote:
        if one in wanted:
            ordered.append(one)
            ordered += behind[one]
    return ordered + last


def with_unseen(target: Sequence[str], remote: Sequence[str], seen: AbstractSet[str]) -> list[str]:
    """The target, and in their places the items of ``remote`` that the caller had not seen.

    Each stays behind what it stands behind. Where that goes, it stands behind the first item that
    is new there: a summary comes before what it does not sum up."""
    wanted, there = set(target), set(remote)
    behind: dict[str | None, list[str]] = {}
    behind_new: dict[str | None, list[str]] = {}
    anchor: str | None = None
    follows = True  # does the next item stand behind the anchor itself, now that others go?
    for one in remote:
        if one in wanted:
            anchor, follows = one, True
        elif one in seen:
            follows = False
        else:
            (behind if follows else behind_new).setdefault(anchor, []).append(one)
    merged = list(behind.get(None, ()))
    anchor = None
    for one in target:
        if one in there:
            merged += behind_new.pop(anchor, ())
            anchor = one
            merged.append(one)
            merged += behind.get(one, ())
        else:
            merged.append(one)
            merged += behind_new.pop(anchor, ())
    merged += behind_new.pop(anchor, ())
    return merged
