"""What is done after a try that failed."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lockstitch.gateway.deciding.retrying import (
    LATE_LISTING_SECONDS,
    LONGEST_WAIT_SECONDS,
    TABLE,
    WAITS_SECONDS,
    Again,
    AgainReplayed,
    Elsewhere,
    Fail,
    Failed,
    PassOn,
    ReadBack,
    Sent,
    Shown,
    Try,
    failed,
    is_repeatable,
    next_step,
)
from lockstitch.gateway.lines import LineFailure
from lockstitch.upstream.said import Said, said_in, said_in_frame
from tests.generated import examples

CUT = LineFailure("The connection was cut.", sent=True)
UNSENT = LineFailure("Nobody listens there.", sent=False)


def told(message, status=400, code=None, type="invalid_request_error", headers=None):
    body = {"error": {"message": message, "type": type, "param": None, "code": code}}
    return said_in(body, status=status, headers=headers)


NOT_FOUND = told(
    "Previous response with id 'resp_1' not found.", code="previous_response_not_found"
)
BUSY = told("Slow down.", 429, "rate_limit_exceeded", headers={"retry-after": "2"})
LONG = told("Slow down.", 429, "rate_limit_exceeded", headers={"retry-after": "60"})
NEVER = told("Slow down.", 429, "rate_limit_exceeded")
ERROR = told("Oops.", 500, type="server_error")
NO_OUTPUT = told("No tool output found for function call call_X.")


def step(failure, sent=Sent.UNANCHORED, **more):
    return next_step(Try(sent=sent, failure=failure, **{"tries_left": 2, **more}))


# --- what a failure is -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "what"),
    [
        (NOT_FOUND, Failed.ANCHOR_LOST),
        (told("Invalid `previous_response_id`.", code="invalid_request_error"), Failed.ANCHOR_LOST),
        (told("No response resp_1: not found", 404), Failed.ANCHOR_LOST),
        (NO_OUTPUT, Failed.REFUSED),
        (
            told("Another process is currently operating on this conversation."),
            Failed.LOCKED,
        ),
        (BUSY, Failed.BUSY),
        (told("Pay first.", 429, "insufficient_quota"), Failed.REFUSED),
        (ERROR, Failed.LOST),
        (told("Bad gateway", 502), Failed.LOST),
        (told("A teapot.", 418), Failed.REFUSED),
        (
            said_in_frame(
                {
                    "type": "error",
                    "status": 400,
                    "error": {"code": "websocket_connection_limit_reached"},
                }
            ),
            Failed.NEW_CONNECTION,
        ),
        (said_in({"type": "error", "message": "Something new."}), Failed.UNCLASSIFIED),
        (said_in({"type": "error", "code": "new_code", "message": "x"}), Failed.UNCLASSIFIED),
        (said_in({"code": "server_error", "message": "x"}), Failed.LOST),
        (said_in({"error": {"type": "overloaded_error", "message": "x"}}), Failed.BUSY),
        (CUT, Failed.LOST),
        (UNSENT, Failed.UNSENT),
    ],
)
def test_a_failure_is_told_by_its_structure_first(said, what):
    assert failed(said, anchor="resp_1") is what


# --- the rules ---------------------------------------------------------------------------------


def test_the_table_says_something_for_every_failure_and_every_way_of_sending():
    assert set(TABLE) == set(Failed)
    assert all(set(row) == set(Sent) for row in TABLE.values())


def test_a_lost_anchor_is_repaired_where_the_whole_chain_is_known():
    assert step(NOT_FOUND, Sent.KNOWN_CHAIN, tries_left=0) == AgainReplayed()
    assert step(NOT_FOUND, Sent.UNKNOWN_CHAIN) == PassOn()
    assert step(NOT_FOUND, Sent.CONVERSATION) == PassOn()
    assert step(NOT_FOUND, Sent.UNANCHORED) == PassOn()


def test_what_is_refused_or_not_known_passes_unchanged():
    new = said_in({"type": "error", "message": "Something new."})
    for sent in Sent:
        assert step(NO_OUTPUT, sent, others_left=True) == PassOn()
        assert step(new, sent, others_left=True, in_stream=True) == PassOn()


def test_a_busy_upstream_is_waited_for_only_if_that_is_short():
    assert step(BUSY) == Again(2.0)
    assert step(LONG) == step(NEVER) == PassOn()
    assert step(LONG, others_left=True) == Elsewhere()
    assert step(LONG, Sent.KNOWN_CHAIN, others_left=True) == Elsewhere()
    assert step(LONG, Sent.UNKNOWN_CHAIN, others_left=True) == PassOn()


def test_what_never_left_is_sent_again_and_then_elsewhere():
    for sent in Sent:
        assert isinstance(step(UNSENT, sent), Again)
    assert step(UNSENT, tries_left=0, others_left=True) == Elsewhere()
    assert isinstance(step(UNSENT, tries_left=0), Fail)
    assert isinstance(step(UNSENT, Sent.CONVERSATION, tries_left=0, others_left=True), Fail)


def test_a_second_send_in_a_tree_is_a_harmless_sibling():
    for sent in (Sent.UNANCHORED, Sent.KNOWN_CHAIN, Sent.UNKNOWN_CHAIN):
        for failure in (CUT, ERROR):
            assert step(failure, sent) == Again(0.0)
            assert step(failure, sent, made=2) == Again(0.2)
            assert isinstance(step(failure, sent, shown=Shown.BEGUN, in_stream=True), Again)


def test_what_was_lost_on_its_way_to_a_conversation_is_looked_for_before_it_is_repeated():
    told_so = Fail("server_error", "The connection was cut.")
    assert step(CUT, Sent.CONVERSATION, can_read_back=True) == ReadBack(told_so)
    assert step(CUT, Sent.CONVERSATION, can_read_back=True, tries_left=0) == told_so
    assert step(CUT, Sent.CONVERSATION) == told_so
    assert step(ERROR, Sent.CONVERSATION, can_read_back=True) == ReadBack(PassOn())
    assert step(UNSENT, Sent.CONVERSATION, can_read_back=True) == Again(0.0)


def test_in_doubt_everything_is_looked_for_again():
    """What runs there now may be the earlier try."""
    locked = told("x", code="conversation_locked")
    more = {"can_read_back": True, "in_doubt": True}
    assert step(locked, Sent.CONVERSATION, made=2, **more) == ReadBack(PassOn(), 1.0)
    assert isinstance(step(UNSENT, Sent.CONVERSATION, **more), ReadBack)
    assert step(locked, Sent.CONVERSATION, in_doubt=True) == PassOn()


def test_a_locked_conversation_is_waited_for():
    locked = told("x", code="conversation_locked")
    assert step(locked, Sent.CONVERSATION) == Again(0.5)
    assert step(locked, Sent.CONVERSATION, tries_left=0) == PassOn()


def test_a_socket_that_is_used_up_is_replaced_and_what_was_only_there_is_replayed():
    used_up = said_in_frame(
        {"status": 400, "error": {"code": "websocket_connection_limit_reached"}}
    )
    assert step(used_up, Sent.KNOWN_CHAIN) == Again(0.0)
    assert step(used_up, Sent.KNOWN_CHAIN, anchor_gone=True) == AgainReplayed()
    assert step(CUT, Sent.KNOWN_CHAIN, anchor_gone=True) == AgainReplayed()
    assert step(CUT, Sent.KNOWN_CHAIN, anchor_gone=True, made=3) == AgainReplayed(WAITS_SECONDS[2])


def test_a_response_in_the_background_is_never_started_twice():
    assert step(CUT, background=True) == Fail("server_error", "The connection was cut.")
    assert step(ERROR, background=True) == PassOn()
    assert step(BUSY, background=True) == Again(2.0)
    assert step(UNSENT, background=True) == Again(0.0)


def test_tools_that_a_provider_calls_unasked_are_not_called_twice():
    assert isinstance(step(CUT, provider_acts=True), Fail)
    assert step(UNSENT, provider_acts=True) == Again(0.0)
    assert step(NOT_FOUND, Sent.KNOWN_CHAIN, provider_acts=True) == AgainReplayed()


def test_a_stream_that_has_begun_cannot_be_answered_with_a_status():
    assert step(NO_OUTPUT, shown=Shown.BEGUN) == Fail("invalid_request_error", NO_OUTPUT.message)
    assert step(NO_OUTPUT, shown=Shown.BEGUN, in_stream=True) == PassOn()


_tries = st.builds(
    Try,
    sent=st.sampled_from(Sent),
    failure=st.one_of(
        st.sampled_from([CUT, UNSENT, NOT_FOUND, BUSY, LONG, NEVER, ERROR, NO_OUTPUT]),
        st.builds(
            Said,
            status=st.sampled_from([None, 400, 404, 409, 429, 500, 503]),
            code=st.sampled_from([None, "server_error", "conversation_locked", "new"]),
            retry_after=st.one_of(st.none(), st.floats(0, 100)),
        ),
    ),
    shown=st.sampled_from(Shown),
    in_stream=st.booleans(),
    made=st.integers(0, 9),
    tries_left=st.integers(0, 2),
    others_left=st.booleans(),
    background=st.booleans(),
    provider_acts=st.booleans(),
    anchor_gone=st.booleans(),
    can_read_back=st.booleans(),
    in_doubt=st.booleans(),
    unattended=st.booleans(),
)


@settings(max_examples=examples(1000))
@given(_tries)
def test_the_rules_hold_for_every_try(one):
    then = next_step(one)
    what = failed(one.failure, anchor=one.anchor)
    if one.unattended:
        assert isinstance(then, (PassOn, Fail))
    # An ambiguous send to a conversation is never repeated without reading back.
    if one.sent is Sent.CONVERSATION and (one.in_doubt or what is Failed.LOST):
        assert not isinstance(then, (Again, AgainReplayed, Elsewhere))
    if isinstance(then, ReadBack):
        assert one.can_read_back
        assert then.after >= LATE_LISTING_SECONDS
    resent = isinstance(then, Again | AgainReplayed | Elsewhere)
    if one.shown is Shown.MORE:
        assert isinstance(then, PassOn | Fail), "nothing is repeated after the client saw more"
    if what is Failed.LOST and (one.sent is Sent.CONVERSATION or one.background):
        assert not resent, "an ambiguous send is not repeated where it would come twice"
    if what in (Failed.REFUSED, Failed.UNCLASSIFIED):
        assert isinstance(then, PassOn | Fail)
    if isinstance(then, AgainReplayed):
        assert one.sent is Sent.KNOWN_CHAIN, "only what the journal has is replayed"
    if isinstance(then, Elsewhere):
        assert one.others_left
        assert one.sent in (Sent.UNANCHORED, Sent.KNOWN_CHAIN)
    if isinstance(then, Again):
        assert one.tries_left > 0
        assert 0 <= then.after <= LONGEST_WAIT_SECONDS
    if isinstance(then, PassOn):
        assert isinstance(one.failure, Said), "there is something to pass on"
        assert one.shown is Shown.NOTHING or one.in_stream
    if isinstance(then, Fail):
        assert then.message


def test_tries_come_to_an_end():
    for failure, sent in product((CUT, UNSENT, BUSY, ERROR, NOT_FOUND), Sent):
        left, others, how = 2, 1, sent
        for _ in range(8):
            then = step(failure, how, tries_left=left, others_left=others > 0)
            if isinstance(then, PassOn | Fail):
                break
            if isinstance(then, AgainReplayed):
                how = Sent.UNANCHORED
            elif isinstance(then, Elsewhere):
                others, left, how = others - 1, 2, Sent.UNANCHORED
            else:
                left -= 1
        else:
            raise AssertionError(f"{failure!r} {sent} is tried for ever")


@pytest.mark.parametrize(
    ("more", "harmless"),
    [
        ({"sent": Sent.UNANCHORED}, True),
        ({"sent": Sent.KNOWN_CHAIN}, True),
        ({"sent": Sent.CONVERSATION}, False),
        ({"sent": Sent.UNANCHORED, "background": True}, False),
        ({"sent": Sent.UNANCHORED, "provider_acts": True}, False),
    ],
)
def test_a_client_may_send_again_what_was_not_taken_and_what_does_no_harm(more, harmless):
    for lost in (CUT, ERROR):
        assert is_repeatable(Try(failure=lost, **more)) is harmless
    assert is_repeatable(Try(failure=BUSY, **more))
    # An earlier try may have arrived after all.
    assert is_repeatable(Try(failure=BUSY, in_doubt=True, **more)) is harmless
