"""LiveKit's plugin for the Responses API through the gateway, over each of its transports."""

from __future__ import annotations

import asyncio

import aiohttp
import pytest

from tests.gateway.clients.asking import asked, calls_weather, kinds
from tests.gateway.clients.gateways import keeping_nothing, upstream

pytest.importorskip("livekit.plugins.openai")

from livekit.agents import llm
from livekit.agents.utils import http_context
from livekit.plugins.openai import responses


@llm.function_tool
async def weather(city: str) -> str:
    """The weather in a city."""
    return f"rain in {city}"


async def collected(model, context):
    stream = model.chat(chat_ctx=context.copy(), tools=[weather])
    async with stream:
        chunks = [chunk async for chunk in stream]
    text = "".join(chunk.delta.content or "" for chunk in chunks if chunk.delta)
    calls = [call for chunk in chunks if chunk.delta for call in chunk.delta.tool_calls]
    return text, calls


async def talk(gateway, emulator, *, websocket, store, forgets):
    """Three turns, the first of which calls a tool; what the model said in each."""
    base = gateway.base_url + ("/responses" if websocket else "")
    model = responses.LLM(
        model="gpt-5.5", api_key="any", base_url=base, use_websocket=websocket, store=store
    )
    context = llm.ChatContext.empty()
    context.add_message(role="user", content="What is the weather?")
    said = []
    try:
        text, (called,) = await collected(model, context)
        said.append(text)
        if forgets:
            emulator.forget()
        output = await weather(city="Lund")
        pair = {"call_id": called.call_id, "name": called.name}
        context.insert(llm.FunctionCall(arguments=called.arguments, **pair))
        context.insert(llm.FunctionCallOutput(output=output, is_error=False, **pair))
        said.append((await collected(model, context))[0])
        context.add_message(role="assistant", content=said[-1])
        context.add_message(role="user", content="Thanks.")
        if forgets:
            emulator.forget()
        said.append((await collected(model, context))[0])
    finally:
        await model.aclose()
    return said


def played(gateway, emulator, **settings):
    async def scene():
        async with asyncio.timeout(10), aiohttp.ClientSession() as session:
            token = http_context._ContextVar.set(lambda: session)
            try:
                return await talk(gateway, emulator, **settings)
            finally:
                http_context._ContextVar.reset(token)

    return asyncio.run(scene())


SAID = ["", "weather returned: rain in Lund", "You said: Thanks."]
WHOLE = ["user", "function_call", "function_call_output", "assistant", "user"]


@pytest.fixture(params=["upstream", "gateway"])
def mending(request, make_gateway, emulator):
    """A gateway that mends, with an upstream that keeps state, and with one that keeps nothing.

    Behind the anchor the plugin sends the call again that the provider itself made: providers that
    are strict refuse that."""
    if request.param == "gateway":
        keeping_nothing(emulator)
    return make_gateway(upstream(emulator, state=request.param, guard="mend"))


@pytest.mark.parametrize("websocket", [False, True])
def test_a_tool_is_called_and_answered(mending, emulator, websocket):
    calls_weather(emulator)

    assert played(mending, emulator, websocket=websocket, store=True, forgets=False) == SAID

    if mending.config.upstreams[0].state == "gateway":
        # The plugin repeats what the model said, too; that is its own to say.
        assert kinds(asked(emulator)[-1]) == [*WHOLE[:-1], "assistant", "user"]


@pytest.mark.parametrize("websocket", [False, True])
def test_a_provider_that_forgets_everything_is_not_noticed(mending, emulator, broken, websocket):
    calls_weather(emulator)

    assert played(mending, emulator, websocket=websocket, store=True, forgets=True) == SAID

    broken |= emulator.violations()
    assert set(broken) <= {"anchor-not-found"}


@pytest.mark.parametrize("websocket", [False, True])
def test_a_history_that_is_sent_in_full_passes(gateway, emulator, websocket):
    calls_weather(emulator)

    assert played(gateway, emulator, websocket=websocket, store=False, forgets=True) == SAID

    assert kinds(asked(emulator)[-1]) == WHOLE


def test_a_call_that_is_sent_again_behind_its_anchor_is_taken_once(mending, emulator):
    """The model is told of one call and of its output, and of nothing that did not happen."""
    calls_weather(emulator)

    played(mending, emulator, websocket=False, store=True, forgets=False)

    sent = [item for request in asked(emulator) for item in request["input"]]
    assert not any("[lockstitch]" in str(item.get("output")) for item in sent)
