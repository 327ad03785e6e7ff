"""An upstream that keeps nothing, and a gateway that keeps everything: long chains, forks and
conversations, across restarts on one file and across two gateways on one PostgreSQL."""

from __future__ import annotations

import threading

import openai
import pytest

from tests.emulator.official import client_of, connected
from tests.gateway.clients.asking import (
    CREATE,
    WEATHER,
    asked,
    calls_weather,
    kinds,
    output_of,
    until,
    user,
)
from tests.gateway.clients.gateways import keeping_nothing, upstream

TURNS = 20
PAIR = ["function_call", "function_call_output"]


@pytest.fixture
def emulator(emulator):
    """One that keeps nothing."""
    return keeping_nothing(emulator)


@pytest.fixture(params=["sqlite", "postgresql"])
def two(request, make_gateway, emulator):
    """Two gateways in turn: one that is started again on its file, or two on one PostgreSQL."""
    one = upstream(emulator, state="gateway")
    if request.param == "postgresql":
        store = request.getfixturevalue("postgres_url")
        gateways = [make_gateway(one, store=store), make_gateway(one, store=store)]

        def next_gateway():
            gateways.reverse()
            return gateways[0]

        return next_gateway
    gateway = make_gateway(one)

    def restarted():
        gateway.restart()
        return gateway

    return restarted


def turns(client, emulator, count, *, stream=False, behind=None, **fields):
    """So many turns with a tool in each; the id of the last response."""
    for number in range(count):
        call_id = f"call_{number}_{behind}"[:60]
        calls_weather(emulator, call_id)
        if behind is not None:
            fields["previous_response_id"] = behind
        made = client.create(f"turn {number}", tools=[WEATHER], stream=stream, **fields)
        made = client.all(made)[-1].response if stream else made
        if behind is not None or "conversation" not in fields:
            fields["previous_response_id"] = made.id
        made = client.create([output_of(call_id)], tools=[WEATHER], stream=stream, **fields)
        made = client.all(made)[-1].response if stream else made
        assert made.output_text == "weather returned: rain"
        if "conversation" not in fields:
            behind = made.id
    return behind


def turn_kinds(count):
    return ["user", *PAIR, "assistant"] * count


@pytest.mark.parametrize("stream", [False, True])
def test_a_chain_of_many_turns_is_sent_whole_each_time(stateless, emulator, stream):
    with client_of("sync", stateless) as client:
        last = turns(client, emulator, TURNS, stream=stream)
        made = client.create("and now?", previous_response_id=last)

    assert made.output_text == "You said: and now?"
    assert kinds(asked(emulator)[-1]) == [*turn_kinds(TURNS), "user"]
    assert made.previous_response_id == last
    assert len(asked(emulator)) == 2 * TURNS + 1


def test_a_chain_over_websocket_is_sent_whole_each_time(stateless, emulator):
    with connected("sync", stateless) as connection:
        connection.create([user("before")], generate=False, store=False)
        behind = connection.finished().id
        for number in range(TURNS):
            call_id = f"call_{number}"
            calls_weather(emulator, call_id)
            fields = {"tools": [WEATHER], "store": bool(number % 2)}
            connection.create(f"turn {number}", previous_response_id=behind, **fields)
            made = connection.finished()
            connection.create([output_of(call_id)], previous_response_id=made.id, **fields)
            behind = connection.finished().id

    assert kinds(asked(emulator)[-1]) == ["user", *turn_kinds(TURNS)[:-1]]


def test_a_chain_goes_on_behind_a_restart_or_on_another_gateway(two, emulator):
    behind = None
    for _ in range(4):
        with client_of("sync", two()) as client:
            behind = turns(client, emulator, 2, behind=behind)
    with client_of("sync", two()) as client:
        client.create("and now?", previous_response_id=behind)

    assert kinds(asked(emulator)[-1]) == [*turn_kinds(8), "user"]


def test_a_call_made_through_one_gateway_is_answered_through_another(two, emulator):
    calls_weather(emulator)
    with client_of("sync", two()) as client:
        first = client.create("weather?", tools=[WEATHER])
    with client_of("sync", two()) as client:
        made = client.create([output_of()], tools=[WEATHER], previous_response_id=first.id)

    assert made.output_text == "weather returned: rain"


def test_forks_of_a_chain_do_not_see_one_another(two, emulator):
    with client_of("sync", two()) as client:
        trunk = turns(client, emulator, 2)
        left = client.create("left", previous_response_id=trunk)
    with client_of("sync", two()) as client:
        right = client.create("right", previous_response_id=trunk)
        client.create("more", previous_response_id=left.id)
        client.create("more", previous_response_id=right.id)

    said = [
        [item["content"] for item in request["input"] if item.get("role") == "user"]
        for request in asked(emulator)[-2:]
    ]
    assert said == [
        ["turn 0", "turn 1", "left", "more"],
        ["turn 0", "turn 1", "right", "more"],
    ]


def test_a_conversation_goes_on_behind_a_restart_or_on_another_gateway(two, emulator):
    with client_of("sync", two()) as client:
        made = client.now(client.conversations.create(items=[user("before")]))
    for _ in range(3):
        with client_of("sync", two()) as client:
            turns(client, emulator, 2, conversation=made.id)
    with client_of("sync", two()) as client:
        client.create("and now?", conversation=made.id)
        items = client.all(client.conversations.items.list(made.id, order="asc", limit=100))

    assert kinds(asked(emulator)[-1]) == ["user", *turn_kinds(6), "user"]
    assert len(items) == 1 + 4 * 6 + 2
    assert len({item.id for item in items}) == len(items)


def test_a_response_is_read_and_deleted_through_another_gateway(two, emulator):
    with client_of("sync", two()) as client:
        made = client.create("hello")
    with client_of("sync", two()) as client:
        found = client.now(client.responses.retrieve(made.id))
        assert found.output_text == "You said: hello"
        client.now(client.responses.delete(made.id))
    with client_of("sync", two()) as client, pytest.raises(openai.NotFoundError):
        client.now(client.responses.retrieve(made.id))


def test_one_at_a_time_works_on_a_conversation(two, emulator):
    """Two gateways hold one conversation in turn: who is second is told, or waits its turn."""
    gateway = two()
    with client_of("sync", gateway) as client:
        made = client.now(client.conversations.create())
        emulator.say("slow", faults=("stall after=response.in_progress seconds=0.5",))
        first: list[object] = []

        def slowly():
            with client_of("sync", gateway) as other:
                first.append(other.create("one", conversation=made.id).output_text)

        thread = threading.Thread(target=slowly)
        thread.start()
        until(lambda: bool(emulator.requests(CREATE)), "the first is not asked")
        with pytest.raises(openai.BadRequestError) as caught:
            client.create("two", conversation=made.id)
        assert caught.value.code == "conversation_locked"
        thread.join()
        assert first == ["slow"]
        assert client.create("three", conversation=made.id).output_text == "You said: three"


def test_nothing_but_whole_requests_reaches_the_upstream(stateless, emulator):
    with client_of("sync", stateless) as client:
        last = turns(client, emulator, 2)
        client.now(client.responses.retrieve(last))
        client.now(client.responses.input_items.list(last))
        client.now(client.responses.delete(last))
        conversation = client.now(client.conversations.create()).id
        client.create("hello", conversation=conversation)
        client.now(client.conversations.delete(conversation))

    received = {entry.what for entry in emulator.entries() if not entry.sent}
    assert received == {CREATE}
    assert {request["store"] for request in asked(emulator)} == {False}
    assert not any(
        request.get("previous_response_id") or request.get("conversation")
        for request in asked(emulator)
    )
