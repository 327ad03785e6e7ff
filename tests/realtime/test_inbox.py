"""Events on their way to a reader: none is lost that somebody reads."""

from __future__ import annotations

import asyncio

import pytest

from lockstitch.realtime.events import EventsMissed
from lockstitch.realtime.inbox import Inbox
from tests.realtime.stage import within


def event(number):
    return {"type": "event", "number": number}


def test_a_slow_reader_holds_up_whoever_tells_and_loses_nothing():
    async def scene():
        inbox = Inbox(most=4)
        reading = asyncio.create_task(inbox.get())
        await asyncio.sleep(0)

        async def tell():
            for number in range(20):
                inbox.put(event(number))
                await inbox.room()
            inbox.end()

        telling = asyncio.create_task(tell())
        assert await reading == event(0)
        await asyncio.sleep(0)
        assert not telling.done()
        assert [await inbox.get() for _ in range(1, 20)] == [event(n) for n in range(1, 20)]
        assert await inbox.get() is None
        await telling

    within(scene)


def test_without_a_reader_the_oldest_go_and_the_first_reader_is_told():
    async def scene():
        inbox = Inbox(most=4)
        for number in range(10):
            inbox.put(event(number))
            await inbox.room()
        assert await inbox.get() == EventsMissed(6)
        assert [await inbox.get() for _ in range(4)] == [event(n) for n in range(6, 10)]

    within(scene)


def test_an_error_comes_behind_everything_that_was_told():
    async def scene():
        inbox = Inbox()
        inbox.put(event(1))
        inbox.end(RuntimeError("it broke"))
        inbox.put(event(2))
        assert await inbox.get() == event(1)
        with pytest.raises(RuntimeError, match="it broke"):
            await inbox.get()

    within(scene)


def test_whoever_waits_for_room_is_let_go_at_the_end():
    async def scene():
        inbox = Inbox(most=1)
        inbox.put(event(0))
        await inbox.get()
        inbox.put(event(1))
        inbox.put(event(2))
        waiting = asyncio.create_task(inbox.room())
        await asyncio.sleep(0)
        assert not waiting.done()
        inbox.end()
        await waiting

    within(scene)
