"""What the soak calls a leak, and what it does not."""

from __future__ import annotations

import random

from soak.leaks import FILLING_TURNS, Growth, Taken
from soak.processes import Usage


def samples(*, files_per_minute=0.0, mib_per_minute=0.0, turns=FILLING_TURNS):
    """Five minutes of a gateway whose clients come and go."""
    chance = random.Random(7)
    for second in range(0, 300, 5):
        files = 280 + round(second / 60 * files_per_minute)
        if second > 150:  # a machine that is busier from then on
            files += chance.choice((0, 0, 3, 100))
        mib = 110 + second / 60 * mib_per_minute + chance.choice((0, 0, 1, 20))
        yield Taken(second, Usage(round(mib * 2**20), files, 6, 0.0), 0, turns)


def problems(**growing):
    return list(Growth.of([*samples(**growing)]).problems())


def test_clients_that_come_and_go_are_no_leak():
    assert problems() == []


def test_what_grows_with_every_minute_is_a_leak():
    assert "open files grow" in problems(files_per_minute=10)[0]
    assert "memory grows" in problems(mib_per_minute=4)[0]


def test_memory_may_grow_by_so_much_while_it_fills_on_purpose():
    filling = {"turns": FILLING_TURNS - 1}
    assert problems(mib_per_minute=4, **filling) == []
    assert "memory grows from" in problems(mib_per_minute=15, **filling)[0]
