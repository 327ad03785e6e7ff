"""A real AgentSession with a tool and a summarising step, on LiveKit's model and on ours."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import aiohttp
import pytest
from livekit.agents import Agent, AgentSession, function_tool

from lockstitch.emulator import reply
from lockstitch.emulator.clock import VirtualClock
from tests.emulator.realtime_door import PATIENCE_SECONDS, serving
from tests.integrations.livekit.scenes import OURS, THEIRS, Scene, call, llm, model_for

HELD_UP_SECONDS = 1.0
"""How long the model thinks, on a clock that the test moves on."""


class Concierge(Agent):
    """It looks up the weather, when the test lets it."""

    def __init__(self):
        super().__init__(instructions="Be brief.")
        self.lookups = 0
        self.may_answer = asyncio.Event()

    @function_tool
    async def get_weather(self, city: str) -> str:
        """The weather in a city."""
        self.lookups += 1
        await self.may_answer.wait()
        return f"sunny in {city}"


@asynccontextmanager
async def conversing(model_class, agent, speak, modalities, clock=None):
    async with serving(speak=speak, clock=clock) as served, aiohttp.ClientSession() as http:
        model = model_for(served, model_class, http, modalities=modalities)
        session = AgentSession(llm=model)
        async with asyncio.timeout(PATIENCE_SECONDS):
            try:
                await session.start(agent)
                yield session, Scene(served, agent.realtime_llm_session)
            finally:
                await session.aclose()


class Model:
    """It calls for the weather until it is told, twice at most; all else it answers at once."""

    def __init__(self):
        self.calls = 0

    def __call__(self, asked):
        if asked.output is not None:
            return reply("It is sunny.")
        if "weather" not in (asked.user or ""):
            return reply("Well.")
        self.calls += 1
        if self.calls > 2:
            return reply("I cannot tell.")
        delay = HELD_UP_SECONDS if self.calls == 1 else 0.0
        return reply(call("get_weather", {"city": "Athens"}), delay=delay)


def summed_up(context):
    """The oldest half of the context becomes one message."""
    kept = len(context.items) // 2
    summary = llm.ChatMessage(id="summary", role="assistant", content=["They greeted."])
    context.items[1:kept] = [summary]
    return context


async def play(model_class, *, local_only, modalities=("text",)):
    agent, clock = Concierge(), VirtualClock(flowing=False)
    model = Model()
    async with conversing(model_class, agent, model, list(modalities), clock) as (session, it):
        for text in ("Hello.", "How are you?", "And the others?"):
            await session.run(user_input=text)
        answered = asyncio.Event()
        session.on(
            "conversation_item_added",
            lambda added: answered.set() if added.item.role == "assistant" else None,
        )
        await it.served.door.speak("What is the weather?")
        await it.until("conversation.item.input_audio_transcription.completed")
        if local_only:
            await agent.update_instructions("Be even briefer.")
        called = asyncio.get_running_loop().create_future()

        def copy_when_called(event):
            """The application copies the agent's context just when the call arrives."""
            item = event.get("item", {})
            if item.get("type") == "function_call" and not called.done():
                called.set_result((item, agent.chat_ctx.copy()))

        it.session.on("openai_server_event_received", copy_when_called)
        while not called.done():  # the model may not even have begun to think
            clock.advance(HELD_UP_SECONDS)
            await asyncio.sleep(0.01)
        it.called, copied = await called
        await agent.update_chat_ctx(summed_up(copied))
        agent.may_answer.set()
        await answered.wait()
        it.order_there, it.order_here = it.order(), it.local()
        it.said = [item.text_content for item in agent.chat_ctx.messages()]
        it.items = it.provider()
        it.agents = [item.id for item in agent.chat_ctx.items]
        it.lookups = agent.lookups
    return it


def test_with_livekits_own_model_a_change_of_instructions_costs_a_call_in_flight():
    """The model never learns what its tool said, and calls it again."""
    it = asyncio.run(play(THEIRS, local_only=True))
    assert it.called["type"] == "function_call"
    assert it.called["id"] in it.deleted()
    assert it.lookups == 2
    assert "output-without-call" in it.broken


@pytest.mark.parametrize("modalities", [["text"], ["text", "audio"]])
@pytest.mark.parametrize("local_only", [False, True])
def test_with_ours_the_call_is_answered_once_and_the_summary_stands(local_only, modalities):
    it = asyncio.run(play(OURS, local_only=local_only, modalities=modalities))
    assert it.called["type"] == "function_call"
    assert it.called["id"] not in it.deleted()
    assert it.deleted()
    assert it.lookups == 1
    assert it.broken == {}
    assert it.said[-1] == "It is sunny."
    assert it.order_there == it.order_here
    assert it.order_there[0] == "summary"
    # Both sides have the same, apart from what never leaves the agent.
    assert [one for one in it.agents if one in it.order_there] == it.order_there
    calls = [item["call_id"] for item in it.items if item["type"] == "function_call"]
    outputs = [item["call_id"] for item in it.items if item["type"] == "function_call_output"]
    assert calls == outputs


class Desk(Agent):
    """Who the caller is handed over to."""


class Reception(Agent):
    def __init__(self, *, with_history):
        super().__init__(instructions="Hand everyone over.")
        self.with_history = with_history

    @function_tool
    async def hand_over(self) -> Agent:
        """Hand the caller over to the desk."""
        if self.with_history:
            return Desk(instructions="You are the desk.", chat_ctx=self.chat_ctx.copy())
        return Desk(instructions="You are the desk.")


async def hand_over(model_class, *, with_history):
    def answer(asked):
        if asked.user == "The desk, please." and asked.output is None:
            return reply(call("hand_over", {}, call_id="call_1"))
        return reply("Well.")

    agent = Reception(with_history=with_history)
    async with conversing(model_class, agent, answer, ["text"]) as (session, it):
        for text in ("Hello.", "The desk, please.", "Is this the desk?"):
            await session.run(user_input=text)
        assert isinstance(session.current_agent, Desk)
        it.order_there, it.order_here = it.order(), it.local()
        it.items = it.provider()
        it.instructions = it.sent("session.update")[-2:]
    return it


def spoken(items):
    return [item["content"][0]["text"] for item in items if item["type"] == "message"]


@pytest.mark.parametrize("model_class", [THEIRS, OURS], ids=["livekit", "lockstitch"])
def test_an_agent_that_starts_afresh_hears_nothing_of_what_was_before(model_class):
    it = asyncio.run(hand_over(model_class, with_history=False))
    assert spoken(it.items) == ["Is this the desk?", "Well."]
    assert it.order_there == it.order_here
    assert it.broken == {}


def test_an_agent_that_takes_over_has_the_history_with_every_pair_whole():
    it = asyncio.run(hand_over(OURS, with_history=True))
    assert spoken(it.items) == [
        "Hello.",
        "Well.",
        "The desk, please.",
        "Is this the desk?",
        "Well.",
    ]
    assert it.broken == {}
    kinds = [item["type"] for item in it.items if item["type"] != "message"]
    assert kinds == ["function_call", "function_call_output"]
    assert it.order_there == it.order_here
