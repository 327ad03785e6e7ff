"""What waits for what, over real sockets: edits of the tail, and responses."""

from __future__ import annotations

import pytest

from lockstitch.emulator import call, reply
from lockstitch.realtime import NoReply, NoTurn, Patience, ResponseRefused
from tests.realtime.booking import Book
from tests.realtime.hearing import of, saying, texts_of, until, user
from tests.realtime.stage import HURRIED, Slow, Through, staged, within


def test_an_edit_of_the_tail_waits_until_the_response_has_ended():
    async def scene():
        async with (
            staged(reply("One two three.", pace=0.02)) as stage,
            stage.session() as session,
        ):
            await session.change(added=[user("Count.", "a")])
            await session.respond()
            await session.change(added=[user("And on.", "b")])
            assert [wire["id"] for wire in session.items][0::2] == ["a", "b"]
            passed = stage.what_passed()
            ended = [n for n, one in enumerate(passed) if one == "response.done"]
            create = "frame conversation.item.create"
            created = [n for n, one in enumerate(passed) if one == create]
            assert created[-1] > ended[0]
            stage.in_step(session)

    within(scene)


def test_an_edit_elsewhere_does_not_wait():
    async def scene():
        async with (
            staged(reply("One two three.", pace=0.02)) as stage,
            stage.session() as session,
        ):
            await session.change(added=[user("a", "a"), user("b", "b")])
            await session.respond()
            seen = session.snapshot()
            assert await session.summarise(user("in short", "s"), base=seen, count=1)
            assert "response.done" not in stage.what_passed()
            await until(session, "response.done")
            assert stage.in_step(session)[:2] == ["s", "b"]

    within(scene)


def test_an_edit_of_the_tail_that_was_held_too_long_goes_all_the_same():
    async def scene():
        async with (
            staged(reply("One two three.", pace=5.0)) as stage,
            stage.session(patience=HURRIED) as session,
        ):
            await session.change(added=[user("Count.", "a")])
            await session.respond()
            assert await session.change(added=[user("And on.", "b")])
            assert "response.done" not in stage.what_passed()
            assert "b" in [wire["id"] for wire in stage.provider.items()]

    within(scene)


def test_a_response_waits_for_the_one_that_is_active_and_one_out_of_band_does_not():
    async def scene():
        turns = (reply("One two.", pace=0.02), "Aside.", "Three.")
        async with staged(*turns) as stage, stage.session() as session:
            await session.change(added=[user("Count.")])
            await session.respond()
            await session.respond({"conversation": "none"})
            await session.respond()
            await until(session, saying("Three."))
            stage.in_step(session)
            assert [texts_of(wire) for wire in session.items] == [
                ["Count."],
                ["One two."],
                ["Three."],
            ]
            assert stage.broken() == {}

    within(scene)


def test_a_response_that_the_server_began_first_is_waited_for():
    async def scene():
        async with (
            staged(reply("I heard you.", pace=0.01), "Asked for.") as stage,
            stage.session() as session,
        ):
            await stage.emulator.speak("Hello?")
            # Sent before the server's own is heard of here: it is refused, and asked again.
            await session.respond()
            await until(session, saying("Asked for."))
            stage.in_step(session)

    within(scene)


def test_a_response_of_the_servers_own_is_not_taken_for_the_one_that_was_asked_for():
    async def scene():
        async with staged(reply("I heard you.", pace=0.05), "Asked for.") as stage:
            connect = Slow(stage.connect(), "error", seconds=0.1)  # the refusal comes on its own
            async with stage.session(connect=connect) as session:
                await stage.emulator.speak("Hello?")
                await session.respond()
                await until(session, saying("Asked for."))
                stage.in_step(session)

    within(scene)


def test_a_response_that_is_refused_is_told_in_the_words_of_the_provider():
    async def scene():
        async with staged() as stage, stage.session() as session:
            with pytest.raises(ResponseRefused, match=r"will not respond: .*smell"):
                await session.respond({"output_modalities": ["smell"]})
            await session.respond()

    within(scene)


def test_a_response_that_never_begins_is_not_waited_for_for_ever():
    async def scene():
        def passes(event):
            return None if event["type"] == "response.created" else event

        async with staged() as stage:
            connect = Through(stage.connect(), passes)
            async with stage.session(connect=connect, patience=HURRIED) as session:
                with pytest.raises(ResponseRefused, match="has begun within"):
                    await session.respond()

    within(scene)


def test_a_response_that_nobody_told_of_is_waited_for_with_patience():
    async def scene():
        hidden = []

        def passes(event):
            if event["type"] != "response.created" or hidden:
                return event
            hidden.append(event)
            return None

        async with staged(reply("One.", delay=1.0), "Two.") as stage:
            connect = Through(stage.connect(), passes)
            patience = Patience(answer_seconds=0.1)
            async with stage.session(connect=connect, patience=patience) as session:
                with pytest.raises(ResponseRefused, match="has begun within"):
                    await session.respond()
                await session.respond()
                await until(session, saying("Two."))
                assert len(stage.frames("response.create")) < 8

    within(scene)


def test_a_request_does_not_wait_for_ever_for_a_response_that_never_ends():
    async def scene():
        silent = {"response.done"}

        def passes(event):
            return None if event["type"] in silent else event

        async with staged("One.", "Two.") as stage:
            connect = Through(stage.connect(), passes)
            patience = Patience(turn_seconds=0.2)
            async with stage.session(connect=connect, patience=patience) as session:
                await session.respond()
                with pytest.raises(NoTurn, match=r"within 0\.2 seconds: a response of the") as told:
                    await session.respond()
                assert "response.cancel" in str(told.value)
                assert len(stage.frames("response.create")) == 1
                # The line lives: everything else goes on, and so does the model out of band.
                await session.respond({"conversation": "none"})
                await session.send({"type": "input_audio_buffer.clear"})
                await until(session, "input_audio_buffer.cleared")

    within(scene)


def test_a_reply_that_cannot_be_asked_for_is_told():
    async def scene():
        book, silent = Book(), {"response.done"}

        def passes(event):
            return None if event["type"] in silent else event

        async with staged(call("book", {"flight": "LS 1"}), "Done.") as stage:
            connect = Through(stage.connect(), passes)
            patience = Patience(turn_seconds=0.2, hold_seconds=0.1)
            async with stage.session(book.book, connect=connect, patience=patience) as session:
                await session.respond()
                (told,) = of(NoReply, await until(session, NoReply))
                assert "a response of the conversation is being generated" in told.why
                assert book.booked == ["LS 1"]

    within(scene)
