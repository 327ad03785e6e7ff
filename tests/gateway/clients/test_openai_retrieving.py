"""The official client of OpenAI: what it reads again, takes back and keeps in conversations."""

from __future__ import annotations

import threading

import openai
import pytest

from tests.emulator.official import KINDS, client_of
from tests.gateway.clients.asking import (
    CREATE,
    WEATHER,
    asked,
    calls_weather,
    kinds,
    output_of,
    told,
    until,
    user,
)

SENTENCE = "one two three four five six"


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


@pytest.fixture
def served(kind, request):
    """For the sync client a gateway whose upstream keeps state, for the async one a gateway whose
    upstream keeps nothing: what they read again looks the same."""
    return request.getfixturevalue({"sync": "gateway", "async": "stateless"}[kind])


@pytest.fixture
def client(kind, served):
    with client_of(kind, served) as made:
        yield made


def broken_off(client, after, **fields):
    """The first events of a stream that the client broke in the middle."""
    stream = client.create("go", stream=True, **fields)
    events = client.first(stream, after)
    client.now(stream.close())
    return events


def again(client, response, after):
    """The events behind a sequence number, from another request."""
    return client.all(client.responses.retrieve(response, stream=True, starting_after=after))


# --- a stream that the client lost -------------------------------------------------------------


@pytest.mark.parametrize("after", [1, 2, 5, 9])
def test_a_client_that_broke_its_stream_gets_the_rest_while_it_runs(client, emulator, after):
    emulator.say(SENTENCE, faults=("stall after=5 seconds=0.4",))
    before = broken_off(client, min(after, 6))
    rest = again(client, before[0].response.id, before[-1].sequence_number)

    events = [event.to_dict() for event in (*before, *rest)]
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert events[-1]["type"] == "response.completed"
    assert [event["type"] for event in events] == [event["type"] for event in told(emulator)]
    assert rest[-1].response.output_text == SENTENCE
    assert len(emulator.requests(CREATE)) == 1


def test_a_client_that_broke_its_stream_gets_the_rest_when_it_is_over(client, served, emulator):
    emulator.say(SENTENCE, faults=("stall after=5 seconds=0.1",))
    before = broken_off(client, 4)
    until(lambda: served.running() == 0, "the answer does not end")
    rest = again(client, before[0].response.id, before[-1].sequence_number)

    numbers = [event.sequence_number for event in (*before, *rest)]
    assert numbers == list(range(len(told(emulator))))
    assert rest[-1].response.output_text == SENTENCE


def test_two_clients_get_the_rest_of_one_stream(client, served, emulator):
    emulator.say(SENTENCE, faults=("stall after=5 seconds=0.4",))
    before = broken_off(client, 4)
    first = again(client, before[0].response.id, 1)
    second = again(client, before[0].response.id, 3)

    assert [event.to_dict() for event in first[2:]] == [event.to_dict() for event in second]


def test_a_call_that_the_client_did_not_hear_is_in_the_journal(client, served, emulator, broken):
    calls_weather(emulator, faults=("stall after=response.in_progress seconds=0.1",))
    before = broken_off(client, 1, tools=[WEATHER])
    response = before[0].response.id
    until(lambda: served.running() == 0, "the answer does not end")
    if served.config.upstreams[0].state == "upstream":
        emulator.forget()
        broken["anchor-not-found"] = 1

    made = client.create([output_of()], tools=[WEATHER], previous_response_id=response)

    assert made.output_text == "weather returned: rain"
    assert kinds(asked(emulator)[-1]) == ["user", "function_call", "function_call_output"]


def test_a_response_is_streamed_again_after_a_restart(client, served, emulator):
    events = client.all(client.create("hello", stream=True))
    emulator.forget()
    served.restart()
    response = events[-1].response

    rest = again(client, response.id, 3)

    numbers = [event.sequence_number for event in rest]
    assert numbers == sorted(set(numbers))
    assert numbers[0] > 3
    assert rest[-1].type == "response.completed"
    assert rest[-1].response.output_text == response.output_text


def test_a_stream_that_the_gateway_had_to_end_is_told_as_it_was(client, served, emulator):
    """A gateway that is shut down ends its streams well; what it had said can be read again."""
    emulator.say(SENTENCE, faults=("stall after=5 seconds=5",))
    stream = client.create("go", stream=True)
    before = client.first(stream, 6)
    restarting = threading.Thread(target=served.restart)
    restarting.start()
    rest = client.all(stream)
    restarting.join()
    response = before[0].response.id

    assert [event.type for event in rest] == ["response.failed"]
    assert rest[-1].response.id == response
    assert client.now(client.responses.retrieve(response)).status == "failed"
    assert [event.type for event in again(client, response, 4)] == ["response.failed"]


def test_a_response_that_failed_cannot_be_gone_on_from(client, emulator):
    calls_weather(emulator, faults=("cut after=response.output_item.done how=reset",))
    events = client.all(client.create("weather?", tools=[WEATHER], stream=True))
    failed = events[-1].response
    assert (events[-1].type, failed.status) == ("response.failed", "failed")
    with pytest.raises(openai.BadRequestError) as caught:
        client.create([output_of()], tools=[WEATHER], previous_response_id=failed.id)

    assert caught.value.code == "previous_response_not_found"
    emulator.reset()  # what was refused, the client asked for


# --- what can be read again --------------------------------------------------------------------


def test_a_response_is_retrieved_as_it_was_given(client, emulator):
    made = client.create("hello", metadata={"a": "b"})

    found = client.now(client.responses.retrieve(made.id))

    assert found.id == made.id
    assert found.to_dict() == made.to_dict()


def test_a_response_is_retrieved_though_the_provider_forgot_it(client, served, emulator):
    calls_weather(emulator)
    made = client.create("weather?", tools=[WEATHER])
    emulator.forget()
    served.restart()

    found = client.now(client.responses.retrieve(made.id))

    assert (found.id, found.status, found.model) == (made.id, "completed", made.model)
    assert [item.to_dict() for item in found.output] == [item.to_dict() for item in made.output]


def test_the_input_of_a_response_is_listed_with_what_came_before(client, emulator):
    calls_weather(emulator)
    first = client.create("weather?", tools=[WEATHER])
    made = client.create([output_of()], tools=[WEATHER], previous_response_id=first.id)

    items = client.all(client.responses.input_items.list(made.id, order="asc", limit=1))

    assert [item.type for item in items] == ["message", "function_call", "function_call_output"]
    assert len({item.id for item in items}) == 3


def test_a_response_that_was_deleted_is_gone(client, emulator):
    made = client.create("hello")
    client.now(client.responses.delete(made.id))

    with pytest.raises(openai.NotFoundError):
        client.now(client.responses.retrieve(made.id))
    with pytest.raises(openai.NotFoundError):
        client.now(client.responses.input_items.list(made.id))


def test_a_response_that_was_deleted_cannot_be_gone_on_from(client, emulator):
    made = client.create("hello")
    client.now(client.responses.delete(made.id))
    with pytest.raises(openai.BadRequestError) as caught:
        client.create("more", previous_response_id=made.id)

    assert caught.value.code == "previous_response_not_found"
    emulator.reset()  # what was refused, the client asked for


def test_a_response_that_runs_in_the_background_is_cancelled(gateway, emulator, kind):
    emulator.say("slow", faults=("stall after=response.in_progress seconds=5",))
    with client_of(kind, gateway) as client:
        made = client.create("hello", background=True)
        assert made.status in ("queued", "in_progress")
        assert client.now(client.responses.cancel(made.id)).status == "cancelled"
        assert client.now(client.responses.retrieve(made.id)).status == "cancelled"


def test_a_response_that_runs_in_the_background_is_read_when_it_is_over(gateway, emulator, kind):
    with client_of(kind, gateway) as client:
        made = client.create("hello", background=True)

        def is_over():
            return client.now(client.responses.retrieve(made.id)).status == "completed"

        until(is_over, "the response does not end")
        more = client.create("more", previous_response_id=made.id)
        assert more.output_text == "You said: more"


def test_a_stream_in_the_background_that_the_client_broke_is_gone_on_with(gateway, emulator, kind):
    emulator.say(SENTENCE, faults=("stall after=5 seconds=0.3",))
    with client_of(kind, gateway) as client:
        before = broken_off(client, 4, background=True)
        rest = again(client, before[0].response.id, before[-1].sequence_number)
        numbers = [event.sequence_number for event in (*before, *rest)]
        assert numbers == list(range(len(numbers)))
        assert rest[-1].response.output_text == SENTENCE


def test_there_is_no_background_where_nothing_is_kept(stateless, emulator, kind):
    with client_of(kind, stateless) as client, pytest.raises(openai.BadRequestError) as caught:
        client.create("hello", background=True)

    assert caught.value.param == "background"
    assert emulator.requests(CREATE) == []


def test_an_unknown_response_is_not_found(client):
    with pytest.raises(openai.NotFoundError):
        client.now(client.responses.retrieve("resp_" + "0" * 48))


# --- conversations -----------------------------------------------------------------------------


def test_a_conversation_is_gone_on_with_and_listed(client, emulator):
    calls_weather(emulator)
    made = client.now(
        client.conversations.create(items=[user("I am in Lund.")], metadata={"a": "b"})
    )
    client.create("weather?", tools=[WEATHER], conversation=made.id)
    last = client.create([output_of()], tools=[WEATHER], conversation={"id": made.id}, stream=True)
    last = client.all(last)[-1].response

    assert last.output_text == "weather returned: rain"
    assert last.conversation.id == made.id
    items = client.all(client.conversations.items.list(made.id, order="asc", limit=2))
    kinds_of = [item.role if item.type == "message" else item.type for item in items]
    assert kinds_of == ["user", "user", "function_call", "function_call_output", "assistant"]
    assert len({item.id for item in items}) == 5


def test_a_conversation_is_read_changed_and_deleted(client):
    made = client.now(client.conversations.create(metadata={"a": "b"}))
    added = client.now(client.conversations.items.create(made.id, items=[user("one"), user("two")]))
    first, second = added.data
    found = client.now(client.conversations.items.retrieve(first.id, conversation_id=made.id))
    assert found.content[0].text == "one"
    client.now(client.conversations.items.delete(first.id, conversation_id=made.id))
    listed = client.all(client.conversations.items.list(made.id))
    assert [item.id for item in listed] == [second.id]
    assert client.now(client.conversations.retrieve(made.id)).metadata == {"a": "b"}
    changed = client.now(client.conversations.update(made.id, metadata={"c": "d"}))
    assert changed.metadata == {"c": "d"}
    assert client.now(client.conversations.delete(made.id)).deleted
    with pytest.raises(openai.NotFoundError):
        client.now(client.conversations.retrieve(made.id))


def test_an_unknown_conversation_is_not_found(client, emulator):
    with pytest.raises(openai.NotFoundError):
        client.now(client.conversations.retrieve("conv_" + "0" * 48))
    with pytest.raises(openai.APIStatusError) as caught:
        client.create("hello", conversation="conv_" + "0" * 48)
    assert caught.value.status_code in (400, 404)
    emulator.reset()  # what was refused, the client asked for


def test_a_broken_stream_of_a_conversation_adds_nothing_twice(client, served, emulator):
    emulator.say(SENTENCE, faults=("stall after=5 seconds=0.2",))
    made = client.now(client.conversations.create())
    broken_off(client, 3, conversation=made.id)
    until(lambda: served.running() == 0, "the answer does not end")
    client.create("more", conversation=made.id)

    items = client.all(client.conversations.items.list(made.id, order="asc"))
    assert [item.content[0].text for item in items] == ["go", SENTENCE, "more", "You said: more"]
