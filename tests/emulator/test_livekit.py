"""The real LiveKit plugin against the emulator: a context is pushed, a tool called and answered."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest

from lockstitch.emulator.model.replies import call
from tests.emulator.realtime_door import PATIENCE_SECONDS, Served, serving

pytest.importorskip("livekit.plugins.openai")

from livekit.agents import llm
from livekit.plugins import openai as livekit_openai


@llm.function_tool
async def get_weather(city: str) -> str:
    """The weather in a city."""
    return f"sunny in {city}"


@asynccontextmanager
async def session_with(served: Served, **options: Any) -> AsyncIterator[Any]:
    async with aiohttp.ClientSession() as http:
        model = livekit_openai.realtime.RealtimeModel(
            model="gpt-realtime",
            api_key="any",
            base_url=f"{served.url}/v1",
            http_session=http,
            **options,
        )
        session = model.session()
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                yield session
        finally:
            await session.aclose()


async def said_in(generation: Any) -> tuple[str, list[Any]]:
    """The text of a generation, and the functions that it calls."""
    text = ""
    async for message in generation.message_stream:
        async for piece in message.text_stream:
            text += piece
    return text, [called async for called in generation.function_stream]


async def order_on(served: Served) -> list[str]:
    (connection,) = served.door.sessions.values()
    return [item["id"] for item in connection.session.items()]


@pytest.mark.parametrize("modalities", [["text"], ["text", "audio"]])
def test_a_context_is_pushed_a_tool_is_called_and_its_output_is_answered(modalities: list[str]):
    async def scene() -> None:
        async with serving() as served, session_with(served, modalities=modalities) as session:
            served.say("Let me look.", call("get_weather", {"city": "Athens"}))
            served.say("It is sunny.")
            await session.update_instructions("Be brief.")
            await session.update_tools([get_weather])
            context = llm.ChatContext.empty()
            context.add_message(role="system", content="The user is in Greece.")
            context.add_message(role="user", content="Hello.")
            context.add_message(role="assistant", content="Hello!")
            context.add_message(role="user", content="What is the weather?")
            await session.update_chat_ctx(context)
            assert await order_on(served) == [item.id for item in context.items]

            text, called = await said_in(await session.generate_reply())
            assert text == "Let me look."
            assert [(one.name, one.arguments) for one in called] == [
                ("get_weather", '{"city":"Athens"}')
            ]

            context = session.chat_ctx.copy()
            output = await get_weather(city="Athens")
            context.insert(
                llm.FunctionCallOutput(
                    call_id=called[0].call_id, name="get_weather", output=output, is_error=False
                )
            )
            await session.update_chat_ctx(context)
            text, called = await said_in(await session.generate_reply())
            assert (text, called) == ("It is sunny.", [])

            first, second = served.asked
            assert first.user == "What is the weather?"
            assert first.instructions == "Be brief."
            assert [tool.name for tool in first.tools] == ["get_weather"]
            assert (second.output, second.tool) == ("sunny in Athens", "get_weather")
            assert await order_on(served) == [item.id for item in session.chat_ctx.items]
            assert served.world.record.broken == {}

    asyncio.run(scene())


def test_speech_is_transcribed_and_answered_without_being_asked_for():
    async def scene() -> None:
        async with serving() as served, session_with(served) as session:
            served.say("Hello to you.")
            heard: list[Any] = []
            generations: asyncio.Queue[Any] = asyncio.Queue()
            session.on("input_audio_transcription_completed", heard.append)
            session.on("generation_created", generations.put_nowait)
            await session.update_chat_ctx(_greeting())
            await served.door.speak("Hello there")
            text, _ = await said_in(await generations.get())
            assert text == "Hello to you."
            assert [one.transcript for one in heard if one.is_final] == ["Hello there"]
            assert await order_on(served) == [item.id for item in session.chat_ctx.items]

    asyncio.run(scene())


def test_an_item_that_is_changed_is_deleted_and_created_again_in_its_place():
    async def scene() -> None:
        async with serving() as served, session_with(served) as session:
            context = _greeting()
            await session.update_chat_ctx(context)
            context.items[0].content = ["Something else."]
            await session.update_chat_ctx(context)
            (connection,) = served.door.sessions.values()
            first, second = connection.session.items()
            assert [first["id"], second["id"]] == [item.id for item in context.items]
            assert first["content"][0]["text"] == "Something else."
            assert served.world.record.broken == {}

    asyncio.run(scene())


def test_a_reply_that_is_interrupted_is_cancelled_and_the_next_one_comes():
    async def scene() -> None:
        async with serving() as served, session_with(served, modalities=["text"]) as session:
            served.say("One two three.", pace=30.0)
            served.say("Four.")
            cut = await session.generate_reply()
            session.interrupt()
            await said_in(cut)
            text, _ = await said_in(await session.generate_reply())
            assert text == "Four."
            assert served.world.record.broken == {}

    asyncio.run(scene())


def _greeting() -> llm.ChatContext:
    context = llm.ChatContext.empty()
    context.add_message(role="user", content="Hello.")
    context.add_message(role="assistant", content="Hello!")
    return context
