"""Edits that are not answered, or late: each is asked about, and none is made twice."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from lockstitch.emulator import call
from lockstitch.realtime import Patience
from lockstitch.runner import CallEnded
from tests.realtime.booking import Book
from tests.realtime.hearing import until, user
from tests.realtime.stage import HURRIED, Slow, Through, staged, within


def test_an_edit_whose_acknowledgement_is_lost_is_asked_about_and_not_made_twice():
    async def scene():
        lost = []

        def passes(event):
            named = event.get("item", {}).get("id")
            if named == "a" and event["type"] in {
                "conversation.item.added",
                "conversation.item.done",
            }:
                lost.append(event["type"])
                return None
            return event

        async with staged() as stage:
            connect = Through(stage.connect(), passes)
            async with stage.session(connect=connect, patience=HURRIED) as session:
                edited = await session.change(added=[user("a", "a")])
                assert edited
                assert edited.done == ("a",)
                assert lost == ["conversation.item.added", "conversation.item.done"]
                assert len(stage.frames("conversation.item.create")) == 1
                assert stage.frames("conversation.item.retrieve")
                assert stage.in_step(session) == ["a"]

    within(scene)


def test_an_edit_that_never_arrived_is_asked_about_and_made_again():
    async def scene():
        class Deaf:
            """A connection that loses the first create on its way out."""

            def __init__(self, inner):
                self._inner = inner
                self.lost = 0
                self.receive, self.close = inner.receive, inner.close

            async def send(self, event):
                if event["type"] == "conversation.item.create" and not self.lost:
                    self.lost += 1
                else:
                    await self._inner.send(event)

        async with staged() as stage:

            async def connect():
                return Deaf(await stage.connect()())

            async with stage.session(connect=connect, patience=HURRIED) as session:
                edited = await session.change(added=[user("a", "a")])
                assert edited.done == ("a",)
                assert len(stage.frames("conversation.item.create")) == 1
                assert stage.in_step(session) == ["a"]

    within(scene)


def test_a_provider_that_answers_slowly_and_steadily_leaves_nothing_in_doubt():
    patience = Patience(acknowledgement_seconds=0.25)

    async def scene():
        async with staged() as stage:
            ids = [f"s{n}" for n in range(10)]
            slow = Slow(stage.connect(), "conversation.item.added", seconds=0.05)
            async with stage.session(connect=slow, patience=patience) as session:
                edited = await session.change(added=[user(one, one) for one in ids])
                assert edited
                assert sorted(edited.done) == ids
                assert stage.frames("conversation.item.retrieve") == []

    within(scene)


def test_an_edit_that_nobody_ever_answers_is_in_doubt_and_a_later_one_finds_out():
    async def scene():
        deaf = {"conversation.item.added", "conversation.item.done", "conversation.item.retrieved"}
        silent = set(deaf)

        def passes(event):
            return None if event["type"] in silent else event

        async with staged() as stage:
            connect = Through(stage.connect(), passes)
            async with stage.session(connect=connect, patience=HURRIED) as session:
                edited = await session.change(added=[user("a", "a")])
                assert not edited
                assert edited.in_doubt == ("a",)
                silent.clear()
                assert await session.change(added=[user("b", "b")])
                assert stage.in_step(session) == ["a", "b"]
                assert stage.broken() == {}

    within(scene)


def test_an_item_whose_end_was_missed_is_asked_about_and_edits_go_on():
    async def scene():
        def passes(event):
            return None if event["type"] == "conversation.item.deleted" else event

        async with staged() as stage:
            connect = Through(stage.connect(), passes)
            async with stage.session(connect=connect) as session:
                await session.change(added=[user("One.", "a"), user("Two.", "b")])
                await session.send({"type": "conversation.item.delete", "item_id": "b"})
                assert await session.change(added=[user("Three.", "c")])
                assert stage.in_step(session) == ["a", "c"]

    within(scene)


def test_no_edit_is_late_as_long_as_others_of_its_plan_are_answered():
    async def scene():
        async with staged() as stage:
            inner = stage.connect()

            async def connect():
                connection = await inner()
                receive = connection.receive

                async def slowly():
                    await asyncio.sleep(0.05)
                    return await receive()

                connection.receive = slowly
                return connection

            patience = Patience(acknowledgement_seconds=0.5)
            async with stage.session(connect=connect, patience=patience) as session:
                assert await session.change(added=[user(str(n), f"n{n}") for n in range(15)])
                assert len(stage.in_step(session)) == 15
                assert stage.frames("conversation.item.retrieve") == []

    within(scene)


def test_a_provider_that_cannot_be_asked_about_an_output_is_not_asked_without_end():
    async def scene():
        book = Book()

        def passes(event):
            item = event.get("item") or {}
            return None if item.get("type") == "function_call_output" else event

        async with staged(call("book", {"flight": "LS 1"}), "Done.") as stage:
            inner = Through(stage.connect(), passes)

            async def connect():
                connection = await inner()
                send = connection.send
                # An event that it does not know: it says so.
                connection.send = lambda event: send(
                    event | {"type": event["type"].replace("retrieve", "look_up")}
                )
                return connection

            patience = Patience(acknowledgement_seconds=0.2)
            async with stage.session(book.book, connect=connect, patience=patience) as session:
                await session.respond()
                await until(session, CallEnded)
                refused = 0
                with suppress(TimeoutError):
                    async with asyncio.timeout(1.0):
                        while await until(session, "error"):
                            refused += 1
                assert 0 < refused < 40

    within(scene)
