"""Realtime clients that cannot be changed, through the gateway: the `openai` package and LiveKit's
plugin. The provider is as strict as there is one, and its clock moves when the test says so."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import aiohttp
import openai
import pytest

from lockstitch.emulator import VirtualClock, call
from lockstitch.gateway.config.model import RealtimeSettings
from tests.gateway.clients.gateways import upstream

SECONDS = 10.0
"""What does not come within this never comes."""

LATER = {"delay": 1.0}
"""Said when the clock is moved; its place in the conversation is fixed before that."""


@pytest.fixture
def emulator(make_emulator):
    return make_emulator(clock=VirtualClock(flowing=False))


@pytest.fixture
def carrying_out(make_gateway, emulator):
    settings = RealtimeSettings(deletes_in_flight="carry-out")
    return make_gateway(upstream(emulator), realtime=settings)


@pytest.fixture
def unguarded(make_gateway, emulator):
    return make_gateway(upstream(emulator, guard="off"))


def conversation(emulator):
    """The items as the provider has them."""

    def items():
        (connection,) = emulator.emulator.realtime.sessions.values()
        return connection.session.items()

    return emulator._do(items)


def run(scene):
    async def bounded():
        async with asyncio.timeout(SECONDS):
            return await scene

    return asyncio.run(bounded())


# --- the openai package --------------------------------------------------------------------------


class Talk:
    """A connection of the `openai` package."""

    def __init__(self, connection):
        self.connection = connection
        self.item = connection.conversation.item

    async def until(self, type):
        while True:
            event = await self.connection.recv()
            if event.type == type:
                return event

    async def told(self, item, **more):
        await self.item.create(item=item, **more)
        return (await self.until("conversation.item.added")).item.id

    async def asks(self):
        await self.connection.response.create(response={"output_modalities": ["text"]})


def text(said):
    return {
        "type": "message",
        "role": "user",
        "content": [{"type": "input_text", "text": said}],
    }


@asynccontextmanager
async def talking(gateway):
    async with (
        openai.AsyncOpenAI(base_url=gateway.base_url, api_key="any") as client,
        client.realtime.connect(model="gpt-realtime") as connection,
    ):
        yield Talk(connection)


def output(called):
    return {"type": "function_call_output", "call_id": called.call_id, "output": "rain"}


def test_a_delete_of_a_call_in_flight_is_answered_and_the_output_finds_its_call(gateway, emulator):
    async def scene():
        emulator.say(call("weather"))
        async with talking(gateway) as talk:
            await talk.asks()
            called = (await talk.until("response.output_item.done")).item
            await talk.item.delete(item_id=called.id, event_id="mine")
            error = (await talk.until("error")).error
            assert (error.event_id, error.code) == ("mine", "item_delete_call_in_flight")
            await talk.told(output(called))
            assert [item["type"] for item in conversation(emulator)] == [
                "function_call",
                "function_call_output",
            ]

    run(scene())
    assert emulator.violations() == {}
    assert "conversation.item.delete" not in str(emulator.requests("frame"))


def test_a_delete_that_is_carried_out_takes_the_pair_and_a_late_output_is_refused(
    carrying_out, emulator
):
    async def scene():
        emulator.say(call("weather"))
        async with talking(carrying_out) as talk:
            await talk.asks()
            called = (await talk.until("response.output_item.done")).item
            await talk.item.delete(item_id=called.id)
            answer = await talk.told(output(called))
            gone = [(await talk.until("conversation.item.deleted")).item_id for _ in range(2)]
            assert gone == [called.id, answer]
            assert conversation(emulator) == []
            await talk.item.create(item=output(called), event_id="late")
            error = (await talk.until("error")).error
            assert (error.event_id, error.code) == ("late", "invalid_tool_call_id")

    run(scene())
    assert emulator.violations() == {}


def test_a_delete_that_was_held_for_too_long_is_answered(make_gateway, emulator):
    settings = RealtimeSettings(deletes_in_flight="carry-out", held_seconds=0.1)
    gateway = make_gateway(upstream(emulator), realtime=settings)

    async def scene():
        emulator.say(call("weather"))
        async with talking(gateway) as talk:
            await talk.asks()
            called = (await talk.until("response.output_item.done")).item
            for name in ("one", "two"):
                await talk.item.delete(item_id=called.id, event_id=name)
                assert (await talk.until("error")).error.event_id == name
            assert [item["id"] for item in conversation(emulator)] == [called.id]

    run(scene())


def test_an_item_behind_one_that_was_deleted_is_told_behind_one_that_is_there(gateway, emulator):
    async def scene():
        emulator.say("Hello.", **LATER)
        async with talking(gateway) as talk:
            first, second = [await talk.told(text(said)) for said in ("one", "two")]
            await talk.asks()
            await talk.item.delete(item_id=second)
            await talk.until("conversation.item.deleted")
            emulator.advance(1)
            added = await talk.until("conversation.item.added")
            assert added.previous_item_id == first
            done = await talk.until("conversation.item.done")
            assert done.previous_item_id == first
            assert [item["id"] for item in conversation(emulator)] == [first, done.item.id]

    run(scene())


def test_without_a_guard_everything_passes(unguarded, emulator):
    async def scene():
        emulator.say(call("weather"))
        emulator.say("Hello.", **LATER)
        async with talking(unguarded) as talk:
            await talk.asks()
            called = (await talk.until("response.done")).response.output[0]
            await talk.asks()
            await talk.item.delete(item_id=called.id)
            await talk.until("conversation.item.deleted")
            await talk.item.create(item=output(called))
            assert (await talk.until("error")).error.code == "invalid_tool_call_id"
            emulator.advance(1)
            assert (await talk.until("conversation.item.added")).previous_item_id == called.id

    run(scene())
    assert emulator.violations() == {"output-without-call": 1}


# --- LiveKit's plugin ----------------------------------------------------------------------------


@asynccontextmanager
async def livekit_session(base_url):
    from livekit.agents.utils import http_context
    from livekit.plugins.openai import realtime

    async with aiohttp.ClientSession() as http:
        token = http_context._ContextVar.set(lambda: http)
        model = realtime.RealtimeModel(
            base_url=base_url,
            api_key="any",
            model="gpt-realtime",
            modalities=["text"],
            turn_detection=None,
        )
        session = model.session()
        try:
            yield session
        finally:
            await session.aclose()
            await model.aclose()
            http_context._ContextVar.reset(token)


async def spoken(generation):
    async for said in generation.message_stream:
        async for _ in said.text_stream:
            pass
    return [called async for called in generation.function_stream]


def ids(context):
    return [item.id for item in context.items]


async def summarised_while_a_tool_runs(base_url, emulator, *, summarises_again=False):
    """The founding case. Gives what the provider has of it in the end, and what LiveKit has."""
    from livekit.agents import llm

    @llm.function_tool
    async def weather(city: str) -> str:
        """The weather in a city."""
        raise NotImplementedError

    emulator.say(call("weather", {"city": "Lund"}))
    emulator.say("One moment.", **LATER)
    async with livekit_session(base_url) as session:
        await session.update_tools([weather])
        asked = llm.ChatContext.empty()
        asked.add_message(role="user", content="What is the weather in Lund?")
        await session.update_chat_ctx(asked)
        # 1. The model calls a tool. The provider has the call; the application does not, so far.
        (called,) = await spoken(await session.generate_reply())
        # 2. Another response starts behind it.
        later = session.generate_reply()
        # 3. The application summarises what it has.
        summary = llm.ChatContext.empty()
        summary.add_message(role="user", content="In short: the weather in Lund.")
        await session.update_chat_ctx(summary)
        # 4. and 5. The tool ends; its output goes behind what the plugin takes for the context.
        answered = session.chat_ctx.copy()
        answered.items.append(
            llm.FunctionCallOutput(
                call_id=called.call_id, name=called.name, output="rain", is_error=False
            )
        )
        await session.update_chat_ctx(answered)
        # 6. The response of step 2 arrives.
        emulator.advance(1)
        await spoken(await later)
        if summarises_again:
            await session.update_chat_ctx(summary)
        return conversation(emulator), session.chat_ctx


def test_the_founding_case_fails_straight_at_the_provider(emulator):
    pytest.importorskip("livekit.plugins.openai")
    items, _ = run(summarised_while_a_tool_runs(emulator.base_url, emulator))
    assert [item["type"] for item in items] == ["message", "message"]
    assert emulator.violations() == {"output-without-call": 1}


def test_the_founding_case_holds_through_the_gateway(gateway, emulator):
    pytest.importorskip("livekit.plugins.openai")
    items, context = run(summarised_while_a_tool_runs(gateway.base_url, emulator))
    summary, called, later, answer = items
    # The place of the later response was fixed when it started: right behind the call.
    assert [item["type"] for item in items] == [
        "message",
        "function_call",
        "message",
        "function_call_output",
    ]
    assert answer["call_id"] == called["call_id"]
    assert (summary["role"], later["role"]) == ("user", "assistant")
    assert ids(context) == [item["id"] for item in items]
    assert emulator.violations() == {}


def test_what_was_kept_for_a_tool_can_be_summarised_once_it_is_answered(gateway, emulator):
    pytest.importorskip("livekit.plugins.openai")
    scene = summarised_while_a_tool_runs(gateway.base_url, emulator, summarises_again=True)
    (summary,), context = run(scene)
    assert summary["role"] == "user"
    assert ids(context) == [summary["id"]]
    assert emulator.violations() == {}
