"""Chat Completions and the models over real sockets, with the official client."""

import asyncio
import json

import openai
import pytest
from openai import AsyncOpenAI, OpenAI
from openai.types import Model
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from lockstitch.emulator.model import replies
from lockstitch.emulator.model.replies import Asked, Reply, reply
from tests.emulator.doors import Served, raw_stream, serving
from tests.emulator.strictly import strictly

HELLO = [{"role": "user", "content": "hello"}]
LOOK = {
    "type": "function",
    "function": {"name": "look", "parameters": {"type": "object", "properties": {}}},
}


def client(served: Served, **settings) -> OpenAI:
    settings = {"api_key": "any", "max_retries": 0, **settings}
    return OpenAI(base_url=f"{served.url}/v1", **settings)


def looks_once(what: Asked) -> Reply:
    if what.output is None:
        return reply("Let me look.", replies.call("look", {"at": "the sea"}))
    return reply(f"{what.tool} says {what.output}.")


def checked(served: Served) -> list[dict]:
    """The chunks that went out, each strictly one."""
    sent = [data for name, data in served.sent_events() if name in {"chunk", "finish"}]
    for chunk in sent:
        strictly(ChatCompletionChunk, chunk)
    return sent


def test_a_tool_is_called_and_answered():
    with serving(looks_once) as served:
        chat = client(served).chat.completions
        messages = list(HELLO)
        first = chat.create(model="gpt-5.5", messages=messages, tools=[LOOK])
        strictly(ChatCompletion, json.loads(first.model_dump_json(exclude_unset=True)))
        call = first.choices[0].message.tool_calls[0]
        assert first.choices[0].finish_reason == "tool_calls"
        messages.append(first.choices[0].message.model_dump())
        messages.append({"role": "tool", "tool_call_id": call.id, "content": "blue"})
        second = chat.create(model="gpt-5.5", messages=messages, tools=[LOOK])
    assert second.choices[0].message.content == "look says blue."
    assert second.usage.prompt_tokens > first.usage.prompt_tokens
    assert second._request_id.startswith("req_")


def test_a_broken_pair_is_refused_and_recorded():
    calls = [{"id": "call_1", "type": "function", "function": {"name": "f", "arguments": ""}}]
    messages = [*HELLO, {"role": "assistant", "tool_calls": calls}, *HELLO]
    with serving() as served, pytest.raises(openai.BadRequestError) as refused:
        client(served).chat.completions.create(model="gpt-5.5", messages=messages)
    assert refused.value.param == "messages.[2].role"
    assert refused.value.body["message"].endswith("response messages: call_1")
    assert served.record.broken["call-without-output"] == 1
    assert not served.asked


def test_the_stream_helper_puts_the_chunks_together():
    with serving(looks_once) as served:
        chat = client(served).chat.completions
        options = {"include_usage": True}
        with chat.stream(
            model="gpt-5.5", messages=HELLO, tools=[LOOK], stream_options=options
        ) as stream:
            names = [event.type for event in stream]
            final = stream.get_final_completion()
        sent = checked(served)
    assert "tool_calls.function.arguments.done" in names
    assert final.choices[0].message.content == "Let me look."
    assert final.choices[0].message.tool_calls[0].function.arguments == '{"at":"the sea"}'
    assert final.usage.total_tokens == sent[-1]["usage"]["total_tokens"]


def test_the_async_client_streams_too():
    async def streamed(served: Served) -> str:
        async with AsyncOpenAI(base_url=f"{served.url}/v1", api_key="any") as asynchronous:
            stream = await asynchronous.chat.completions.create(
                model="gpt-5.5", messages=HELLO, stream=True
            )
            return "".join([chunk.choices[0].delta.content or "" async for chunk in stream])

    with serving(reply("Good day, grün.")) as served:
        assert asyncio.run(streamed(served)) == "Good day, grün."
        checked(served)


def test_every_choice_comes():
    with serving() as served:
        said = client(served).chat.completions.create(model="m", messages=HELLO, n=3)
    assert [choice.message.content for choice in said.choices] == ["Hello."] * 3


def test_a_draft_without_a_word_in_chat_is_the_servers_fault(caplog):
    unsayable = reply(replies.item("shell_call"))
    with serving(unsayable) as served, pytest.raises(openai.InternalServerError):
        client(served).chat.completions.create(model="m", messages=HELLO)
    assert "cannot say 'shell_call'" in caplog.text


# Faults


def streamed(served: Served) -> tuple[list[str], str]:
    """The lines of data that came, and how it ended."""
    body = {"model": "m", "messages": HELLO, "stream": True}
    came, how = raw_stream(f"{served.url}/v1/chat/completions", body)
    return [line[6:] for line in came if line.startswith("data: ")], how


def test_without_faults_a_stream_ends_with_done():
    with serving() as served:
        came, how = streamed(served)
    assert (came[-1], how) == ("[DONE]", "ended")


@pytest.mark.parametrize("how", ["close", "reset", "half-frame", "half-character"])
def test_a_stream_can_be_cut_after_any_chunk(how):
    with serving(reply("One two three"), f"cut after=chunk nth=3 how={how}") as served:
        came, ended = streamed(served)
    whole = [json.loads(line) for line in came]
    assert len(whole) == 3
    # A close looks like an end: only the missing finish reason tells.
    assert (ended == "ended") == (how == "close")
    assert served.record.struck[f"cut after=chunk nth=3 how={how}"] == 1


@pytest.mark.parametrize("how", ["close", "reset"])
@pytest.mark.parametrize("stream", [True, False])
def test_a_request_can_be_cut_before_its_first_byte(how, stream):
    with serving(None, f"cut how={how}") as served:
        chat = client(served).chat.completions
        with pytest.raises(openai.APIConnectionError):
            chat.create(model="m", messages=HELLO, stream=stream)
        assert chat.create(model="m", messages=HELLO).choices[0].message.content == "Hello."


@pytest.mark.parametrize("fault", ["fail", "error"])
def test_an_error_in_the_stream_is_its_last_word(fault):
    with serving(None, f'{fault} code=overloaded message="Too much."') as served:
        came, _ = streamed(served)
    assert json.loads(came[-1])["error"] == {
        "message": "Too much.",
        "type": "server_error",
        "param": None,
        "code": "overloaded",
    }
    with serving(None, fault) as served, pytest.raises(openai.APIError):
        for _ in client(served).chat.completions.create(model="m", messages=HELLO, stream=True):
            pass


def test_a_fault_ends_the_choice_for_want_of_tokens():
    with serving(None, "incomplete times=2") as served:
        came, _ = streamed(served)
        body = client(served).chat.completions.create(model="m", messages=HELLO)
    assert json.loads(came[-2])["choices"][0]["finish_reason"] == "length"
    assert came[-1] == "[DONE]"
    assert body.choices[0].finish_reason == "length"


@pytest.mark.parametrize("fault", ["fail", "error"])
def test_a_failure_without_a_stream_is_a_500(fault):
    with serving(None, fault) as served, pytest.raises(openai.InternalServerError):
        client(served).chat.completions.create(model="m", messages=HELLO)


def test_the_faults_of_a_reply_strike_it():
    with serving(reply("Hi.", faults=("error before=finish",), ends="completed")) as served:
        came, _ = streamed(served)
    assert "error" in json.loads(came[-1])


def test_a_lost_answer_was_said_all_the_same():
    with serving(None, "lose") as served, pytest.raises(openai.APIConnectionError):
        client(served).chat.completions.create(model="m", messages=HELLO, stream=True)
    assert len(served.asked) == 1
    assert served.sent_events() == []


def test_a_status_comes_instead_of_an_answer():
    fault = "status code=429 retry_after=3"
    with serving(None, fault) as served, pytest.raises(openai.RateLimitError) as refused:
        client(served).chat.completions.create(model="m", messages=HELLO)
    assert refused.value.response.headers["retry-after"] == "3"
    assert not served.asked


def test_the_wrong_key_is_refused():
    with serving(None, key="right") as served:
        with pytest.raises(openai.AuthenticationError):
            client(served, api_key="wrong").chat.completions.create(model="m", messages=HELLO)
        client(served, api_key="right").chat.completions.create(model="m", messages=HELLO)


# Models


def test_the_models_are_listed_and_found():
    with serving(None, models=("one", "two")) as served:
        models = client(served).models
        listed = models.list().data
        assert [model.id for model in listed] == ["one", "two"]
        strictly(Model, json.loads(listed[0].model_dump_json(exclude_unset=True)))
        assert models.retrieve("two").id == "two"
        with pytest.raises(openai.NotFoundError) as refused:
            models.retrieve("three")
    assert refused.value.code == "model_not_found"
