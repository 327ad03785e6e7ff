"""When a call is in flight, and when it is settled."""

from __future__ import annotations

import pytest

from lockstitch.gateway.deciding.realtime_calls import Calls
from lockstitch.gateway.deciding.realtime_frames import Item


def call(id="f", key="c", status="completed"):
    return Item(id, "function_call", key, status)


def output(id="o", key="c"):
    return Item(id, "function_call_output", key)


@pytest.fixture
def calls():
    return Calls()


def test_a_call_is_in_flight_from_its_first_word_until_its_output_is_there(calls):
    assert not calls.in_flight("f")
    calls.told(call(status="in_progress"))
    assert calls.in_flight("f")
    calls.told_further(call())
    assert calls.in_flight("f")
    calls.told(output())
    assert not calls.in_flight("f")
    assert calls.outputs_of("f") == ("o",)


def test_an_output_that_comes_before_the_call_is_said_does_not_settle_it_yet(calls):
    calls.told(call(status="in_progress"))
    calls.told(output())
    assert calls.in_flight("f")
    calls.told_further(call())
    assert not calls.in_flight("f")


def test_a_call_stays_settled_when_its_output_is_deleted_first(calls):
    calls.told(call())
    calls.told(output())
    calls.deleted("o")
    assert not calls.in_flight("f")
    assert calls.outputs_of("f") == ()


def test_a_call_that_was_cut_short_is_not_in_flight(calls):
    calls.told(call(status="in_progress"))
    calls.told_further(call(status="incomplete"))
    assert not calls.in_flight("f")


def test_a_response_that_ends_cuts_short_what_it_did_not_finish(calls):
    calls.is_said_by("r", call(status="in_progress"))
    calls.is_said_by("r", call("g", "d", "in_progress"))
    calls.told(call(status="in_progress"))
    calls.told(call("g", "d", "in_progress"))
    calls.response_ended("r", [call("g", "d")])
    assert not calls.in_flight("f")
    assert calls.in_flight("g")


def test_an_older_word_about_a_call_takes_nothing_back(calls):
    calls.told(call())
    calls.told(output())
    calls.told(call(status="in_progress"))
    assert not calls.in_flight("f")


def test_the_first_output_answers_the_first_call_of_an_id_that_is_used_again(calls):
    calls.told(call("f1"))
    calls.told(call("f2"))
    calls.told(output("o1"))
    calls.told(output("o1"))  # `done` behind `added`
    assert not calls.in_flight("f1")
    assert calls.in_flight("f2")
    calls.deleted("f1")
    assert not calls.is_gone("c")
    calls.deleted("f2")
    assert calls.is_gone("c")


def test_a_second_output_belongs_to_the_call_too(calls):
    calls.told(call())
    calls.told(output("o1"))
    calls.told(output("o2"))
    assert calls.outputs_of("f") == ("o1", "o2")
    calls.deleted("o1")
    assert calls.outputs_of("f") == ("o2",)


def test_a_call_of_a_response_out_of_band_is_in_no_conversation(calls):
    calls.is_said_by("r", call())
    calls.told_further(call())
    calls.response_ended("r", [call()])
    assert not calls.in_flight("f")


def test_a_call_is_gone_until_it_is_there_again_or_may_be(calls):
    assert not calls.is_gone("c")
    calls.told(call())
    assert not calls.is_gone("c")
    calls.deleted("f")
    assert calls.is_gone("c")
    calls.asked_for("c")
    assert not calls.is_gone("c")
    calls.told(call("g"))
    calls.deleted("g")
    assert calls.is_gone("c")
    calls.told(call("h"))
    assert not calls.is_gone("c")
