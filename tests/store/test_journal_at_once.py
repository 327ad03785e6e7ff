"""Journals that are begun, and ended, in one write: the promises are the same."""

from __future__ import annotations

import asyncio

import pytest

from lockstitch.core.errors import IllegalFact
from lockstitch.core.facts import Noted, RequestSent
from lockstitch.store import Journal
from lockstitch.store.memory import MemoryStore
from lockstitch.store.sealing import Sealed
from lockstitch.store.sqlite.store import SqliteStore
from tests.store.kept import some_keys

A, B = Noted(kind="a", note=b"1"), Noted(kind="b", note=b"2")


async def length(store):
    return len([record async for record in store.read("c")])


def with_store(tmp_path, work):
    async def main():
        await work(MemoryStore())
        async with await SqliteStore.open(tmp_path / "store.db") as store:
            await work(store)
        async with Sealed(await SqliteStore.open(tmp_path / "sealed.db"), some_keys(1)) as store:
            await work(store)

    asyncio.run(main())


def test_it_begins_with_its_facts_and_is_held(tmp_path):
    async def work(store):
        journal = await Journal.begin(store, "c", [A])
        assert await length(store) == 2
        assert await Journal.begin(store, "c", [A]) is None
        with pytest.raises(Exception, match="is held by"):
            await Journal.open(store, "c")
        await journal.append(B, last=True)
        assert await length(store) == 3
        async with await Journal.open(store, "c") as again:
            assert len(again.ledger) == 3

    with_store(tmp_path, work)


def test_one_that_is_whole_is_not_held(tmp_path):
    async def work(store):
        await Journal.begin(store, "c", [A, B], last=True)
        async with await Journal.open(store, "c") as again:
            assert len(again.ledger) == 3

    with_store(tmp_path, work)


def test_an_illegal_fact_leaves_nothing(tmp_path):
    async def work(store):
        with pytest.raises(IllegalFact):
            await Journal.begin(store, "c", [A, RequestSent(request=9)])
        assert await length(store) == 0
        assert await Journal.begin(store, "c", [A], last=True) is not None

    with_store(tmp_path, work)


def test_what_is_not_the_writers_any_more_is_not_written(tmp_path):
    async def work(store):
        journal = await Journal.begin(store, "c", [A])
        await store.delete("c")
        with pytest.raises(Exception, match="deleted"):
            await journal.append(B, last=True)
        assert await length(store) == 0
        await journal.close()

    with_store(tmp_path, work)
