"""Where nothing is at stake our session does what LiveKit's does, event for event."""

from __future__ import annotations

import asyncio

import pytest

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

BOTH = pytest.mark.parametrize("model_class", [THEIRS, OURS], ids=["livekit", "lockstitch"])


def played(model_class, act, **options):
    """What the client sent, without ids of its own making, and what the provider has."""

    async def whole():
        async with scene(model_class, **options) as it:
            await act(it)
            assert it.broken == {}
            assert it.order() == it.local()
            return it.sent(), it.provider()

    return asyncio.run(whole())


def both(act, **options):
    return played(THEIRS, act, **options), played(OURS, act, **options)


async def a_conversation(it):
    session = it.session
    await session.update_instructions("Be brief.")
    await session.update_tools([get_weather])
    context = llm.ChatContext.empty()
    context.items.append(llm.AgentConfigUpdate(instructions="Be brief."))
    context.items.append(llm.AgentHandoff(new_agent_id="other"))
    context.items.append(llm.ChatMessage(id="u", role="user", content=["What is the weather?"]))
    await session.update_chat_ctx(context)
    it.served.say("Let me look.", call("get_weather", {"city": "Athens"}, call_id="call_1"))
    _, (called,) = await said_in(await session.generate_reply())
    await it.until("response.done")
    context = session.chat_ctx.copy()
    context.items.append(output_of(called).model_copy(update={"id": "o"}))
    await session.update_chat_ctx(context)
    it.served.say("It is sunny.")
    await said_in(await session.generate_reply(instructions="Say it nicely."))
    await it.until("response.done", 2)
    await session.update_instructions("Be long.")
    await session.update_tools([])
    session.update_options(tool_choice="none")


@pytest.mark.parametrize("modalities", [["text"], ["text", "audio"]])
def test_a_conversation_with_a_tool_is_the_same_to_the_letter(modalities):
    theirs, ours = both(a_conversation, modalities=modalities)
    assert [_plain(frame) for frame in theirs[0]] == [_plain(frame) for frame in ours[0]]
    assert [item["type"] for item in theirs[1]] == [item["type"] for item in ours[1]]


def _plain(frame):
    """Without what differs between two runs: the ids that LiveKit makes up."""
    if frame["type"] == "response.create":
        return frame | {"response": frame["response"] | {"metadata": None}}
    return frame


async def heard_in_part(it):
    await it.until("session.updated")
    it.served.say("One two three four five.")
    await it.served.door.speak("Count.")
    generation = await it.generations.get()
    await said_in(generation)
    await it.until("response.done")
    it.session.truncate(
        message_id=it.local()[-1],
        modalities=["audio", "text"],
        audio_end_ms=50,
        audio_transcript="One",
    )
    await it.until("conversation.item.truncated")


def test_what_was_heard_in_part_is_truncated():
    theirs, ours = both(heard_in_part)
    cut = [frame for frame in ours[0] if frame["type"] == "conversation.item.truncate"]
    assert len(cut) == 1
    assert theirs[0] == ours[0]
    assert theirs[1] == ours[1]


async def never_heard(it):
    await it.until("session.updated")
    it.served.say("One two three four five.")
    await it.served.door.speak("Count.")
    await said_in(await it.generations.get())
    await it.until("response.done")
    it.session.truncate(message_id=it.local()[-1], modalities=["audio"], audio_end_ms=0)
    await it.until("conversation.item.deleted")


def test_what_was_never_heard_is_deleted():
    theirs, ours = both(never_heard)
    assert theirs[0] == ours[0]
    assert len(ours[1]) == 1


@BOTH
def test_a_text_that_was_cut_short_is_changed_to_what_was_shown(model_class):
    async def act(it):
        it.served.say("One two three four five.")
        await said_in(await it.session.generate_reply())
        await it.until("response.done")
        (said,) = it.local()
        it.session.truncate(
            message_id=said, modalities=["text"], audio_end_ms=0, audio_transcript="One two"
        )
        await it.until("conversation.item.deleted")
        if model_class is THEIRS:
            await it.until("conversation.item.added", 2)
        assert it.local() == [said]
        assert it.session.chat_ctx.items[0].text_content == "One two"
        (item,) = it.provider()
        assert item["content"][0]["text"] == "One two"

    async def whole():
        async with scene(model_class, modalities=["text"]) as it:
            await act(it)

    asyncio.run(whole())


def test_a_text_that_is_cut_short_while_it_is_written_is_changed_when_it_ends():
    async def whole():
        clock = VirtualClock(flowing=False)
        async with scene(OURS, served_with={"clock": clock}, modalities=["text"]) as it:
            it.served.say("One two three four five.", pace=1.0)
            generation = await it.session.generate_reply()
            while not it.local():
                clock.advance(1.0)
                await asyncio.sleep(0.01)
            added = await it.until("conversation.item.added")
            it.session.truncate(
                message_id=added["item"]["id"],
                modalities=["text"],
                audio_end_ms=0,
                audio_transcript="One",
            )
            assert it.sent("conversation.item.create", "conversation.item.delete") == []
            it.session.interrupt()
            await said_in(generation)
            await it.until("conversation.item.deleted")
            assert [item["content"][0]["text"] for item in it.provider()] == ["One"]
            assert it.local() == [added["item"]["id"]]

    asyncio.run(whole())


@BOTH
def test_a_reply_that_is_interrupted_is_cancelled_and_the_next_one_comes(model_class):
    async def act(it):
        it.served.say("One two three.", pace=30.0)
        it.served.say("Four.")
        cut = await it.session.generate_reply()
        it.session.interrupt()
        await said_in(cut)
        text, _ = await said_in(await it.session.generate_reply())
        assert text == "Four."
        await it.until("response.done", 2)

    played(model_class, act, modalities=["text"])


@BOTH
def test_speech_is_transcribed_and_answered(model_class):
    async def act(it):
        it.served.say("Hello to you.")
        heard = []
        it.session.on("input_audio_transcription_completed", heard.append)
        await it.session.update_chat_ctx(talk("Hi.", "Hi!"))
        await it.served.door.speak("Hello there")
        text, _ = await said_in(await it.generations.get())
        await it.until("response.done")
        assert text == "Hello to you."
        assert [one.transcript for one in heard if one.is_final] == ["Hello there"]
        words = [item.text_content for item in it.session.chat_ctx.items]
        assert words == ["Hi.", "Hi!", "Hello there", "Hello to you."]

    played(model_class, act)


@BOTH
def test_an_agent_that_starts_afresh_clears_the_context(model_class):
    async def act(it):
        await it.session.update_chat_ctx(talk("Hi.", "Hi!"))
        await it.session._update_session(
            instructions="You are another.", chat_ctx=talk("New.", prefix="n"), tools=[get_weather]
        )
        await it.until("session.updated", 3)
        assert it.order() == ["n0"]

    played(model_class, act)


@BOTH
def test_an_empty_context_clears_what_was_pushed(model_class):
    async def act(it):
        await it.session.update_chat_ctx(talk("Hi.", "Hi!"))
        await it.session.update_chat_ctx(llm.ChatContext.empty())
        assert it.order() == []

    played(model_class, act)
