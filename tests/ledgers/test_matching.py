"""A history that a client resends in full: matched by occurrence, and only its end added."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lockstitch.core.errors import LockstitchError, NotAnItem, NotInLedger
from lockstitch.core.facts import (
    START,
    By,
    CallStarted,
    Ending,
    ItemAdded,
    ItemsRemoved,
    Mode,
    Removal,
    RequestRejected,
)
from lockstitch.core.items import Part
from lockstitch.ledgers import (
    Follower,
    Ledger,
    Position,
    call_settled,
    compacted,
    item_added,
    matched,
    resent,
)
from tests.generated import examples, hostile_items
from tests.not_json import NOT_JSON
from tests.played import Play, dialects, plays
from tests.turns import (
    DIALECTS,
    Words,
    call,
    ledger_of,
    output,
    reasoning,
    said,
    send,
    texts,
    turn,
    user,
)

modes = st.sampled_from([Mode.FULL, Mode.CHAIN])


def said_and_done(dialect="responses"):
    """A ledger with a call, its settled output, and an answer."""
    words = Words(dialect)
    ledger = ledger_of(words.user("a"), dialect=dialect)
    turn(ledger, *words.calls("call_a"), mode="full")
    ledger.append(call_settled(ledger, ledger.unsettled()[0], "ok"))
    turn(ledger, words.said("x"), mode="full", id="resp_2")
    return ledger, words


def added(facts):
    """What facts add, which must be all they do."""
    assert all(isinstance(fact, ItemAdded) for fact in facts), facts
    return [fact.item for fact in facts]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_same_history_adds_nothing(dialect):
    ledger, _ = said_and_done(dialect)
    assert resent(ledger, ledger.history()) == []


@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_is_new_at_the_end_is_added_at_the_tip(dialect):
    ledger, words = said_and_done(dialect)
    facts = resent(ledger, [*ledger.history(), words.user("b"), words.user("b")])
    assert facts == [item_added(words.user("b"))] * 2


def test_who_gave_an_item_is_told_from_what_it_is():
    ledger = Ledger()
    facts = resent(ledger, [user(), said(), call(), output(), reasoning()])
    assert [fact.by for fact in facts] == [By.USER, By.IMPORT, By.IMPORT, By.USER, By.IMPORT]


def test_the_second_equal_message_is_a_second_message():
    ledger = ledger_of(user("a"), user("a"))
    assert resent(ledger, [user("a"), user("a")]) == []
    assert added(resent(ledger, [user("a")] * 3)) == [ledger.item(2)]


def test_a_client_may_leave_reasoning_out():
    ledger = ledger_of(user("a"))
    turn(ledger, reasoning("rs_1"), said("x"), reasoning("rs_2"), call())
    ledger.append(call_settled(ledger, ledger.call("call_a"), "ok"))
    told = [wire for wire in ledger.history() if wire.get("type") != "reasoning"]
    assert resent(ledger, told) == []
    assert resent(ledger, [*told, user("b")]) == [item_added(user("b"))]
    half = [wire for wire in ledger.history() if wire.get("id") != "rs_1"]
    assert resent(ledger, half) == []


def test_a_message_that_only_begins_with_thinking_may_not_be_left_out():
    thinking = {"type": "thinking", "thinking": "hm", "signature": "s"}
    message = {"role": "assistant", "content": [thinking, {"type": "text", "text": "A"}]}
    ledger = ledger_of(user("a"), dialect="messages")
    turn(ledger, message, mode="full")
    assert matched(ledger, [user("a")]).link == 2
    facts = resent(ledger, [user("a"), {"role": "assistant", "content": "B"}, user("b")])
    ledger.extend(facts)
    assert ledger.history() == [user("a"), {"role": "assistant", "content": "B"}, user("b")]


def test_an_edited_message_is_a_fork_and_nothing_is_changed():
    ledger = ledger_of(user("a"))
    turn(ledger, said("x"))
    ledger.append(item_added(user("b")))
    turn(ledger, said("y"), id="resp_2")
    told = ledger.history()
    before = list(ledger.facts)
    ledger.extend(resent(ledger, [*told[:2], user("B")]))
    assert texts(ledger.history()) == ["a", "x", "B"]
    assert list(ledger.facts)[: len(before)] == before
    plan = ledger.plan()
    assert (plan.anchor, ledger.items(plan)) == ("resp_1", [user("B")])


def test_a_shorter_history_is_a_rollback():
    ledger = ledger_of(user("a"))
    turn(ledger, said("x"))
    told = ledger.history()
    ledger.append(item_added(user("b")))
    turn(ledger, said("y"), id="resp_2")
    facts = resent(ledger, told)
    assert facts == [ItemsRemoved(by=Removal.ROLLBACK, to=3)]
    ledger.extend(facts)
    assert resent(ledger, told) == []
    assert resent(ledger, []) == [ItemsRemoved(by=Removal.ROLLBACK, to=START)]


def test_an_empty_history_of_an_empty_ledger_adds_nothing():
    assert resent(Ledger(), []) == []


def test_an_output_that_the_client_left_out_is_still_there():
    ledger = ledger_of(user("a"))
    turn(ledger, call())
    ledger.append(call_settled(ledger, ledger.call("call_a"), "ok"))
    ledger.extend(resent(ledger, [user("a"), call(), user("b")]))
    assert ledger.history() == [user("a"), call(), output(), user("b")]


@pytest.mark.parametrize("by", [By.USER, By.TOOL])
def test_an_output_that_came_as_an_item_may_be_left_out_again_and_again(by):
    ledger = ledger_of(call())
    ledger.append(item_added(output(), by))
    ledger.append(item_added(user("a")))
    for _ in range(2):
        ledger.extend(resent(ledger, [call(), user("b")]))
        assert ledger.history() == [call(), output(), user("b")]
    assert resent(ledger, [call(), user("b")]) == []


def test_an_output_that_the_client_gives_answers_its_call():
    ledger = ledger_of(user("a"))
    turn(ledger, call())
    ledger.extend(resent(ledger, [*ledger.history(), output("call_a", "theirs")]))
    made = ledger.call("call_a")
    assert made.output == ledger.tip
    assert ledger.items(ledger.plan()) == [output("call_a", "theirs")]


def test_outputs_in_another_order_are_the_same_outputs():
    ledger = ledger_of(user("a"))
    turn(ledger, call("call_a"), call("call_b"))
    for key in ("call_a", "call_b"):
        ledger.append(call_settled(ledger, ledger.call(key), key))
    history = [*ledger.history()[:3], output("call_b", "call_b"), output("call_a", "call_a")]
    ledger.extend(resent(ledger, history))
    assert sorted(texts(ledger.items(ledger.plan()))) == ["call_a", "call_b"]
    assert resent(ledger, history) == []
    turn(ledger, said("x"), id="resp_2")
    assert resent(ledger, [*history, said("x")]) == []


def test_requests_that_came_to_nothing_are_not_looked_for():
    ledger = ledger_of(user("a"))
    ledger.append(RequestRejected(request=send(ledger)))
    turn(ledger, said("gone"), ending=Ending.CUT)
    assert resent(ledger, [user("a")]) == []
    assert resent(ledger, [user("a"), user("b")]) == [item_added(user("b"))]


def test_an_answer_that_was_cut_and_kept_is_part_of_the_history():
    ledger = ledger_of(user("a"))
    turn(ledger, call(), ending=Ending.CUT)
    ledger.append(CallStarted(call=ledger.call("call_a").seq))
    ledger.append(call_settled(ledger, ledger.call("call_a"), "ok"))
    assert resent(ledger, [user("a"), call(), output()]) == []


def test_after_a_compaction_the_history_begins_with_its_summary():
    ledger = ledger_of(user("a"), user("b"), user("c"))
    ledger.extend(compacted(ledger, max_items=1, replaced=[user("sum")]))
    assert resent(ledger, [user("sum"), user("c")]) == []
    assert resent(ledger, [user("sum"), user("c"), user("d")]) == [item_added(user("d"))]


def test_what_comes_back_dressed_by_the_provider_is_the_same():
    ledger = ledger_of(user("hi"))
    turn(ledger, said("x", id="msg_2"), call(id="fc_1"))
    dressed = [
        {
            "type": "message",
            "id": "msg_1",
            "status": "completed",
            "role": "user",
            "content": [{"type": "input_text", "text": "hi"}],
        },
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "x", "annotations": [], "logprobs": []}],
        },
        {**call(), "status": "completed"},
    ]
    assert resent(ledger, dressed) == []


def test_after_a_compaction_a_shorter_history_is_a_rollback_of_what_stayed():
    ledger = ledger_of(user("a"), user("b"), user("c"), user("d"))
    ledger.extend(compacted(ledger, max_items=2, replaced=[user("sum")]))
    ledger.append(item_added(user("e")))
    for shorter in (["sum", "c", "d"], ["sum", "c"], ["sum"]):
        ledger.extend(resent(ledger, [user(text) for text in shorter]))
        assert texts(ledger.history()) == shorter


def test_after_a_compaction_an_edited_message_is_a_fork_of_what_stayed():
    ledger = ledger_of(user("a"), user("b"), user("c"), user("d"))
    ledger.extend(compacted(ledger, max_items=2, replaced=[user("sum")]))
    ledger.extend(resent(ledger, [user("sum"), user("c"), user("D"), user("e")]))
    assert texts(ledger.history()) == ["sum", "c", "D", "e"]


def test_any_path_can_be_matched():
    ledger = ledger_of(user("a"), user("b"))
    ledger.append(item_added(user("c"), after=2))
    assert matched(ledger, [user("a"), user("b")], tip=3) == Position(3, 0, 2, whole=True)
    assert matched(ledger, [user("a"), user("b")]) == Position(2, 0, 1)
    with pytest.raises(NotInLedger):
        matched(ledger, [], tip=99)


# --- properties --------------------------------------------------------------------------------


@settings(max_examples=examples(150))
@given(dialects, plays, modes)
def test_to_resend_what_is_there_adds_nothing(dialect, moves, mode):
    ledger = Play(dialect, mode).all(moves).ledger
    assert resent(ledger, ledger.history()) == []


@settings(max_examples=examples(150))
@given(dialects, plays, modes, st.integers(1, 3))
def test_to_resend_what_is_there_and_more_adds_exactly_what_is_more(dialect, moves, mode, count):
    play = Play(dialect, mode).all(moves)
    ledger, told = play.ledger, play.ledger.history()
    new = [play.words.user(f"new {n}") for n in range(count)]
    facts = resent(ledger, [*told, *new])
    assert facts == [item_added(item) for item in new]
    ledger.extend(facts)
    assert resent(ledger, ledger.history()) == []


@settings(max_examples=examples(100))
@given(dialects, plays, modes, st.data())
def test_whatever_is_resent_is_the_history_afterwards(dialect, moves, mode, data):
    play = Play(dialect, mode).all(moves)
    ledger, told = play.ledger, play.ledger.history()
    told = [wire for wire in told if wire.get("type") != "reasoning"]
    wanted = told[: data.draw(st.integers(0, len(told)))]
    wanted += [play.words.user(text) for text in data.draw(st.lists(st.sampled_from("xyz")))]
    facts = resent(ledger, wanted)
    ledger.extend(facts)
    now = [wire for wire in ledger.history() if wire.get("type") != "reasoning"]
    # Outputs that the client cut off are still the outputs of their calls.
    settled = {made.output for made in ledger.calls.values() if made.output is not None}
    outputs = [ledger.wire(seq) for seq in settled]
    rest = iter(now)
    assert all(any(wire == other for other in rest) for wire in wanted)
    assert all(wire in outputs for wire in now if wire not in wanted)
    assert resent(ledger, ledger.history()) == []


@settings(max_examples=examples(100))
@given(dialects, plays, modes, st.data())
def test_what_was_resent_once_adds_nothing_the_second_time(dialect, moves, mode, data):
    play = Play(dialect, mode, compacts=False).all(moves)
    ledger, told = play.ledger, play.ledger.history()
    read = ledger.dialect.read
    kept = [
        wire
        for wire in told
        if data.draw(st.integers(0, 5)) or any(item.part is Part.OUTPUT for item in read(wire))
    ]
    wanted = [*kept, *(play.words.user(text) for text in data.draw(st.lists(st.just("x"))))]
    ledger.extend(resent(ledger, wanted))
    assert resent(ledger, wanted) == []


@settings(max_examples=examples(100))
@given(dialects, st.lists(st.tuples(st.booleans(), plays), max_size=4), modes)
def test_a_follower_adds_what_a_fresh_look_would_add(dialect, rounds, mode):
    play = Play(dialect, mode, compacts=False)
    ledger = play.ledger
    follower = Follower(ledger)
    for more, moves in rounds:
        play.all(moves[:5])
        history = [*ledger.history(), *[play.words.user("more")] * more]
        facts = follower.resent(history)
        assert facts == resent(ledger, history)
        ledger.extend(facts)


# --- followers ---------------------------------------------------------------------------------


def test_a_follower_adds_the_end_of_each_history():
    ledger = Ledger()
    follower = Follower(ledger)
    ledger.extend(follower.resent([user("a")]))
    turn(ledger, said("x"))
    history = [user("a"), said("x"), user("b")]
    facts = follower.resent(history)
    assert facts == [item_added(user("b"))]
    ledger.extend(facts)
    assert follower.resent(history) == []


def test_a_follower_that_is_given_another_past_forks():
    ledger = Ledger()
    follower = Follower(ledger)
    ledger.extend(follower.resent([user("a"), user("b")]))
    ledger.extend(follower.resent([user("A"), user("b")]))
    assert texts(ledger.history()) == ["A", "b"]
    ledger.extend(follower.resent([user("a"), user("b"), user("c")]))
    assert texts(ledger.history()) == ["a", "b", "c"]


def test_a_follower_does_not_add_an_output_that_was_settled_here():
    ledger = Ledger()
    follower = Follower(ledger)
    ledger.extend(follower.resent([user("a"), call()]))
    ledger.append(call_settled(ledger, ledger.call("call_a"), "ok"))
    assert follower.resent(ledger.history()) == []


def test_a_follower_keeps_up_when_outputs_come_in_another_order():
    ledger = Ledger()
    follower = Follower(ledger)
    ledger.extend(follower.resent([user("a")]))
    turn(ledger, call("call_a"), call("call_b"))
    ledger.append(call_settled(ledger, ledger.call("call_b"), "B"))
    history = [user("a"), call("call_a"), call("call_b"), output("call_b", "B")]
    assert follower.resent(history) == []
    ledger.append(call_settled(ledger, ledger.call("call_a"), "A"))
    ledger.extend(follower.resent([*history, output("call_a", "A")]))
    assert sorted(texts(ledger.items(ledger.plan()))) == ["A", "B"]


def test_a_follower_that_lost_its_place_begins_again():
    ledger = Ledger()
    follower = Follower(ledger)
    follower.resent([user("a")])  # and nobody appended it
    assert follower.resent([user("a")]) == [item_added(user("a"))]
    ledger.extend(follower.resent([user("a")]))
    ledger.append(ItemsRemoved(by=Removal.ROLLBACK, to=START))
    ledger.extend(follower.resent([user("a"), user("b")]))
    assert texts(ledger.history()) == ["a", "b"]


def test_a_follower_knows_what_its_client_does_not_know_was_compacted():
    ledger = Ledger()
    follower = Follower(ledger)
    ledger.extend(follower.resent([user("a"), user("b")]))
    ledger.extend(compacted(ledger, replaced=[user("sum")]))
    assert follower.resent([user("a"), user("b")]) == []
    facts = follower.resent([user("a"), user("b"), user("c")])
    assert facts == [item_added(user("c"))]
    ledger.extend(facts)
    assert texts(ledger.history()) == ["sum", "c"]


def test_a_follower_looks_at_what_is_new_and_at_nothing_else(monkeypatch):
    ledger = Ledger()
    follower = Follower(ledger)
    history = [user(str(n)) for n in range(300)]
    ledger.extend(follower.resent(history))
    looked = []
    item = Ledger.item
    monkeypatch.setattr(Ledger, "item", lambda self, seq: looked.append(seq) or item(self, seq))
    history.append(user("new"))
    assert len(follower.resent(history)) == 1
    assert len(looked) <= 1


class Unequal(dict):
    """An item that nobody may look into to see whether it is another one."""

    def __eq__(self, other):
        raise AssertionError("an item was compared with another")

    __hash__ = None


def test_a_follower_does_not_look_into_items_that_are_the_same_objects():
    ledger = Ledger()
    follower = Follower(ledger)
    history = [Unequal(user("a")), Unequal(user("b"))]
    ledger.extend(follower.resent(history))
    history.append(Unequal(user("c")))
    facts = follower.resent(history)
    assert [fact.item for fact in facts] == [item_added(user("c")).item]


def test_a_follower_does_not_hold_on_to_the_list_that_it_was_given():
    ledger = Ledger()
    follower = Follower(ledger)
    history = [user("a"), user("b")]
    ledger.extend(follower.resent(history))
    history[0] = user("A")
    ledger.extend(follower.resent(history))
    assert texts(ledger.history()) == ["A", "b"]


def test_a_history_with_what_is_no_item_is_followed_once_that_is_gone():
    ledger = Ledger()
    follower = Follower(ledger)
    ledger.extend(follower.resent([user("a")]))
    for bad in NOT_JSON.values():
        with pytest.raises(NotAnItem):
            follower.resent([user("a"), user("b"), bad])
    ledger.extend(follower.resent([user("a"), user("b")]))
    ledger.extend(follower.resent([user("a"), user("b"), user("c")]))
    assert texts(ledger.history()) == ["a", "b", "c"]


@pytest.mark.parametrize("kind", [list, tuple])
def test_a_follower_takes_histories_that_get_shorter_and_are_of_any_kind(kind):
    ledger = Ledger()
    follower = Follower(ledger)
    for letters in ("abc", "a", "ab", "abd", ""):
        ledger.extend(follower.resent(kind([user(letter) for letter in letters])))
        assert texts(ledger.history()) == [*letters]


def test_items_of_the_same_bytes_are_the_same_and_so_are_those_that_only_say_the_same():
    ledger = ledger_of(user("a"))
    respelled = {
        "type": "message",
        "role": "user",
        "content": [{"type": "input_text", "text": "a"}],
    }
    assert resent(ledger, [user("a")]) == resent(ledger, [respelled]) == []


def test_a_follower_is_shown_with_how_far_it_is():
    follower = Follower(ledger_of(user()))
    follower.resent([user()])
    assert repr(follower) == "<Follower of <Ledger responses, 2 facts, tip 2> at item 1>"


# --- hostile histories -------------------------------------------------------------------------


@settings(max_examples=examples(120))
@given(dialects, st.lists(hostile_items, max_size=4), st.lists(hostile_items, max_size=4))
def test_odd_items_are_matched_and_taken_like_all_others(dialect, first, second):
    ledger = Ledger(dialect)
    ledger.extend(resent(ledger, first))
    assert resent(ledger, ledger.history()) == []
    ledger.extend(resent(ledger, [*first, *second]))
    ledger.extend(resent(ledger, second))


@pytest.mark.parametrize("kind", NOT_JSON)
def test_a_history_that_cannot_be_written_as_json_is_refused(kind):
    ledger = ledger_of(user("a"))
    for history in ([NOT_JSON[kind]], [user("a"), NOT_JSON[kind]]):
        with pytest.raises(NotAnItem, match="cannot be written as JSON"):
            resent(ledger, history)
        with pytest.raises(NotAnItem, match="cannot be written as JSON"):
            Follower(ledger).resent(history)


@pytest.mark.parametrize("thing", [None, 7, [user()], b"[]", b"\xff", {1: 2}])
def test_a_history_of_things_that_are_no_items_is_refused_by_the_ledger_at_the_latest(thing):
    ledger = ledger_of(user("a"))
    try:
        facts = resent(ledger, [thing])
        ledger.extend(facts)
    except LockstitchError:
        assert len(ledger) == 2
    else:
        assert isinstance(thing, dict)


def test_a_text_in_a_history_is_a_message_of_the_user():
    ledger = ledger_of(user("a"))
    assert resent(ledger, ["a", "b"]) == [item_added("b")]
