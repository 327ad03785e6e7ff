"""The longest run that is in order stays; everything else is as few moves as can be."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lockstitch.mirror.ordering import ends_in_common, longest_run, run_in_common
from tests.generated import examples


@given(st.permutations(range(7)))
def test_the_longest_run_in_order_stays(positions):
    kept = longest_run(positions)
    run = [position for position in positions if position in kept]
    assert run == sorted(kept)
    longest = max(
        size
        for size in range(1, 8)
        if any(list(some) == sorted(some) for some in combinations(positions, size))
    )
    assert len(run) == longest


def test_nothing_stays_of_nothing():
    assert longest_run([]) == set()
    assert longest_run([5]) == {5}


@given(st.lists(st.integers(min_value=0, max_value=500), unique=True, max_size=60))
def test_what_stays_is_increasing(positions):
    kept = longest_run(positions)
    assert [position for position in positions if position in kept] == sorted(kept)


@pytest.mark.parametrize("size", [1, 7, 8, 9, 63, 64, 65, 511, 512, 513, 1500])
def test_the_first_difference_is_found_wherever_it_is(size):
    some = list(range(size))
    assert run_in_common(some, some[:]) == run_in_common(some, [*some, 0]) == size
    for at in some:
        others = some.copy()
        others[at] = -1
        assert run_in_common(some, others) == at


@given(
    st.lists(st.integers(0, 1), max_size=200), st.lists(st.integers(0, 1), max_size=3), st.data()
)
@settings(max_examples=examples(200))
def test_the_ends_in_common_are_as_long_as_they_can_be_and_do_not_overlap(some, put, data):
    at = data.draw(st.integers(0, len(some)))
    others = some[:at] + put + some[at + data.draw(st.integers(0, 3)) :]
    first, end = ends_in_common(some, others)
    shorter = min(len(some), len(others))
    assert first + end <= shorter
    assert some[:first] == others[:first]
    assert some[len(some) - end :] == others[len(others) - end :]
    if first < shorter:
        assert some[first] != others[first]
    if first + end < shorter:
        assert some[-end - 1] != others[-end - 1]
