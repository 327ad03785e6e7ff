"""Outputs that are lost on their way to a provider's conversation are there once, come what may."""

from __future__ import annotations

import time

import openai
import pytest

from lockstitch.gateway.deciding.retrying import LATE_LISTING_SECONDS
from tests.gateway.clients.asking import WEATHER, calls_weather, output_of


@pytest.fixture
def client(gateway):
    with openai.OpenAI(base_url=gateway.base_url, api_key="x", max_retries=0, timeout=10) as made:
        yield made


@pytest.fixture
def asked(client, emulator):
    """A conversation in which a call waits."""
    conversation = client.conversations.create().id
    calls_weather(emulator)
    made = client.responses.create(
        model="m", input="Rain?", conversation=conversation, tools=[WEATHER]
    )
    return conversation, made.output[-1].call_id


def outputs(client, conversation):
    return [
        item
        for item in client.conversations.items.list(conversation)
        if item.type == "function_call_output"
    ]


@pytest.mark.parametrize("fault", ["cut before=first-byte how=reset", "status code=502"])
def test_what_never_arrived_is_sent_again_and_nobody_notices(client, emulator, asked, fault):
    conversation, call = asked
    emulator.fault(f"{fault} path=/v1/responses")
    told = client.responses.create(model="m", input=[output_of(call)], conversation=conversation)
    assert told.output_text == "weather returned: rain"
    assert len(outputs(client, conversation)) == 1


def test_what_arrived_is_there_once_and_the_client_is_told(client, emulator, asked):
    conversation, call = asked
    emulator.say("It rains.")
    emulator.fault("lose path=/v1/responses how=reset")
    with pytest.raises(openai.InternalServerError):
        client.responses.create(model="m", input=[output_of(call)], conversation=conversation)
    assert len(outputs(client, conversation)) == 1


def test_for_a_client_that_has_given_up_nothing_is_sent_again(gateway, client, emulator, asked):
    conversation, call = asked
    emulator.fault("cut before=first-byte how=reset path=/v1/responses")
    hasty = client.with_options(timeout=LATE_LISTING_SECONDS / 2)
    with pytest.raises(openai.APITimeoutError):
        hasty.responses.create(model="m", input=[output_of(call)], conversation=conversation)
    for _ in range(100):
        if not gateway.running():
            break
        time.sleep(0.1)
    assert not gateway.running()
    assert len(emulator.requests("POST /v1/responses")) == 2  # the call, and what was lost
    client.responses.create(model="m", input=[output_of(call)], conversation=conversation)
    assert len(outputs(client, conversation)) == 1
