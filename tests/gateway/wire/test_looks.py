"""A busy loop looks seldom, an idle one at once; one that is always at work never rests."""

from __future__ import annotations

import asyncio
import time

from hypothesis import given, settings
from hypothesis import strategies as st

from lockstitch.gateway.wire.looks import FREE_LOOKS, PERIOD_SECONDS, Looks, looks_here
from tests.generated import examples

SOON = PERIOD_SECONDS / 50


def rests(between: list[float]) -> list[float]:
    """How long a loop rests after each look; each comes so long after the rest before it."""
    looks, now, rested = Looks(), 1_000.0, []
    for seconds in between:
        now += seconds
        rest = looks.rest_seconds(now)
        now += rest
        rested.append(rest)
    return rested


@settings(max_examples=examples(100))
@given(st.lists(st.floats(0, 0.1), max_size=200))
def test_an_event_waits_for_others_no_longer_than_the_period(between):
    assert all(0 <= rest <= PERIOD_SECONDS * 1.001 for rest in rests(between))


def test_a_few_looks_in_a_row_are_free():
    assert not any(rests([SOON] * FREE_LOOKS))


def test_looks_that_are_far_between_are_free_for_ever():
    assert not any(rests([PERIOD_SECONDS * 1.01] * 1_000))


def test_under_load_there_is_one_look_in_a_period():
    rested = rests([SOON] * 1_000)
    assert all(abs(rest - (PERIOD_SECONDS - SOON)) < 1e-6 for rest in rested[2 * FREE_LOOKS :])


def test_a_loop_that_was_idle_has_its_free_looks_again():
    rested = rests([SOON] * 100 + [FREE_LOOKS * PERIOD_SECONDS] + [SOON] * (FREE_LOOKS - 1))
    assert not any(rested[100:])


def test_the_first_word_of_a_turn_alone_is_a_look():
    async def main():
        looks = looks_here()
        assert looks is looks_here()
        began = time.monotonic()
        for _ in range(FREE_LOOKS * 5):
            assert not looks.looked
            looks.look(asyncio.get_running_loop())
            assert looks.looked
            await asyncio.sleep(0)
        assert time.monotonic() - began >= FREE_LOOKS * 3 * PERIOD_SECONDS

    asyncio.run(main())
