"""Calls that wait for somebody: for an approval, or for an output from outside."""

from __future__ import annotations

import pytest

from lockstitch.core.outcomes import Outcome
from lockstitch.emulator import call
from lockstitch.realtime import NoSuchCall, OutputUnplaced
from lockstitch.runner import CallEnded, Waiting, tool
from tests.realtime.booking import Book
from tests.realtime.hearing import function_output, of, saying, until
from tests.realtime.stage import staged, within


def test_a_call_that_asks_first_runs_when_it_is_approved():
    async def scene():
        book = Book()
        asking = tool(needs_approval=True)(book.book)
        turns = (call("book", {"flight": "LS 1"}, call_id="c1"), "Done.")
        async with staged(*turns) as stage, stage.session(asking) as session:
            await session.respond()
            (waiting,) = of(Waiting, await until(session, Waiting))
            assert [one.call_id for one in waiting.for_approval] == ["c1"]
            assert book.booked == []
            with pytest.raises(NoSuchCall):
                session.approve({"c2": True})
            session.approve({"c1": True})
            await until(session, saying("Done."))
            assert book.booked == ["LS 1"]
            stage.in_step(session)

    within(scene)


def test_who_approved_of_a_call_did_not_approve_of_the_next_with_its_id():
    async def scene():
        book = Book()
        asking = tool(needs_approval=True)(book.book)
        again = call("book", {"flight": "LS 1"}, call_id="c1")
        async with staged(again, again) as stage, stage.session(asking) as session:
            await session.respond()
            await until(session, Waiting)
            session.approve({"c1": True})
            await until(session, CallEnded)
            await until(session, Waiting)
            assert book.booked == ["LS 1"]
            session.approve({"c1": False})
            (ended,) = of(CallEnded, await until(session, CallEnded))
            assert ended.outcome is Outcome.NEVER_STARTED
            assert book.booked == ["LS 1"]

    within(scene)


def test_what_others_say_to_a_call_that_a_tool_of_ours_answers_is_not_its_output():
    async def scene():
        book = Book()
        async with (
            staged(call("wait", call_id="c1"), "Done.") as stage,
            stage.session(book.wait) as session,
        ):
            await session.respond()
            await until(session, "response.done")
            await book.begun.wait()
            await session.change(added=[function_output("o", "c1", "From elsewhere.")])
            book.may_end.set()
            (unplaced,) = of(OutputUnplaced, await until(session, OutputUnplaced))
            assert unplaced.call_id == "c1"
            assert session.history()[-1]["output"] == "it ended"
            assert stage.in_step(session)[-1] == "o"

    within(scene)


def test_a_call_without_a_tool_of_ours_is_answered_from_outside():
    async def scene():
        async with (
            staged(call("book", {"flight": "LS 1"}, call_id="c1"), "Done.") as stage,
            stage.session() as session,
        ):
            await session.respond()
            (waiting,) = of(Waiting, await until(session, Waiting))
            assert [one.call_id for one in waiting.for_output] == ["c1"]
            await session.answer("c1", "It is booked.")
            await until(session, saying("Done."))
            stage.in_step(session)
            with pytest.raises(NoSuchCall):
                await session.answer("c1", "Again.")

    within(scene)


def test_nobody_else_answers_a_call_that_a_tool_here_runs():
    async def scene():
        book = Book()
        async with (
            staged(call("wait", {}, call_id="c1"), "Done.") as stage,
            stage.session(book.wait) as session,
        ):
            await session.respond()
            await book.begun.wait()
            with pytest.raises(NoSuchCall, match="the session itself runs it"):
                await session.answer("c1", "Mine.")
            book.may_end.set()
            await until(session, saying("Done."))
            assert session.history()[1]["output"] == "it ended"

    within(scene)


def test_an_output_that_somebody_else_gave_is_the_output():
    async def scene():
        async with (
            staged(call("book", {"flight": "LS 1"}, call_id="c1")) as stage,
            stage.session() as session,
        ):
            await session.respond()
            await until(session, Waiting)
            await until(session, "response.done")
            assert await session.change(added=[function_output("o", "c1", "It is booked.")])
            assert stage.in_step(session)[-1] == "o"
            assert session.history()[-1]["output"] == "It is booked."
        ledger = await stage.ledger()
        assert ledger.unsettled() == []

    within(scene)
