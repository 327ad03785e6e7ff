"""The ledger: facts in, state derived; a fact that raised changed nothing."""

from __future__ import annotations

import gc
import typing

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lockstitch.core.calls import Life
from lockstitch.core.errors import IllegalFact, LockstitchError, NotAnItem, NotInLedger
from lockstitch.core.exchanges import Standing
from lockstitch.core.facts import (
    START,
    AnchorAdopted,
    AnchorLost,
    AnyFact,
    By,
    CallSettled,
    CallStarted,
    Ending,
    ItemAdded,
    ItemCompleted,
    ItemsRemoved,
    Mode,
    Noted,
    Opened,
    Removal,
    RequestLost,
    RequestPrepared,
    RequestRejected,
    RequestSent,
    ResponseOpened,
)
from lockstitch.core.ledger import _TAKE, Ledger
from lockstitch.core.outcomes import Outcome
from lockstitch.dialects.reading import reading
from lockstitch.ledgers import call_settled, encoded, item_added, item_completed
from lockstitch.ledgers import ledger as ledgers
from tests.generated import examples, hostile_items
from tests.played import Play, dialects, plays
from tests.turns import (
    DIALECTS,
    Words,
    answer,
    call,
    ledger_of,
    output,
    prepare,
    said,
    send,
    turn,
    user,
)

modes = st.sampled_from([Mode.FULL, Mode.CHAIN])


def refused(ledger, fact, match=None):
    """Append it, which must raise and change nothing; what it said."""
    before, length = ledger.state(), len(ledger)
    with pytest.raises((IllegalFact, NotAnItem), match=match) as raised:
        ledger.append(fact)
    assert ledger.state() == before
    assert len(ledger) == length
    return str(raised.value)


# --- the door ----------------------------------------------------------------------------------


def test_every_kind_of_fact_has_its_place_at_the_door():
    assert set(_TAKE) == set(typing.get_args(AnyFact))


def test_a_position_is_counted_from_one_and_the_opening_is_the_first():
    ledger = Ledger(reading("chat"))
    assert ledger.fact(1) == Opened(dialect="chat")
    assert ledger.append(item_added(user())) == 2
    assert len(ledger) == 2
    assert ledger.fact(2) == ledger.facts[1]


def test_a_ledger_is_opened_once():
    for dialect in ("responses", "chat", "", "nonsense"):
        said = refused(Ledger(reading("responses")), Opened(dialect=dialect))
        assert said == "A ledger is opened once, by its first fact."


def test_extend_stops_at_the_first_illegal_fact_and_keeps_those_before_it():
    ledger = ledger_of()
    facts = [item_added(user("a")), RequestSent(request=2), item_added(user("b"))]
    with pytest.raises(IllegalFact):
        ledger.extend(facts)
    assert len(ledger) == 2
    assert ledger.tip == 2


def test_a_ledger_is_shown_with_its_dialect_its_length_and_its_tip():
    assert repr(ledger_of(user())) == "<Ledger responses, 2 facts, tip 2>"


@settings(max_examples=examples(150))
@given(dialects, plays, modes)
def test_the_same_facts_give_the_same_state_byte_for_byte(dialect, moves, mode):
    ledger = Play(dialect, mode).all(moves).ledger
    rebuilt = ledgers.Ledger.rebuilt(ledger.facts)
    assert rebuilt.state() == ledger.state()
    assert rebuilt.history() == ledger.history()
    assert repr(rebuilt.plan(mode)) == repr(ledger.plan(mode))


@settings(max_examples=examples(60))
@given(dialects, plays, modes, st.data())
def test_the_state_at_any_point_is_the_state_of_the_facts_up_to_it(dialect, moves, mode, data):
    ledger = Play(dialect, mode).all(moves).ledger
    facts = list(ledger.facts)
    at = data.draw(st.integers(1, len(facts)))
    once = ledgers.Ledger.rebuilt(facts[:at])
    again = ledgers.Ledger.rebuilt(facts[:at])
    assert once.state() == again.state()
    once.extend(facts[at:])
    assert once.state() == ledger.state()


seqs = st.integers(-2, 30)
names = st.sampled_from(["resp_1", "resp_2", "conv_1", ""])
any_fact = st.one_of(
    st.builds(Opened, dialect=st.sampled_from(["responses", "chat"])),
    st.builds(
        ItemAdded,
        item=st.sampled_from([b"{}", b"", b"null", encoded(user()), encoded(output("call_1"))]),
        by=st.sampled_from(By),
        after=st.one_of(st.none(), seqs),
    ),
    st.builds(CallStarted, call=seqs, slot=st.integers(-1, 2)),
    st.builds(
        CallSettled,
        call=seqs,
        slot=st.integers(-1, 2),
        item=st.sampled_from([encoded(output("call_1")), b"{}", b"x"]),
        outcome=st.sampled_from(Outcome),
    ),
    st.builds(
        RequestPrepared,
        mode=st.sampled_from(Mode),
        base=seqs,
        covers=seqs,
        sent=st.lists(seqs, max_size=3).map(tuple),
        anchor=st.one_of(st.none(), names),
    ),
    st.builds(RequestSent, request=seqs),
    st.builds(RequestRejected, request=seqs),
    st.builds(RequestLost, request=seqs),
    st.builds(ResponseOpened, request=seqs, id=st.one_of(st.none(), names)),
    st.builds(
        ItemCompleted, request=seqs, item=st.sampled_from([encoded(call("call_1")), b"[]", b"{}"])
    ),
    st.builds(
        ItemsRemoved,
        by=st.sampled_from(Removal),
        to=seqs,
        replaced=st.lists(seqs, max_size=2).map(tuple),
    ),
    st.builds(AnchorAdopted, mode=st.sampled_from(Mode), anchor=names),
    st.builds(AnchorLost, anchor=names),
    st.builds(Noted, kind=names, note=st.binary(max_size=8)),
)


@settings(max_examples=examples(150))
@given(dialects, plays, modes, st.lists(any_fact, max_size=12))
def test_any_fact_at_any_time_is_recorded_or_raises_and_changes_nothing(
    dialect, moves, mode, facts
):
    ledger = Play(dialect, mode).all(moves).ledger
    for fact in facts:
        before, length = ledger.state(), len(ledger)
        try:
            assert ledger.append(fact) == length + 1
        except (IllegalFact, NotAnItem):
            assert ledger.state() == before
            assert len(ledger) == length
    assert ledgers.Ledger.rebuilt(ledger.facts).state() == ledger.state()
    # Whatever was recorded: there is an answer to what comes next, and to what was said.
    for asked in Mode:
        ledger.plan(asked)
        ledger.plan(asked, conversation="conv_1")
    ledger.history()
    ledger.unsettled()


# --- hostile items -----------------------------------------------------------------------------

HOSTILE = {
    "empty": b"",
    "nothing": b"null",
    "a list": b"[]",
    "a text": b'"hi"',
    "a number": b"7",
    "two objects": b"{}{}",
    "torn": b'{"type":"message"',
    "not a number": b'{"role":"user","content":NaN}',
    "a byte that is no text": b'{"role":"user","content":"\xff"}',
    "half a surrogate pair": rb'{"role":"user","content":"\ud800"}',
    "half a surrogate pair as an id": rb'{"type":"function_call","call_id":"\ud800"}',
    "too deep": b'{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "too deep to end": b'{"x":' + b'{"y":' * 100_000,
    "a number beyond all floats": b'{"role":"user","content":1e999}',
    "an integer without end": b'{"role":"user","id":' + b"9" * 9000 + b"}",
    "a byte order mark": b'\xef\xbb\xbf{"role":"user"}',
    "utf-16": '{"role":"user"}'.encode("utf-16"),
}


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("kind", HOSTILE)
def test_bytes_that_are_no_item_are_refused_wherever_an_item_may_stand(dialect, kind):
    words = Words(dialect)
    ledger = ledger_of(words.user(), dialect=dialect)
    turn(ledger, *words.calls("call_a"), mode="full")
    made = ledger.call("call_a")
    item = HOSTILE[kind]
    for by in By:
        assert "Not a wire item" in refused(ledger, ItemAdded(item=item, by=by))
    assert "Not a wire item" in refused(ledger, CallSettled(call=made.seq, item=item))
    ledger.append(call_settled(ledger, made, "ok"))
    request = send(ledger, "full")
    ledger.append(ResponseOpened(request=request, id="resp_2"))
    said = refused(ledger, ItemCompleted(request=request, item=item))
    assert len(said) < 300


@settings(max_examples=examples(200))
@given(dialects, st.lists(hostile_items, min_size=1, max_size=5))
def test_an_object_of_odd_fields_is_an_item_all_the_same_and_can_be_told_again(dialect, items):
    ledger = ledgers.Ledger(dialect)
    for item in items:
        try:
            ledger.append(item_added(item))
        except LockstitchError as error:
            raise AssertionError(item) from error
    assert ledger.history() == items
    for mode in Mode:
        ledger.plan(mode)
    assert ledgers.Ledger.rebuilt(ledger.facts).state() == ledger.state()


@settings(max_examples=examples(100))
@given(dialects, st.lists(hostile_items, min_size=1, max_size=4))
def test_the_model_may_say_items_of_odd_fields(dialect, items):
    ledger = ledger_of(Words(dialect).user(), dialect=dialect)
    turn(ledger, *items, mode="full")
    assert ledger.history()[1:] == items
    ledger.append(item_added(Words(dialect).user()))
    for mode in Mode:
        ledger.plan(mode)


def test_an_item_is_kept_as_the_bytes_that_came():
    item = b' { "role" : "user", "content":"\\u00e9" ,"unknown": [1.0, 1e2] } '
    ledger = ledger_of(item)
    assert ledger.item(2) == item


# --- items and the calls they answer -----------------------------------------------------------


@pytest.mark.parametrize("after", [1, 3, 99, -1])
def test_nothing_can_follow_what_is_no_link(after):
    said = refused(ledger_of(user()), item_added(user(), after=after))
    assert said == f"Entry {after} is no link: nothing can follow it."


def test_the_output_of_a_tool_needs_its_call_on_the_path():
    ledger = ledger_of(user())
    turn(ledger, call("call_a"))
    said = refused(ledger, item_added(output("call_b"), By.TOOL))
    assert said == "No call call_b is on this path: its output cannot be taken."
    refused(ledger, item_added(output("call_a"), By.TOOL, after=2))
    ledger.append(item_added(output("call_a"), By.TOOL))
    assert ledger.call("call_a").life is Life.SETTLED


def test_an_output_that_a_client_gives_settles_the_newest_call_of_its_key_on_the_path():
    ledger = ledger_of(user())
    turn(ledger, call("call_a"))
    first = ledger.call("call_a")
    ledger.append(item_added(output("call_a")))
    turn(ledger, call("call_a"), id="resp_2")
    second = ledger.call("call_a")
    assert first is not second
    at = ledger.append(item_added(output("call_a", "later")))
    assert (second.output, ledger.answered_by(at)) == (at, (second,))


def test_an_output_of_another_family_answers_nothing():
    ledger = ledger_of(user())
    turn(ledger, call("call_a"))
    wrong = {"type": "custom_tool_call_output", "call_id": "call_a", "output": "x"}
    ledger.append(item_added(wrong))
    assert ledger.call("call_a").life is Life.ANNOUNCED


def test_a_call_on_another_branch_is_not_on_this_one():
    ledger = ledger_of(user())
    first = turn(ledger, call("call_a"))
    ledger.append(item_added(user("other"), after=2))
    assert ledger.call("call_a") is None
    assert ledger.call("call_a", at=first).link == first


def test_what_is_sent_in_place_of_others_is_on_no_path():
    ledger = ledger_of(user("a"))
    tip = ledger.tip
    entry = ledger.append(item_added(user("instead"), By.REWRITE))
    assert ledger.tip == tip
    assert entry not in ledger.links
    assert len(ledger.history()) == 1


def test_entries_are_found_by_the_id_of_their_item():
    ledger = ledger_of(user("a", id="msg_1"), user("b", id="msg_2"), user("c", id="msg_1"))
    assert list(ledger.entries_with_id("msg_1")) == [2, 4]
    assert list(ledger.entries_with_id("msg_2")) == [3]
    assert list(ledger.entries_with_id("msg_3")) == []
    ledger.append(item_added(user("d", id="msg_3")))
    ledger.append(item_added(user("instead", id="msg_3"), By.REWRITE))
    assert list(ledger.entries_with_id("msg_3")) == [5]


def test_every_result_of_a_message_is_noted_as_answering_its_call():
    search = {"type": "server_tool_use", "name": "web_search", "input": {}}
    result = {"type": "web_search_tool_result", "content": []}
    content = [
        {**search, "id": "call_a"},
        {**result, "tool_use_id": "call_a"},
        {**search, "id": "call_b"},
        {**result, "tool_use_id": "call_b"},
    ]
    ledger = ledger_of(user(), dialect="messages")
    request = turn(ledger, {"role": "assistant", "content": content}, mode="full")
    answered = ledger.answered_by(ledger.exchange(request).said[0])
    assert [made.item.key for made in answered] == ["call_a", "call_b"]


def test_an_item_that_settles_a_call_holds_no_output_of_another():
    words = Words("messages")
    ledger = ledger_of(words.user(), dialect="messages")
    turn(ledger, *words.calls("call_a", "call_b"), mode="full")
    both = [words.output(key)["content"][0] for key in ("call_a", "call_b")]
    item = encoded({"role": "user", "content": both})
    refused(ledger, CallSettled(call=ledger.call("call_a").seq, item=item))


# --- unsettled ---------------------------------------------------------------------------------


def keys(calls):
    return [made.item.key for made in calls]


def test_calls_without_an_output_are_unsettled_in_the_order_they_were_made():
    ledger = ledger_of(user())
    turn(ledger, call("call_a"), call("call_b"), call("call_c"))
    ledger.append(CallStarted(call=ledger.call("call_c").seq))
    ledger.append(call_settled(ledger, ledger.call("call_b"), "ok"))
    assert keys(ledger.unsettled()) == ["call_a", "call_c"]


def test_imported_calls_are_unsettled_too():
    ledger = ledger_of(user(), call("call_a"), call("call_b"), output("call_a"))
    assert keys(ledger.unsettled()) == ["call_b"]


def test_calls_of_an_answer_that_is_still_coming_are_unsettled():
    ledger = ledger_of(user())
    request = send(ledger)
    ledger.append(ResponseOpened(request=request, id="resp_1"))
    ledger.append(item_completed(request, call()))
    assert keys(ledger.unsettled()) == ["call_a"]


def test_calls_of_an_answer_that_was_cut_are_unsettled_once_one_was_started():
    ledger = ledger_of(user())
    turn(ledger, call("call_a"), call("call_b"), ending=Ending.CUT)
    assert ledger.unsettled() == []
    ledger.append(CallStarted(call=ledger.call("call_a").seq))
    assert keys(ledger.unsettled()) == ["call_a", "call_b"]


def test_a_call_that_the_provider_runs_is_not_ours_to_settle():
    ledger = ledger_of(user())
    turn(ledger, {"type": "program", "call_id": "call_p", "id": "prog_1"}, call("call_a"))
    assert keys(ledger.unsettled()) == ["call_a"]


def test_while_an_answer_is_coming_a_call_that_the_provider_runs_is_not_ours_either():
    ledger = ledger_of(user())
    request = send(ledger)
    ledger.append(ResponseOpened(request=request, id="resp_1"))
    program = {"type": "program", "call_id": "call_p", "id": "prog_1"}
    ledger.append(item_completed(request, program))
    assert ledger.unsettled() == []


@settings(max_examples=examples(100))
@given(dialects, plays, modes)
def test_what_a_plan_wants_settled_is_unsettled(dialect, moves, mode):
    ledger = Play(dialect, mode).all(moves).ledger
    wanted = getattr(ledger.plan(mode), "calls", ())
    unsettled = ledger.unsettled()
    assert all(made in unsettled for made in wanted)


# --- requests ----------------------------------------------------------------------------------


def prepared(**more):
    fields = {"mode": Mode.CHAIN, "base": START, "covers": START, "sent": ()}
    return RequestPrepared(**(fields | more))


@pytest.mark.parametrize(
    ("fact", "said"),
    [
        (prepared(covers=99), "Entry 99 is no link: no request can cover it."),
        (prepared(covers=1), "Entry 1 is no link: no request can cover it."),
        (prepared(base=2, covers=2), "Entry 2 is no request: nothing can be based on it."),
        (prepared(base=99, covers=2), "Entry 99 is no request: nothing can be based on it."),
        (prepared(covers=2, sent=(2, 1)), "Entry 1 holds no item: it cannot be sent."),
        (prepared(covers=2, sent=(99,)), "Entry 99 holds no item: it cannot be sent."),
        (
            prepared(mode=Mode.CONVERSATION, covers=2, sent=(2,)),
            "A request to a conversation names the conversation.",
        ),
    ],
)
def test_a_request_stands_on_what_is_there(fact, said):
    assert refused(ledger_of(user()), fact) == said


@pytest.mark.parametrize("ending", [Ending.FAILED, Ending.CUT])
def test_only_what_the_provider_accepted_can_be_continued(ending):
    ledger = ledger_of(user())
    request = turn(ledger, said(), ending=ending)
    standing = ledger.exchange(request).standing.value
    said_so = refused(ledger, prepared(base=request, covers=request))
    assert said_so == (
        f"Request {request} is {standing}: only what the provider accepted can be continued."
    )


def test_a_request_is_based_on_its_own_path():
    ledger = ledger_of(user())
    request = turn(ledger, said())
    other = ledger.append(item_added(user("other"), after=2))
    said_so = refused(ledger, prepared(base=request, covers=other))
    assert said_so == f"Request {request} is not on the path to entry {other}."


@pytest.mark.parametrize("lose", [False, True])
def test_a_conversation_takes_one_request_at_a_time(lose):
    ledger = ledger_of(user())
    request = send(ledger, Mode.CONVERSATION, conversation="conv_1")
    if lose:
        ledger.append(RequestLost(request=request))
    fact = prepared(mode=Mode.CONVERSATION, covers=2, sent=(2,), anchor="conv_1")
    assert refused(ledger, fact) == (
        f"Request {request} to conversation conv_1 is {'lost' if lose else 'sent'}: find out what "
        "became of it first."
    )
    ledger.append(prepared(mode=Mode.CONVERSATION, covers=2, sent=(2,), anchor="conv_2"))


def test_of_two_requests_that_were_prepared_for_a_conversation_only_one_can_leave():
    ledger = ledger_of(user())
    first = prepare(ledger, Mode.CONVERSATION, conversation="conv_1")
    second = prepare(ledger, Mode.CONVERSATION, conversation="conv_1", tip=2)
    ledger.append(RequestSent(request=second))
    refused(ledger, RequestSent(request=first))


def test_rejection_and_loss_do_not_move_the_position():
    for fact in (RequestRejected, RequestLost):
        ledger = ledger_of(user())
        turn(ledger, said(), mode=Mode.CONVERSATION, conversation="conv_1")
        position = ledger.positions["conv_1"]
        ledger.append(item_added(user("b")))
        request = send(ledger, Mode.CONVERSATION, conversation="conv_1")
        ledger.append(fact(request=request))
        assert ledger.positions["conv_1"] is position


def test_outputs_are_delivered_when_the_request_that_held_them_was_accepted():
    ledger = ledger_of(user())
    turn(ledger, call())
    made = ledger.call("call_a")
    ledger.append(call_settled(ledger, made, "ok"))
    request = send(ledger)
    assert made.life is Life.SETTLED
    ledger.append(RequestRejected(request=request))
    assert made.life is Life.SETTLED
    turn(ledger, said(), id="resp_2")
    assert made.life is Life.DELIVERED


def test_a_redacted_output_is_delivered_too():
    ledger = ledger_of(user())
    turn(ledger, call())
    made = ledger.call("call_a")
    ledger.append(call_settled(ledger, made, "a secret"))
    turn(ledger, said(), items=[output("call_a", "***")], id="resp_2")
    assert made.life is Life.DELIVERED


def test_a_response_is_found_by_its_id():
    ledger = ledger_of(user())
    request = turn(ledger, said(), id="resp_9")
    assert ledger.response("resp_9").seq == request
    assert ledger.response("resp_8") is None


def test_what_is_no_request_has_no_exchange():
    with pytest.raises(NotInLedger, match="Entry 2 is no request"):
        ledger_of(user()).exchange(2)


@pytest.mark.parametrize("seq", [0, -1, 3, 99])
def test_a_position_that_is_not_in_the_ledger_is_named(seq):
    ledger = ledger_of(user())
    for ask in (ledger.fact, ledger.item):
        with pytest.raises(NotInLedger, match=f"There is no entry {seq}: the ledger has 2."):
            ask(seq)


def test_an_entry_without_an_item_has_none():
    with pytest.raises(NotInLedger, match="Entry 1 holds no item"):
        ledger_of().item(1)


@pytest.mark.parametrize("tip", [1, 99, -1])
def test_only_a_link_can_be_a_tip(tip):
    ledger = ledger_of(user())
    for ask in (ledger.history, ledger.unsettled, lambda tip: ledger.plan(tip=tip)):
        with pytest.raises(NotInLedger, match=f"Entry {tip} is no link"):
            ask(tip)
    with pytest.raises(NotInLedger):
        ledger.on_path(2, tip)


# --- what is gone ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fact", "said"),
    [
        (
            ItemsRemoved(by=Removal.ROLLBACK, to=99),
            "Entry 99 is no link of the conversation.",
        ),
        (
            ItemsRemoved(by=Removal.COMPACTION, to=START),
            "Entry 0 is not part of the conversation as it now is.",
        ),
        (
            ItemsRemoved(by=Removal.ROLLBACK, to=2, replaced=(2,)),
            "A rollback takes items away and puts none in their place.",
        ),
        (
            ItemsRemoved(by=Removal.COMPACTION, to=4),
            "Entry 4 is not part of the conversation as it now is.",
        ),
        (
            ItemsRemoved(by=Removal.COMPACTION, to=2, replaced=(1,)),
            "Entry 1 holds no item: it cannot stand for others.",
        ),
    ],
)
def test_only_what_is_there_can_go(fact, said):
    ledger = ledger_of(user("a"), user("b"), user("c"))
    ledger.append(ItemsRemoved(by=Removal.ROLLBACK, to=3))
    assert refused(ledger, fact) == said


def test_what_a_compaction_took_cannot_be_taken_again():
    ledger = ledger_of(user("a"), user("b"))
    ledger.append(ItemsRemoved(by=Removal.COMPACTION, to=2))
    refused(ledger, ItemsRemoved(by=Removal.COMPACTION, to=2), "as it now is")


def test_a_call_without_an_output_cannot_be_cut_away():
    ledger = ledger_of(user(), call())
    said = refused(ledger, ItemsRemoved(by=Removal.COMPACTION, to=3))
    assert said == "call_a (t) would be cut away without an output. Settle first."
    ledger.append(ItemsRemoved(by=Removal.COMPACTION, to=2))
    assert keys(ledger.unsettled()) == ["call_a"]


def test_a_request_that_was_prepared_and_cut_away_is_out_of_date():
    ledger = ledger_of(user())
    request = prepare(ledger)
    ledger.append(ItemsRemoved(by=Removal.COMPACTION, to=request))
    refused(ledger, RequestSent(request=request))


@pytest.mark.parametrize("facts", [1, 2])
def test_an_answer_that_may_still_come_cannot_be_cut_away(facts):
    ledger = ledger_of(user())
    request = prepare(ledger)
    ways = [RequestSent(request=request), ResponseOpened(request=request, id="resp_1")]
    ledger.extend(ways[:facts])
    refused(ledger, ItemsRemoved(by=Removal.COMPACTION, to=request), "its answer is still to come")
    ledger.append(ItemsRemoved(by=Removal.COMPACTION, to=2))


def abandoned():
    """A call whose answer was cut, and another answer behind it."""
    ledger = ledger_of(user())
    turn(ledger, call(), ending=Ending.CUT)
    made = ledger.call("call_a")
    turn(ledger, said(), id="resp_2")
    return ledger, made


def test_a_call_whose_answer_was_given_up_must_not_run_any_more():
    ledger, made = abandoned()
    said = refused(ledger, CallStarted(call=made.seq))
    assert said == (
        "call_a (t) was made in an answer that broke off, and the conversation went on without "
        "it. It must not run any more."
    )
    refused(ledger, CallSettled(call=made.seq, item=encoded(output())))
    refused(ledger, item_added(output(), By.TOOL))


def test_an_output_that_a_client_gives_for_a_call_that_was_given_up_answers_nothing():
    ledger, made = abandoned()
    told = ledger.history()
    ledger.append(item_added(output()))
    assert made.life is Life.ANNOUNCED
    assert ledger.history() == [*told, output()]


def test_an_anchor_can_be_adopted_at_the_beginning_only():
    ledger = ledger_of()
    refused(ledger, AnchorAdopted(mode=Mode.FULL, anchor="x"), "no anchor to adopt")
    ledger.append(AnchorAdopted(mode=Mode.CHAIN, anchor="resp_0"))
    refused(ledger, AnchorAdopted(mode=Mode.CHAIN, anchor="resp_0"), "at the beginning")
    ledger.append(item_added(user()))
    refused(ledger, AnchorAdopted(mode=Mode.CHAIN, anchor="resp_0"), "at the beginning")


# --- what it costs -----------------------------------------------------------------------------


def touched(ledger, act):
    """How many links a ledger looks up while it does something."""

    class Counting(dict):
        count = 0

        def __getitem__(self, seq):
            Counting.count += 1
            return super().__getitem__(seq)

        def get(self, seq, default=None):
            Counting.count += 1
            return super().get(seq, default)

    links = ledger.links
    ledger.links = Counting(links)
    act(ledger)
    return Counting.count


def one_turn(ledger, mode, name="z"):
    ledger.append(item_added(user()))
    turn(ledger, call(f"call_{name}"), id=f"resp_{name}", mode=mode, conversation="conv_1")
    made = ledger.call(f"call_{name}")
    ledger.append(CallStarted(call=made.seq))
    ledger.append(call_settled(ledger, made, "ok"))
    turn(ledger, said(), id=f"resp_{name}_b", mode=mode, conversation="conv_1")
    ledger.unsettled()


@pytest.mark.parametrize("mode", Mode)
def test_a_turn_costs_the_same_however_long_the_conversation_is(mode):
    costs = []
    for length in (10, 200):
        ledger = ledger_of()
        for n in range(length):
            one_turn(ledger, mode, str(n))
        costs.append(touched(ledger, lambda ledger: one_turn(ledger, mode)))
    assert costs[0] == costs[1]


@pytest.mark.parametrize("mode", Mode)
def test_a_turn_behind_a_compaction_costs_the_same_however_long_the_conversation_is(mode):
    costs = []
    for length in (10, 200):
        ledger = ledger_of()
        for n in range(length):
            one_turn(ledger, mode, str(n))
        ledger.append(ItemsRemoved(by=Removal.COMPACTION, to=ledger.tip))
        ledger.append(item_added(user()))
        request = send(ledger, mode, new="conv_2" if mode is Mode.CONVERSATION else None)
        answer(ledger, request, said(), id="resp_new")
        costs.append(touched(ledger, lambda ledger: one_turn(ledger, Mode.CHAIN)))
    assert costs[0] == costs[1]


def test_identity_is_a_position_and_never_an_address():
    # Equal outputs made and dropped again and again: addresses are re-used, positions are not.
    ledger = ledger_of(user())
    for n in range(50):
        turn(ledger, call("call_a"), id=f"resp_{n}")
        ledger.append(item_added(dict(output("call_a", "same")), By.TOOL))
        gc.collect(0)
        plan = ledger.plan()
        assert ledger.items(plan) == [output("call_a", "same")]
    assert len({made.output for made in ledger.calls.values()}) == 50
    turn(ledger, said(), id="resp_last")
    assert {made.life for made in ledger.calls.values()} == {Life.DELIVERED}


def test_the_state_is_json_and_names_every_link_and_call():
    ledger = ledger_of(user())
    request = turn(ledger, call())
    state = msgspec.json.decode(ledger.state())
    assert state["tip"] == request
    assert [link["seq"] for link in state["links"]] == [0, 2, request]
    assert [made["life"] for made in state["calls"]] == ["announced"]


def test_a_lost_request_is_told_from_a_rejected_one_in_the_state():
    states = set()
    for fact in (RequestLost, RequestRejected):
        ledger = ledger_of(user())
        ledger.append(fact(request=send(ledger)))
        states.add(ledger.state())
    assert len(states) == 2


def test_the_answer_of_a_failed_response_is_as_if_it_had_not_been_sent():
    ledger = ledger_of(user())
    request = answer(ledger, send(ledger), said(), ending=Ending.FAILED)
    assert ledger.exchange(request).standing is Standing.REJECTED
    assert len(ledger.history()) == 1


@pytest.mark.parametrize(
    "fact",
    [
        AnchorLost(anchor="\ud800"),
        RequestRejected(request=3, reason="\ud800"),
        RequestLost(request=3, reason="\ud800"),
        ResponseOpened(request=3, id="\ud800"),
    ],
    ids=lambda fact: type(fact).__name__,
)
def test_a_text_that_cannot_be_written_is_refused_or_can_be_kept(fact):
    from lockstitch.core.records import decoded
    from lockstitch.core.records import encoded as record

    ledger = ledger_of(user())
    send(ledger)
    before = ledger.state()
    try:
        seq = ledger.append(fact)
    except IllegalFact:
        assert ledger.state() == before
    else:
        ledger.state()
        decoded(record(seq, fact))


@pytest.mark.parametrize(
    "fact",
    [
        RequestSent(request=None),
        ItemAdded(item=None, by=By.USER),
        ItemAdded(item='{"role":"user"}', by=By.USER),
        AnchorLost(anchor=[1]),
        AnchorLost(anchor=5),
        AnchorAdopted(mode=Mode.CHAIN, anchor=None),
        RequestPrepared(mode=Mode.CHAIN, base=START, covers=2, sent=(2,), anchor=[1]),
    ],
    ids=repr,
)
def test_a_fact_of_odd_fields_is_refused(fact):
    refused(ledger_of(user()), fact)
