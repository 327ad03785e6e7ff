"""The official client of OpenAI through the gateway, over HTTP: whole answers and streams."""

from __future__ import annotations

import openai
import pytest

from tests.emulator.official import KINDS, MODEL, as_input, client_of
from tests.gateway.clients.asking import (
    WEATHER,
    asked,
    calls_weather,
    kinds,
    output_of,
    told,
    user,
)


@pytest.fixture(params=KINDS)
def client(request, gateway):
    """The sync client, and the async one."""
    with client_of(request.param, gateway) as made:
        yield made


def test_a_response_is_the_one_that_the_provider_gave(client, emulator):
    made = client.create("hello")

    assert made.output_text == "You said: hello"
    (sent,) = [entry.readable()["data"] for entry in emulator.entries() if entry.sent]
    assert made.to_dict() == sent


def test_events_are_those_that_the_provider_sent(client, emulator):
    events = client.all(client.create("hello", stream=True))

    assert [event.to_dict() for event in events] == told(emulator)
    assert events[-1].response.output_text == "You said: hello"


def test_the_clients_own_helper_for_streams_works(client, emulator):
    calls_weather(emulator)
    events, made = client.helped(input="weather?", tools=[WEATHER])

    assert made.output[-1].call_id == "call_1"
    assert [event.type for event in events if event.type.endswith("done")] == [
        "response.function_call_arguments.done",
        "response.output_item.done",
    ]


@pytest.mark.parametrize("stream", [False, True])
def test_a_delta_goes_on_as_it_was_sent(client, emulator, stream):
    calls_weather(emulator)
    first = client.create("weather?", tools=[WEATHER])
    fields = {"tools": [WEATHER], "previous_response_id": first.id}
    made = client.create([output_of()], stream=stream, **fields)
    if stream:
        made = client.all(made)[-1].response

    assert made.output_text == "weather returned: rain"
    assert asked(emulator)[-1]["previous_response_id"] == made.previous_response_id == first.id
    assert asked(emulator)[-1]["input"] == [output_of()]


@pytest.mark.parametrize("stream", [False, True])
def test_a_delta_of_an_output_alone_survives_a_provider_that_forgot_everything(
    client, emulator, broken, stream
):
    calls_weather(emulator)
    first = client.create("weather?", tools=[WEATHER])
    emulator.forget()
    broken["anchor-not-found"] = 1

    fields = {"tools": [WEATHER], "previous_response_id": first.id}
    made = client.create([output_of()], stream=stream, **fields)
    if stream:
        made = client.all(made)[-1].response

    assert made.output_text == "weather returned: rain"
    assert made.previous_response_id == first.id
    assert kinds(asked(emulator)[-1]) == ["user", "function_call", "function_call_output"]
    assert asked(emulator)[-1].get("previous_response_id") is None


def test_a_history_that_is_sent_in_full_passes_as_it_is(client, emulator):
    calls_weather(emulator)
    first = client.create([user("weather?")], tools=[WEATHER])
    history = [user("weather?"), *as_input(*first.output), output_of()]
    made = client.create(history, tools=[WEATHER], store=False)

    assert made.output_text == "weather returned: rain"
    assert asked(emulator)[-1]["input"] == history


def test_two_requests_behind_one_response_are_siblings(client, emulator, broken):
    first = client.create("one")
    left = client.create("left", previous_response_id=first.id)
    right = client.create("right", previous_response_id=first.id)
    emulator.forget()
    broken["anchor-not-found"] = 2
    client.create("more", previous_response_id=left.id)
    client.create("more", previous_response_id=right.id)

    texts = [
        [item["content"] for item in request["input"] if item["role"] == "user"]
        for request in asked(emulator)[-3::2]
    ]
    assert texts == [["one", "left", "more"], ["one", "right", "more"]]


def test_a_stream_that_is_cut_before_anything_was_said_is_asked_for_again_unseen(client, emulator):
    emulator.say("fine", faults=("cut after=response.in_progress how=reset",))
    emulator.say("fine")

    events = client.all(client.create("hello", stream=True))

    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert [event.type for event in events[:3]] == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
    ]
    assert events[-1].response.output_text == "fine"
    assert len({event.response.id for event in (events[0], events[-1])}) == 2
    assert len(asked(emulator)) == 2


@pytest.mark.parametrize("how", ["close", "reset", "half-frame", "half-character"])
def test_a_stream_that_is_cut_later_ends_with_a_failure_that_is_well_formed(client, emulator, how):
    calls_weather(emulator, faults=(f"cut after=response.output_item.done how={how}",))

    events = client.all(client.create("weather?", tools=[WEATHER], stream=True))

    assert events[-1].type == "response.failed"
    assert events[-1].response.id == events[0].response.id
    assert events[-1].response.error.code == "server_error"
    assert [item.call_id for item in events[-1].response.output] == ["call_1"]
    assert [event.sequence_number for event in events] == list(range(len(events)))


def test_an_answer_without_a_stream_that_was_lost_is_asked_for_again(client, emulator):
    emulator.fault("lose path=/v1/responses how=reset")

    assert client.create("hello").output_text == "You said: hello"
    assert len(asked(emulator)) == 2


def test_a_response_can_be_counted_and_compacted(client, emulator):
    first = client.create("one")
    counted = client.now(client.responses.input_tokens.count(model=MODEL, input="one"))
    compacted = client.now(client.responses.compact(model=MODEL, previous_response_id=first.id))

    assert counted.input_tokens > 0
    assert compacted.output[-1].type == "compaction"
    made = client.create([*as_input(*compacted.output), user("go on")])
    assert made.output_text == "You said: go on"


def test_a_compaction_survives_a_provider_that_forgot_everything(client, emulator, broken):
    first = client.create("one")
    emulator.forget()
    broken["anchor-not-found"] = 1

    compacted = client.now(client.responses.compact(model=MODEL, previous_response_id=first.id))

    assert compacted.output[-1].type == "compaction"


def test_a_chain_that_begins_with_a_compaction_survives_too(client, emulator, broken):
    first = client.create("one")
    compacted = client.now(client.responses.compact(model=MODEL, previous_response_id=first.id))
    second = client.create([*as_input(*compacted.output), user("go on")])
    emulator.forget()
    broken["anchor-not-found"] = 1

    made = client.create("and on", previous_response_id=second.id)

    assert made.output_text == "You said: and on"
    assert asked(emulator)[-1]["input"][-3]["content"] == "go on"


def test_what_the_client_calls_a_raw_response_has_the_request_id_of_the_gateway(client, emulator):
    raw = client.now(client.responses.with_raw_response.create(model=MODEL, input="hello"))

    assert raw.headers["lockstitch-request-id"].startswith("req_")
    assert raw.parse().output_text == "You said: hello"


def test_an_unknown_anchor_is_refused_in_the_providers_own_words(client, broken):
    broken["anchor-not-found"] = 1
    with pytest.raises(openai.BadRequestError) as caught:
        client.create("hello", previous_response_id="resp_" + "0" * 48)

    assert caught.value.code == "previous_response_not_found"
    assert caught.value.param == "previous_response_id"
