"""Where a conversation may be cut."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lockstitch
from lockstitch.core.arranging import history
from lockstitch.core.compacting import cut_behind
from lockstitch.core.errors import CannotTrim
from lockstitch.core.facts import (
    START,
    CallStarted,
    Ending,
    ItemsRemoved,
    Mode,
    Removal,
    RequestRejected,
)
from lockstitch.ledgers import Ledger, call_settled, item_added
from tests.generated import examples
from tests.played import Play, dialects, plays
from tests.turns import call, ledger_of, output, reasoning, said, send, texts, turn, user


def items(most):
    return [(lambda seq: 1, most)]


def cut(ledger, to):
    """The conversation behind the cut."""
    if to != START:
        ledger.append(ItemsRemoved(by=Removal.COMPACTION, to=to))
    return ledger.history()


def test_what_fits_is_not_cut():
    ledger = ledger_of(user("a"), user("b"))
    assert cut_behind(ledger, items(2)) == START
    assert cut_behind(ledger, []) == START
    assert cut_behind(ledger_of(), items(0)) == START


def test_the_newest_part_that_fits_stays():
    ledger = ledger_of(user("a"), user("b"), user("c"))
    assert texts(cut(ledger, cut_behind(ledger, items(2)))) == ["b", "c"]


def test_where_nothing_fits_everything_goes():
    ledger = ledger_of(user("a"), user("b"))
    assert cut_behind(ledger, items(0)) == ledger.tip


def test_every_limit_is_kept():
    ledger = ledger_of(user("aaaa"), user("b"), user("c"))
    sizes = (lambda seq: len(ledger.wire(seq)["content"]), 2)
    assert cut_behind(ledger, [*items(3), sizes]) == 2
    assert cut_behind(ledger, [*items(1), sizes]) == 3


def test_a_pair_stays_or_goes_whole():
    ledger = ledger_of(user("a"), call(), output(), user("b"))
    assert cut_behind(ledger, items(3)) == 2
    assert cut_behind(ledger, items(2)) == 4
    assert cut_behind(ledger, items(1)) == 4


def test_an_output_that_we_settled_goes_with_its_call():
    ledger = ledger_of(user("a"))
    request = turn(ledger, call())
    ledger.append(call_settled(ledger, ledger.call("call_a"), "ok"))
    ledger.append(item_added(user("b")))
    assert cut_behind(ledger, items(2)) == request
    assert texts(cut(ledger, request)) == ["b"]


def test_an_answer_is_not_cut_in_its_middle():
    ledger = ledger_of(user("a"))
    request = turn(ledger, said("x"), said("y"))
    ledger.append(item_added(user("b")))
    assert cut_behind(ledger, items(2)) == request


def test_reasoning_stays_with_what_it_led_to():
    ledger = ledger_of(user("a"), reasoning(), said("x"), user("b"))
    assert cut_behind(ledger, items(2)) == 4
    assert cut_behind(ledger, items(3)) == 2


def test_a_cut_is_behind_answers_that_never_came_too():
    ledger = ledger_of(user("a"))
    request = send(ledger)
    ledger.append(RequestRejected(request=request))
    ledger.append(item_added(user("b")))
    assert cut_behind(ledger, items(1)) == request


def test_a_call_that_waits_for_its_output_stays_with_all_that_follows():
    ledger = ledger_of(user("a"))
    turn(ledger, call())
    ledger.append(item_added(user("b")))
    assert cut_behind(ledger, items(2)) == 2
    with pytest.raises(CannotTrim) as raised:
        cut_behind(ledger, items(1))
    assert str(raised.value) == (
        "The limits cannot be met: call_a (t) has no output yet, so it and everything after it "
        "must stay. Add its output first, or raise the limits."
    )


def test_a_call_of_a_cut_answer_that_was_started_stays_too():
    ledger = ledger_of(user("a"))
    turn(ledger, call(), ending=Ending.CUT)
    ledger.append(CallStarted(call=ledger.call("call_a").seq))
    assert cut_behind(ledger, items(1)) == 2


def test_another_tip_is_cut_on_its_own_path():
    ledger = ledger_of(user("a"), user("b"))
    ledger.append(item_added(user("c"), after=START))
    assert cut_behind(ledger, items(1), tip=3) == 2
    assert cut_behind(ledger, items(1)) == START


@settings(max_examples=examples(150))
@given(dialects, plays, st.sampled_from([Mode.FULL, Mode.CHAIN]), st.integers(0, 9))
def test_a_cut_never_splits_a_pair_and_leaves_an_end_that_fits(dialect, moves, mode, most):
    ledger = Play(dialect, mode).all(moves).ledger
    whole = history(ledger)
    found = set(map(str, lockstitch.check(ledger.history(), dialect=dialect)))
    try:
        to = cut_behind(ledger, items(most))
    except CannotTrim:
        assert ledger.unsettled()
        return
    waiting = ledger.unsettled()
    cut(ledger, to)
    left = history(ledger)
    assert left == (whole if to == START else whole[len(whole) - len(left) :])
    assert len(left) <= most or to == START
    assert ledger.unsettled() == waiting
    if not found:
        assert lockstitch.check(ledger.history(), dialect=dialect) == []


@settings(max_examples=examples(80))
@given(plays, st.integers(0, 9))
def test_a_larger_limit_never_leaves_less(moves, most):
    ledger = Play("responses").all(moves).ledger
    left = []
    for limit in (most, most + 1):
        try:
            to = cut_behind(ledger, items(limit))
        except CannotTrim:
            return
        left.append(len(cut(Ledger.rebuilt(ledger.facts), to)))
    assert left[0] <= left[1]
