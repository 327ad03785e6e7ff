"""LiveKit's plugin for the Responses API through the gateway, over each of its transports."""

from __future__ import annotations

import asyncio

import aiohttp
import pytest

from tests.gateway.clients.asking import asked, calls_weather, kinds

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


async def talk(gateway, emulator, *, websocket, forgets):
    base = gateway.base_url + ("/responses" if websocket else "")
    model = responses.LLM(
        model="gpt-5.5", api_key="any", base_url=base, use_websocket=websocket, store=True
    )
    context = llm.ChatContext.empty()
    context.add_message(role="user", content="What is the weather?")
    said = []
    try:
        text, calls = await collected(model, context)
        (called,) = calls
        said.append(text)
        if forgets:
            emulator.forget()
        context.insert(
            llm.FunctionCall(
                call_id=called.call_id,
                name=called.name,
                arguments=called.arguments,
                id=f"{called.call_id}/fnc_0",
            )
        )
        context.insert(
            llm.FunctionCallOutput(
                call_id=called.call_id,
                name=called.name,
                output=await weather(city="Lund"),
                is_error=False,
            )
        )
        said.append((await collected(model, context))[0])
        context.add_message(role="assistant", content=said[-1])
        context.add_message(role="user", content="Thanks.")
        if forgets:
            emulator.forget()
        said.append((await collected(model, context))[0])
    finally:
        await model.aclose()
    return said


@pytest.mark.parametrize("websocket", [False, True])
@pytest.mark.parametrize("forgets", [False, True])
@pytest.mark.parametrize("state", ["upstream", "gateway"])
def test_a_tool_is_called_and_answered(request, emulator, broken, websocket, forgets, state):
    gateway = request.getfixturevalue({"upstream": "gateway", "gateway": "stateless"}[state])
    calls_weather(emulator)

    async def scene():
        async with asyncio.timeout(10), aiohttp.ClientSession() as session:
            token = http_context._ContextVar.set(lambda: session)
            try:
                return await talk(gateway, emulator, websocket=websocket, forgets=forgets)
            finally:
                http_context._ContextVar.reset(token)

    said = asyncio.run(scene())

    assert said == ["", "weather returned: rain in Lund", "You said: Thanks."]
    if forgets and state == "upstream" and not websocket:
        broken["anchor-not-found"] = emulator.violations().get("anchor-not-found", 0)
        assert broken["anchor-not-found"] <= 2
    if state == "gateway" or (forgets and not websocket):
        assert kinds(asked(emulator)[-1]) == [
            "user",
            "function_call",
            "function_call_output",
            "assistant",
            "user",
        ]
