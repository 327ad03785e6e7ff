"""Responses over WebSocket: with the official client, and frame by frame where it cannot.

A clock that stands still and a stalled reply stand for a response that takes its time."""

import logging

import pytest
from websockets.exceptions import ConnectionClosedOK, InvalidStatus

from lockstitch.emulator import (
    Asked,
    Reply,
    Script,
    Settings,
    Turn,
    VirtualClock,
    call,
)
from lockstitch.testing import EmulatorThread
from tests.emulator.official import connected
from tests.emulator.responses_socket.shared import (
    STALLED,
    begun,
    done,
    error_of,
    lost,
    output_of,
    texts_seen,
)
from tests.emulator.wire import Wire

# Requests and what they continue


def test_a_response_is_told_frame_by_frame(either):
    either.create("Hello, you.")
    events = either.until("response.completed")
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert events[-1].response.output_text == "You said: Hello, you."
    assert {event.stream_id for event in events} == {None}


def test_the_frames_are_the_events_of_the_stream_over_http():
    told = []
    for transport in ("http", "websocket"):
        with EmulatorThread(clock=VirtualClock()) as emulator:
            wire = Wire(emulator)
            emulator.say("Two words.", call("f", {"a": 1}))
            if transport == "http":
                told.append(wire.stream())
                continue
            with wire.socket() as socket:
                socket.create()
                told.append(socket.until("response.completed"))
    assert told[0] == told[1]


def test_a_warm_up_says_nothing_and_is_continued_by_a_delta(either, wire, emulator):
    either.create("context", generate=False)
    warm = either.until("response.completed")
    assert [event.type for event in warm] == [
        "response.created",
        "response.in_progress",
        "response.completed",
    ]
    assert warm[-1].response.output == []
    either.create("question", previous_response_id=warm[-1].response.id)
    answer = either.finished()
    assert answer.output_text == "You said: question"
    assert texts_seen(wire, answer.id) == ["context", "question"]
    assert emulator.violations() == {}


def test_what_is_not_stored_is_continued_on_its_own_connection(either, emulator):
    emulator.say(call("f", call_id="call_1"))
    either.create(store=False)
    first = either.finished()
    either.create([output_of()], store=False, previous_response_id=first.id)
    second = either.finished()
    assert second.output_text == "f returned: done"
    either.create("more", store=False, previous_response_id=second.id)
    assert either.finished().status == "completed"
    assert emulator.violations() == {}


def test_what_is_not_stored_is_unknown_on_another_connection(kind, emulator):
    with connected(kind, emulator) as one:
        one.create(store=False)
        first = one.finished()
        with connected(kind, emulator) as another:
            another.create(store=False, previous_response_id=first.id)
            event = another.receive()
            assert (event.type, event.status) == ("error", 400)
            assert event.error.to_dict() == lost(first.id)
            # The connection lives on; the other one still knows.
            another.create()
            assert another.finished().status == "completed"
        one.create(store=False, previous_response_id=first.id)
        assert one.finished().status == "completed"


def test_what_is_stored_is_known_on_every_connection_and_over_http(kind, emulator, client):
    with connected(kind, emulator) as one:
        one.create("one")
        first = one.finished()
    with connected(kind, emulator) as another:
        another.create("two", previous_response_id=first.id)
        second = another.finished()
    third = client.create("three", previous_response_id=second.id)
    assert texts_seen(Wire(emulator), third.id) == [
        "one",
        "You said: one",
        "two",
        "You said: two",
        "three",
    ]


def test_a_connection_remembers_the_newest_response_of_each_lane(socket):
    old = done(socket, store=False)["id"]
    other = done(socket, store=False, stream_id="other")["id"]
    new = done(socket, store=False, previous_response_id=old)["id"]
    socket.create(store=False, previous_response_id=old)
    assert error_of(socket) == lost(old)
    for known in (new, other):
        assert done(socket, store=False, stream_id="fork", previous_response_id=known)


def test_a_refused_request_makes_its_lane_forget_the_parent(socket):
    parent = done(socket, store=False)["id"]
    socket.create([output_of()], store=False, previous_response_id=parent)
    assert error_of(socket)["message"] == (
        "No tool call found for function call output with call_id call_1."
    )
    socket.create(store=False, previous_response_id=parent)
    assert error_of(socket) == lost(parent)


def test_a_failed_response_makes_its_lane_forget_the_parent(socket, emulator):
    parent = done(socket, store=False)["id"]
    emulator.say("Half", ends="failed")
    assert done(socket, store=False, previous_response_id=parent)["status"] == "failed"
    socket.create(store=False, previous_response_id=parent)
    assert error_of(socket) == lost(parent)


def test_what_failed_on_one_lane_is_not_forgotten_by_another(socket):
    parent = done(socket, store=False)["id"]
    socket.create([output_of()], store=False, previous_response_id=parent, stream_id="b")
    error_of(socket)
    assert done(socket, store=False, previous_response_id=parent)["status"] == "completed"


def test_a_stored_parent_survives_a_refused_request(socket):
    parent = done(socket)["id"]
    socket.create([output_of()], previous_response_id=parent)
    error_of(socket)
    assert done(socket, previous_response_id=parent)["status"] == "completed"


def test_the_rules_are_those_of_http(socket, emulator):
    emulator.say(call("f", call_id="call_1"))
    made = done(socket)["id"]
    socket.create(previous_response_id=made)
    frame = socket.receive()
    assert frame == {
        "type": "error",
        "status": 400,
        "error": {
            "message": "No tool output found for function call call_1.",
            "type": "invalid_request_error",
            "param": "input",
            "code": None,
        },
    }
    assert emulator.violations() == {"call-without-output": 1}


def test_there_is_no_background_here(socket):
    socket.create(background=True)
    assert error_of(socket)["code"] == "unsupported_parameter"


def test_a_response_of_a_lost_connection_is_lost(wire, emulator):
    conversation = wire.post("/conversations").body["id"]
    emulator.say("Never heard.", **STALLED)
    with wire.socket() as socket:
        begun(socket, conversation=conversation)
    answer = wire.create("now", conversation=conversation)
    while answer.status == 400:
        # The emulator has not seen yet that the client is gone.
        assert answer.body["error"]["code"] == "conversation_locked"
        answer = wire.create("now", conversation=conversation)
    assert texts_seen(wire, answer.body["id"]) == ["now"]


# Lanes


def test_lanes_run_at_the_same_time(either, emulator):
    emulator.say("Slow.", **STALLED)
    either.create(stream_id="slow")
    [slow] = either.until("response.created")
    either.create("quick", stream_id="quick")
    quick = either.until("response.completed")
    assert {event.stream_id for event in quick} == {"quick"}
    emulator.advance(9)
    rest = either.until("response.completed")
    assert {event.stream_id for event in [slow, *rest]} == {"slow"}
    assert rest[-1].response.output_text == "Slow."


def test_a_lane_answers_its_requests_one_after_the_other(either, emulator):
    emulator.say("First.", **STALLED)
    for name in ("a", "a", "a", "b"):
        either.create(f"for {name}", stream_id=name)
    began = either.until("response.created")
    others = either.until("response.completed")
    assert {event.stream_id for event in others} == {"b"}
    emulator.advance(9)
    told = began + [event for _ in range(3) for event in either.until("response.completed")]
    bounds = [event.type for event in told if event.type in {STARTED, ENDED}]
    assert bounds == [STARTED, ENDED] * 3
    assert {event.stream_id for event in told} == {"a"}


STARTED, ENDED = "response.created", "response.completed"


def test_a_lane_forks_from_the_response_of_another(socket, wire):
    trunk = done(socket, "trunk", stream_id="a")["id"]
    left = done(socket, "left", stream_id="a", previous_response_id=trunk)["id"]
    right = done(socket, "right", stream_id="b", previous_response_id=trunk)["id"]
    assert texts_seen(wire, left) == ["trunk", "You said: trunk", "left"]
    assert texts_seen(wire, right) == ["trunk", "You said: trunk", "right"]


@pytest.mark.parametrize("lane", [str, lambda number: "same"], ids=["each", "one"])
def test_sixteen_requests_are_in_flight_at_most(socket, emulator, lane):
    for _ in range(16):
        emulator.say("Slow.", **STALLED)
    for number in range(17):
        socket.create(stream_id=lane(number))
    refused = socket.until("error")[-1]
    assert refused["error"]["code"] == "websocket_stream_limit_reached"
    assert refused["stream_id"] == lane(16)
    ended = 0
    while ended < 16:
        emulator.advance(9)
        ended += socket.receive()["type"] == ENDED
    assert done(socket, stream_id=lane(16))["status"] == "completed"


def test_a_connection_has_thirty_two_names_at_most(socket):
    for number in range(32):
        done(socket, generate=False, stream_id=f"lane-{number}")
    socket.create(stream_id="one-more")
    assert error_of(socket)["code"] == "websocket_stream_limit_reached"
    for lane in ({"stream_id": "lane-0"}, {}):
        assert done(socket, **lane)["status"] == "completed"


@pytest.mark.parametrize("name", ["", "a b", "é", "a/b", "x" * 257, "a\n", 7, ["a"], {}])
def test_a_bad_name_of_a_lane_is_refused(socket, name):
    socket.create(stream_id=name)
    error = error_of(socket)
    assert (error["code"], error["param"]) == ("invalid_stream_id", "stream_id")
    assert done(socket)["status"] == "completed"


def test_a_bad_name_is_not_one_of_the_thirty_two(socket):
    for number in range(40):
        socket.create(stream_id=f"bad name {number}")
        assert error_of(socket)["code"] == "invalid_stream_id"
    assert done(socket, stream_id="x" * 256)["status"] == "completed"


# The end of a connection


def test_a_connection_lives_as_long_as_it_may():
    settings = Settings(connection_seconds=3600)
    with EmulatorThread(clock=VirtualClock(flowing=False), settings=settings) as emulator:
        wire = Wire(emulator)
        with wire.socket() as socket:
            emulator.advance(3599)
            made = done(socket)["id"]
            emulator.advance(1)
            error = error_of(socket)
            assert error["code"] == "websocket_connection_limit_reached"
            assert "60 minutes" in error["message"]
            with pytest.raises(ConnectionClosedOK):
                socket.receive()
        with wire.socket() as socket:
            assert done(socket, previous_response_id=made)["status"] == "completed"


def test_an_idle_connection_is_ended_too():
    settings = Settings(connection_seconds=0.05)
    with EmulatorThread(settings=settings) as emulator, Wire(emulator).socket() as socket:
        assert error_of(socket)["code"] == "websocket_connection_limit_reached"
        with pytest.raises(ConnectionClosedOK):
            socket.receive()


def test_a_connection_does_not_age_by_a_clock_that_flows():
    with EmulatorThread(clock=VirtualClock()) as emulator, Wire(emulator).socket() as socket:
        emulator.say("Slow.", delay=60.0, pace=1.0)
        assert done(socket)["status"] == "completed"
        assert done(socket)["status"] == "completed"


def test_a_key_is_wanted_at_the_door():
    with (
        EmulatorThread(settings=Settings(key="right")) as emulator,
        pytest.raises(InvalidStatus) as refused,
        Wire(emulator).socket(),
    ):
        pass
    assert refused.value.response.status_code == 401


# Frames that are none

BAD_FRAMES: dict[str, tuple[str | bytes, str | None]] = {
    "half": ('{"type": "response.create"', None),
    "a list": ("[]", None),
    "a text": ('"response.create"', None),
    "nothing": ("", None),
    "binary": (b"\x00\xff", None),
    "binary JSON": (b'{"type": "response.create", "model": "m", "input": "hi"}', None),
    "deep": ("[" * 100_000, None),
    "no type": ("{}", "invalid_value"),
    "unknown type": ('{"type": "response.cancel"}', "invalid_value"),
    "unknown field": ('{"type": "response.create", "input": "hi", "x": 1}', "unknown_parameter"),
    "steering nothing": ('{"type": "response.steer"}', "missing_required_parameter"),
}


@pytest.mark.parametrize("name", BAD_FRAMES)
def test_a_bad_frame_is_refused_and_the_connection_lives_on(socket, name):
    data, code = BAD_FRAMES[name]
    socket.raw.send(data)
    frame = socket.receive()
    assert frame["type"] == "error"
    assert frame["status"] == 400
    assert frame["error"]["type"] == "invalid_request_error"
    assert frame["error"]["code"] == code
    assert done(socket)["status"] == "completed"


def test_a_fault_of_the_emulator_itself_is_told(caplog):
    def breaks(asked: Asked) -> Reply | None:
        if asked.user == "break":
            raise ZeroDivisionError
        return None

    script = Script([Turn(decide=breaks, times=9)])
    with EmulatorThread(script=script) as emulator, Wire(emulator).socket() as socket:
        with caplog.at_level(logging.CRITICAL, "lockstitch.emulator"):
            socket.create("break", stream_id="a")
            frame = socket.receive()
        assert (frame["status"], frame["stream_id"]) == (500, "a")
        assert frame["error"]["type"] == "server_error"
        assert done(socket, "do not", stream_id="a")["status"] == "completed"
