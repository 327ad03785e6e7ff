"""Calls of the model that tools of the session answer: each once, in its place."""

from __future__ import annotations

import json
import sys

import pytest

from lockstitch.emulator import call, reply
from lockstitch.realtime import NoReply, OutputUnplaced
from lockstitch.runner import CallBegan, CallEnded, Tool, Waiting
from tests.realtime.booking import Book
from tests.realtime.hearing import function_call, is_done, of, saying, until, user
from tests.realtime.stage import HURRIED, KINDS, Stalling, Through, staged, within


@pytest.mark.parametrize("kind", KINDS)
def test_a_call_is_run_once_answered_in_its_place_and_the_model_goes_on(kind):
    async def scene():
        book = Book()
        turns = (call("book", {"flight": "LS 1"}, call_id="call_1"), "Done.")
        async with staged(*turns) as stage, stage.session(book.book, kind=kind) as session:
            await session.change(added=[user("Book it.")])
            await session.respond()
            heard = await until(session, saying("Done."))
            assert [type(one) for one in heard if isinstance(one, CallBegan | CallEnded)] == [
                CallBegan,
                CallEnded,
            ]
            stage.in_step(session)
            assert [wire["type"] for wire in session.items] == [
                "message",
                "function_call",
                "function_call_output",
                "message",
            ]
            assert book.booked == ["LS 1"]
            assert stage.broken() == {}

    within(scene)


def test_the_model_goes_on_once_when_the_last_of_several_calls_is_answered():
    async def scene():
        book = Book()
        turns = (
            reply(call("wait", call_id="c1"), call("book", {"flight": "LS 1"}, call_id="c2")),
            "Done.",
        )
        async with staged(*turns) as stage, stage.session(book.book, book.wait) as session:
            await session.respond()
            await until(session, CallEnded)
            await until(session, "conversation.item.done")
            assert len(stage.frames("response.create")) == 1
            book.may_end.set()
            await until(session, saying("Done."))
            assert len(stage.frames("response.create")) == 2
            stage.in_step(session)
            calls = [wire["call_id"] for wire in session.items if "call_id" in wire]
            assert calls == ["c1", "c1", "c2", "c2"]

    within(scene)


def test_a_response_that_has_seen_the_output_is_not_followed_by_another():
    """The network stands still while the user speaks: that the output is there, and that the server
    has begun to respond, is heard at once."""

    def is_output(event):
        kind = event["type"]
        return kind == "conversation.item.added" and event["item"]["type"] == "function_call_output"

    def is_begun(event):
        return event["type"] == "response.created"

    async def scene():
        book = Book()
        turns = (call("book", {"flight": "LS 1"}), "Hello. It is booked.", "It is booked, again.")
        async with staged(*turns) as stage:

            async def user_speaks():
                await stage.emulator.speak("Hello?")

            connect = Stalling(stage.connect(), is_output, is_begun, user_speaks)
            async with stage.session(book.book, connect=connect) as session:
                await session.respond()
                await until(session, saying("Hello. It is booked."))
                await session.respond({"conversation": "none"})  # what was due before it was sent
                await until(session, saying("It is booked, again."))
                assert stage.frames("response.create")[-1]["response"] == {"conversation": "none"}
                # One that is asked for while another is said is refused, and does no harm.
                assert stage.what_passed().count("response.created") == 3
                stage.in_step(session)

    within(scene)


def test_without_replies_nothing_is_asked_for():
    async def scene():
        book = Book()
        async with (
            staged(call("book", {"flight": "LS 1"})) as stage,
            stage.session(book.book, replies=False) as session,
        ):
            await session.respond()
            await until(session, CallEnded)
            await until(session, "conversation.item.done")
            await session.send({"type": "input_audio_buffer.clear"})
            await until(session, "input_audio_buffer.cleared")
            assert len(stage.frames("response.create")) == 1
            stage.in_step(session)

    within(scene)


def test_a_call_of_a_response_out_of_band_is_not_run():
    async def scene():
        book = Book()
        async with (
            staged(call("book", {"flight": "LS 1"})) as stage,
            stage.session(book.book) as session,
        ):
            await session.respond({"conversation": "none"})
            await until(session, "response.done")
            await session.send({"type": "input_audio_buffer.clear"})
            await until(session, "input_audio_buffer.cleared")
            assert book.booked == []
            assert session.history() == session.items == []

    within(scene)


def test_a_call_that_the_client_itself_has_created_is_not_run():
    async def scene():
        book = Book()
        async with staged() as stage, stage.session(book.book) as session:
            made = function_call("f", "c1", "book", '{"flight": "LS 1"}')
            await session.change(added=[made])
            await session.send({"type": "conversation.item.create", "item": {**made, "id": "g"}})
            await until(session, is_done("g"))
            assert book.booked == []

    within(scene)


def test_a_call_that_was_cut_short_is_neither_run_nor_remembered():
    async def scene():
        book = Book()
        turn = reply(call("book", {"flight": "LS 1"}), faults=["incomplete before=end"])
        cut = "incomplete before=response.function_call_arguments.done"
        async with (
            staged(reply(*turn.drafts, faults=[cut])) as stage,
            stage.session(book.book) as session,
        ):
            await session.respond()
            await until(session, "response.done")
            assert book.booked == []
            assert session.history() == []

    within(scene)


def test_a_reply_that_does_not_come_is_told():
    async def scene():
        book = Book()

        def passes(event):
            begun = event["type"] == "response.created" and stage.frames("response.create")[1:]
            return None if begun else event

        async with staged(call("book", {"flight": "LS 1"}), "Done.") as stage:
            connect = Through(stage.connect(), passes)
            async with stage.session(book.book, connect=connect, patience=HURRIED) as session:
                await session.respond()
                (told,) = of(NoReply, await until(session, NoReply))
                assert "has begun within" in told.why

    within(scene)


def test_a_call_that_went_and_is_told_of_again_is_not_run_again():
    async def scene():
        book, told = Book(), []
        again = iter(["response.output_item.done", "conversation.item.added"])

        def passes(event):
            if event["type"] == "response.output_item.done":
                told.append(event["item"])
            if event["type"] == "input_audio_buffer.cleared":
                return {"type": next(again), "item": told[0]}
            return event

        async with staged(call("book", {"flight": "LS 1"}), "Done.") as stage:
            connect = Through(stage.connect(), passes)
            async with stage.session(book.book, connect=connect) as session:
                await session.respond()
                await until(session, saying("Done."))
                assert await session.edit([], base=session.snapshot())
                assert session.items == []
                await session.send({"type": "input_audio_buffer.clear"})
                await session.send({"type": "input_audio_buffer.clear"})
                await until(session, lambda event: session.items)
                assert session.items == told[:1]
                await session.change(added=[user("Anything new?")])
                assert book.booked == ["LS 1"]

    within(scene)


def test_a_tool_that_does_not_exist_is_told_to_the_model():
    async def scene():
        book = Book()
        async with (
            staged(call("fly", {}, call_id="c1"), "Sorry.") as stage,
            stage.session(book.book) as session,
        ):
            await session.respond()
            (ended,) = of(CallEnded, await until(session, saying("Sorry.")))
            assert (ended.failed, ended.output) == (True, "There is no tool 'fly'.")
            stage.in_step(session)

    within(scene)


def test_the_output_of_a_call_that_is_gone_is_on_disk_and_told():
    async def scene():
        book = Book()
        async with (
            staged(call("wait", call_id="c1")) as stage,
            stage.session(book.wait) as session,
        ):
            await session.respond()
            await until(session, "response.done")
            await book.begun.wait()
            (made,) = session.items
            # An edit would keep it: this is somebody who does not ask the mirror.
            await session.send({"type": "conversation.item.delete", "item_id": made["id"]})
            await until(session, "conversation.item.deleted")
            book.may_end.set()
            (unplaced,) = of(OutputUnplaced, await until(session, OutputUnplaced))
            assert unplaced.call_id == "c1"
            assert "not there" in unplaced.why
            assert session.history()[-1]["output"] == "it ended"
            assert stage.broken() == {}

    within(scene)


def test_a_tool_that_exits_has_failed_and_the_session_goes_on():
    async def scene():
        async def resize() -> None:
            """Resize."""
            sys.exit(2)

        async with (
            staged(call("resize", call_id="c1"), "Sorry.") as stage,
            stage.session(resize) as session,
        ):
            await session.respond()
            await until(session, saying("Sorry."))
            assert session.items[1]["output"] == "SystemExit: 2"
            assert stage.broken() == {}

    within(scene)


def test_parts_of_an_output_go_as_a_text():
    async def scene():
        async def look() -> list:
            """Look."""
            return [{"type": "input_text", "text": "one"}, {"type": "input_text", "text": "two"}]

        async with (
            staged(call("look", call_id="c1"), "Done.") as stage,
            stage.session(look) as session,
        ):
            await session.respond()
            await until(session, saying("Done."))
            assert session.items[1]["output"] == "one\ntwo"
            assert stage.broken() == {}

    within(scene)


SEEN = [
    {"type": "input_text", "text": "seen:"},
    {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo="},
]


@pytest.mark.parametrize("outside", [False, True])
def test_an_output_with_an_image_goes_as_json_and_loses_nothing(outside):
    async def scene():
        def look() -> list:
            """Look."""
            return SEEN

        by_hand = Tool.answered_outside("look", "Look.", {"type": "object", "properties": {}})
        async with (
            staged(call("look", call_id="c1"), "Done.") as stage,
            stage.session(by_hand if outside else look) as session,
        ):
            await session.respond()
            if outside:
                await until(session, Waiting)
                await session.answer("c1", SEEN)
            await until(session, saying("Done."))
            assert json.loads(session.items[1]["output"]) == SEEN
            assert stage.broken() == {}

    within(scene)
