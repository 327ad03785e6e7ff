"""Which items can stay where they are: both ends that two orders have in common, and in between
the longest run of items that already is in order.

Ids are unique, so the longest common subsequence of two orders is an increasing one of
positions: O(n log n), and O(n) where they are in order."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import islice
from operator import lt
from typing import Any, Final

_BLOCKS: Final = (512, 64, 8)
"""So many are compared at once: a list finds an object that is the same on both sides at once. One
after the other only in the last block, which has a difference."""


def ends_in_common(some: Sequence[Any], others: Sequence[Any]) -> tuple[int, int]:
    """How many are equal at the start, and how many of the others at the end."""
    first = run_in_common(some, others)
    rest = min(len(some), len(others)) - first
    if not rest:
        return first, 0
    return first, run_in_common(some[-1 : -rest - 1 : -1], others[-1 : -rest - 1 : -1])


def run_in_common(some: Sequence[Any], others: Sequence[Any]) -> int:
    """How many are equal at the start. Both are of one kind: two lists, say."""
    at, most = 0, min(len(some), len(others))
    for block in _BLOCKS:
        while at < most:
            end = min(at + block, most)
            if some[at:end] != others[at:end]:
                break
            at = end
    while at < most and (some[at] is others[at] or some[at] == others[at]):
        at += 1
    return at


def longest_run(positions: Sequence[int]) -> set[int]:
    """Those of ``positions`` that are a longest increasing subsequence. All are different, and
    none is below 0."""
    if all(map(lt, positions, islice(positions, 1, None))):
        return set(positions)
    smallest = [-1]  # the smallest last position of a run of each length
    before = [-1] * (max(positions) + 1)  # the position in front of each, in its run
    length, lengths = 0, 1
    for position in positions:
        follows = smallest[length] < position
        if follows and (length + 1 == lengths or position < smallest[length + 1]):
            length += 1  # as the one before it: items are moved in blocks
        else:
            length = bisect_left(smallest, position)
        before[position] = smallest[length - 1]
        if length == lengths:
            smallest.append(position)
            lengths += 1
        else:
            smallest[length] = position
    kept: set[int] = set()
    last = smallest[-1]
    while last != -1:
        kept.add(last)
        last = before[last]
    return kept
