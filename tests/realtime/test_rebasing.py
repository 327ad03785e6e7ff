"""A target from an earlier session means the same in the next one."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from lockstitch.realtime.limits import MOST_NAMES_REMEMBERED
from lockstitch.realtime.rebasing import current, rebased, rename
from tests.generated import examples

IDS = [f"i{n}" for n in range(8)]
orders = st.lists(st.sampled_from(IDS), unique=True)


def wires(ids, **fields):
    return [{"id": one, **fields} for one in ids]


def ids_of(items):
    return [wire["id"] for wire in items]


@given(target=orders, seen=orders, now=orders)
@settings(max_examples=examples(300), deadline=None)
def test_nothing_unseen_goes_and_nothing_that_went_comes_back(target, seen, now):
    result = ids_of(rebased(wires(target), wires(seen), {*seen}, wires(now), {}))
    assert len(result) == len(set(result))
    unseen = [one for one in now if one not in seen and one not in target]
    assert set(unseen) <= set(result)
    meant = [one for one in target if one in now or one not in seen]
    assert [one for one in result if one not in unseen] == meant
    # What the caller has not seen stands behind what it stood behind.
    for before, one in pairwise(now):
        if one in unseen and before in result:
            at = result.index(one)
            assert result[at - 1] == before


def test_an_item_is_meant_by_the_id_that_it_had():
    names = {"a": "b", "b": "c"}
    assert current("a", names) == "c"
    now, seen = wires(["c", "d"]), wires(["a", "d"])
    assert rebased(wires(["a"], text="new"), seen, {"a", "d"}, now, names) == [
        {"id": "c", "text": "new"}
    ]


def test_what_the_caller_has_not_changed_is_as_it_is_now():
    seen, now = wires(["a", "b"], text="old"), wires(["c", "b"], text="new")
    assert rebased(seen, seen, {"a", "b"}, now, {"a": "c"}) == now


def test_what_the_caller_cannot_have_decided_about_is_as_it_is_now_or_gone():
    seen, now = wires(["a", "b"], text="half"), wires(["a"], text="whole")
    assert rebased(wires(["a", "b"], text="other"), seen, set(), now, {}) == now
    assert rebased([], seen, set(), now, {}) == now


def test_an_item_that_is_named_by_both_its_ids_is_there_once():
    seen = [*wires(["a"], text="old"), *wires(["b"], text="new")]
    assert rebased(seen, seen, {"a", "b"}, wires(["b"], text="new"), {"a": "b"}) == [seen[1]]


@given(st.lists(st.permutations(IDS).map(lambda order: order[:2])))
@settings(max_examples=examples(200), deadline=None)
def test_whatever_takes_the_place_of_what_the_newest_is_found(replaced):
    names = {}
    for name, copy in replaced:
        rename(names, {name: copy})
        assert current(name, names) == copy
        assert current(copy, names) == copy
    for one in IDS:
        assert current(one, names) not in names


def test_names_are_remembered_up_to_the_limit_and_the_oldest_are_forgotten():
    names = {}
    for number in range(MOST_NAMES_REMEMBERED + 10):
        rename(names, {f"a{number}": f"b{number}"})
    assert len(names) == MOST_NAMES_REMEMBERED
    assert current("a9", names) == "a9"
    assert current("a10", names) == "b10"
