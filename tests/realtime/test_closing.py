"""The end of a session, and callers who leave before."""

from __future__ import annotations

import asyncio

import pytest

from lockstitch.core.outcomes import UNKNOWN_TEXT, Outcome
from lockstitch.emulator import call, reply
from lockstitch.realtime import SessionOver
from lockstitch.runner import CallEnded
from tests.realtime.booking import Book
from tests.realtime.hearing import is_done, of, types, until, user
from tests.realtime.stage import staged, within


def test_closing_asks_tools_to_end_and_leaves_an_honest_outcome():
    async def scene():
        book = Book()
        async with staged(call("wait", call_id="c1")) as stage:
            async with stage.session(book.wait, grace=0.05) as session:
                await session.respond()
                await book.begun.wait()
            (ended,) = of(CallEnded, [event async for event in session])
            assert ended.outcome is Outcome.UNKNOWN
            ledger = await stage.ledger()
            assert ledger.unsettled() == []
            assert UNKNOWN_TEXT in ledger.history()[-1]["output"]

    within(scene)


def test_who_waits_on_a_session_that_is_closed_hears_of_it():
    async def scene():
        async with staged(reply("One two three.", pace=5.0)) as stage, stage.session() as session:
            await session.respond()
            held = asyncio.create_task(session.change(added=[user("a")]))
            asked = asyncio.create_task(session.respond())
            read = asyncio.create_task(_all(session))
            await asyncio.sleep(0)
            await session.close()
            assert types(await read)[0] == "session.created"
            for task in (held, asked):
                with pytest.raises(SessionOver, match="was closed"):
                    await task
            with pytest.raises(SessionOver, match="was closed"):
                await session.send({"type": "input_audio_buffer.clear"})
            await session.close()

    within(scene)


def test_a_caller_who_is_cancelled_leaves_its_edit_to_be_carried_out():
    async def scene():
        async with staged() as stage, stage.session() as session:
            editing = asyncio.create_task(session.change(added=[user("a", "a")]))
            await asyncio.sleep(0)
            editing.cancel()
            await until(session, is_done("a"))
            assert stage.in_step(session) == ["a"]

    within(scene)


async def _all(session):
    return [event async for event in session]
