"""One allowance for several workers is the allowance of one process, seen from several."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from lockstitch.gateway.access.allowance import Allowance
from lockstitch.gateway.config import Key
from lockstitch.gateway.running import shared_allowance
from lockstitch.gateway.running.shared_allowance import SharedAllowance, allowance_here
from tests.gateway.test_allowance import running

WORKERS = 3
KEYS = [
    Key(name="anna", hash="", requests_per_minute=5, concurrent=3),
    Key(name="bert", hash="", requests_per_minute=2),
    Key(name="carl", hash=""),
]
STEPS = st.tuples(
    st.sampled_from(["take", "take", "give back"]),
    st.integers(0, WORKERS - 1),
    st.sampled_from(KEYS),
    st.floats(0, 30),
)


@settings(max_examples=50)
@given(st.lists(STEPS, max_size=40))
def test_several_workers_decide_as_one_would(tmp_path_factory, steps):
    path = str(tmp_path_factory.mktemp("shared") / "allowance")
    workers = [SharedAllowance(path, place=place, workers=WORKERS) for place in range(WORKERS)]
    alone, now, has = Allowance(), 1000.0, []
    for what, place, key, wait in steps:
        now += wait
        if what == "take":
            decided = workers[place].take(key, now)
            assert decided == alone.take(key, now)
            if decided is None:
                has.append((place, key))
        elif (place, key) in has:
            has.remove((place, key))
            workers[place].give_back(key)
            alone.give_back(key)
        assert running(workers[place], key) == running(alone, key)
    workers[0].forget_worker(1)
    for key in KEYS:
        left = [one for one in has if one[1] is key and one[0] != 1]
        assert running(workers[2], key) == len(left)
    for worker in workers:
        worker.close()


def test_where_there_is_no_room_it_counts_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(shared_allowance, "SLOTS", 1)
    allowance = SharedAllowance(str(tmp_path / "allowance"), place=0, workers=1)
    first = Key(name="first", hash="", concurrent=1)
    second = Key(name="second", hash="", concurrent=1)
    for key in (first, second):
        assert allowance.take(key, 0.0) is None
        assert allowance.take(key, 0.0) is not None
        allowance.give_back(key)
        assert running(allowance, key) == 0
    allowance.keep_only([])
    allowance.close()


def test_one_process_has_its_own(tmp_path):
    assert type(allowance_here({})) is Allowance
    variables = {"LOCKSTITCH_ALLOWANCE_FILE": str(tmp_path / "a"), "LOCKSTITCH_WORKER": "1/2"}
    shared = allowance_here(variables)
    assert isinstance(shared, SharedAllowance)
    shared.close()
