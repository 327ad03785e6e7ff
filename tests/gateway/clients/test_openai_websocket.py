"""The official client of OpenAI through the gateway, over WebSocket: lanes, warm-up, lost anchors;
and each transport in front of the other."""

from __future__ import annotations

import pytest

from lockstitch.emulator import Settings
from tests.emulator.official import KINDS, Client, Connection, client_of, connected
from tests.gateway.clients.asking import (
    CREATE,
    ENDS,
    FRAME,
    WEATHER,
    asked,
    calls_weather,
    kinds,
    output_of,
    told,
    until,
    user,
)
from tests.gateway.clients.gateways import upstream

UPGRADE = "GET /v1/responses"


@pytest.fixture(params=KINDS)
def connection(request, gateway):
    """A connection of the sync client, and of the async one."""
    with connected(request.param, gateway) as made:
        yield made


def by_lane(events):
    lanes = {}
    for event in events:
        lanes.setdefault(event.stream_id, []).append(event)
    return lanes


def both_ended(connection, count):
    """The events up to the end of so many responses."""
    events = []
    while sum(event.type in ENDS for event in events) < count:
        events.append(connection.receive())
    return events


def test_frames_are_those_that_the_provider_sent(connection, emulator):
    connection.create("hello")
    events = connection.until(*ENDS)

    assert [event.to_dict() for event in events] == told(emulator)
    assert events[-1].response.output_text == "You said: hello"


@pytest.mark.parametrize("store", [True, False])
def test_requests_go_over_one_connection_each_behind_the_one_before(connection, emulator, store):
    calls_weather(emulator)
    connection.create("weather?", tools=[WEATHER], store=store)
    first = connection.finished()
    connection.create([output_of()], previous_response_id=first.id, store=store)

    assert connection.finished().output_text == "weather returned: rain"
    assert asked(emulator)[-1]["input"] == [output_of()]
    emulator.expect(requests={UPGRADE: 1, FRAME: 2, CREATE: 0})


def test_lanes_are_answered_side_by_side_and_each_in_order(connection, emulator):
    emulator.say("slow", faults=("stall after=response.in_progress seconds=0.3",))
    connection.create("one", stream_id="left")
    connection.create("two", stream_id="left")
    connection.create("three", stream_id="right")
    events = both_ended(connection, 3)

    ends = [(event.stream_id, event.response.output_text) for event in events if event.type in ENDS]
    assert ends == [("right", "You said: three"), ("left", "slow"), ("left", "You said: two")]
    lanes = by_lane(events)
    assert set(lanes) == {"left", "right"}
    left = [event.sequence_number for event in lanes["left"]]
    at = left.index(0, 1)
    assert left[:at] == list(range(at))
    assert left[at:] == list(range(len(left) - at))


def test_a_lane_forks_what_another_made(connection, emulator):
    connection.create("one", stream_id="left", store=False)
    first = connection.finished()
    made = []
    for lane in ("right", "left", "third"):
        connection.create(lane, stream_id=lane, previous_response_id=first.id, store=False)
        made.append(connection.finished())

    assert [one.output_text for one in made] == [
        "You said: right",
        "You said: left",
        "You said: third",
    ]
    assert {one.previous_response_id for one in made} == {first.id}
    # The provider keeps the newest of each lane, so the last had to be sent whole.
    assert [kinds(request) for request in asked(emulator)[1:]] == [
        ["user"],
        ["user"],
        ["user", "assistant", "user"],
    ]


def test_a_warm_up_is_gone_on_from(connection, emulator):
    connection.create([user("before")], generate=False, store=False)
    warm = connection.finished()
    connection.create([user("hello")], previous_response_id=warm.id, store=False)

    assert warm.output == []
    assert connection.finished().output_text == "You said: hello"
    assert asked(emulator)[0]["generate"] is False


@pytest.mark.parametrize("store", [True, False])
def test_an_anchor_that_the_provider_forgot_is_mended_unseen(connection, emulator, broken, store):
    calls_weather(emulator)
    connection.create("weather?", tools=[WEATHER], store=store)
    first = connection.finished()
    emulator.forget()
    emulator.fault("forget what=cache path=/v1/responses")
    broken["anchor-not-found"] = 1
    connection.create([output_of()], previous_response_id=first.id, tools=[WEATHER], store=store)
    events = connection.until(*ENDS)

    assert events[-1].response.output_text == "weather returned: rain"
    assert events[0].response.previous_response_id == first.id
    assert kinds(asked(emulator)[-1]) == ["user", "function_call", "function_call_output"]


@pytest.mark.parametrize("code", ["1000", "1006", "1011", "1012"])
def test_a_socket_that_the_provider_closed_between_two_requests_is_not_missed(
    connection, emulator, code
):
    calls_weather(emulator, faults=(f"close code={code} after=response.completed",))
    connection.create("weather?", tools=[WEATHER], store=False)
    first = connection.finished()
    connection.create([output_of()], previous_response_id=first.id, tools=[WEATHER], store=False)

    assert connection.finished().output_text == "weather returned: rain"
    assert kinds(asked(emulator)[-1]) == ["user", "function_call", "function_call_output"]


@pytest.mark.parametrize("code", ["1000", "1006", "1011"])
def test_a_socket_that_is_closed_in_the_middle_of_an_answer_ends_it_well(
    connection, emulator, code
):
    close = f"close code={code} after=response.output_item.done"
    calls_weather(emulator, faults=(close,))
    connection.create("weather?", tools=[WEATHER], store=False, stream_id="a")
    events = connection.until(*ENDS)
    assert events[-1].type == "response.failed"
    assert {event.stream_id for event in events} == {"a"}
    assert [event.sequence_number for event in events] == list(range(len(events)))

    connection.create("hello", store=False, stream_id="a")
    assert connection.finished().output_text == "You said: hello"


def test_a_connection_outlives_that_of_its_provider(make_emulator, make_gateway):
    emulator = make_emulator(settings=Settings(connection_seconds=0.3))
    gateway = make_gateway(upstream(emulator))
    with connected("sync", gateway) as connection:
        connection.create("one", store=False)
        made = connection.finished()
        emulator.say("late", faults=("stall before=first-byte seconds=0.6",))
        connection.create("two", previous_response_id=made.id, store=False)
        made = connection.finished()
        connection.create("three", previous_response_id=made.id, store=False)

        assert connection.finished().output_text == "You said: three"
    assert emulator.violations() == {}


def test_a_frame_that_is_refused_leaves_the_connection_as_it_was(connection, emulator, broken):
    broken["output-without-call"] = 1
    connection.create([output_of("call_none")], stream_id="a")
    (refused,) = connection.until("error")
    assert (refused.status, refused.stream_id) == (400, "a")
    assert refused.error.message == (
        "No tool call found for function call output with call_id call_none."
    )

    connection.create("hello", stream_id="a")
    assert connection.finished().output_text == "You said: hello"


def test_a_response_is_steered_through_the_gateway(connection, emulator):
    emulator.say("slow", faults=("stall after=response.in_progress seconds=0.3",))
    connection.create("one")
    (created,) = connection.until("response.created")
    connection.steer(created.response.id, "rather two")
    events = connection.until("response.steer.accepted", *ENDS)

    assert events[-1].type == "response.steer.accepted"
    connection.until(*ENDS)


def test_a_connection_that_the_client_broke_does_not_break_the_answer(gateway, emulator):
    emulator.say("slow", faults=("stall after=response.in_progress seconds=0.3",))
    broken_off = Connection("sync", gateway)
    broken_off.create("one")
    (created,) = broken_off.until("response.created")
    broken_off.close()
    until(lambda: gateway.running() == 0, "the answer does not end")
    with client_of("sync", gateway) as client:
        made = client.create("two", previous_response_id=created.response.id)
        assert made.output_text == "You said: two"


# --- one transport in front, the other behind --------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("store", [True, False])
def test_a_websocket_is_answered_from_an_upstream_that_speaks_http_alone(
    make_gateway, emulator, kind, store
):
    gateway = make_gateway(upstream(emulator, transport="http"))
    calls_weather(emulator)
    with connected(kind, gateway) as connection:
        connection.create([user("before")], generate=False, store=store)
        warm = connection.finished()
        fields = {"tools": [WEATHER], "store": store, "stream_id": "a"}
        connection.create([user("weather?")], previous_response_id=warm.id, **fields)
        events = connection.until(*ENDS)
        made = events[-1].response
        assert {event.stream_id for event in events} == {"a"}
        connection.create([output_of()], previous_response_id=made.id, **fields)
        events = connection.until(*ENDS)

    assert events[-1].response.output_text == "weather returned: rain"
    assert [event.sequence_number for event in events] == list(range(len(events)))
    emulator.expect(requests={UPGRADE: 0, FRAME: 0})


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("store", [True, False])
@pytest.mark.parametrize("stream", [True, False])
def test_http_is_answered_from_an_upstream_that_speaks_websocket_alone(
    make_gateway, emulator, kind, store, stream
):
    gateway = make_gateway(upstream(emulator, transport="websocket"))
    calls_weather(emulator)
    with client_of(kind, gateway) as client:

        def ask(input, **fields):
            made = client.create(input, tools=[WEATHER], store=store, stream=stream, **fields)
            return client.all(made)[-1].response if stream else made

        first = ask("weather?")
        second = ask([output_of()], previous_response_id=first.id)

    assert first.output[-1].call_id == "call_1"
    assert second.output_text == "weather returned: rain"
    assert second.previous_response_id == first.id
    assert second.object == "response"
    emulator.expect(requests={CREATE: 0, FRAME: 2})


def test_a_chain_begun_over_one_transport_goes_on_over_the_other(gateway, emulator):
    calls_weather(emulator)
    calls_weather(emulator, "call_2")
    with client_of("sync", gateway) as client, connected("sync", gateway) as connection:
        first = client.create("weather?", tools=[WEATHER])
        connection.create([output_of()], previous_response_id=first.id, tools=[WEATHER])
        second = connection.finished()
        client: Client
        third = client.create(
            [output_of("call_2")], previous_response_id=second.id, tools=[WEATHER], stream=True
        )
        assert client.all(third)[-1].response.output_text == "weather returned: rain"
