"""Anthropic's Messages and models over real sockets, with the official client."""

import asyncio
import json

import anthropic
import pytest
from anthropic import Anthropic, AsyncAnthropic
from anthropic.types import Message, MessageTokensCount, ModelInfo, RawMessageStreamEvent

from lockstitch.emulator.model import replies
from lockstitch.emulator.model.replies import Asked, Reply, reply
from tests.emulator.doors import Served, raw_stream, serving
from tests.emulator.strictly import strictly

HELLO = [{"role": "user", "content": "hello"}]
LOOK = {"name": "look", "input_schema": {"type": "object", "properties": {}}}
ASK = {"model": "claude-sonnet-5", "max_tokens": 2048, "messages": HELLO}
VERSION = {"anthropic-version": "2023-06-01"}


def client(served: Served, **settings) -> Anthropic:
    return Anthropic(base_url=served.url, **{"api_key": "any", "max_retries": 0, **settings})


def looks_once(what: Asked) -> Reply:
    if what.output is None:
        thought = replies.reasoning("I should look.")
        return reply(thought, "Let me look.", replies.call("look", {"at": "the sea"}))
    return reply(f"{what.tool} says {what.output}.")


def check_sent(served: Served) -> None:
    """Every event that went out is strictly one of the official client's."""
    for name, data in served.sent_events():
        assert name in {"", data["type"]}
        if data["type"] not in {"ping", "error"}:
            strictly(RawMessageStreamEvent, data)


def test_a_tool_is_called_and_answered_with_the_thought_that_led_to_it():
    thinking = {"type": "enabled", "budget_tokens": 1024}
    with serving(looks_once) as served:
        messages = client(served).messages
        said = list(HELLO)
        first = messages.create(**ASK | {"tools": [LOOK], "thinking": thinking})
        strictly(Message, json.loads(first.model_dump_json(exclude_unset=True)))
        assert first.stop_reason == "tool_use"
        said.append({"role": "assistant", "content": first.content})
        result = {"type": "tool_result", "tool_use_id": first.content[-1].id, "content": "blue"}
        said.append({"role": "user", "content": [result]})
        second = messages.create(**ASK | {"tools": [LOOK], "messages": said, "thinking": thinking})
    assert second.content[0].text == "look says blue."
    assert second.stop_reason == "end_turn"
    assert second._request_id.startswith("req_")


def test_a_thought_of_another_provider_is_refused():
    with serving(looks_once, seed=1) as served:
        first = client(served).messages.create(**ASK)
    said = [*HELLO, {"role": "assistant", "content": first.content[:2]}, *HELLO]
    with serving(seed=2) as served, pytest.raises(anthropic.BadRequestError) as refused:
        client(served).messages.create(**ASK | {"messages": said})
    assert "Invalid `signature` in `thinking` block" in str(refused.value)


def test_a_broken_pair_is_refused_and_recorded():
    use = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}
    said = [*HELLO, {"role": "assistant", "content": [use]}, *HELLO]
    with serving() as served, pytest.raises(anthropic.BadRequestError) as refused:
        client(served).messages.create(**ASK | {"messages": said})
    body = refused.value.body
    assert body["error"]["type"] == "invalid_request_error"
    assert body["error"]["message"].startswith("messages.1: `tool_use` ids were found without")
    assert body["request_id"] == refused.value.request_id
    assert served.record.broken["call-without-output"] == 1
    assert not served.asked


def test_the_stream_helper_puts_the_events_together():
    with serving(looks_once) as served:
        with client(served).messages.stream(**ASK, tools=[LOOK]) as stream:
            text = "".join(stream.text_stream)
            final = stream.get_final_message()
        check_sent(served)
    assert text == "Let me look."
    assert [block.type for block in final.content] == ["thinking", "text", "tool_use"]
    assert final.content[2].input == {"at": "the sea"}
    assert final.stop_reason == "tool_use"


def test_the_async_client_streams_too():
    async def streamed(served: Served) -> str:
        async with (
            AsyncAnthropic(base_url=served.url, api_key="any") as asynchronous,
            asynchronous.messages.stream(**ASK) as stream,
        ):
            return await stream.get_final_text()

    with serving(reply("Good day, grün.")) as served:
        assert asyncio.run(streamed(served)) == "Good day, grün."
        check_sent(served)


def test_tokens_are_counted():
    with serving() as served:
        counted = client(served).messages.count_tokens(model="m", messages=HELLO)
        strictly(MessageTokensCount, counted.model_dump())
        answer = client(served).messages.create(**ASK)
    assert counted.input_tokens == answer.usage.input_tokens


def test_the_version_must_be_said():
    with serving() as served:
        for headers, said in (
            ({}, "anthropic-version: header is required"),
            ({"anthropic-version": "1999-01-01"}, 'anthropic-version: "1999-01-01" is not a valid'),
        ):
            came, _ = raw_stream(f"{served.url}/v1/messages", ASK, **headers)
            assert said in json.loads(came[0])["error"]["message"]


def test_a_key_comes_in_either_header_and_must_be_the_right_one():
    with serving(None, key="right") as served:
        client(served, api_key="right").messages.create(**ASK)
        client(served, api_key=None, auth_token="right").messages.create(**ASK)
        with pytest.raises(anthropic.AuthenticationError) as refused:
            client(served, api_key="wrong").messages.create(**ASK)
    error = refused.value.body["error"]
    assert error == {"type": "authentication_error", "message": "invalid x-api-key"}


def test_a_draft_without_a_word_here_is_the_servers_fault(caplog):
    unsayable = reply(replies.custom_call("patch", "x"))
    with serving(unsayable) as served, pytest.raises(anthropic.InternalServerError) as refused:
        client(served).messages.create(**ASK)
    assert refused.value.body["error"]["type"] == "api_error"
    assert "cannot say 'custom_tool_call'" in caplog.text


# Faults


def streamed(served: Served) -> tuple[list[dict], str]:
    """The events that came, and how it ended."""
    came, how = raw_stream(f"{served.url}/v1/messages", ASK | {"stream": True}, **VERSION)
    return [json.loads(line[6:]) for line in came if line.startswith("data: ")], how


@pytest.mark.parametrize("how", ["close", "reset", "half-frame", "half-character"])
def test_a_stream_can_be_cut_in_the_middle_of_a_call(how):
    fault = f"cut before=content_block_delta nth=3 how={how}"
    with serving(reply(replies.call("look", {"at": "the sea"})), fault) as served:
        came, ended = streamed(served)
    assert [event["type"] for event in came][-2:] == ["content_block_delta"] * 2
    assert (ended == "ended") == (how == "close")


@pytest.mark.parametrize("stream", [True, False])
def test_a_request_can_be_cut_before_its_first_byte(stream):
    with serving(None, "cut how=reset") as served:
        messages = client(served).messages
        with pytest.raises(anthropic.APIConnectionError):
            messages.create(**ASK, stream=stream)
        assert messages.create(**ASK).content[0].text == "Hello."


@pytest.mark.parametrize(
    ("fault", "type"), [("fail", "api_error"), ("error code=overloaded", "overloaded_error")]
)
def test_an_error_in_the_stream_is_its_last_word(fault, type):
    with serving(None, fault) as served:
        came, _ = streamed(served)
        check_sent(served)
    assert (came[-1]["type"], came[-1]["error"]["type"]) == ("error", type)
    with serving(None, fault) as served, pytest.raises(anthropic.APIStatusError):
        for _ in client(served).messages.create(**ASK, stream=True):
            pass


def test_an_overload_without_a_stream_is_a_529():
    fault = "fail code=overloaded"
    with serving(None, fault) as served, pytest.raises(anthropic.APIStatusError) as refused:
        client(served).messages.create(**ASK)
    assert refused.value.status_code == 529


def test_a_fault_ends_the_message_for_want_of_tokens():
    with serving(None, "incomplete times=2") as served:
        came, _ = streamed(served)
        body = client(served).messages.create(**ASK)
    assert [event["type"] for event in came][-2:] == ["message_delta", "message_stop"]
    assert came[-2]["delta"]["stop_reason"] == "max_tokens"
    assert body.stop_reason == "max_tokens"


@pytest.mark.parametrize(
    ("code", "type"),
    [("429", "rate_limit_error"), ("500", "api_error"), ("529", "overloaded_error")],
)
def test_a_status_comes_instead_of_an_answer(code, type):
    fault = f"status code={code}"
    with serving(None, fault) as served, pytest.raises(anthropic.APIStatusError) as refused:
        client(served).messages.create(**ASK)
    assert str(refused.value.status_code) == code
    assert refused.value.body["error"]["type"] == type


# Models


def test_the_models_are_listed_page_by_page():
    with serving(None, models=("one", "two", "three")) as served:
        models = client(served).models
        page = models.list(limit=2)
        assert ([model.id for model in page.data], page.has_more) == (["one", "two"], True)
        strictly(ModelInfo, json.loads(page.data[0].model_dump_json(exclude_unset=True)))
        assert [model.id for model in models.list(limit=1)] == ["one", "two", "three"]
        assert [model.id for model in models.list(before_id="three", limit=1).data] == ["two"]


def test_a_model_is_found_by_its_name_or_not_at_all():
    with serving() as served:
        assert client(served).models.retrieve("claude-sonnet-5").display_name == "Claude Sonnet 5"
        with pytest.raises(anthropic.NotFoundError) as refused:
            client(served).models.retrieve("other")
    error = refused.value.body["error"]
    assert error == {"type": "not_found_error", "message": "model: other"}
