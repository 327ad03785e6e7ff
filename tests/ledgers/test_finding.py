"""After a lost send to a conversation: what the provider really has, as facts."""

from __future__ import annotations

import pytest

from lockstitch.core.continuation import Continue, ReadBack, Replay
from lockstitch.core.exchanges import Standing
from lockstitch.core.facts import (
    AnchorAdopted,
    Ending,
    Mode,
    RequestAccepted,
    RequestLost,
    RequestRejected,
    ResponseEnded,
    ResponseOpened,
)
from lockstitch.ledgers import (
    ConversationChanged,
    Ledger,
    call_settled,
    found,
    item_added,
    item_completed,
)
from tests.turns import answer, call, ledger_of, output, said, send, texts, turn, user

CONVERSATION = {"mode": Mode.CONVERSATION, "conversation": "conv_1"}


def lost(ledger, **named):
    """Send what is new, lose it, and ask what to read back."""
    request = send(ledger, **(named or CONVERSATION))
    ledger.append(RequestLost(request=request))
    asked = ledger.plan(**CONVERSATION)
    assert isinstance(asked, ReadBack)
    assert asked.request == request
    return asked


def dressed(text, n=1):
    """A user's message, as the provider lists it."""
    content = [{"type": "input_text", "text": text}]
    return {
        "type": "message",
        "id": f"msg_u{n}",
        "status": "completed",
        "role": "user",
        "content": content,
    }


def after_a_turn():
    ledger = ledger_of(user("a"))
    turn(ledger, said("x", id="msg_1"), **CONVERSATION)
    ledger.append(item_added(user("b")))
    return ledger


def test_a_request_that_never_arrived_is_as_if_it_had_not_been_sent():
    ledger = after_a_turn()
    asked = lost(ledger)
    facts = found(ledger, asked, [])
    assert facts == [
        RequestRejected(request=asked.request, reason="its items are not in the conversation")
    ]
    ledger.extend(facts)
    plan = ledger.plan(**CONVERSATION)
    assert isinstance(plan, Continue)
    assert ledger.items(plan) == [user("b")]


def test_a_request_that_arrived_and_was_not_answered_moves_the_position():
    ledger = after_a_turn()
    asked = lost(ledger)
    facts = found(ledger, asked, [dressed("b")])
    assert facts == [RequestAccepted(request=asked.request)]
    ledger.extend(facts)
    ledger.append(item_added(user("c")))
    assert ledger.items(ledger.plan(**CONVERSATION)) == [user("c")]


def test_an_answer_that_nobody_heard_is_read_back():
    ledger = after_a_turn()
    asked = lost(ledger)
    facts = found(ledger, asked, [dressed("b"), call("call_a", id="fc_1"), said("y", id="msg_2")])
    assert facts == [
        ResponseOpened(request=asked.request),
        item_completed(asked.request, call("call_a", id="fc_1")),
        item_completed(asked.request, said("y", id="msg_2")),
        ResponseEnded(request=asked.request),
    ]
    ledger.extend(facts)
    assert ledger.exchange(asked.request).standing is Standing.ACCEPTED
    ledger.append(call_settled(ledger, ledger.call("call_a"), "ok"))
    plan = ledger.plan(**CONVERSATION)
    assert (plan.anchor, ledger.items(plan)) == ("conv_1", [output()])


def test_an_answer_that_was_heard_in_part_is_completed_by_the_rest():
    ledger = after_a_turn()
    request = answer(
        ledger, send(ledger, **CONVERSATION), call("call_a"), id="resp_2", ending=Ending.CUT
    )
    asked = ledger.plan(**CONVERSATION)
    facts = found(ledger, asked, [dressed("b"), call("call_a", id="fc_1"), said("y")])
    assert facts == [
        ResponseOpened(request=request, id="resp_2"),
        item_completed(request, said("y")),
        ResponseEnded(request=request),
    ]
    ledger.extend(facts)
    assert len(ledger.exchange(request).said) == 2


def test_an_answer_that_was_heard_in_full_and_not_to_its_end_needs_nothing_more():
    ledger = after_a_turn()
    request = answer(ledger, send(ledger, **CONVERSATION), said("y"), ending=Ending.CUT, id="r2")
    facts = found(ledger, ledger.plan(**CONVERSATION), [dressed("b"), said("y")])
    assert facts == [ResponseOpened(request=request, id="r2"), ResponseEnded(request=request)]
    ledger.extend(facts)


def test_the_first_request_to_a_conversation_brings_everything_with_it():
    ledger = ledger_of(user("a"))
    turn(ledger, said("x", id="msg_1"))
    ledger.append(item_added(user("b")))
    asked = lost(ledger)
    assert asked.after is None
    listed = [dressed("a"), said("x"), dressed("b"), said("y")]
    for there in (listed[:3], listed):
        copy = Ledger.rebuilt(ledger.facts)
        copy.extend(found(copy, asked, there))
        assert copy.positions["conv_1"].seq == asked.request
    rejected = found(ledger, asked, [])
    assert isinstance(rejected[0], RequestRejected)
    ledger.extend(rejected)
    plan = ledger.plan(**CONVERSATION)
    assert isinstance(plan, Replay)
    assert (plan.anchor, texts(ledger.items(plan))) == ("conv_1", ["a", "x", "b"])


def test_requests_that_were_accepted_without_an_answer_stand_in_the_listing():
    ledger = after_a_turn()
    ledger.extend(found(ledger, lost(ledger), [dressed("b")]))
    ledger.append(item_added(user("c")))
    asked = lost(ledger)
    assert asked.after == "msg_1"
    assert found(ledger, asked, [dressed("b")]) == [
        RequestRejected(request=asked.request, reason="its items are not in the conversation")
    ]
    assert found(ledger, asked, [dressed("b"), dressed("c", 2)]) == [
        RequestAccepted(request=asked.request)
    ]


def test_equal_messages_are_told_apart_by_their_number():
    ledger = ledger_of(user("b"))
    turn(ledger, said("x", id="msg_1"), **CONVERSATION)
    for _ in range(2):
        ledger.append(item_added(user("b")))
    asked = lost(ledger)
    with pytest.raises(ConversationChanged):
        found(ledger, asked, [dressed("b")])
    assert found(ledger, asked, [dressed("b"), dressed("b")]) == [
        RequestAccepted(request=asked.request)
    ]


@pytest.mark.parametrize(
    "listed",
    [
        [dressed("something else")],
        [dressed("something else"), dressed("b")],
        [said("y"), dressed("b")],
    ],
)
def test_a_conversation_that_somebody_else_wrote_to_is_refused(listed):
    ledger = after_a_turn()
    asked = lost(ledger)
    before = ledger.state()
    with pytest.raises(ConversationChanged) as raised:
        found(ledger, asked, listed)
    assert str(raised.value).startswith(f"Conversation conv_1 lists {len(listed)} items that ")
    assert "new conversation" in str(raised.value)
    assert ledger.state() == before


def test_an_answer_that_was_heard_and_is_not_there_is_refused():
    # The provider kept the input and threw the answer away; what was heard of it is here.
    ledger = after_a_turn()
    answer(ledger, send(ledger, **CONVERSATION), said("y"), ending=Ending.CUT, id="resp_2")
    with pytest.raises(ConversationChanged):
        found(ledger, ledger.plan(**CONVERSATION), [dressed("b")])


@pytest.mark.parametrize(
    "last",
    [{"type": "a_type_of_next_year", "id": "x_1"}, {"type": "compaction", "id": "cmp_1"}],
)
def test_an_item_of_which_the_id_is_not_known_is_expected_in_the_listing(last):
    ledger = ledger_of(user("a"))
    turn(ledger, said("x", id="msg_1"), last, **CONVERSATION)
    ledger.append(item_added(user("b")))
    asked = lost(ledger)
    assert asked.after == "msg_1"
    assert found(ledger, asked, [last, dressed("b")]) == [RequestAccepted(request=asked.request)]
    assert isinstance(found(ledger, asked, [last])[0], RequestRejected)


def test_an_adopted_conversation_is_read_back_behind_its_last_item():
    ledger = Ledger()
    ledger.append(AnchorAdopted(mode=Mode.CONVERSATION, anchor="conv_1", last_item="msg_of_theirs"))
    ledger.append(item_added(user("b")))
    asked = lost(ledger)
    assert asked.after == "msg_of_theirs"
    assert found(ledger, asked, [dressed("b")]) == [RequestAccepted(request=asked.request)]


def test_an_adopted_conversation_of_which_nothing_is_known_cannot_be_read_back():
    ledger = Ledger()
    ledger.append(AnchorAdopted(mode=Mode.CONVERSATION, anchor="conv_1"))
    ledger.append(item_added(user("b")))
    with pytest.raises(ConversationChanged):
        found(ledger, lost(ledger), [dressed("old"), dressed("b")])


def test_what_was_rewritten_is_looked_for_as_it_was_sent():
    ledger = after_a_turn()
    request = send(ledger, items=[user("B")], **CONVERSATION)
    ledger.append(RequestLost(request=request))
    asked = ledger.plan(**CONVERSATION)
    assert found(ledger, asked, [dressed("B")]) == [RequestAccepted(request=request)]
    with pytest.raises(ConversationChanged):
        found(ledger, asked, [dressed("b")])


def test_reading_back_changes_nothing_by_itself():
    ledger = after_a_turn()
    asked = lost(ledger)
    before = ledger.state()
    found(ledger, asked, [dressed("b"), said("y")])
    assert ledger.state() == before
    assert ledger.plan(**CONVERSATION) == asked


def test_what_was_found_is_the_same_whenever_the_facts_are_replayed():
    ledger = after_a_turn()
    ledger.extend(found(ledger, lost(ledger), [dressed("b"), said("y")]))
    assert Ledger.rebuilt(ledger.facts).state() == ledger.state()
