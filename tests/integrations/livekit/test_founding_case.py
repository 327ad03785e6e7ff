"""A summary while a call is in flight, step by step: broken with LiveKit's plugin, whole with ours.

A response that was asked for behind the call is held up at the provider until all is done."""

from __future__ import annotations

import asyncio

import pytest

from lockstitch.emulator import reply
from lockstitch.emulator.clock import VirtualClock
from tests.integrations.livekit.scenes import (
    OURS,
    THEIRS,
    call,
    get_weather,
    llm,
    output_of,
    said_in,
    scene,
    talk,
)

HELD_UP_SECONDS = 60.0


async def play(model_class, *, local_only):
    """The six steps. Gives the scene as it is at the end."""
    clock = VirtualClock(flowing=False)
    started = asyncio.Event()

    def answer(asked):
        if not any(event["type"] == "response.created" for event in it.heard):
            return reply(call("get_weather", {"city": "Athens"}, call_id="call_1"))
        started.set()
        return reply("One moment.", delay=HELD_UP_SECONDS)

    served_with = {"clock": clock, "speak": answer}
    async with scene(model_class, served_with=served_with, modalities=["text"]) as it:
        session = it.session
        await session.update_tools([get_weather])
        agents = talk("Hello.", "Hello!", "How are you?", "Well.")
        await session.update_chat_ctx(agents)
        # 1. The server calls a tool. The agent's context does not have the call so far.
        await it.served.door.speak("What is the weather?")
        _, (called,) = await said_in(await it.generations.get())
        await it.until("response.done")
        agents.items.append(session.chat_ctx.items[-2])
        if local_only:
            agents.items.append(llm.AgentConfigUpdate(instructions="Be brief."))
        # 2. Another response starts: its predecessor is the call.
        late = session.generate_reply()
        await started.wait()
        # 3. The application sums up the oldest half of its own context.
        summary = llm.ChatMessage(id="summary", role="assistant", content=["They greeted."])
        await session.update_chat_ctx(llm.ChatContext([summary, *agents.items[2:]]))
        # 4., 5. The tool has run: its output goes behind what the session has.
        context = session.chat_ctx.copy()
        context.items.append(output_of(called))
        await session.update_chat_ctx(context)
        # 6. The response of the second step arrives.
        clock.advance(HELD_UP_SECONDS)
        await said_in(await late)
        await it.until("response.done", 2)
        it.called, it.order_there, it.order_here = called, it.order(), it.local()
        it.kinds = [item["type"] for item in it.provider()]
    return it


@pytest.mark.parametrize("local_only", [False, True])
def test_with_livekits_own_session_the_call_is_deleted_and_its_output_refused(local_only):
    it = asyncio.run(play(THEIRS, local_only=local_only))
    assert it.called.id in it.deleted()
    assert it.called.id not in it.order_there
    assert "function_call_output" not in it.kinds
    assert it.broken == {"output-without-call": 1}


@pytest.mark.parametrize("local_only", [False, True])
def test_with_ours_the_call_stays_is_answered_and_nothing_is_made_twice(local_only):
    it = asyncio.run(play(OURS, local_only=local_only))
    assert sorted(it.deleted()) == ["t0", "t1"]
    assert it.broken == {}
    assert it.order_there == it.order_here
    assert len(set(it.created())) == len(it.created())
    assert it.order_there[:3] == ["summary", "t2", "t3"]
    # The late response has its place behind the call since it started, and the output has no other.
    assert it.kinds[3:] == ["message", "function_call", "message", "function_call_output"]
