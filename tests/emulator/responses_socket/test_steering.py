"""Steering over the Responses WebSocket, in all its outcomes."""

from collections.abc import Callable
from typing import Any

import pytest

from lockstitch.emulator import (
    call,
    custom_call,
    item,
    text,
)
from lockstitch.testing import EmulatorThread
from tests.emulator.responses_socket.shared import (
    STALLED,
    UNKNOWN,
    begun,
    done,
    error_of,
    output_of,
    texts_seen,
)
from tests.emulator.wire import Socket

# Steering


def test_steering_ends_a_response_between_two_items_and_a_successor_follows(either, emulator, wire):
    emulator.say("One.", "Never said.", **STALLED)
    emulator.say("In short.")
    either.create("question", instructions="Be kind.", stream_id="a")
    first = either.until("response.created")[-1].response
    either.steer(first.id, "Be brief.")
    accepted = either.until("response.steer.accepted")[-1]
    assert accepted.steer.previous_response_id == first.id
    emulator.advance(9)
    steered = either.until("response.incomplete")[-1].response
    assert steered.id == first.id
    assert steered.incomplete_details.reason == "steered"
    assert steered.output_text == "One."
    told = either.until("response.completed")
    assert told[0].type == "response.created"
    assert {event.stream_id for event in told} == {"a"}
    successor = told[-1].response
    assert successor.previous_response_id == first.id
    assert successor.instructions == "Be kind."
    assert successor.output_text == "In short."
    assert texts_seen(wire, successor.id) == ["question", "One.", "Be brief."]
    assert emulator.violations() == {}


def test_steering_in_the_last_item_lets_it_complete_and_a_successor_follows(either, emulator, wire):
    emulator.say("One.", **STALLED)
    either.create("question", store=False)
    first = either.until("response.created")[-1].response
    either.steer(first.id, [{"role": "user", "content": "Be brief."}])
    either.until("response.steer.accepted")
    either.steer(first.id, "And kind.")
    either.until("response.steer.accepted")
    emulator.advance(9)
    completed = either.finished()
    assert (completed.id, completed.status) == (first.id, "completed")
    successor = either.finished()
    assert successor.previous_response_id == first.id
    assert successor.output_text == "You said: And kind."


def test_a_successor_is_steered_again(socket, emulator, wire):
    emulator.say("One.", "Never said.", **STALLED)
    emulator.say("Two.", "Never said.", **STALLED)
    emulator.say("Three.")
    first = begun(socket, input="question")
    socket.steer(first, "Shorter.")
    socket.until("response.steer.accepted")
    emulator.advance(9)
    assert socket.finished()["incomplete_details"] == {"reason": "steered"}
    second = socket.until("response.created")[-1]["response"]["id"]
    socket.steer(second, "Even shorter.")
    socket.until("response.steer.accepted")
    emulator.advance(9)
    assert socket.finished()["incomplete_details"] == {"reason": "steered"}
    third = socket.finished()
    seen = texts_seen(wire, third["id"])
    assert seen == ["question", "One.", "Shorter.", "Two.", "Even shorter."]


CALLS = {
    "function_call_output": call("f", call_id="call_1"),
    "custom_tool_call_output": custom_call("g", "x", call_id="call_2"),
    "tool_search_output": item("tool_search_call", call_id="call_3"),
    "mcp_approval_response": item("mcp_approval_request", id="mcpr_1"),
}
STUBS = [
    {"type": "function_call_output", "call_id": "call_1", "name": "f"},
    {"type": "custom_tool_call_output", "call_id": "call_2"},
    {"type": "tool_search_output", "call_id": "call_3", "execution": "client"},
    {"type": "mcp_approval_response", "approval_request_id": "mcpr_1"},
]
FILLED = [
    STUBS[0] | {"output": "x"},
    STUBS[1] | {"output": "x"},
    STUBS[2] | {"tools": []},
    STUBS[3] | {"approve": True},
]


def pending(socket: Any, emulator: EmulatorThread, **fields: Any) -> str:
    """A response with open calls, for which steering input waits."""
    emulator.say(*CALLS.values(), **STALLED)
    response = begun(socket, input="question", **fields)
    for said in ("Be brief.", "Be kind."):
        socket.steer(response, said)
        socket.until("response.steer.accepted")
    emulator.advance(9)
    assert socket.finished()["status"] == "completed"
    waiting = [socket.receive(), socket.receive()]
    assert [frame["type"] for frame in waiting] == ["response.steer.pending"] * 2
    assert [frame["required_input"] for frame in waiting] == [STUBS] * 2
    assert waiting[0]["reason"] == "waiting_for_required_input"
    return response


def test_steering_waits_for_open_calls_and_goes_before_their_outputs(socket, emulator, wire):
    response = pending(socket, emulator)
    answer = done(socket, FILLED, previous_response_id=response)
    assert answer["status"] == "completed"
    assert texts_seen(wire, answer["id"]) == [
        "question",
        "function_call",
        "custom_tool_call",
        "tool_search_call",
        "mcp_approval_request",
        "Be brief.",
        "Be kind.",
        *(stub["type"] for stub in STUBS),
    ]
    assert emulator.violations() == {}
    # It was used once, and is gone.
    again = done(socket, FILLED, previous_response_id=response)
    assert "Be brief." not in texts_seen(wire, again["id"])


def test_a_refused_continuation_leaves_the_steering_where_it_was(socket, emulator, wire):
    response = pending(socket, emulator)
    socket.create(FILLED[:2], previous_response_id=response)
    assert error_of(socket)["message"] == "No tool output found for tool search call call_3."
    answer = done(socket, FILLED, previous_response_id=response)
    assert "Be brief." in texts_seen(wire, answer["id"])


def test_steering_waits_for_its_own_lane(socket, emulator, wire):
    response = pending(socket, emulator, stream_id="a")
    fork = done(socket, FILLED, previous_response_id=response, stream_id="b")
    assert "Be brief." not in texts_seen(wire, fork["id"])
    answer = done(socket, FILLED, previous_response_id=response, stream_id="a")
    assert "Be brief." in texts_seen(wire, answer["id"])


def test_an_open_call_keeps_a_response_from_being_stopped(socket, emulator):
    emulator.say(call("f"), text("Still said."), **STALLED)
    response = begun(socket)
    socket.steer(response, "Be brief.")
    socket.until("response.steer.accepted")
    emulator.advance(9)
    body = socket.finished()
    assert body["status"] == "completed"
    assert len(body["output"]) == 2
    assert socket.receive()["type"] == "response.steer.pending"


def test_steering_is_no_part_of_the_stream_that_is_read_again(socket, emulator, client):
    emulator.say("One two.", "Never said.", **STALLED)
    socket.create()
    frames = socket.until("response.created")
    response = frames[0]["response"]["id"]
    for said in ("a", "b", "c"):
        socket.steer(response, said)
        frames += socket.until("response.steer.accepted")
    emulator.advance(9)
    frames += socket.until("response.incomplete")
    numbers = [frame["sequence_number"] for frame in frames]
    assert numbers == list(range(len(frames)))
    own = [number for number, frame in enumerate(frames) if ".steer." not in frame["type"]]
    for seen in numbers:
        rest = client.responses.retrieve(response, stream=True, starting_after=seen)
        assert [event.sequence_number for event in rest] == [n for n in own if n > seen]


def failure(socket: Socket) -> dict[str, Any]:
    frame = socket.until("response.steer.failed")[-1]
    assert frame["error"]["type"] == "invalid_request_error"
    return frame


def test_steering_an_unknown_response_gives_the_input_back(either):
    either.steer(UNKNOWN, "Be brief.")
    event = either.until("response.steer.failed")[-1]
    assert event.error.code == "response_not_found"
    assert event.steer.to_dict() == {"previous_response_id": UNKNOWN, "input": "Be brief."}
    either.create()
    assert either.finished().status == "completed"


def test_a_response_is_steered_on_its_own_connection_alone(socket, wire, emulator):
    emulator.say("Slow.", **STALLED)
    response = begun(socket)
    with wire.socket() as another:
        another.steer(response, "Be brief.")
        assert failure(another)["error"]["code"] == "response_not_found"


def test_a_response_that_is_over_is_not_steered(socket):
    response = done(socket, stream_id="a")["id"]
    socket.steer(response, "Be brief.")
    frame = failure(socket)
    assert frame["error"]["code"] == "response_already_completed"
    assert frame["stream_id"] == "a"
    assert "id" not in frame["steer"]


def test_a_response_that_has_said_its_last_event_is_over(socket, emulator):
    """Also while the emulator still waits, as it does between any two events."""
    emulator.say("Slow.", faults=("stall after=response.completed seconds=9",))
    response = done(socket)["id"]
    socket.steer(response, "Be brief.")
    assert failure(socket)["error"]["code"] == "response_already_completed"
    emulator.advance(9)


BAD_INPUTS: dict[str, Any] = {
    "empty": "",
    "nothing": None,
    "no messages": [],
    "a number": 7,
    "another role": [{"role": "developer", "content": "x"}],
    "an output": [output_of()],
    "an id": [{"role": "user", "content": "x", "id": "msg_1"}],
    "a wrong part": [{"role": "user", "content": [{"type": "output_text", "text": "x"}]}],
}


@pytest.mark.parametrize("name", BAD_INPUTS)
def test_only_what_a_user_says_can_steer(socket, emulator, name):
    emulator.say("Slow.", **STALLED)
    response = begun(socket)
    socket.steer(response, BAD_INPUTS[name])
    frame = failure(socket)
    assert frame["error"]["code"] == "invalid_input"
    assert frame["steer"]["input"] == BAD_INPUTS[name]
    emulator.advance(9)
    assert socket.finished()["status"] == "completed"


def test_the_lane_of_steering_is_that_of_its_response(socket, emulator):
    emulator.say("Slow.", **STALLED)
    response = begun(socket, stream_id="a")
    socket.send(type="response.steer", previous_response_id=response, input="x", stream_id="a")
    frame = failure(socket)
    assert frame["error"]["code"] == "invalid_input"
    assert "stream_id" in frame["error"]["message"]


@pytest.mark.parametrize("bound", ["conversation", "context_management"])
def test_what_cannot_be_steered_says_so(socket, emulator, wire, bound):
    fields: dict[str, Callable[[], Any]] = {
        "conversation": lambda: wire.post("/conversations").body["id"],
        "context_management": lambda: [{"type": "compaction", "compact_threshold": 1_000_000}],
    }
    emulator.say("Slow.", **STALLED)
    response = begun(socket, **{bound: fields[bound]()})
    socket.steer(response, "Be brief.")
    assert failure(socket)["error"]["code"] == "steering_not_supported"


def test_steering_piles_up_only_so_far(socket, emulator):
    emulator.say("Slow.", **STALLED)
    response = begun(socket)
    for _ in range(16):
        socket.steer(response, "More.")
        socket.until("response.steer.accepted")
    socket.steer(response, "Too much.")
    assert failure(socket)["error"]["code"] == "too_many_pending_steers"
    emulator.advance(9)
    assert socket.finished()["status"] == "completed"
    assert socket.finished()["status"] == "completed"


def test_steering_of_a_response_that_fails_is_given_back(socket, emulator):
    emulator.say("Slow.", ends="failed", **STALLED)
    response = begun(socket)
    socket.steer(response, "Be brief.")
    taken = socket.until("response.steer.accepted")[-1]["steer"]
    emulator.advance(9)
    assert socket.finished()["status"] == "failed"
    frame = failure(socket)
    assert frame["error"]["code"] == "successor_creation_failed"
    assert frame["steer"] == taken | {"input": "Be brief."}
    assert done(socket)["status"] == "completed"
