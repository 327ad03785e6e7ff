"""A moment is held while a snapshot of it lives."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lockstitch.mirror.moments import FEWEST_TO_SWEEP, Moments


def test_a_moment_is_over_when_nobody_holds_it():
    moments = Moments()
    moment = moments.hold(5)
    assert moments.any_in(5, 6)
    assert not moments.any_in(0, 5)
    assert not moments.any_in(6, 9)
    del moment
    assert not moments.any_in(5, 6)


def test_snapshots_of_one_version_share_their_moment():
    moments = Moments()
    one, other = moments.hold(6), moments.hold(6)
    assert one is other
    del one
    assert moments.any_in(6, 7)


def test_moments_that_are_over_are_swept_away():
    moments = Moments()
    held = moments.hold(0)
    for version in range(1, 10_000):
        moments.hold(version)
    assert len(moments._held) <= 2 * FEWEST_TO_SWEEP
    assert moments.any_in(held.version, 1)


@given(st.lists(st.booleans(), max_size=200), st.integers(0, 200), st.integers(0, 200))
def test_it_tells_what_is_held_between_any_two(kept, since, until):
    moments = Moments()
    made = [moments.hold(version) for version in range(len(kept))]
    held = [moment for moment, keep in zip(made, kept, strict=True) if keep]
    made.clear()
    expected = any(since <= moment.version < until for moment in held)
    assert moments.any_in(since, until) == expected
