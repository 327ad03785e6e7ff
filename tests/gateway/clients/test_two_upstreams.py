"""Two upstreams, and a chain that has to leave the one where it began; two tenants, who do not see
one another."""

from __future__ import annotations

import hashlib

import openai
import pytest

from lockstitch.emulator import Settings, reasoning
from lockstitch.gateway.config.model import Key
from lockstitch.gateway.config.secrets import Secret
from tests.emulator.official import MODEL, as_input, client_of, connected
from tests.gateway.clients.asking import WEATHER, asked, calls_weather, kinds, output_of, user
from tests.gateway.clients.gateways import gone, upstream

SEALED = ["reasoning.encrypted_content"]


@pytest.fixture
def refused():
    """The rules that the second provider saw broken: for the test to say."""
    return {}


@pytest.fixture
def second(make_emulator, refused):
    """Another provider, which takes nothing that the first has sealed."""
    emulator = make_emulator(settings=Settings(seed=1))
    yield emulator
    assert emulator.violations() == refused


@pytest.fixture
def gateway(make_gateway, emulator, second):
    return make_gateway(upstream(emulator, "one"), upstream(second, "two"))


@pytest.fixture
def client(gateway):
    with client_of("sync", gateway) as made:
        yield made


@pytest.mark.parametrize("stream", [False, True])
def test_a_chain_goes_on_at_the_other_without_what_belongs_to_the_first(
    client, emulator, second, stream
):
    emulator.say(reasoning("I think."), "I will look.")
    calls_weather(emulator)
    first = client.create("hello", include=SEALED)
    made = client.create("weather?", tools=[WEATHER], previous_response_id=first.id)
    gone(emulator)
    last = client.create(
        [output_of()], tools=[WEATHER], previous_response_id=made.id, stream=stream
    )
    last = client.all(last)[-1].response if stream else last

    assert last.output_text == "weather returned: rain"
    assert last.previous_response_id == made.id
    (request,) = asked(second)
    assert kinds(request) == ["user", "assistant", "user", "function_call", "function_call_output"]
    assert not any("id" in item for item in request["input"])


def test_a_chain_stays_where_it_went(client, emulator, second):
    first = client.create("one")
    gone(emulator)
    made = client.create("two", previous_response_id=first.id)
    client.create("three", previous_response_id=made.id)

    assert [request.get("previous_response_id") for request in asked(second)] == [None, made.id]


@pytest.mark.parametrize("store", [False, True])
def test_a_full_history_goes_on_at_the_other_each_time(client, emulator, second, store):
    """What the first has sealed stays behind, also when everybody knows that the first is gone."""
    emulator.say(reasoning("I think."), "Hello.")
    said = [user("hello")]
    fields = {"include": SEALED, "store": store}
    said += as_input(*client.create(said, **fields).output)
    gone(emulator)
    for number in range(3):
        said.append(user(f"turn {number}"))
        made = client.create(said, **fields)
        assert made.output_text == f"You said: turn {number}"
        said += as_input(*made.output)

    assert kinds(asked(second)[-1]) == ["user", "assistant"] * 3 + ["user"]


def test_a_full_history_goes_on_at_the_other_after_a_restart(
    gateway, client, emulator, second, refused
):
    """Whose a sealed item is, the gateway learns from the one that refuses it."""
    refused["unverified-reasoning"] = 1
    emulator.say(reasoning("I think."), "Hello.")
    said = [user("hello")]
    said += as_input(*client.create(said, include=SEALED, store=False).output)
    gone(emulator)
    gateway.restart()
    client.create("somebody else")  # from now on it is known that the first is gone
    made = client.create([*said, user("more")], include=SEALED, store=False)

    assert made.output_text == "You said: more"
    assert kinds(asked(second)[-1]) == ["user", "assistant", "user"]


def test_a_lane_goes_on_at_the_other(gateway, emulator, second):
    calls_weather(emulator)
    with connected("sync", gateway) as connection:
        connection.create("weather?", tools=[WEATHER], store=False)
        made = connection.finished()
        gone(emulator)
        connection.create([output_of()], tools=[WEATHER], store=False, previous_response_id=made.id)
        assert connection.finished().output_text == "weather returned: rain"

    assert kinds(asked(second)[-1]) == ["user", "function_call", "function_call_output"]


def test_a_conversation_stays_where_it_is(client, emulator, second):
    conversation = client.now(client.conversations.create()).id
    client.create("one", conversation=conversation)
    gone(emulator)
    with pytest.raises(openai.InternalServerError) as caught:
        client.create("two", conversation=conversation)

    assert caught.value.status_code == 502
    assert asked(second) == []


def test_each_model_goes_to_the_upstream_that_has_it(make_gateway, emulator, second):
    gateway = make_gateway(
        upstream(emulator, "one", models=("gpt-5.5",)), upstream(second, "two", models=("other-*",))
    )
    with client_of("sync", gateway) as client:
        client.create("hello")
        client.now(client.responses.create(model="other-1", input="hello"))
        with pytest.raises(openai.NotFoundError) as caught:
            client.now(client.responses.create(model="none", input="hello"))
    assert caught.value.code == "model_not_found"
    assert [request["model"] for request in asked(emulator)] == [MODEL]
    assert [request["model"] for request in asked(second)] == ["other-1"]


# --- two tenants -------------------------------------------------------------------------------


def test_what_another_made_does_not_exist(make_gateway, emulator):
    keys = [
        Key(name=name, hash=f"sha256:{hashlib.sha256(name.encode()).hexdigest()}")
        for name in ("anna", "bob")
    ]
    gateway = make_gateway(upstream(emulator, key=Secret("sk-upstream")), keys=tuple(keys))
    anna, bob = (
        openai.OpenAI(base_url=gateway.base_url, api_key=key.name, max_retries=0) for key in keys
    )
    with anna, bob:
        made = anna.responses.create(model=MODEL, input="a secret")
        conversation = anna.conversations.create().id
        for ask in (
            lambda: bob.responses.retrieve(made.id),
            lambda: list(bob.responses.retrieve(made.id, stream=True)),
            lambda: bob.responses.delete(made.id),
            lambda: bob.responses.input_items.list(made.id),
            lambda: bob.conversations.retrieve(conversation),
            lambda: bob.conversations.items.list(conversation),
            lambda: bob.conversations.delete(conversation),
        ):
            with pytest.raises(openai.NotFoundError):
                ask()
        with pytest.raises(openai.BadRequestError) as caught:
            bob.responses.create(model=MODEL, input="more", previous_response_id=made.id)
        assert caught.value.code == "previous_response_not_found"
        with pytest.raises(openai.APIStatusError):
            bob.responses.create(model=MODEL, input="more", conversation=conversation)
        assert anna.responses.retrieve(made.id).output_text == "You said: a secret"
    assert len(asked(emulator)) == 1
