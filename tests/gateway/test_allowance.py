"""The allowance of a key: never more than it may, and never refused without a reason."""

from __future__ import annotations

from itertools import count, pairwise

from hypothesis import given
from hypothesis import strategies as st

from lockstitch.gateway.access.allowance import Allowance, Exhausted
from lockstitch.gateway.config import Key


def key(**limits):
    return Key(name="anna", hash="", **limits)


def running(allowance, one):
    """How many requests of a key are under way: with one place more, it may begin another."""
    places = (Key(name=one.name, hash="", concurrent=most) for most in count(1))
    found = next(key.concurrent - 1 for key in places if allowance.take(key, 0.0) is None)
    allowance.give_back(one)
    return found


def test_without_limits_everything_is_allowed():
    allowance = Allowance()
    assert all(allowance.take(key(), 0.0) is None for _ in range(1000))


def test_a_minute_at_once_and_then_at_an_even_pace():
    allowance, anna = Allowance(), key(requests_per_minute=30)
    for _ in range(30):
        assert allowance.take(anna, 1000.0) is None
    assert allowance.take(anna, 1000.0) == Exhausted(
        key="anna", of="requests_per_minute", limit=30, retry_after=2.0
    )
    assert allowance.take(anna, 1001.0).retry_after == 1.0
    assert allowance.take(anna, 1002.0) is None
    assert allowance.take(anna, 1002.0) is not None


def test_only_so_many_at_a_time():
    allowance, anna = Allowance(), key(concurrent=2)
    assert allowance.take(anna, 0.0) is None
    assert allowance.take(anna, 0.0) is None
    refused = allowance.take(anna, 0.0)
    assert (refused.of, refused.limit, refused.retry_after) == ("concurrent", 2, 1.0)
    allowance.give_back(anna)
    assert allowance.take(anna, 0.0) is None
    assert running(allowance, anna) == 2


def test_what_is_refused_costs_nothing():
    allowance, anna = Allowance(), key(concurrent=1, requests_per_minute=2)
    assert allowance.take(anna, 0.0) is None
    for _ in range(10):
        assert allowance.take(anna, 0.0).of == "concurrent"
    allowance.give_back(anna)
    assert allowance.take(anna, 0.0) is None


def test_each_key_has_its_own():
    allowance = Allowance()
    anna, bert = key(requests_per_minute=1), Key(name="bert", hash="", requests_per_minute=1)
    assert allowance.take(anna, 0.0) is None
    assert allowance.take(bert, 0.0) is None
    assert allowance.take(anna, 0.0) is not None


def test_new_limits_count_at_once():
    allowance = Allowance()
    for _ in range(3):
        assert allowance.take(key(), 0.0) is None
    assert allowance.take(key(concurrent=3), 0.0).of == "concurrent"
    assert allowance.take(key(concurrent=4), 0.0) is None


def test_a_key_that_is_no_more_is_forgotten_when_nothing_of_it_runs():
    allowance, anna = Allowance(), key(requests_per_minute=1)
    allowance.take(anna, 0.0)
    allowance.keep_only([])
    assert running(allowance, anna) == 1
    allowance.give_back(anna)
    allowance.keep_only([])
    assert allowance.take(anna, 0.0) is None
    allowance.give_back(Key(name="nobody", hash=""))


@given(
    st.integers(1, 200),
    st.lists(st.floats(0, 20, allow_nan=False), max_size=300),
)
def test_never_more_than_the_bucket_and_what_flowed_in(per_minute, waits):
    allowance, anna, now = Allowance(), key(requests_per_minute=per_minute), 0.0
    begun = 0
    for wait in waits:
        now += wait
        refused = allowance.take(anna, now)
        if refused is None:
            begun += 1
            assert begun <= per_minute + now * per_minute / 60 + 1e-6
        else:
            assert 0 < refused.retry_after <= 60 / per_minute + 1e-6
            # Whoever waits as long as it was told is let in.
            now += refused.retry_after + 1e-6
            assert allowance.take(anna, now) is None
            begun += 1


@given(st.lists(st.floats(-1e6, 1e6, allow_nan=False), max_size=50))
def test_a_clock_that_jumps_gives_nothing_away(moments):
    allowance, anna = Allowance(), key(requests_per_minute=1)
    begun = sum(allowance.take(anna, moment) is None for moment in moments)
    forward = sum(max(0.0, b - a) for a, b in pairwise(moments))
    assert begun <= 1 + forward / 60 + 1e-3
