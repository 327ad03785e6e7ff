"""The life of a request: the table against itself, and the ledger against the table."""

from __future__ import annotations

import pytest

from lockstitch.core.errors import IllegalFact
from lockstitch.core.exchanges import MOVE_OF_ENDING, STANDING, Move, Standing
from lockstitch.core.facts import (
    CallStarted,
    Ending,
    RequestAccepted,
    RequestLost,
    RequestRejected,
    RequestSent,
    ResponseEnded,
    ResponseOpened,
)
from lockstitch.ledgers import Ledger, call_settled, item_completed
from tests.turns import answer, call, ledger_of, prepare, said, send, user

FACTS = {
    "sent": (Move.SEND, lambda seq: RequestSent(request=seq)),
    "opened": (Move.OPEN, lambda seq: ResponseOpened(request=seq, id="resp_1")),
    "item": (Move.SAY, lambda seq: item_completed(seq, call())),
    "completed": (Move.END, lambda seq: ResponseEnded(request=seq)),
    "incomplete": (Move.END, lambda seq: ResponseEnded(request=seq, ending=Ending.INCOMPLETE)),
    "failed": (Move.FAIL, lambda seq: ResponseEnded(request=seq, ending=Ending.FAILED)),
    "cut": (Move.LOSE, lambda seq: ResponseEnded(request=seq, ending=Ending.CUT)),
    "accepted": (Move.ACCEPT, lambda seq: RequestAccepted(request=seq)),
    "rejected": (Move.REJECT, lambda seq: RequestRejected(request=seq, reason="no")),
    "lost": (Move.LOSE, lambda seq: RequestLost(request=seq, reason="reset")),
}
"""Every fact that can befall a request."""

WAYS = {
    Standing.PREPARED: [],
    Standing.SENT: ["sent"],
    Standing.ANSWERING: ["sent", "opened"],
    Standing.ACCEPTED: ["sent", "opened", "completed"],
    Standing.REJECTED: ["sent", "rejected"],
    Standing.LOST: ["sent", "lost"],
}
"""How each standing is reached."""


def test_every_standing_has_its_row_and_every_ending_its_move():
    assert set(STANDING) == set(Standing) == set(WAYS)
    assert set(MOVE_OF_ENDING) == set(Ending)
    assert {move for move, _ in FACTS.values()} == set(Move)


def test_what_the_provider_accepted_or_rejected_stays_so():
    assert STANDING[Standing.ACCEPTED] == STANDING[Standing.REJECTED] == {}


@pytest.mark.parametrize("standing", Standing)
@pytest.mark.parametrize("happens", FACTS)
def test_a_ledger_moves_a_request_by_its_table_or_stays_as_it_was(standing, happens):
    ledger = ledger_of(user())
    request = prepare(ledger)
    for way in WAYS[standing]:
        ledger.append(FACTS[way][1](request))
    exchange = ledger.exchange(request)
    assert exchange.standing is standing
    move, make = FACTS[happens]
    before, length = ledger.state(), len(ledger)
    if move in STANDING[standing]:
        ledger.append(make(request))
        assert exchange.standing is STANDING[standing][move]
        assert Ledger.rebuilt(ledger.facts).state() == ledger.state()
    else:
        with pytest.raises(IllegalFact, match=rf"^Request {request} is {standing.value}: "):
            ledger.append(make(request))
        assert ledger.state() == before
        assert len(ledger) == length


@pytest.mark.parametrize("happens", FACTS)
@pytest.mark.parametrize("seq", [0, 1, 2, 99, -1])
def test_what_is_no_request_cannot_be_answered(happens, seq):
    ledger = ledger_of(user())
    before = ledger.state()
    with pytest.raises(IllegalFact, match=f"^Entry {seq} is no request.$"):
        ledger.append(FACTS[happens][1](seq))
    assert ledger.state() == before


def test_a_request_is_answered_by_one_response():
    ledger = ledger_of(user())
    request = send(ledger)
    ledger.append(ResponseOpened(request=request, id="resp_1"))
    ledger.append(ResponseEnded(request=request, ending=Ending.CUT))
    before = ledger.state()
    for other in ("resp_2", None):
        with pytest.raises(IllegalFact, match=f"answered by response resp_1, not {other}"):
            ledger.append(ResponseOpened(request=request, id=other))
    assert ledger.state() == before
    ledger.append(ResponseOpened(request=request, id="resp_1"))
    assert ledger.exchange(request).standing is Standing.ANSWERING


def test_a_lost_request_goes_on_where_it_was_found():
    ledger = ledger_of(user())
    request = answer(ledger, send(ledger), said("a"), ending=Ending.CUT)
    answer(ledger, request, said("b"))
    assert [wire["content"][0]["text"] for wire in ledger.history()[1:]] == ["a", "b"]


# --- what counts of an answer ------------------------------------------------------------------


@pytest.mark.parametrize("ending", [Ending.CUT, Ending.FAILED])
def test_an_answer_that_never_ended_counts_only_once_a_call_of_it_may_have_had_its_effect(ending):
    ledger = ledger_of(user())
    request = answer(ledger, send(ledger), said("x"), call(), ending=ending)
    exchange = ledger.exchange(request)
    assert exchange.kept is False
    assert len(ledger.history()) == 1
    ledger.append(CallStarted(call=ledger.call("call_a").seq))
    assert exchange.kept is True
    assert len(ledger.history()) == 3


def test_an_answer_that_ended_leaves_its_calls_open():
    ledger = ledger_of(user())
    request = answer(ledger, send(ledger), call("call_a"), call("call_b"))
    exchange = ledger.exchange(request)
    assert [made.item.key for made in exchange.open] == ["call_a", "call_b"]
    ledger.append(call_settled(ledger, ledger.call("call_a"), "ok"))
    assert [made.item.key for made in exchange.unanswered()] == ["call_a", "call_b"]


def test_the_output_of_a_call_that_the_provider_ran_closes_it_in_the_same_answer():
    ledger = ledger_of(user())
    program = {"type": "program", "call_id": "call_p", "id": "prog_1"}
    result = {"type": "program_output", "call_id": "call_p", "id": "po_1", "result": "ok"}
    request = answer(ledger, send(ledger), program, result, call())
    assert [made.item.key for made in ledger.exchange(request).open] == ["call_a"]


def test_a_call_that_the_provider_runs_may_be_answered_in_a_later_response():
    ledger = ledger_of(user())
    program = {"type": "program", "call_id": "call_p", "id": "prog_1"}
    answer(ledger, send(ledger), program, call())
    ledger.append(call_settled(ledger, ledger.call("call_a"), "ok"))
    second = answer(ledger, send(ledger), said(), id="resp_2")
    assert [made.item.key for made in ledger.exchange(second).open] == ["call_p"]


def test_requests_in_flight_and_lost_are_in_doubt_and_no_others():
    for standing, way in WAYS.items():
        ledger = ledger_of(user())
        request = prepare(ledger)
        for each in way:
            ledger.append(FACTS[each][1](request))
        doubtful = standing in (Standing.SENT, Standing.ANSWERING, Standing.LOST)
        assert [exchange.seq for exchange in ledger.doubts()] == [request] * doubtful


def test_two_exchanges_never_share_their_lists():
    ledger = ledger_of(user())
    first = answer(ledger, send(ledger), call("call_a"), ending=Ending.CUT)
    second = answer(ledger, send(ledger), call("call_b"), id="resp_2", ending=Ending.CUT)
    assert ledger.exchange(first).said != ledger.exchange(second).said
    assert [made.item.key for made in ledger.exchange(second).calls] == ["call_b"]


def test_an_exchange_is_shown_by_its_response_and_its_standing():
    ledger = ledger_of(user())
    request = answer(ledger, send(ledger), said())
    assert repr(ledger.exchange(request)) == f"<Exchange {request} resp_1 accepted>"
