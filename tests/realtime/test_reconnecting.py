"""When to try again, and what to ask for again."""

from __future__ import annotations

import pytest

from lockstitch.realtime.holding import Floor
from lockstitch.realtime.limits import Patience
from lockstitch.realtime.reconnecting import Attempts, lost_request, waits_for_an_answer
from lockstitch.runner.limits import LONGEST_DELAY_SECONDS
from lockstitch.upstream.contract import Fate
from tests.realtime.hearing import function_call, function_output, user


def attempts(**patience):
    return Attempts(Patience(**patience), lambda: 1.0)


def test_the_first_try_comes_at_once_and_the_others_wait_longer_and_longer():
    tries = attempts(attempts=6)
    delays = [tries.next() for _ in range(7)]
    assert delays == [0.0, 0.25, 0.5, 1.0, 2.0, 4.0, None]
    assert max(attempts(attempts=20).next(Fate.BUSY, 900.0) for _ in range(3)) == (
        LONGEST_DELAY_SECONDS
    )


def test_what_the_provider_refuses_is_not_tried_again():
    assert attempts().next(Fate.REFUSED) is None


def test_a_connection_that_lasted_makes_up_for_those_that_did_not():
    tries = attempts(attempts=2, steady_seconds=10.0)
    assert [tries.next(), tries.next()] == [0.0, 0.25]
    tries.lived(9.9)
    assert tries.next() is None
    tries.lived(10.0)
    assert tries.next() == 0.0


def begun(*requests, said=0):
    floor = Floor()
    for number, request in enumerate(requests):
        if request is not None:
            floor.ask(request)
        floor.hear({"type": "response.created", "response": {"id": f"r{number}"}})
        for _ in range(said):
            item = {"status": "completed"}
            event = {"type": "response.output_item.done", "response_id": f"r{number}"}
            floor.hear(event | {"item": item})
    return floor


@pytest.mark.parametrize(
    ("floor", "request_again"),
    [
        (begun(), None),
        (begun(None), {}),
        (begun({"event_id": "e"}), {}),
        (begun({"event_id": "e", "response": {"a": 1}}), {"response": {"a": 1}}),
        (begun(None, said=1), None),
    ],
)
def test_a_lost_response_is_asked_for_again_if_nothing_of_it_is_left(floor, request_again):
    assert lost_request(floor) == request_again


def test_an_item_that_was_cut_short_is_nothing_that_is_left():
    floor = begun(None)
    item = {"status": "incomplete"}
    floor.hear({"type": "response.output_item.done", "response_id": "r0", "item": item})
    assert lost_request(floor) == {}


def test_only_an_output_at_the_end_waits_for_an_answer():
    pair = [function_call("f", "c"), function_output("o", "c")]
    assert waits_for_an_answer(pair)
    assert not waits_for_an_answer([*pair, user("a")])
    assert not waits_for_an_answer(pair[:1])
    assert not waits_for_an_answer([])
