"""Arranging: links as the items that a provider is to read, and which of them may travel."""

from __future__ import annotations

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

import lockstitch
from lockstitch.core.arranging import arranged, context, history, sent_parts, travelling
from lockstitch.core.facts import By, CallStarted, Ending, Mode
from lockstitch.core.items import Part
from lockstitch.core.links import back
from lockstitch.ledgers import call_settled, item_added
from tests.generated import examples
from tests.played import Play, dialects, plays
from tests.turns import Words, call, ledger_of, output, reasoning, said, turn, user

modes = st.sampled_from([Mode.FULL, Mode.CHAIN])


def kinds(wires):
    return [wire.get("call_id") or wire.get("role") or wire["type"] for wire in wires]


def whole_path(ledger):
    return [link for link, _ in back(ledger.links, ledger.tip)][::-1]


# --- where outputs stand -----------------------------------------------------------------------


def test_an_output_that_we_settled_stands_behind_the_group_of_its_call():
    ledger = ledger_of(user())
    turn(ledger, call("call_a"), call("call_b"))
    ledger.append(item_added(user("meanwhile")))
    for key in ("call_b", "call_a"):  # settled in another order, and late
        ledger.append(call_settled(ledger, ledger.call(key), key))
    told = ledger.history()
    assert [wire.get("output") for wire in told] == [None, None, None, "call_a", "call_b", None]
    assert told[-1]["content"] == "meanwhile"


def test_an_output_that_a_client_gave_stands_where_it_was_given():
    ledger = ledger_of(user())
    turn(ledger, call("call_a"), call("call_b"))
    ledger.append(item_added(output("call_b", "given")))
    ledger.append(item_added(output("call_a", "given")))
    assert kinds(ledger.history()) == ["user", "call_a", "call_b", "call_b", "call_a"]


def test_outputs_given_and_settled_mix_and_each_stands_once():
    ledger = ledger_of(user())
    turn(ledger, call("call_a"), call("call_b"))
    ledger.append(item_added(output("call_b", "given")))
    ledger.append(call_settled(ledger, ledger.call("call_a"), "settled"))
    ledger.append(item_added(user("next")))
    assert kinds(ledger.history()) == ["user", "call_a", "call_b", "call_a", "call_b", "user"]


def test_a_fork_behind_a_call_shares_its_output():
    ledger = ledger_of(user())
    request = turn(ledger, call())
    ledger.append(call_settled(ledger, ledger.call("call_a"), "once"))
    ledger.append(item_added(user("left")))
    ledger.append(item_added(user("right"), after=request))
    assert kinds(ledger.history()) == ["user", "call_a", "call_a", "user"]
    assert ledger.history()[2]["output"] == "once"


def test_a_fork_behind_calls_takes_a_message_that_answers_them_all_once():
    words = Words("messages")
    ledger = ledger_of(words.user(), dialect="messages")
    request = turn(ledger, *words.calls("call_a", "call_b"), mode="full")
    both = [words.output(key)["content"][0] for key in ("call_a", "call_b")]
    ledger.append(item_added({"role": "user", "content": both}))
    ledger.append(item_added(words.user("other"), after=request))
    assert len(ledger.history()) == 4


def test_calls_without_an_output_are_named_and_not_arranged():
    ledger = ledger_of(user(), call("call_a"), call("call_b"), output("call_a"))
    found = arranged(whole_path(ledger))
    assert [made.item.key for made in found.unsettled] == ["call_b"]
    assert found.entries == [2, 3, 4, 5]


def test_a_call_that_runs_at_the_provider_is_waited_for_by_nobody():
    ledger = ledger_of(user())
    turn(ledger, {"type": "program", "call_id": "call_p", "id": "prog_1"})
    assert arranged(whole_path(ledger)).unsettled == []


def test_each_link_starts_behind_the_entries_before_it():
    ledger = ledger_of(user("a"))
    turn(ledger, call("call_a"), ending=Ending.CUT)
    turn(ledger, call("call_b"), id="resp_2")
    ledger.append(call_settled(ledger, ledger.call("call_b"), "ok"))
    ledger.append(item_added(user("b")))
    found = arranged(whole_path(ledger))
    assert len(found.entries) == 4
    assert found.starts == [0, 1, 1, 3]


@settings(max_examples=examples(100))
@given(dialects, plays, modes)
def test_every_entry_stands_once_and_starts_never_go_back(dialect, moves, mode):
    ledger = Play(dialect, mode).all(moves).ledger
    links = whole_path(ledger)
    found = arranged(links)
    assert len(found.entries) == len(set(found.entries))
    assert len(found.starts) == len(links)
    assert found.starts == sorted(found.starts)
    assert history(ledger) == found.entries


@settings(max_examples=examples(100))
@given(dialects, plays, modes)
def test_a_conversation_whose_calls_are_settled_is_told_whole(dialect, moves, mode):
    ledger = Play(dialect, mode).all(moves).ledger
    for made in arranged(whole_path(ledger)).unsettled:
        if made.output is None:
            ledger.append(call_settled(ledger, made, "late"))
    # What the model said of reasoning alone is the provider's business.
    told = [wire for wire in ledger.history() if wire.get("type") != "reasoning"]
    assert lockstitch.check(told, dialect=dialect) == []


# --- what may travel ---------------------------------------------------------------------------


def sent(ledger, entries=None):
    """What would be sent of a whole history."""
    entries = history(ledger) if entries is None else entries
    return [ledger.rendered(sending) for sending in travelling(ledger, entries)]


def test_reasoning_that_carries_its_content_travels_with_what_it_led_to():
    ledger = ledger_of(user())
    said_so = [reasoning("rs_1", "secret"), said("x", id="msg_1")]
    turn(ledger, *said_so)
    assert sent(ledger) == [user(), *said_so]


def test_reasoning_that_is_only_a_reference_stays_and_what_was_said_with_it_loses_its_ids():
    ledger = ledger_of(user())
    turn(ledger, reasoning("rs_1"), said("x", id="msg_1"), call(id="fc_1"))
    ledger.append(call_settled(ledger, ledger.call("call_a"), "ok"))
    ledger.append(item_added(user("next", id="msg_2")))
    assert sent(ledger) == [user(), said("x"), call(), output(), user("next", id="msg_2")]


def test_reasoning_that_led_to_nothing_stays():
    ledger = ledger_of(user("a"))
    turn(ledger, reasoning("rs_1", "secret"), ending=Ending.INCOMPLETE)
    assert sent(ledger) == [user("a")]
    ledger.append(item_added(user("b")))
    assert sent(ledger) == [user("a"), user("b")]


def test_an_id_that_a_provider_wants_is_another_one_when_it_may_not_stay():
    ledger = ledger_of(user())
    computer = {"type": "computer_call", "call_id": "call_a", "id": "cu_1"}
    turn(ledger, reasoning("rs_1"), computer)
    ledger.append(call_settled(ledger, ledger.call("call_a"), screenshot("call_a")))
    (made,) = [wire for wire in sent(ledger) if wire.get("type") == "computer_call"]
    assert made["id"]
    assert made["id"] != "cu_1"


def screenshot(key):
    shown = {"type": "computer_screenshot", "image_url": "data:image/png;base64,AA=="}
    return {"type": "computer_call_output", "call_id": key, "output": shown}


def test_of_several_items_with_one_id_only_the_first_keeps_it():
    ledger = ledger_of(user("a", id="msg_1"), user("b", id="msg_1"), user("c", id="msg_1"))
    assert sent(ledger) == [user("a", id="msg_1"), user("b"), user("c")]


def test_what_the_provider_compacted_is_not_sent_again():
    summary = {"type": "compaction", "encrypted_content": "x"}
    ledger = ledger_of(user("a"))
    turn(ledger, summary, said("x"), mode=Mode.FULL)
    ledger.append(item_added(user("b")))
    assert ledger.items(ledger.plan(Mode.FULL)) == [summary, said("x"), user("b")]


def test_a_call_that_is_open_when_the_provider_compacts_keeps_what_was_before():
    summary = {"type": "compaction", "encrypted_content": "x"}
    ledger = ledger_of(user("a"))
    turn(ledger, call(), summary, mode=Mode.FULL)
    ledger.append(call_settled(ledger, ledger.call("call_a"), "ok"))
    assert ledger.items(ledger.plan(Mode.FULL)) == [user("a"), call(), summary, output()]


def test_a_message_of_thinking_travels_with_its_signature():
    thinking = {"type": "thinking", "thinking": "hm", "signature": "s"}
    message = {"role": "assistant", "content": [thinking, {"type": "text", "text": "x"}]}
    ledger = ledger_of(user(), message, user("b"), dialect="messages", by=By.IMPORT)
    assert sent(ledger) == [user(), message, user("b")]


def test_an_item_that_goes_without_its_id_is_read_without_it_too():
    ledger = ledger_of(user("a", id="msg_1"), user("b", id="msg_1"))
    first, second = travelling(ledger, [2, 3])
    assert [item.id for item in sent_parts(ledger, first)] == ["msg_1"]
    assert [item.id for item in sent_parts(ledger, second)] == [None]


@settings(max_examples=examples(150))
@given(plays, modes, st.data())
def test_only_reasoning_that_is_carried_and_followed_is_ever_sent(moves, mode, data):
    ledger = Play("responses", mode).all(moves).ledger
    entries = data.draw(st.permutations([*ledger.parts])) if moves else []
    for order in (history(ledger), entries):
        sendings = travelling(ledger, order)
        parts = [ledger.parts[sending.seq][0] for sending in sendings]
        for item, after in itertools.zip_longest(parts, parts[1:]):
            if item.part is Part.REASONING:
                assert item.carried
                assert after is not None
                assert after.part not in (Part.INPUT, Part.OUTPUT)


@settings(max_examples=examples(100))
@given(dialects, plays, modes)
def test_nothing_but_reasoning_stays_behind_and_the_order_is_kept(dialect, moves, mode):
    ledger = Play(dialect, mode).all(moves).ledger
    entries = history(ledger)
    sending = [each.seq for each in travelling(ledger, entries)]
    left = [seq for seq in entries if seq not in sending]
    assert all(ledger.parts[seq][0].part is Part.REASONING for seq in left)
    assert sending == [seq for seq in entries if seq in sending]


@settings(max_examples=examples(100))
@given(plays, modes)
def test_no_id_is_sent_twice(moves, mode):
    ledger = Play("responses", mode).all(moves).ledger
    ids = [wire["id"] for wire in sent(ledger) if "id" in wire]
    assert len(ids) == len(set(ids))


# --- what the provider has ---------------------------------------------------------------------


def test_the_context_of_an_answer_is_everything_sent_and_said_up_to_it():
    ledger = ledger_of(user("a"))
    turn(ledger, call())
    ledger.append(call_settled(ledger, ledger.call("call_a"), "ok"))
    request = turn(ledger, said(), id="resp_2")
    wires = [ledger.wire(seq) for seq in context(ledger, request)]
    assert wires == [user("a"), call(), output(), said()]


def test_what_was_rejected_is_in_no_context():
    ledger = ledger_of(user("a"))
    turn(ledger, said("no"), ending=Ending.FAILED)
    request = turn(ledger, said("yes"), id="resp_2")
    assert [ledger.wire(seq) for seq in context(ledger, request)] == [user("a"), said("yes")]


def test_a_kept_answer_is_in_the_context_as_what_was_sent():
    ledger = ledger_of(user("a"))
    turn(ledger, call(), ending=Ending.CUT)
    ledger.append(CallStarted(call=ledger.call("call_a").seq))
    ledger.append(call_settled(ledger, ledger.call("call_a"), "ok"))
    request = turn(ledger, said(), id="resp_2")
    wires = [ledger.wire(seq) for seq in context(ledger, request)]
    assert wires == [user("a"), call(), output(), said()]


@settings(max_examples=examples(100))
@given(dialects, plays)
def test_what_is_sent_in_full_is_what_was_said_apart_from_reasoning(dialect, moves):
    play = Play(dialect, Mode.FULL, compacts=False).all(moves)
    for _, wires in play.sent:
        assert lockstitch.check(wires, dialect=dialect) == []
