"""A new chain: the oldest part of a conversation goes, and nothing is torn apart."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lockstitch
from lockstitch.core.continuation import Replay, Why
from lockstitch.core.errors import CannotTrim, NotAnItem
from lockstitch.core.facts import By, ItemsRemoved, Mode, Removal, ResponseEnded, ResponseOpened
from lockstitch.ledgers import Ledger, call_settled, compacted, item_added
from tests.generated import examples
from tests.played import Play, dialects, plays
from tests.turns import call, ledger_of, said, send, texts, turn, user


def test_without_limits_everything_goes_and_the_summary_stays():
    ledger = ledger_of(user("a"))
    turn(ledger, said("x"))
    facts = compacted(ledger, replaced=[user("sum"), user("mary")])
    assert [fact.by for fact in facts] == [By.REWRITE, By.REWRITE, Removal.COMPACTION]
    ledger.extend(facts)
    assert texts(ledger.history()) == ["sum", "mary"]
    plan = ledger.plan()
    assert isinstance(plan, Replay)
    assert plan.why is Why.COMPACTED


def test_what_fits_gives_no_facts():
    ledger = ledger_of(user("a"), user("b"))
    size = sum(len(ledger.item(seq)) for seq in (2, 3))
    assert compacted(ledger, max_items=2) == []
    assert compacted(ledger, max_bytes=size) == []
    assert compacted(ledger, max_bytes=size - 1) == [ItemsRemoved(by=Removal.COMPACTION, to=2)]
    assert compacted(Ledger()) == []


def test_every_limit_counts():
    ledger = ledger_of(user("a" * 1000), user("b"), user("c"))
    ledger.extend(compacted(ledger, max_items=3, max_bytes=200))
    assert texts(ledger.history()) == ["b", "c"]


def test_compacting_changes_nothing_by_itself():
    ledger = ledger_of(user("a"))
    before = ledger.state()
    compacted(ledger, replaced=[user("sum")])
    assert ledger.state() == before


@pytest.mark.parametrize("limits", [{}, {"max_items": 0}, {"max_bytes": 5}])
def test_a_call_that_waits_for_its_output_cannot_go(limits):
    ledger = ledger_of(user("a"))
    turn(ledger, call())
    with pytest.raises(CannotTrim, match=r"call_a \(t\)"):
        compacted(ledger, **limits)


def test_what_is_before_a_waiting_call_may_go():
    ledger = ledger_of(user("a"))
    turn(ledger, call())
    ledger.extend(compacted(ledger, max_items=1))
    assert [wire["type"] for wire in ledger.history()] == ["function_call"]
    ledger.append(call_settled(ledger, ledger.call("call_a"), "ok"))
    assert [wire["type"] for wire in ledger.items(ledger.plan())] == [
        "function_call",
        "function_call_output",
    ]


@pytest.mark.parametrize("answering", [False, True])
def test_while_an_answer_may_come_nothing_goes(answering):
    ledger = ledger_of(user("a"))
    request = send(ledger)
    if answering:
        ledger.append(ResponseOpened(request=request, id="resp_1"))
    with pytest.raises(CannotTrim, match=f"Request {request} is "):
        compacted(ledger)


def test_once_the_answer_ended_it_can_go():
    ledger = ledger_of(user("a"))
    request = send(ledger)
    ledger.append(ResponseOpened(request=request, id="resp_1"))
    ledger.append(ResponseEnded(request=request))
    ledger.extend(compacted(ledger))
    assert ledger.history() == []


def test_a_summary_must_be_items():
    with pytest.raises(NotAnItem):
        compacted(ledger_of(user()), replaced=[{"x": object()}])


@pytest.mark.parametrize("limits", [{}, {"max_items": 0}, {"max_bytes": 1}])
def test_everything_goes_also_behind_an_earlier_compaction(limits):
    ledger = ledger_of(user("a"), user("b"), user("c"))
    ledger.extend(compacted(ledger, max_items=2, replaced=[user("sum")]))
    ledger.extend(compacted(ledger, **limits))
    assert ledger.history() == []


def test_compactions_follow_one_another():
    ledger = ledger_of()
    for text in "abcdefgh":
        ledger.append(item_added(user(text)))
        ledger.extend(compacted(ledger, max_items=3))
    assert texts(ledger.history()) == ["f", "g", "h"]


def test_every_compaction_puts_its_own_summary_in_place_of_the_last():
    ledger = ledger_of()
    seen = []
    for n, text in enumerate("abcdef"):
        ledger.append(item_added(user(text)))
        ledger.extend(compacted(ledger, max_items=3, replaced=[user(f"sum {n}")]))
        seen.append(texts(ledger.history()))
    assert seen == [
        ["a"],
        ["a", "b"],
        ["a", "b", "c"],
        ["sum 3", "b", "c", "d"],
        ["sum 4", "c", "d", "e"],
        ["sum 5", "d", "e", "f"],
    ]


@settings(max_examples=examples(100))
@given(
    dialects,
    plays,
    st.sampled_from([Mode.FULL, Mode.CHAIN]),
    st.none() | st.integers(0, 8),
    st.none() | st.integers(0, 600),
)
def test_what_is_left_is_the_end_of_what_was_there(dialect, moves, mode, max_items, max_bytes):
    play = Play(dialect, mode).all(moves)
    ledger, whole = play.ledger, play.ledger.history()
    sound = lockstitch.check(whole, dialect=dialect) == []
    try:
        facts = compacted(
            ledger, max_items=max_items, max_bytes=max_bytes, replaced=[play.words.user("sum")]
        )
    except CannotTrim:
        return
    ledger.extend(facts)
    told = ledger.history()
    if facts:
        assert told[0] == play.words.user("sum")
        told = told[1:]
    assert told == whole[len(whole) - len(told) :]
    if sound:
        assert lockstitch.check(told, dialect=dialect) == []
    assert Ledger.rebuilt(ledger.facts).state() == ledger.state()
