"""Trimming: a cut never parts what belongs together."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lockstitch.core import families
from lockstitch.core.families import FUNCTION, LOCAL_SHELL, PROGRAM, TOOL_SEARCH
from lockstitch.core.items import Item, Part
from lockstitch.core.trimming import cut_points, newest
from tests.core.built import pair
from tests.generated import examples
from tests.timing import least_seconds

USER = Item(Part.INPUT)
SAID = Item(Part.MODEL)
REFERENCE = Item(Part.REFERENCE)
THOUGHT = Item(Part.REASONING, id="rs_1")


def call(key="a", family=FUNCTION, **more):
    return Item(Part.CALL, family, key, **more)


def output(key="a", family=FUNCTION, **more):
    return Item(Part.OUTPUT, family, key, **more)


def cuts(*items):
    """The positions where a history with one core item at each may begin."""
    return [at for at, may in enumerate(cut_points([[item] for item in items])) if may]


# --- where a cut may be ------------------------------------------------------------------------


def test_words_may_be_cut_anywhere():
    assert cuts(USER, SAID, USER) == [0, 1, 2, 3]


def test_everything_and_nothing_are_always_legal():
    for items in ([], [call("a")], [output("a")], [call("a"), USER, output("a")]):
        points = cut_points([[item] for item in items])
        assert points[0]
        assert points[-1]
        assert len(points) == len(items) + 1


@pytest.mark.parametrize("family", families.ALL_FAMILIES, ids=lambda f: f.name)
def test_a_pair_is_never_cut_in_two(family):
    assert cuts(USER, call("a", family), output("a", family), USER) == [0, 1, 3, 4]


def test_a_pair_is_never_cut_in_two_however_far_apart():
    assert cuts(call("a"), USER, SAID, USER, output("a"), USER) == [0, 5, 6]


def test_calls_made_at_once_stay_together_with_all_their_outputs():
    assert cuts(USER, call("a"), call("b"), output("a"), output("b"), USER) == [0, 1, 5, 6]


def test_reasoning_stays_with_what_it_led_to():
    assert cuts(USER, THOUGHT, SAID, USER) == [0, 1, 3, 4]
    assert cuts(USER, THOUGHT, call("a"), output("a"), USER) == [0, 1, 4, 5]
    assert cuts(USER, THOUGHT, THOUGHT, call("a"), output("a")) == [0, 1, 5]


def test_reasoning_inside_a_group_stays_with_the_group():
    assert cuts(THOUGHT, call("a"), THOUGHT, call("b"), output("a"), output("b")) == [0, 6]


def test_an_id_used_again_in_a_later_round_does_not_tie_the_rounds():
    assert cuts(call("a"), output("a"), USER, call("a"), output("a")) == [0, 2, 3, 5]


def test_a_broken_pair_is_left_as_broken_as_it_was():
    # Parting the two outputs would make an orphan of the second.
    assert cuts(call("a"), output("a"), USER, output("a"), USER) == [0, 4, 5]
    # Parting the two calls would leave an id used once where the whole says twice.
    assert cuts(call("a"), call("a"), output("a"), output("a"), USER) == [0, 4, 5]


def test_an_output_stays_with_the_reference_that_may_hold_its_call():
    assert cuts(USER, REFERENCE, USER, output("a"), USER) == [0, 1, 4, 5]


def test_a_local_shell_call_stays_with_either_of_its_answers():
    shell = call("a", LOCAL_SHELL, alias="lsh_1")
    assert cuts(USER, shell, USER, output("lsh_1", LOCAL_SHELL), USER) == [0, 1, 4, 5]
    assert cuts(USER, shell, USER, output("a", FUNCTION), USER) == [0, 1, 4, 5]


def test_the_calls_inside_a_program_stay_with_it():
    assert cuts(USER, call("p", PROGRAM), call("a"), output("a"), output("p", PROGRAM), USER) == [
        0,
        1,
        5,
        6,
    ]


def test_searches_that_the_server_ran_are_cut_between():
    searched = [call(None, TOOL_SEARCH, lone=True), output(None, TOOL_SEARCH, lone=True)]
    assert cuts(*searched, USER, *searched, USER) == [0, 2, 3, 5, 6]


@pytest.mark.parametrize("part", [Part.CALL, Part.OUTPUT])
def test_items_that_may_stand_alone_tie_nothing_together(part):
    # "with `execution: "server"` it may stand alone"
    alone = Item(part, TOOL_SEARCH, lone=True)
    assert 2 in cuts(alone, USER, USER, alone, USER)


def named(part, key=None):
    """A call or an output of a dialect that joins them by name where one of them has no id."""
    alias = None if key is None else "f"
    return Item(part, families.GEMINI_FUNCTION, key or "f", alias, name="f")


@pytest.mark.parametrize("key", [None, "1"])
@pytest.mark.parametrize("other", [None, "1"])
def test_a_pair_that_a_name_joins_is_never_cut_in_two(key, other):
    joined = [named(Part.CALL, key), named(Part.OUTPUT, other)]
    assert cuts(USER, *joined, USER) == [0, 1, 3, 4]


@pytest.mark.parametrize("keys", [("1", None, "3"), ("3", None, "1"), (None, None, "3")])
def test_outputs_with_and_without_ids_end_the_calls_that_they_answer(keys):
    calls = [named(Part.CALL, "1"), named(Part.CALL), named(Part.CALL, "3")]
    answers = [named(Part.OUTPUT, key) for key in keys]
    assert cuts(*calls, *answers, USER) == [0, 6, 7]


def test_a_call_left_open_is_not_tied_to_a_later_call_of_its_tool():
    joined = [named(Part.CALL), named(Part.OUTPUT)]
    assert cuts(named(Part.CALL), USER, *joined, USER, *joined) == [0, 1, 2, 4, 5, 7]
    assert cuts(named(Part.CALL, "1"), USER, *joined) == [0, 1, 2, 4]


def test_two_keys_of_a_call_keep_their_queues_in_order():
    first = call("k", LOCAL_SHELL, alias="k2")
    second = call("k", LOCAL_SHELL, alias="k3")
    answers = [output("k", LOCAL_SHELL), output("k3", LOCAL_SHELL)]
    assert cuts(first, second, *answers, USER) == [0, 4, 5]


def test_items_of_one_position_are_never_parted():
    # One message with two calls, then one with both outputs.
    points = cut_points([[USER], [call("a"), call("b")], [output("a"), output("b")], [USER]])
    assert points == [True, True, False, True, True]


# --- the newest part that fits -----------------------------------------------------------------


def test_the_newest_part_that_fits_begins_at_a_legal_cut():
    allowed = [True, False, False, True, True, True]
    assert newest(allowed, [(lambda at: 1, 4)]) == 3
    assert newest(allowed, [(lambda at: 1, 5)]) == 0
    assert newest(allowed, [(lambda at: 1, 1)]) == 4


def test_without_limits_everything_stays():
    assert newest([True, False, True], []) == 0


def test_nothing_is_left_where_nothing_fits():
    assert newest([True, False, True], [(lambda at: 1, 1)]) == 2


def test_the_tightest_of_several_limits_counts():
    allowed = [True] * 6
    costs = [100, 1, 1, 1, 1]
    assert newest(allowed, [(lambda at: 1, 4), (lambda at: costs[at], 2)]) == 3
    assert newest(allowed, [(lambda at: 1, 3), (lambda at: costs[at], 104)]) == 2


def test_leading_items_are_counted_and_never_part_of_the_cut():
    allowed = [True] * 7
    assert newest(allowed, [(lambda at: 1, 4)], leading=2) == 4
    assert newest(allowed, [(lambda at: 1, 6)], leading=2) == 2


def test_a_limit_that_is_met_exactly_is_met():
    assert newest([True] * 4, [(lambda at: 10, 30)]) == 0
    assert newest([True] * 4, [(lambda at: 10, 29)]) == 1


# --- properties --------------------------------------------------------------------------------


@st.composite
def whole_histories(draw):
    """Rounds as models make them: reasoning, calls at once, then their outputs in any order."""
    history: list[Item] = []
    for n in range(draw(st.integers(1, 5))):
        if draw(st.booleans()):
            history.append(USER)
        if draw(st.booleans()):
            history.append(Item(Part.REASONING, id=f"rs_{n}"))
            if draw(st.booleans()):
                history.append(SAID)
                continue
            history.append(call(f"{n}_0"))
            keys = [f"{n}_0"]
        else:
            keys = []
        more = [f"{n}_{k}" for k in range(1, draw(st.integers(1, 4)))]
        history += [call(key) for key in more]
        for key in draw(st.permutations([*keys, *more])):
            history.append(output(key))
            if draw(st.integers(0, 5)) == 0:
                history.append(USER)
    return history


@settings(max_examples=examples(100))
@given(whole_histories())
def test_whatever_a_cut_leaves_is_whole(history):
    assert pair([(item, at) for at, item in enumerate(history)]) == []
    for at in cuts(*history):
        left = [(item, n) for n, item in enumerate(history[at:])]
        assert pair(left) == []


@settings(max_examples=examples(100))
@given(whole_histories())
def test_a_cut_never_parts_a_pair_a_group_or_reasoning(history):
    legal = set(cuts(*history))
    calls = {item.key: at for at, item in enumerate(history) if item.part is Part.CALL}
    for at, item in enumerate(history):
        if item.part is Part.OUTPUT:
            assert not legal & set(range(calls[item.key] + 1, at + 1))
        if at and item.part in (Part.CALL, Part.MODEL):
            before = history[at - 1].part
            assert not (before is Part.REASONING and at in legal)
            assert not (before is Part.CALL and item.part is Part.CALL and at in legal)


@settings(max_examples=examples(100))
@given(whole_histories())
def test_between_two_whole_rounds_there_is_always_a_cut(history):
    legal = set(cuts(*history))
    for at, item in enumerate(history):
        open_before = {i.key for i in history[:at] if i.part is Part.CALL} - {
            i.key for i in history[:at] if i.part is Part.OUTPUT
        }
        if item.part is Part.INPUT and not open_before:
            assert at in legal


@settings(max_examples=examples(100))
@given(whole_histories(), st.integers(0, 20))
def test_the_newest_part_is_the_largest_that_fits(history, most):
    allowed = cut_points([[item] for item in history])
    first = newest(allowed, [(lambda at: 1, most)])
    assert allowed[first]
    fitting = [at for at, may in enumerate(allowed) if may and len(history) - at <= most]
    assert first == min(fitting)


TOOL = families.GEMINI_FUNCTION


def answered_backwards(n):
    """Calls with ids and one name; the outputs come in the other order."""
    calls = [Item(Part.CALL, TOOL, f"c{k}", "t", name="t") for k in range(n)]
    return [*calls, *(Item(Part.OUTPUT, TOOL, one.key, "t", name="t") for one in reversed(calls))]


def answered_by_name(n):
    """Calls with ids before as many without, which are answered."""
    calls = [Item(Part.CALL, TOOL, f"c{k}", "t", name="t") for k in range(n)]
    named = [Item(Part.CALL, TOOL, "t", name="t")] * n
    return [*calls, *named, *([Item(Part.OUTPUT, TOOL, "t", name="t")] * n)]


@pytest.mark.parametrize("history", [answered_backwards, answered_by_name])
def test_ten_times_the_calls_of_one_name_cost_about_ten_times_as_much(history):
    def seconds(count):
        items = [[item] for item in history(count)]
        return least_seconds(lambda: cut_points(items))

    assert seconds(8_000) < 30 * seconds(800)
