"""From a plan to a request: what is sent is what is recorded as sent, rewritten or not."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lockstitch.core.calls import Life
from lockstitch.core.continuation import Continue, Replay
from lockstitch.core.errors import BrokenPair, IllegalFact, NotAnItem
from lockstitch.core.facts import (
    START,
    AnchorAdopted,
    AnchorLost,
    By,
    ItemAdded,
    Mode,
    RequestPrepared,
    RequestRejected,
)
from lockstitch.ledgers import Ledger, call_settled, item_added, request_prepared
from tests.generated import examples
from tests.not_json import NOT_JSON
from tests.played import Play, dialects, plays
from tests.turns import call, ledger_of, output, reasoning, said, send, texts, turn, user


def after_a_turn():
    """A ledger whose next request is one output and one message behind an answer."""
    ledger = ledger_of(user("a"))
    turn(ledger, call())
    ledger.append(call_settled(ledger, ledger.call("call_a"), "ok"))
    ledger.append(item_added(user("b")))
    return ledger


def test_a_plan_as_it_is_becomes_one_fact():
    ledger = after_a_turn()
    plan = ledger.plan()
    (fact,) = request_prepared(ledger, plan)
    assert fact == RequestPrepared(
        mode=Mode.CHAIN,
        base=plan.base,
        covers=ledger.tip,
        sent=tuple(sending.seq for sending in plan.items),
        anchor="resp_1",
    )


def test_items_that_were_not_rewritten_are_the_same_request():
    ledger = after_a_turn()
    for mode in (Mode.CHAIN, Mode.FULL):
        plan = ledger.plan(mode)
        same = request_prepared(ledger, plan, items=ledger.items(plan))
        assert same == request_prepared(ledger, plan)


@settings(max_examples=examples(80))
@given(dialects, plays, st.sampled_from([Mode.FULL, Mode.CHAIN]))
def test_to_rewrite_nothing_changes_nothing(dialect, moves, mode):
    ledger = Play(dialect, mode).all(moves).ledger
    plan = ledger.plan(mode)
    if isinstance(plan, Continue | Replay):
        same = request_prepared(ledger, plan, items=ledger.items(plan))
        assert same == request_prepared(ledger, plan)


def test_preparing_changes_nothing_by_itself():
    ledger = after_a_turn()
    before = ledger.state()
    request_prepared(ledger, ledger.plan(), items=[output("call_a", "***"), user("b")])
    assert ledger.state() == before


def test_a_rewritten_item_is_recorded_as_what_was_sent():
    ledger = after_a_turn()
    plan = ledger.plan()
    facts = request_prepared(ledger, plan, items=[output("call_a", "***"), user("b")])
    assert [type(fact) for fact in facts] == [ItemAdded, RequestPrepared]
    assert facts[0].by is By.REWRITE
    ledger.extend(facts)
    sent = ledger.exchange(len(ledger)).sent
    assert [ledger.wire(seq) for seq in sent] == [output("call_a", "***"), user("b")]
    assert texts(ledger.history()) == ["a", "call_a", "ok", "b"]


def test_what_was_rewritten_is_replayed_as_it_was_sent():
    ledger = after_a_turn()
    turn(ledger, said("x"), items=[output("call_a", "***"), user("b")], id="resp_2")
    ledger.append(AnchorLost(anchor="resp_2"))
    ledger.append(item_added(user("c")))
    assert texts(ledger.items(ledger.plan())) == ["a", "call_a", "***", "b", "x", "c"]


def test_a_rewrite_that_was_rejected_is_planned_again_from_what_was_said():
    ledger = after_a_turn()
    request = send(ledger, items=[output("call_a", "***"), user("b")])
    ledger.append(RequestRejected(request=request))
    assert ledger.items(ledger.plan()) == [output(), user("b")]


def test_a_message_that_a_filter_dropped_is_not_sent_later():
    ledger = after_a_turn()
    turn(ledger, said(), items=[output()], id="resp_2")
    ledger.append(item_added(user("c")))
    assert texts(ledger.items(ledger.plan())) == ["c"]


def test_items_may_be_put_between_before_and_behind():
    ledger = ledger_of(user("a"), user("b"))
    items = [user("0"), user("a"), user("1"), user("b"), user("2")]
    facts = request_prepared(ledger, ledger.plan(), items=items)
    ledger.extend(facts)
    sent = ledger.exchange(len(ledger)).sent
    assert texts(ledger.wire(seq) for seq in sent) == ["0", "a", "1", "b", "2"]
    assert {2, 3} <= set(sent)


def test_the_second_equal_item_is_a_second_item():
    ledger = ledger_of(user("a"), user("a"), user("a"))
    facts = request_prepared(ledger, ledger.plan(), items=[user("a"), user("a")])
    assert facts[-1].sent == (2, 3)
    facts = request_prepared(ledger, ledger.plan(), items=[user("a")] * 4)
    assert facts[-1].sent == (2, 3, 4, 5)
    assert facts[0].item == ledger.item(2)


@pytest.mark.parametrize("items", [[], [user("b")], [output("call_b")], [output(), output()]])
def test_a_rewrite_that_parts_a_call_from_its_output_is_refused_and_the_pair_named(items):
    ledger = after_a_turn()
    before = ledger.state()
    with pytest.raises(BrokenPair) as raised:
        request_prepared(ledger, ledger.plan(), items=items)
    assert str(raised.value).startswith("The rewritten items would not be valid: ")
    assert str(raised.value).endswith(
        "Keep or drop a call together with its output. Nothing was recorded."
    )
    assert "call_" in str(raised.value)
    assert ledger.state() == before


def test_in_full_a_call_may_be_dropped_with_its_output_and_not_alone():
    ledger = after_a_turn()
    plan = ledger.plan(Mode.FULL)
    assert isinstance(plan, Replay)
    *_, fact = request_prepared(ledger, plan, items=[user("a"), user("b")])
    assert fact.base == START
    assert fact.sent == (2, ledger.tip)
    for items in ([user("a"), call(), user("b")], [user("a"), output(), user("b")]):
        with pytest.raises(BrokenPair, match="call_a"):
            request_prepared(ledger, plan, items=items)


def test_a_replay_whose_past_was_rewritten_is_a_chain_of_its_own():
    ledger = ledger_of(user("a"))
    turn(ledger, said("x"), mode=Mode.FULL)
    ledger.append(item_added(user("b")))
    items = [user("A"), said("x"), user("b")]
    turn(ledger, said("y"), mode=Mode.FULL, items=items, id="resp_2")
    ledger.append(item_added(user("c")))
    wires = ledger.items(ledger.plan(Mode.FULL))
    assert texts(wires) == ["A", "x", "b", "y", "c"]


def test_only_the_new_part_of_a_replay_may_be_rewritten_without_a_new_chain():
    ledger = ledger_of(user("a"))
    first = turn(ledger, said("x"), mode=Mode.FULL)
    ledger.append(item_added(user("b")))
    items = [user("a"), said("x"), user("B")]
    *_, fact = request_prepared(ledger, ledger.plan(Mode.FULL), items=items)
    assert fact.base == first
    assert len(fact.sent) == 1


def test_behind_an_adopted_anchor_an_output_needs_no_call_here():
    ledger = Ledger()
    ledger.append(AnchorAdopted(mode=Mode.CHAIN, anchor="resp_0"))
    ledger.append(item_added(output("call_of_theirs")))
    items = [output("call_of_theirs", "***")]
    assert len(request_prepared(ledger, ledger.plan(), items=items)) == 2


@pytest.mark.parametrize("kind", NOT_JSON)
def test_a_rewrite_that_cannot_be_written_as_json_is_no_item(kind):
    ledger = after_a_turn()
    with pytest.raises(NotAnItem, match="cannot be written as JSON"):
        request_prepared(ledger, ledger.plan(), items=[output(), NOT_JSON[kind]])


@pytest.mark.parametrize("thing", [None, 7, [user()], b"[]"])
def test_a_rewrite_that_is_no_object_is_no_item(thing):
    ledger = after_a_turn()
    with pytest.raises(NotAnItem):
        request_prepared(ledger, ledger.plan(), items=[output(), thing])


def test_a_rewritten_output_is_delivered():
    ledger = after_a_turn()
    turn(ledger, said(), items=[output("call_a", "***")], id="resp_2")
    assert ledger.call("call_a").life is Life.DELIVERED


# --- conversations -----------------------------------------------------------------------------


def test_a_replay_goes_to_the_new_conversation_that_is_named():
    ledger = ledger_of(user("a"))
    turn(ledger, said("x"))
    ledger.append(item_added(user("b")))
    plan = ledger.plan(Mode.CONVERSATION)
    (fact,) = request_prepared(ledger, plan, conversation="conv_2")
    assert fact.anchor == "conv_2"
    ledger.append(fact)
    assert ledger.last_in["conv_2"].seq == len(ledger)


def test_a_replay_to_a_conversation_that_nobody_named_is_refused():
    ledger = ledger_of(user("a"))
    facts = request_prepared(ledger, ledger.plan(Mode.CONVERSATION))
    with pytest.raises(IllegalFact, match="names the conversation"):
        ledger.extend(facts)


@pytest.mark.parametrize("mode", Mode)
def test_only_a_replay_to_a_conversation_takes_the_name_of_a_new_one(mode):
    ledger = ledger_of(user("a"))
    turn(ledger, said("x"), mode=mode, conversation="conv_1")
    ledger.append(item_added(user("b")))
    plan = ledger.plan(mode, conversation="conv_1")
    with pytest.raises(IllegalFact, match="Only a full history can go to a new conversation"):
        request_prepared(ledger, plan, conversation="conv_9")


def test_an_item_that_lost_its_id_is_found_among_what_was_planned():
    ledger = ledger_of(user("a"))
    turn(ledger, reasoning("rs_1"), said("x", id="msg_1"))
    ledger.append(AnchorLost(anchor="resp_1"))
    ledger.append(item_added(user("b")))
    plan = ledger.plan()
    wires = ledger.items(plan)
    assert "id" not in wires[1]
    assert len(request_prepared(ledger, plan, items=wires)) == 1
