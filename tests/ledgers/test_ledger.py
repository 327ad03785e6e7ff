"""The ledger of wire items: a dialect by name, plans rendered as what is sent."""

from __future__ import annotations

import sys
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lockstitch.core.continuation import Replay
from lockstitch.core.errors import IllegalFact, UnknownDialect, UnknownMode
from lockstitch.core.facts import AnchorLost, Mode, Opened
from lockstitch.ledgers import Ledger, call_settled, item_added
from tests.generated import examples
from tests.played import Play, dialects, plays
from tests.turns import (
    DIALECTS,
    Words,
    call,
    ledger_of,
    output,
    reasoning,
    said,
    texts,
    turn,
    user,
)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_ledger_is_of_one_dialect(dialect):
    ledger = Ledger(dialect)
    assert ledger.fact(1) == Opened(dialect=dialect)
    assert ledger.dialect.name == dialect
    assert Ledger.rebuilt(ledger.facts).dialect is ledger.dialect


def test_a_dialect_that_does_not_exist_is_refused_with_those_that_do():
    with pytest.raises(UnknownDialect, match="Choose one of: responses, chat, messages, realtime"):
        Ledger("klingon")


@pytest.mark.parametrize("facts", [[], [item_added(user())], [None]])
def test_facts_without_an_opening_are_no_ledger(facts):
    with pytest.raises(IllegalFact, match="the first is not its opening"):
        Ledger.rebuilt(facts)


def test_facts_of_an_unknown_dialect_are_no_ledger():
    with pytest.raises(UnknownDialect):
        Ledger.rebuilt([Opened(dialect="klingon")])


def test_an_illegal_fact_in_the_middle_is_refused_when_a_ledger_is_rebuilt():
    with pytest.raises(IllegalFact, match="opened once"):
        Ledger.rebuilt([Opened(dialect="chat"), Opened(dialect="chat")])


def test_a_mode_may_be_named_as_the_provider_names_it():
    ledger = ledger_of(user())
    for mode in Mode:
        assert ledger.plan(mode.value) == ledger.plan(mode)


def test_a_mode_that_does_not_exist_is_refused_with_those_that_do():
    with pytest.raises(UnknownMode) as raised:
        ledger_of(user()).plan("chain")
    assert str(raised.value) == (
        "There is no mode 'chain'. Choose one of: previous_response_id, conversation, full."
    )


def test_unknown_types_and_fields_pass_through_untouched():
    odd = {"type": "a_type_of_next_year", "id": "x_1", "deep": [{"a": None}, 1.5, True]}
    asked = user("a", field_of_next_year={"b": [1]})
    ledger = ledger_of(asked, odd)
    assert ledger.history() == [asked, odd]
    assert ledger.items(ledger.plan()) == [asked, odd]


def test_a_replay_is_everything_and_a_continuation_only_what_is_new():
    ledger = ledger_of(user("a"))
    turn(ledger, said("x"))
    ledger.append(item_added(user("b")))
    assert texts(ledger.items(ledger.plan())) == ["b"]
    plan = ledger.plan("full")
    assert texts(ledger.items(plan)) == ["a", "x", "b"]
    assert [sending.seq for sending in plan.items] == [ledger.tip]


def test_what_may_not_keep_its_id_is_rendered_without_it():
    ledger = ledger_of(user())
    turn(ledger, reasoning("rs_1"), said("x", id="msg_1", status="completed"))
    ledger.append(item_added(user("b")))
    ledger.append(AnchorLost(anchor="resp_1"))
    wires = ledger.items(ledger.plan())
    assert wires == [user(), said("x", status="completed"), user("b")]
    assert ledger.history()[2]["id"] == "msg_1"


@pytest.mark.parametrize(
    ("made", "answer"),
    [
        (
            {"type": "mcp_approval_request", "id": "mcpr_1", "name": "t"},
            {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True},
        ),
        (
            {"type": "local_shell_call", "id": "lsh_1", "call_id": "call_a"},
            {"type": "local_shell_call_output", "id": "lsh_1", "output": "ok"},
        ),
    ],
)
def test_an_id_that_joins_a_pair_is_changed_in_both_or_in_none(made, answer):
    for thought in (None, "secret"):
        ledger = ledger_of(user())
        turn(ledger, reasoning("rs_1", thought), made)
        ledger.append(call_settled(ledger, ledger.unsettled()[0], answer))
        ledger.append(AnchorLost(anchor="resp_1"))
        wires = ledger.items(ledger.plan())
        call_id, answer_id = wires[-2]["id"], wires[-1].get("approval_request_id")
        assert (call_id == made["id"]) is (thought is not None)
        assert call_id == (answer_id or wires[-1]["id"])


def test_what_is_rendered_is_a_copy():
    ledger = ledger_of(user("a"))
    ledger.history()[0]["content"] = "changed"
    ledger.items(ledger.plan())[0]["content"] = "changed"
    assert ledger.history() == [user("a")]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_whole_turn_with_parallel_calls_in_every_dialect(dialect):
    words = Words(dialect)
    ledger = ledger_of(words.user(), dialect=dialect)
    turn(ledger, *words.calls("call_a", "call_b"), mode="full")
    for made in reversed(ledger.unsettled()):
        ledger.append(call_settled(ledger, made, made.item.key))
    wires = ledger.items(ledger.plan("full"))
    assert wires[-2:] == [words.output("call_a", "call_a"), words.output("call_b", "call_b")]


@settings(max_examples=examples(80))
@given(dialects, plays, st.sampled_from([Mode.FULL, Mode.CHAIN]))
def test_what_is_sent_in_full_begins_with_what_was_sent_before(dialect, moves, mode):
    # The same bytes at the front: a provider's prompt cache stays warm. Reasoning is the exception.
    play = Play(dialect, mode, compacts=False)
    play.all((move, n) for move, n in moves if move not in ("fork", "roll back"))
    ledger = play.ledger
    last = []
    for plan, wires in play.sent:
        if isinstance(plan, Replay) and mode is Mode.FULL:
            assert [*wires][: len(last)] == last
            base = plan.base
            last = wires if base == 0 or ledger.exchange(base).said else last


def test_a_call_and_its_output_keep_their_bytes_however_often_they_are_sent():
    item = b'{"type":"function_call_output", "call_id":"call_a", "output":"\\u00e9"}'
    ledger = ledger_of(user())
    turn(ledger, call())
    ledger.append(call_settled(ledger, ledger.call("call_a"), item))
    sent = [ledger.items(ledger.plan()) for _ in range(3)]
    assert sent == [[output("call_a", "é")]] * 3
    assert ledger.item(ledger.call("call_a").output) == item


# --- cost --------------------------------------------------------------------------------------


def calls_made(work):
    """How many functions it takes to do something: the same on every machine."""
    count = 0

    def profile(frame, event, arg):
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


MOST_CALLS = 180
"""In a turn of one call and its output. A promise about time rests on it: raise it for a reason."""


@pytest.mark.parametrize("mode", Mode)
def test_a_turn_costs_the_same_at_the_end_of_a_long_conversation(mode):
    ledger = ledger_of(user())

    def one_turn(n):
        turn(ledger, call(f"call_{n}"), mode=mode, id=f"resp_{n}", conversation="conv_1")
        ledger.append(call_settled(ledger, ledger.call(f"call_{n}"), "ok"))

    costs = [calls_made(partial(one_turn, n)) for n in range(300)]
    assert costs[-1] == costs[10] <= MOST_CALLS
