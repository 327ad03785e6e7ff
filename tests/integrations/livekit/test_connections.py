"""A connection is lost, or too old: the next one gets everything that was to be there, once."""

from __future__ import annotations

import asyncio

import pytest

from lockstitch.emulator.clock import VirtualClock
from tests.integrations.livekit.scenes import (
    OURS,
    call,
    get_weather,
    llm,
    output_of,
    said_in,
    scene,
    talk,
)

SESSION_SECONDS = 3600.0


def with_system_message():
    context = talk("Hi.", "Hi!")
    context.items.insert(0, llm.ChatMessage(id="sys", role="system", content=["Be kind."]))
    return context


async def reconnected(it, lose):
    again = asyncio.Event()
    it.session.on("session_reconnected", lambda _: again.set())
    first = it.connection
    lose()
    await again.wait()
    while it.connection is first:
        await asyncio.sleep(0)


async def until_whole(it, order):
    """The context is pushed again in several steps; each is told by an event."""
    while it.local() != order:
        await another_event(it)


async def until_idle(it):
    while not it.session._view.mirror.idle:
        await another_event(it)


async def another_event(it):
    arrived = asyncio.Event()
    it.session.once("openai_server_event_received", lambda _: arrived.set())
    await arrived.wait()
    await asyncio.sleep(0)


def test_after_sixty_minutes_the_whole_context_is_there_again():
    clock = VirtualClock(flowing=False)

    async def whole():
        async with scene(OURS, served_with={"clock": clock}) as it:
            session = it.session
            await session.update_tools([get_weather])
            await session.update_chat_ctx(with_system_message())
            it.served.say(call("get_weather", {"city": "Athens"}, call_id="call_1"))
            await it.served.door.speak("The weather?")
            _, (called,) = await said_in(await it.generations.get())
            await it.until("response.done")
            was = session.chat_ctx
            await reconnected(it, lambda: clock.advance(SESSION_SECONDS))
            await until_whole(it, [item.id for item in was.items])
            assert it.order() == [item.id for item in was.items]
            assert session.chat_ctx.is_equivalent(was)
            assert [item.created_at for item in session.chat_ctx.items] == [
                item.created_at for item in was.items
            ]
            # The call is in flight: its output comes now.
            context = session.chat_ctx.copy()
            context.items.append(output_of(called))
            await session.update_chat_ctx(context)
            kinds = [item["type"] for item in it.provider()]
            assert kinds == ["message"] * 4 + ["function_call", "function_call_output"]
            assert set(it.broken) <= {"session-expired", "connection-too-old"}

    asyncio.run(whole())


def test_an_update_that_waits_when_the_connection_is_lost_is_carried_out_on_the_next():
    async def whole():
        async with scene(OURS, "cut before=conversation.item.added nth=4") as it:
            await it.session.update_chat_ctx(with_system_message())
            first = it.connection
            context = it.session.chat_ctx.copy()
            context.items.append(llm.ChatMessage(id="new", role="user", content=["And?"]))
            await it.session.update_chat_ctx(context)
            assert it.connection is not first
            assert it.order() == ["sys", "t0", "t1", "new"]
            assert it.local() == it.order()
            assert it.broken == {}

    asyncio.run(whole())


def test_a_connection_that_is_lost_while_the_context_goes_there_again_loses_nothing():
    faults = (
        "cut before=conversation.item.added nth=4 request=1",
        "cut before=conversation.item.added nth=2 request=2",
    )

    async def whole():
        async with scene(OURS, *faults) as it:
            await it.session.update_chat_ctx(with_system_message())
            context = it.session.chat_ctx.copy()
            del context.items[1]
            context.items.append(llm.ChatMessage(id="new", role="user", content=["And?"]))
            await it.session.update_chat_ctx(context)
            assert it.order() == ["sys", "t1", "new"]
            assert it.local() == it.order()
            connections = {entry.connection for entry in it.served.world.record.entries()}
            assert len(connections) == 3

    asyncio.run(whole())


@pytest.mark.parametrize("said", [call("get_weather", {"city": "Athens"}), "It is sunny."])
def test_what_was_being_said_when_the_connection_was_lost_is_not_made_again(said):
    """Its end was not heard: of a call nobody has the arguments, and nobody will answer it."""

    async def whole():
        async with scene(OURS, "cut before=response.output_item.done") as it:
            await it.session.update_tools([get_weather])
            await it.session.update_chat_ctx(with_system_message())
            it.served.say(said)
            again = asyncio.Event()
            it.session.on("session_reconnected", lambda _: again.set())
            await it.served.door.speak("The weather?")
            await again.wait()
            await until_idle(it)
            roles = [item.get("role") for item in it.provider()]
            assert roles == ["system", "user", "assistant", "user"]
            assert it.local() == it.order()

    asyncio.run(whole())


def test_a_context_that_is_pushed_before_there_is_a_connection_waits_for_it():
    async def whole():
        async with scene(OURS, "refuse-upgrade") as it:
            await it.session.update_chat_ctx(with_system_message())
            assert it.order() == ["sys", "t0", "t1"]

    asyncio.run(whole())
