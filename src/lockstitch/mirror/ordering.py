"""Which items can stay where they are: the longest run of them that already is in order.

Ids are unique, so the longest common subsequence of two orders is an increasing one of
positions: O(n log n), and O(n) where only the middle differs or nothing does."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence


def staying(positions: Sequence[int]) -> set[int]:
    """Indexes into ``positions`` (all different) of a longest increasing subsequence."""
    size = len(positions)
    if all(positions[at] < positions[at + 1] for at in range(size - 1)):
        return set(range(size))
    ranked = sorted(positions)
    first, end = 0, size
    while positions[first] == ranked[first]:
        first += 1
    while positions[end - 1] == ranked[end - 1]:
        end -= 1
    kept = set(range(first)) | set(range(end, size))
    smallest: list[int] = []  # the smallest last position of a run of each length
    holders: list[int] = []
    previous: dict[int, int] = {}
    for at in range(first, end):
        length = bisect_left(smallest, positions[at])
        if length == len(smallest):
            smallest.append(positions[at])
            holders.append(at)
        else:
            smallest[length] = positions[at]
            holders[length] = at
        if length:
            previous[at] = holders[length - 1]
    at = holders[-1]
    while True:
        kept.add(at)
        if at not in previous:
            return kept
        at = previous[at]
