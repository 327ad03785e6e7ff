"""Everything beside the Responses API: Chat Completions, Anthropic's Messages, models, and what the
gateway knows nothing of."""

from __future__ import annotations

import asyncio

import anthropic
import openai
import pytest

from lockstitch.emulator import call
from tests.emulator.official import MODEL, async_client, sync_client
from tests.gateway.clients.asking import user
from tests.gateway.clients.gateways import upstream

CLAUDE = "claude-sonnet-5"
FUNCTION = {"name": "weather", "parameters": {"type": "object", "properties": {}}}
TOOL = {"name": "weather", "input_schema": {"type": "object", "properties": {}}}


@pytest.fixture
def client(gateway):
    with sync_client(gateway) as made:
        yield made


@pytest.fixture
def claude(gateway):
    url = gateway.base_url.removesuffix("/v1")
    with anthropic.Anthropic(base_url=url, api_key="any", max_retries=0, timeout=10) as made:
        yield made


# --- Chat Completions --------------------------------------------------------------------------


def test_a_chat_is_answered(client):
    made = client.chat.completions.create(model=MODEL, messages=[user("hello")])

    assert made.choices[0].message.content == "You said: hello"


def test_a_chat_is_streamed(client):
    chunks = list(
        client.chat.completions.create(
            model=MODEL,
            messages=[user("hello")],
            stream=True,
            stream_options={"include_usage": True},
        )
    )

    told = [choice.delta.content or "" for chunk in chunks for choice in chunk.choices]
    assert "".join(told) == "You said: hello"
    assert chunks[-1].usage.total_tokens > 0


def test_a_tool_is_called_in_a_chat(client, emulator):
    emulator.say(call("weather", {}, call_id="call_1"))
    tools = [{"type": "function", "function": FUNCTION}]
    with client.chat.completions.stream(
        model=MODEL, messages=[user("weather?")], tools=tools
    ) as stream:
        (called,) = stream.get_final_completion().choices[0].message.tool_calls
    function = {"name": called.function.name, "arguments": called.function.arguments}
    said = {"id": called.id, "type": "function", "function": function}
    answer = {"role": "tool", "tool_call_id": called.id, "content": "rain"}
    history = [user("weather?"), {"role": "assistant", "tool_calls": [said]}, answer]
    made = client.chat.completions.create(model=MODEL, messages=history, tools=tools)

    assert made.choices[0].message.content == "weather returned: rain"


def test_a_chat_whose_call_has_no_output_is_refused_before_the_provider_sees_it(
    make_gateway, emulator
):
    gateway = make_gateway(upstream(emulator, guard="refuse"))
    called = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    history = [user("a"), {"role": "assistant", "tool_calls": [called]}, user("b")]
    with sync_client(gateway) as client, pytest.raises(openai.BadRequestError, match="call_1"):
        client.chat.completions.create(model=MODEL, messages=history)
    assert emulator.requests("POST /v1/chat") == []


def test_a_chat_whose_call_has_no_output_is_mended(make_gateway, emulator):
    gateway = make_gateway(upstream(emulator, guard="mend"))
    called = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    history = [user("a"), {"role": "assistant", "tool_calls": [called]}, user("b")]
    with sync_client(gateway) as client:
        made = client.chat.completions.create(model=MODEL, messages=history)
    assert made.choices[0].message.content == "You said: b"


def test_a_chat_whose_stream_is_cut_ends_with_an_error(client, emulator):
    emulator.say("one two three", faults=("cut after=3 how=reset",))
    with pytest.raises(openai.APIError) as caught:
        list(client.chat.completions.create(model=MODEL, messages=[user("hello")], stream=True))
    assert not isinstance(caught.value, openai.APIConnectionError)


# --- Messages ----------------------------------------------------------------------------------


def test_a_message_is_answered(claude):
    made = claude.messages.create(model=CLAUDE, max_tokens=100, messages=[user("hello")])

    assert made.content[0].text == "You said: hello"


def test_a_message_is_streamed_and_its_tool_called(claude, emulator):
    emulator.say(call("weather", {}, call_id="toolu_1"))
    asked = {"model": CLAUDE, "max_tokens": 100, "tools": [TOOL]}
    with claude.messages.stream(messages=[user("weather?")], **asked) as stream:
        said = stream.get_final_message()
    used = said.content[-1]
    assert (said.stop_reason, used.type) == ("tool_use", "tool_use")
    result = {"type": "tool_result", "tool_use_id": used.id, "content": "rain"}
    history = [
        user("weather?"),
        {"role": "assistant", "content": [block.to_dict() for block in said.content]},
        {"role": "user", "content": [result]},
    ]
    with claude.messages.stream(messages=history, **asked) as stream:
        assert "".join(stream.text_stream) == "weather returned: rain"


def test_a_message_that_is_not_whole_is_refused_in_the_providers_form(make_gateway, emulator):
    gateway = make_gateway(upstream(emulator, guard="refuse"))
    url = gateway.base_url.removesuffix("/v1")
    used = {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {}}
    history = [user("a"), {"role": "assistant", "content": [used]}, user("b")]
    with (
        anthropic.Anthropic(base_url=url, api_key="any", max_retries=0) as client,
        pytest.raises(anthropic.BadRequestError, match="toolu_1") as caught,
    ):
        client.messages.create(model=CLAUDE, max_tokens=100, messages=history)
    assert caught.value.body["error"]["type"] == "invalid_request_error"
    assert emulator.requests("POST /v1/messages") == []


def test_a_provider_that_is_overloaded_is_told_to_anthropics_client(claude, emulator):
    emulator.fault("status code=529 path=/v1/messages")
    with pytest.raises(anthropic.APIStatusError) as caught:
        claude.messages.create(model=CLAUDE, max_tokens=100, messages=[user("hello")])
    assert caught.value.status_code == 529


def test_a_message_whose_stream_is_cut_ends_with_an_error(claude, emulator):
    emulator.say("one two three", faults=("cut after=3 how=reset",))
    with (
        pytest.raises(anthropic.APIStatusError),
        claude.messages.stream(model=CLAUDE, max_tokens=100, messages=[user("hello")]) as stream,
    ):
        stream.get_final_message()


def used(key):
    block = {"type": "tool_use", "id": key, "name": "weather", "input": {}}
    return {"role": "assistant", "content": [block]}


def answered(key):
    block = {"type": "tool_result", "tool_use_id": key, "content": "rain"}
    return {"role": "user", "content": [block]}


@pytest.mark.parametrize(
    ("history", "repaired"),
    [
        ([used("t1"), used("t2"), user("go")], "LS001 t1; LS001 t2"),
        ([used("t1"), used("t2"), answered("t1"), user("go")], "LS010 t2"),
        ([used("t1"), used("t2"), answered("t1"), answered("t2")], None),
    ],
)
def test_a_history_with_consecutive_messages_of_one_role_is_accepted_once_it_is_repaired(
    claude, history, repaired
):
    made = claude.messages.with_raw_response.create(
        model=CLAUDE, max_tokens=100, messages=[user("weather?"), *history], tools=[TOOL]
    )
    assert made.headers.get("x-lockstitch-repaired") == repaired


# --- the rest ----------------------------------------------------------------------------------


def test_models_are_listed(client):
    assert MODEL in [model.id for model in client.models.list()]


def test_the_models_of_two_upstreams_are_listed_together(make_gateway, emulator):
    gateway = make_gateway(
        upstream(emulator, "one", models=("gpt-5.5",)),
        upstream(emulator, "two", models=("claude-*",)),
    )
    with sync_client(gateway) as client:
        assert [model.id for model in client.models.list()] == [MODEL, CLAUDE]


def test_what_the_gateway_knows_nothing_of_passes(client, emulator, broken):
    """The emulator has no files, and says so in its own words: the request arrived."""
    broken["unknown-path"] = 2
    with pytest.raises(openai.NotFoundError) as caught:
        client.files.create(file=("a.txt", b"some bytes"), purpose="user_data")
    assert "/v1/files" in caught.value.message
    with pytest.raises(openai.NotFoundError):
        client.embeddings.create(model="text-embedding-3-small", input="hello")
    asked = [entry.what for entry in emulator.entries() if not entry.sent]
    assert asked == ["POST /v1/files", "POST /v1/embeddings"]
    assert client.models.retrieve(MODEL).id == MODEL


def test_a_realtime_session_passes(gateway):
    said = {"type": "input_text", "text": "hello"}
    item = {"type": "message", "role": "user", "content": [said]}

    async def scene():
        async with (
            asyncio.timeout(10),
            async_client(gateway) as client,
            client.realtime.connect(model="gpt-realtime") as connection,
        ):
            await connection.conversation.item.create(item=item)
            await connection.response.create(response={"output_modalities": ["text"]})
            while True:
                event = await connection.recv()
                if event.type == "response.done":
                    return event.response.output[0].content[0].text

    assert asyncio.run(scene()) == "You said: hello"
