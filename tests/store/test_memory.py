"""What a store in memory has of its own; the rest is the contract."""

from __future__ import annotations

import asyncio

import pytest

from lockstitch.core.records import Record
from lockstitch.store.errors import ConversationBusy, StoreError
from lockstitch.store.memory import MemoryStore
from tests.store.kept import LARGE, held, keep


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_the_time_is_an_argument():
    async def check():
        clock = Clock()
        async with MemoryStore(now=clock) as store:
            await keep(store, "a", Record(1, b"{}"))
            clock.now = 1010.0
            await keep(store, "a", Record(2, b"{}"))
            (summary,) = [one async for one in store.conversations()]
            assert (summary.created, summary.changed) == (1000.0, 1010.0)
            assert [one.at for one in (await held(store))["a"]] == [1000.0, 1010.0]
            assert await store.delete_unchanged_since(1010.0) == 0
            assert await store.delete_unchanged_since(1010.5) == 1

    asyncio.run(check())


def test_a_claim_runs_out_by_that_time():
    async def check():
        clock = Clock()
        async with MemoryStore(now=clock) as store:
            await store.claim("a", owner="first", seconds=30)
            clock.now += 29.5
            with pytest.raises(ConversationBusy, match=r"held by first for 0\.5 s more"):
                await store.claim("a", owner="second", seconds=30)
            clock.now += 0.5
            assert (await store.claim("a", owner="second", seconds=30)).owner == "second"

    asyncio.run(check())


def test_equal_large_bodies_are_one_object():
    async def check():
        async with MemoryStore() as store:
            await keep(store, "a", Record(1, b"{}", LARGE), Record(2, b"{}", bytes(list(LARGE))))
            first, second = (await held(store))["a"]
            assert first.body is second.body
            assert first.body == LARGE

    asyncio.run(check())


def test_each_store_is_its_own():
    async def check():
        async with MemoryStore() as one, MemoryStore() as other:
            await keep(one, "a", Record(1, b"{}"))
            assert await held(other) == {}

    asyncio.run(check())


def test_a_closed_one_says_so():
    async def check():
        store = MemoryStore()
        assert repr(store) == "<MemoryStore 0 conversations>"
        await store.close()
        assert repr(store) == "<MemoryStore closed>"
        with pytest.raises(StoreError, match=r"memory: is closed\. Open it again"):
            await store.stats()

    asyncio.run(check())
