"""The longest run that is in order stays; everything else is as few moves as can be."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from lockstitch.mirror.ordering import staying


@given(st.permutations(range(7)))
def test_the_longest_run_in_order_stays(positions):
    kept = sorted(staying(positions))
    run = [positions[at] for at in kept]
    assert run == sorted(run)
    longest = max(
        size
        for size in range(1, 8)
        if any(list(some) == sorted(some) for some in combinations(positions, size))
    )
    assert len(run) == longest


def test_nothing_stays_of_nothing():
    assert staying([]) == set()
    assert staying([5]) == {0}


@given(st.lists(st.integers(), unique=True, max_size=60))
def test_what_stays_is_increasing(positions):
    kept = [positions[at] for at in sorted(staying(positions))]
    assert kept == sorted(kept)
