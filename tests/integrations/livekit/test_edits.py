"""What a context that is pushed does to the provider's, edit by edit."""

from __future__ import annotations

import asyncio

import pytest

from lockstitch.integrations.livekit import copy_of
from lockstitch.integrations.livekit.translating import said_by
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

PIXEL = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+k"
    "cQAAAABJRU5ErkJggg=="
)


def played(act, model_class=OURS, **options):
    async def whole():
        async with scene(model_class, **options) as it:
            await act(it)

    asyncio.run(whole())


def pair(name="p", arguments='{"city": "Athens"}', output="sunny"):
    return [
        llm.FunctionCall(id=f"{name}c", call_id=f"k_{name}", name="look", arguments=arguments),
        llm.FunctionCallOutput(
            id=f"{name}o", call_id=f"k_{name}", name="look", output=output, is_error=False
        ),
    ]


def said(context):
    """What is said in it; of an image, that there is one."""
    return [
        [part if isinstance(part, str) else "image" for part in item.content]
        if item.type == "message"
        else said_by(item)
        for item in context.items
    ]


CHANGES = {
    "arguments": ([pair()[0], pair()[1]], pair(arguments='{"city": "Lund"}')),
    "output": (pair(), pair(output="rain")),
    "role": (
        [llm.ChatMessage(id="m", role="user", content=["So."])],
        [llm.ChatMessage(id="m", role="assistant", content=["So."])],
    ),
    "image": (
        [llm.ChatMessage(id="m", role="user", content=["Look."])],
        [llm.ChatMessage(id="m", role="user", content=["Look.", llm.ImageContent(image=PIXEL)])],
    ),
    "text": (
        [llm.ChatMessage(id="m", role="user", content=["So."])],
        [llm.ChatMessage(id="m", role="user", content=["Not so."])],
    ),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_change_is_seen_and_carried_out_in_its_place(what):
    before, after = CHANGES[what]

    async def act(it):
        first, last = talk("First.", prefix="f").items, talk("Last.", prefix="l").items
        await it.session.update_chat_ctx(llm.ChatContext([*first, *before, *last]))
        old = {item["id"]: item for item in it.provider()}
        wanted = llm.ChatContext([*first, *after, *last])
        await it.session.update_chat_ctx(wanted)
        assert it.local() == [item.id for item in wanted.items]
        assert said(it.session.chat_ctx) == said(wanted)
        assert it.order()[0] == "f0"
        assert it.order()[-1] == "l0"
        assert len(it.provider()) == len(wanted.items)
        changed = [item for item in it.provider() if item["id"] not in old]
        assert len(changed) >= 1
        assert it.broken == {}
        # And now it is as it should be.
        sent = len(it.sent())
        await it.session.update_chat_ctx(wanted)
        assert len(it.sent()) == sent

    played(act)


@pytest.mark.parametrize("what", ["arguments", "output", "role", "image"])
def test_livekits_own_session_sees_none_of_these(what):
    before, after = CHANGES[what]

    async def act(it):
        await it.session.update_chat_ctx(llm.ChatContext(list(before)))
        was = it.provider()
        await it.session.update_chat_ctx(llm.ChatContext(list(after)))
        assert it.provider() == was

    played(act, THEIRS)


def test_an_item_that_was_changed_twice_keeps_its_name():
    async def act(it):
        for text in ("One.", "Two.", "Three."):
            await it.session.update_chat_ctx(talk(text, "Yes."))
        assert it.local() == ["t0", "t1"]
        assert [item["content"][0]["text"] for item in it.provider()] == ["Three.", "Yes."]
        await it.session.update_chat_ctx(llm.ChatContext(talk("Three.", "Yes.").items[1:]))
        assert it.local() == ["t1"]
        assert it.order() == ["t1"]
        assert it.broken == {}

    played(act)


def test_an_update_that_waits_for_another_goes_by_what_its_items_say_then():
    async def act(it):
        wanted = talk("Hi.", "Hi!", "Before.")

        async def twice():
            await it.session.update_chat_ctx(talk("Hi."))
            # The lock is free for a moment, and yet another update is before this one.
            await it.session.update_chat_ctx(wanted)

        async def between():
            await it.session.update_chat_ctx(talk("Hi.", "Hi!"))
            wanted.items[-1].content = ["After."]

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(twice())
            tasks.create_task(between())
        assert [item["content"][0]["text"] for item in it.provider()] == ["Hi.", "Hi!", "After."]
        assert it.broken == {}

    played(act)


def test_speech_that_is_moved_stays_where_it_is():
    async def act(it):
        await it.session.update_chat_ctx(talk("Hi.", "Hi!"))
        it.served.say("Hello to you.")
        await it.served.door.speak("Hello there")
        await said_in(await it.generations.get())
        await it.until("response.done")
        was = it.provider()
        context = it.session.chat_ctx.copy()
        context.items.reverse()
        await it.session.update_chat_ctx(context)
        assert [item for item in it.provider() if item["id"] in it.order()[-2:]] == was[-2:]
        assert {item["content"][0]["type"] for item in was[-2:]} == {"input_audio", "output_audio"}
        assert set(it.deleted()) <= {"t0", "t1"}

    played(act)


def test_an_item_that_names_a_deleted_one_stands_behind_the_nearest_that_lives():
    async def act(it):
        await it.session.update_chat_ctx(talk("Hi.", "Hi!", "So?"))
        it.served.say("Well.", delay=0.1)
        late = it.session.generate_reply()
        await it.until("session.updated")
        while not it.served.asked:
            await asyncio.sleep(0)
        context = it.session.chat_ctx.copy()
        del context.items[1:]
        await it.session.update_chat_ctx(context)
        await said_in(await late)
        await it.until("response.done")
        assert it.order()[0] == "t0"
        assert len(it.order()) == 2
        assert it.local() == it.order()

    played(act, modalities=["text"])


def test_an_output_whose_call_is_gone_is_not_sent():
    async def act(it):
        await it.session.update_chat_ctx(llm.ChatContext([*talk("Hi.").items, pair()[1]]))
        assert it.order() == ["t0"]
        assert it.broken == {}

    played(act)


def test_a_place_that_is_kept_for_a_call_is_not_sent():
    """LiveKit keeps one for a call that is being said, also if its end was never heard."""

    async def act(it):
        place, _ = pair("p", arguments="")
        await it.session.update_chat_ctx(llm.ChatContext([*talk("Hi.").items, place]))
        assert it.order() == ["t0"]

    played(act)


def test_a_call_that_was_answered_is_sent_also_without_arguments():
    async def act(it):
        await it.session.update_chat_ctx(llm.ChatContext(pair("p", arguments="")))
        assert it.order() == ["pc", "po"]

    played(act)


def test_half_a_pair_is_not_deleted():
    async def act(it):
        await it.session.update_chat_ctx(llm.ChatContext([*talk("Hi.").items, *pair()]))
        await it.session.update_chat_ctx(llm.ChatContext([*talk("Hi.").items, pair()[1]]))
        assert it.order() == ["t0", "pc", "po"]

    played(act)


def test_what_livekit_deletes_because_it_was_never_heard_is_not_made_again():
    async def act(it):
        it.served.say("One two three four five.")
        await it.until("session.updated")
        await it.served.door.speak("Count.")
        await said_in(await it.generations.get())
        await it.until("response.done")
        context = it.session.chat_ctx.copy()
        agents = llm.ChatContext(list(context.items))
        it.session.truncate(message_id=it.local()[-1], modalities=["audio"], audio_end_ms=0)
        await it.until("conversation.item.deleted")
        await it.session.update_chat_ctx(agents)
        assert len(it.order()) == 1
        assert it.created() == []

    played(act)


def test_a_copy_that_knows_when_it_was_taken_leaves_nothing_in_doubt():
    async def act(it):
        agents = talk("Hi.", "Hi!")
        await it.session.update_chat_ctx(agents)
        await it.served.door.speak("Late.", responds=False)
        await it.until("conversation.item.input_audio_transcription.completed")
        heard = it.local()[-1]
        context = copy_of(agents)
        context.items[:] = [llm.ChatMessage(id="summary", role="assistant", content=["Hi all."])]
        await it.session.update_chat_ctx(context.copy(exclude_function_call=True))
        assert it.order() == ["summary", heard]
        # Without that, a summary of everything would be in doubt, and all would stay.
        await it.session.update_chat_ctx(talk("Another.", prefix="x"))
        assert it.order() == ["summary", heard, "x0"]

    played(act)


def test_an_edit_that_was_refused_is_repaired_by_the_next():
    async def act(it):
        session = it.session
        await session.update_tools([get_weather])
        it.served.say(call("get_weather", {"city": "Athens"}, call_id="call_1"))
        await session.update_chat_ctx(talk("The weather?"))
        _, (called,) = await said_in(await session.generate_reply())
        await it.until("response.done")
        # Somebody else has deleted an item a moment ago, and nobody was told so far.
        it.connection.session.conversation.delete("t0")
        new = llm.ChatMessage(id="new", role="user", content=["And?"])
        context = session.chat_ctx.copy()
        context.items.insert(1, new)
        await session.update_chat_ctx(context)
        assert "new" not in it.order()
        assert it.local() == ["t0", called.id]
        context = session.chat_ctx.copy()
        context.items[0] = new
        context.items.append(output_of(called))
        await session.update_chat_ctx(context)
        assert it.order() == ["new", called.id, context.items[-1].id]
        assert it.local() == it.order()

    played(act, modalities=["text"])


def test_an_update_that_is_not_answered_fails_and_the_next_one_finds_out(monkeypatch):
    """The create is carried out, and its acknowledgement comes too late."""
    from lockstitch.integrations.livekit import realtime

    async def act(it):
        session = it.session
        await session.update_chat_ctx(talk("Hi.", "Hi!"))
        monkeypatch.setattr(realtime, "LONGEST_UPDATE_SECONDS", 0.1)
        async with it.connection._turn:
            context = session.chat_ctx.copy()
            context.items.append(llm.ChatMessage(id="new", role="user", content=["And?"]))
            with pytest.raises(llm.RealtimeError, match="timed out"):
                await session.update_chat_ctx(context)
        monkeypatch.undo()
        await session.update_chat_ctx(context)
        assert it.order() == ["t0", "t1", "new"]
        assert it.local() == it.order()
        assert it.created().count("new") == 1

    played(act)
