"""Which items can stay where they are: the longest run of them that already is in order.

Ids are unique, so the longest common subsequence of two orders is an increasing one of
positions: O(n log n), and O(n) where they are in order."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import islice
from operator import lt


def staying(positions: Sequence[int]) -> set[int]:
    """Those of ``positions`` (all different) that are a longest increasing subsequence."""
    if all(map(lt, positions, islice(positions, 1, None))):
        return set(positions)
    smallest: list[int] = []  # the smallest last position of a run of each length
    before: dict[int, int] = {}  # the position in front of each, in its run
    for position in positions:
        length = bisect_left(smallest, position)
        if length:
            before[position] = smallest[length - 1]
        if length == len(smallest):
            smallest.append(position)
        else:
            smallest[length] = position
    last: int | None = smallest[-1]
    kept: set[int] = set()
    while last is not None:
        kept.add(last)
        last = before.get(last)
    return kept
