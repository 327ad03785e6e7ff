"""How long is waited before a retry."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lockstitch.runner.backoff import delay
from lockstitch.runner.limits import FIRST_DELAY_SECONDS, LONGEST_DELAY_SECONDS
from tests.generated import examples

chances = st.floats(0, 1, exclude_max=True)


@settings(max_examples=examples(100), deadline=None)
@given(attempt=st.integers(1, 10**9), chance=chances)
def test_it_grows_to_a_bound_and_half_of_it_is_chance(attempt, chance):
    waited = delay(attempt, None, lambda: chance)
    longest = min(FIRST_DELAY_SECONDS * 2 ** min(attempt - 1, 100), LONGEST_DELAY_SECONDS)
    assert longest / 2 <= waited <= longest


@pytest.mark.parametrize(
    ("asked", "waited"),
    [
        (2.5, 2.5),
        (0, 0),
        (-1, 0),
        (10**9, LONGEST_DELAY_SECONDS),
        (math.inf, LONGEST_DELAY_SECONDS),
        (math.nan, 0),
    ],
)
def test_a_provider_may_ask_for_a_wait_within_bounds(asked, waited):
    assert delay(1, asked, lambda: 0.5) == waited
