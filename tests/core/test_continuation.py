"""Continuation: what to send next, and the proof that it is whole."""

from __future__ import annotations

from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lockstitch
from lockstitch.core import continuation, rules
from lockstitch.core.continuation import (
    Continue,
    ReadBack,
    Reason,
    Refuse,
    Replay,
    SettleFirst,
    Why,
    prove,
)
from lockstitch.core.facts import (
    AnchorAdopted,
    AnchorLost,
    By,
    CallStarted,
    Ending,
    Mode,
    RequestAccepted,
    RequestLost,
    RequestRejected,
    ResponseEnded,
    ResponseOpened,
)
from lockstitch.ledgers import (
    Ledger,
    call_settled,
    call_settled_honestly,
    compacted,
    item_added,
    item_completed,
)
from tests.generated import examples
from tests.played import Play, dialects, plays
from tests.turns import (
    DIALECTS,
    Words,
    answer,
    call,
    ledger_of,
    output,
    prepare,
    reasoning,
    said,
    send,
    texts,
    turn,
    user,
)

CONVERSATION = {"mode": Mode.CONVERSATION, "conversation": "conv_1"}


def refused(ledger, reason, **named):
    plan = ledger.plan(**named)
    assert isinstance(plan, Refuse), plan
    assert plan.reason is reason
    return plan


def sends(ledger, **named):
    """The plan, which must send something, and its wire items."""
    plan = ledger.plan(**named)
    assert isinstance(plan, Continue | Replay), plan
    return plan, ledger.items(plan)


# --- a chain -----------------------------------------------------------------------------------


def test_the_first_request_of_a_chain_sends_everything_and_names_no_anchor():
    plan, wires = sends(ledger_of(user("a"), user("b")))
    assert isinstance(plan, Replay)
    assert (plan.why, plan.anchor) == (Why.START, None)
    assert wires == [user("a"), user("b")]


def test_what_lies_behind_the_last_answer_is_sent_behind_it():
    ledger = ledger_of(user("a"))
    turn(ledger, call())
    ledger.append(call_settled(ledger, ledger.call("call_a"), "ok"))
    plan, wires = sends(ledger)
    assert isinstance(plan, Continue)
    assert plan.anchor == "resp_1"
    assert wires == [output()]


def test_nothing_new_is_nothing_to_send():
    refused(Ledger(), Reason.NOTHING_NEW)
    ledger = ledger_of(user())
    turn(ledger, said())
    plan = refused(ledger, Reason.NOTHING_NEW)
    assert str(plan) == "nothing was said since the last answer; add an item first"


def test_calls_without_an_output_come_first():
    ledger = ledger_of(user())
    turn(ledger, call("call_a"), call("call_b"))
    plan = ledger.plan()
    assert isinstance(plan, SettleFirst)
    assert str(plan) == "2 calls have no output: call_a (t), call_b (t). Settle first."
    ledger.append(call_settled(ledger, ledger.call("call_a"), "ok"))
    assert str(ledger.plan()) == "1 call has no output: call_b (t). Settle first."


def test_while_an_answer_is_coming_nothing_is_sent():
    ledger = ledger_of(user())
    request = send(ledger)
    refused(ledger, Reason.STILL_ANSWERING)
    ledger.append(ResponseOpened(request=request, id="resp_1"))
    ledger.append(item_added(user("more")))
    refused(ledger, Reason.STILL_ANSWERING)
    ledger.append(ResponseEnded(request=request))
    assert sends(ledger)[1] == [user("more")]


@pytest.mark.parametrize("fact", [RequestRejected, RequestLost])
def test_a_retry_sends_the_same_behind_the_same_anchor(fact):
    ledger = ledger_of(user("a"))
    turn(ledger, said())
    ledger.append(item_added(user("b")))
    first, wires = sends(ledger)
    ledger.append(fact(request=send(ledger)))
    again, same = sends(ledger)
    assert (again.anchor, same) == (first.anchor, wires)


def test_a_request_that_was_prepared_and_never_sent_is_planned_again():
    ledger = ledger_of(user("a"))
    prepare(ledger)
    assert sends(ledger)[1] == [user("a")]


@pytest.mark.parametrize("ending", [Ending.CUT, Ending.FAILED])
def test_an_answer_that_did_not_end_and_had_no_effect_is_forgotten(ending):
    ledger = ledger_of(user("a"))
    turn(ledger, call(), ending=ending)
    assert sends(ledger)[1] == [user("a")]


def test_the_output_of_a_call_whose_answer_was_cut_is_sent_with_it():
    ledger = ledger_of(user("a"))
    turn(ledger, said("x"))
    ledger.append(item_added(user("b")))
    turn(ledger, call(id="fc_1"), id="resp_2", ending=Ending.CUT)
    made = ledger.call("call_a")
    ledger.append(CallStarted(call=made.seq))
    assert isinstance(ledger.plan(), SettleFirst)
    ledger.append(call_settled(ledger, made, "done"))
    plan, wires = sends(ledger)
    assert plan.anchor == "resp_1"
    assert wires == [user("b"), call(id="fc_1"), output("call_a", "done")]


def test_an_incomplete_answer_is_continued():
    ledger = ledger_of(user("a"))
    turn(ledger, said("half"), ending=Ending.INCOMPLETE)
    ledger.append(item_added(user("go on")))
    assert isinstance(sends(ledger)[0], Continue)


def test_a_lost_anchor_is_replayed_from_the_ledger():
    ledger = ledger_of(user("a"))
    turn(ledger, reasoning("rs_1"), call(id="fc_1"))
    ledger.append(call_settled(ledger, ledger.call("call_a"), "ok"))
    ledger.append(AnchorLost(anchor="resp_1"))
    plan, wires = sends(ledger)
    assert isinstance(plan, Replay)
    assert plan.why is Why.ANCHOR_LOST
    assert wires == [user("a"), call(), output()]


def test_after_a_replay_the_new_chain_is_continued():
    ledger = ledger_of(user("a"))
    turn(ledger, said("x"))
    ledger.append(AnchorLost(anchor="resp_1"))
    ledger.append(item_added(user("b")))
    turn(ledger, said("y"), id="resp_2")
    ledger.append(item_added(user("c")))
    plan, wires = sends(ledger)
    assert (plan.anchor, wires) == ("resp_2", [user("c")])
    ledger.append(AnchorLost(anchor="resp_2"))
    assert texts(sends(ledger)[1]) == ["a", "x", "b", "y", "c"]


def test_a_fork_is_continued_from_the_answer_it_follows():
    ledger = ledger_of(user("a"))
    first = turn(ledger, said("x"))
    ledger.append(item_added(user("b")))
    turn(ledger, said("y"), id="resp_2")
    ledger.append(item_added(user("c"), after=first))
    plan, wires = sends(ledger)
    assert (plan.anchor, wires) == ("resp_1", [user("c")])


def test_any_tip_can_be_planned_from():
    ledger = ledger_of(user("a"))
    turn(ledger, said("x"))
    left = ledger.append(item_added(user("left")))
    ledger.append(item_added(user("right"), after=ledger.links[left].parent))
    plan, wires = sends(ledger, tip=left)
    assert (plan.tip, wires) == (left, [user("left")])


def test_a_provider_without_an_id_for_its_answer_is_sent_everything():
    ledger = ledger_of(user("a"))
    answer(ledger, send(ledger), said("x"), id=None)
    ledger.append(item_added(user("b")))
    plan, wires = sends(ledger)
    assert isinstance(plan, Replay)
    assert texts(wires) == ["a", "x", "b"]


def test_an_accepted_request_without_an_answer_moves_the_position():
    ledger = ledger_of(user("a"))
    ledger.append(RequestAccepted(request=send(ledger, **CONVERSATION)))
    refused(ledger, Reason.NOTHING_NEW, **CONVERSATION)
    ledger.append(item_added(user("b")))
    assert sends(ledger, **CONVERSATION)[1] == [user("b")]


# --- everything, every time --------------------------------------------------------------------


@pytest.mark.parametrize("dialect", DIALECTS)
def test_in_full_everything_is_sent_every_time(dialect):
    words = Words(dialect)
    ledger = ledger_of(words.user("a"), dialect=dialect)
    turn(ledger, *words.calls("call_a", "call_b"), mode=Mode.FULL)
    for made in ledger.unsettled():
        ledger.append(call_settled(ledger, made, "ok"))
    turn(ledger, words.said("x"), mode=Mode.FULL, id="resp_2")
    ledger.append(item_added(words.user("b")))
    plan, wires = sends(ledger, mode=Mode.FULL)
    assert isinstance(plan, Replay)
    assert plan.why is Why.FULL_INPUT
    assert wires == [
        words.user("a"),
        *words.calls("call_a", "call_b"),
        words.output("call_a"),
        words.output("call_b"),
        words.said("x"),
        words.user("b"),
    ]


# --- conversations -----------------------------------------------------------------------------


def test_an_empty_conversation_that_is_named_is_sent_everything():
    ledger = ledger_of(user("a"))
    plan, wires = sends(ledger, **CONVERSATION)
    assert isinstance(plan, Replay)
    assert (plan.why, plan.anchor, wires) == (Why.START, "conv_1", [user("a")])


def test_a_conversation_is_continued_where_it_stands():
    ledger = ledger_of(user("a"))
    turn(ledger, said(), **CONVERSATION)
    ledger.append(item_added(user("b")))
    plan, wires = sends(ledger, **CONVERSATION)
    assert isinstance(plan, Continue)
    assert (plan.anchor, wires) == ("conv_1", [user("b")])


def test_a_branch_goes_to_a_new_conversation():
    ledger = ledger_of(user("a"))
    turn(ledger, said("x"), **CONVERSATION)
    ledger.append(item_added(user("b"), after=2))
    plan, wires = sends(ledger, **CONVERSATION)
    assert isinstance(plan, Replay)
    assert (plan.why, plan.anchor) == (Why.BRANCHED, None)
    assert texts(wires) == ["a", "b"]


def test_a_lost_conversation_is_replayed_to_a_new_one():
    ledger = ledger_of(user("a"))
    turn(ledger, said("x"), **CONVERSATION)
    ledger.append(item_added(user("b")))
    ledger.append(AnchorLost(anchor="conv_1"))
    plan, wires = sends(ledger, **CONVERSATION)
    assert isinstance(plan, Replay)
    assert (plan.why, plan.anchor) == (Why.ANCHOR_LOST, None)
    assert texts(wires) == ["a", "x", "b"]


def test_a_conversation_that_was_lost_while_it_was_empty_is_not_sent_to():
    ledger = ledger_of(user("a"))
    ledger.append(AnchorLost(anchor="conv_1"))
    plan, _ = sends(ledger, **CONVERSATION)
    assert plan.anchor is None


def test_a_lost_request_to_a_conversation_is_read_back_first():
    ledger = ledger_of(user("a"))
    turn(ledger, said("x", id="msg_1"), **CONVERSATION)
    ledger.append(item_added(user("b")))
    request = send(ledger, **CONVERSATION)
    refused(ledger, Reason.IN_FLIGHT, **CONVERSATION)
    ledger.append(RequestLost(request=request))
    plan = ledger.plan(**CONVERSATION)
    assert plan == ReadBack(conversation="conv_1", request=request, after="msg_1")


def test_a_conversation_is_read_back_from_its_start_where_nothing_is_known_of_it():
    ledger = ledger_of(user("a"))
    request = send(ledger, **CONVERSATION)
    ledger.append(RequestLost(request=request))
    plan = ledger.plan(**CONVERSATION)
    assert plan == ReadBack(conversation="conv_1", request=request, after=None)


def test_a_lost_request_to_one_conversation_does_not_hold_another_up():
    ledger = ledger_of(user("a"))
    ledger.append(RequestLost(request=send(ledger, **CONVERSATION)))
    plan, _ = sends(ledger, mode=Mode.CONVERSATION, conversation="conv_2")
    assert plan.anchor == "conv_2"


# --- anchors that we never saw -----------------------------------------------------------------


def adopted(mode=Mode.CHAIN, anchor="resp_0"):
    ledger = Ledger()
    ledger.append(AnchorAdopted(mode=mode, anchor=anchor))
    return ledger


def test_an_adopted_anchor_is_continued():
    ledger = adopted()
    ledger.append(item_added(output("call_of_theirs")))
    plan, wires = sends(ledger)
    assert isinstance(plan, Continue)
    assert (plan.anchor, wires) == ("resp_0", [output("call_of_theirs")])


def test_an_adopted_conversation_is_continued_under_its_own_name_only():
    ledger = adopted(Mode.CONVERSATION, "conv_1")
    ledger.append(item_added(user()))
    assert sends(ledger, **CONVERSATION)[0].anchor == "conv_1"
    refused(ledger, Reason.UNKNOWN_CHAIN, mode=Mode.CONVERSATION, conversation="conv_2")
    refused(ledger, Reason.UNKNOWN_CHAIN, mode=Mode.CHAIN)


def test_an_adopted_anchor_that_is_lost_cannot_be_replayed():
    ledger = adopted()
    ledger.append(item_added(user()))
    ledger.append(AnchorLost(anchor="resp_0"))
    refused(ledger, Reason.UNKNOWN_CHAIN)


@pytest.mark.parametrize("mode", [Mode.CHAIN, Mode.FULL, Mode.CONVERSATION])
def test_a_chain_of_which_the_beginning_is_unknown_is_never_replayed(mode):
    ledger = adopted()
    ledger.append(item_added(user("a")))
    turn(ledger, said("x"))
    ledger.append(item_added(user("b")))
    ledger.append(AnchorLost(anchor="resp_1"))
    refused(ledger, Reason.UNKNOWN_CHAIN, mode=mode)


# --- compaction --------------------------------------------------------------------------------


def test_after_a_compaction_a_new_chain_begins_with_what_stayed():
    ledger = ledger_of(user("a"))
    turn(ledger, said("x"))
    ledger.append(item_added(user("b")))
    turn(ledger, said("y"), id="resp_2")
    ledger.extend(compacted(ledger, max_items=2, replaced=[user("sum")]))
    ledger.append(item_added(user("c")))
    plan, wires = sends(ledger)
    assert isinstance(plan, Replay)
    assert plan.why is Why.COMPACTED
    assert texts(wires) == ["sum", "b", "y", "c"]
    turn(ledger, said("z"), id="resp_3")
    ledger.append(item_added(user("d")))
    plan, wires = sends(ledger)
    assert (plan.anchor, wires) == ("resp_3", [user("d")])


def test_a_compaction_goes_to_a_new_conversation():
    ledger = ledger_of(user("a"))
    turn(ledger, said("x"), **CONVERSATION)
    ledger.extend(compacted(ledger, replaced=[user("sum")]))
    plan, wires = sends(ledger, **CONVERSATION)
    assert (plan.why, plan.anchor, wires) == (Why.COMPACTED, None, [user("sum")])


# --- the proof ---------------------------------------------------------------------------------


def test_an_output_without_its_call_is_refused_and_named():
    ledger = ledger_of(user(), output("call_x"))
    plan = refused(ledger, Reason.NOT_WHOLE)
    assert [finding.rule for finding in plan.findings] == [rules.ORPHAN_OUTPUT]
    assert "call_x" in str(plan)
    assert str(plan).startswith("a call would have no output, or an output no call: ")


def test_a_second_output_is_refused_and_named():
    ledger = ledger_of(user(), call(), output(), output("call_a", "again"))
    assert "call_a" in str(refused(ledger, Reason.NOT_WHOLE))


def test_a_replay_of_an_output_only_delta_is_never_sent():
    # The delta is right behind its anchor, and nowhere else.
    ledger = adopted()
    ledger.append(item_added(output("call_of_theirs")))
    assert isinstance(ledger.plan(), Continue)
    ledger.append(AnchorLost(anchor="resp_0"))
    assert isinstance(ledger.plan(), Refuse)
    assert isinstance(ledger.plan(Mode.FULL), Refuse)


def test_a_call_that_nothing_names_cannot_be_settled_and_is_refused():
    ledger = ledger_of(user(), {"type": "tool_search_call", "execution": "client"}, user("b"))
    plan = refused(ledger, Reason.NOT_WHOLE)
    assert [finding.rule for finding in plan.findings] == [rules.NO_OUTPUT]


def test_a_proof_stands_on_the_calls_that_the_last_answer_left_open():
    ledger = ledger_of(user())
    request = turn(ledger, call("call_a"))
    base = ledger.exchange(request)
    given = [ledger.reading.read(item_added(output("call_a")).item)]
    assert prove(ledger, base, given) == []
    assert [finding.rule for finding in prove(ledger, base, [])] == [rules.NO_OUTPUT]
    assert [finding.rule for finding in prove(ledger, None, given)] == [rules.ORPHAN_OUTPUT]


# --- properties --------------------------------------------------------------------------------


@settings(max_examples=examples(150))
@given(dialects, plays, st.sampled_from([Mode.FULL, Mode.CHAIN]))
def test_every_context_that_a_request_makes_is_whole(dialect, moves, mode):
    play = Play(dialect, mode).all(moves)
    for wires in play.contexts:
        assert lockstitch.check(wires, dialect=dialect) == []


@settings(max_examples=examples(100))
@given(dialects, plays, st.sampled_from([Mode.FULL, Mode.CHAIN]))
def test_planning_changes_nothing_and_planning_again_gives_the_same(dialect, moves, mode):
    ledger = Play(dialect, mode).all(moves).ledger
    before = ledger.state()
    first = repr(ledger.plan(mode))
    assert repr(ledger.plan(mode)) == first
    for link in ledger.links:
        for other in Mode:
            ledger.plan(other, tip=link)
    assert ledger.state() == before


@settings(max_examples=examples(150))
@given(dialects, plays, st.sampled_from([Mode.FULL, Mode.CHAIN]))
def test_the_short_way_to_a_plan_comes_to_what_the_long_way_does(dialect, moves, mode):
    ledger = Play(dialect, mode).all(moves).ledger
    tips = [*ledger.links]
    for other in Mode:
        short = [ledger.plan(other, tip=tip) for tip in tips]
        with mock.patch.object(continuation, "_going_on", return_value=None):
            assert [repr(ledger.plan(other, tip=tip)) for tip in tips] == [*map(repr, short)]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_outputs_and_nothing_else_behind_an_answer_are_planned_the_short_way(dialect):
    words = Words(dialect)
    ledger = ledger_of(words.user(), dialect=dialect)
    turn(ledger, *words.calls("call_a", "call_b"))
    for key in ("call_a", "call_b"):
        ledger.append(call_settled(ledger, ledger.call(key), key))
    with mock.patch.object(continuation, "_since", side_effect=AssertionError):
        plan = ledger.plan(Mode.CHAIN)
    assert isinstance(plan, Continue)
    assert [sending.seq for sending in plan.items] == [
        ledger.call(key).output for key in ("call_a", "call_b")
    ]


@settings(max_examples=examples(100))
@given(plays)
def test_what_is_sent_behind_an_anchor_was_never_sent_on_that_chain(moves):
    play = Play("responses", Mode.CHAIN).all(moves)
    ledger = play.ledger
    for plan, _ in play.sent:
        if isinstance(plan, Continue):
            base, before = plan.base, set()
            while base:
                exchange = ledger.exchange(base)
                before |= {*exchange.sent, *exchange.said}
                base = exchange.base
            assert before.isdisjoint(sending.seq for sending in plan.items)


@settings(max_examples=examples(80))
@given(dialects, plays)
def test_once_all_calls_are_settled_the_next_request_can_always_be_sent(dialect, moves):
    play = Play(dialect, Mode.FULL).all(moves)
    ledger = play.ledger
    ledger.append(item_added(play.words.user("go on")))
    plan = ledger.plan(Mode.FULL)
    if isinstance(plan, SettleFirst):
        for made in plan.calls:
            ledger.append(call_settled_honestly(ledger, made))
        plan = ledger.plan(Mode.FULL)
    assert isinstance(plan, Replay), str(plan)


@pytest.mark.parametrize("by", [By.USER, By.IMPORT, By.MODEL])
def test_who_gave_an_item_does_not_change_whether_it_is_sent(by):
    ledger = ledger_of(user("a"), by=by)
    assert sends(ledger)[1] == [user("a")]


def test_a_plan_for_an_answer_in_parts_sends_nothing_of_it_twice():
    ledger = ledger_of(user("a"))
    request = answer(ledger, send(ledger), said("one"), ending=Ending.CUT)
    ledger.append(ResponseOpened(request=request, id="resp_1"))
    ledger.append(item_completed(request, said("two")))
    ledger.append(ResponseEnded(request=request))
    ledger.append(item_added(user("b")))
    assert sends(ledger)[1] == [user("b")]
    assert texts(sends(ledger, mode=Mode.FULL)[1]) == ["a", "one", "two", "b"]
