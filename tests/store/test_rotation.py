"""A change of keys: all is sealed with the first, whatever it was before, and nothing is lost."""

from __future__ import annotations

import asyncio

import pytest

from lockstitch.core.records import Record
from lockstitch.store import rotation
from lockstitch.store.contract import Store
from lockstitch.store.errors import CannotWrite, OutOfStep, WrongKey
from lockstitch.store.memory import MemoryStore
from lockstitch.store.opening import open_store
from lockstitch.store.rotation import Rotated, rotate
from lockstitch.store.sealing import Sealed
from tests.store.kept import held, keep, odd_records, some_keys


class FailingReplace(MemoryStore):
    """Its nth replacement fails."""

    def __init__(self, nth: int) -> None:
        super().__init__()
        self.left = nth

    async def replace(self, conversation, records):
        self.left -= 1
        if self.left == 0:
            raise CannotWrite("the disk is full")
        await super().replace(conversation, records)


async def mixed(inner: Store) -> dict[str, list[Record]]:
    """Fill a store with plain records, and with some of two keys; what it holds."""
    for n, store in enumerate((inner, Sealed(inner, some_keys(1)), Sealed(inner, some_keys(2)))):
        await keep(store, f"conversation {n}", *odd_records())
        await keep(store, "all", Record(n + 1, b'{"n":%d}' % n, b"body"))
    return await held(Sealed(inner, some_keys(1, 2)))


def test_every_record_is_sealed_with_the_first_key():
    async def check():
        async with MemoryStore() as inner:
            before = await mixed(inner)
            told: list[int] = []
            done = await rotate(Sealed(inner, some_keys(2, 1)), advance=told.append)
            assert done == Rotated(conversations=4, records=24, resealed=16)
            assert sum(told) == 24
            assert await held(Sealed(inner, some_keys(2))) == before

    asyncio.run(check())


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_store_on_disk_changes_its_keys(kind, tmp_path, request):
    sqlite = kind == "sqlite"
    url = f"sqlite:///{tmp_path}/a.db" if sqlite else request.getfixturevalue("postgres_url")

    async def check():
        async with open_store(url) as inner:
            before = await mixed(inner)
            assert (await rotate(Sealed(inner, some_keys(3, 1, 2)))).resealed == 24
            await inner.vacuum()
        async with open_store(url, keys=some_keys(3)) as store:
            assert await held(store) == before

    asyncio.run(check())


def test_a_second_time_there_is_nothing_to_do():
    async def check():
        async with MemoryStore() as inner:
            await mixed(inner)
            store = Sealed(inner, some_keys(3, 1, 2))
            assert (await rotate(store)).resealed == 24
            assert (await rotate(store)).resealed == 0

    asyncio.run(check())


def test_it_may_be_stopped_at_any_moment_and_begun_again(monkeypatch):
    monkeypatch.setattr(rotation, "BATCH_RECORDS", 2)

    async def stopped_at(nth: int) -> bool:
        async with FailingReplace(nth) as inner:
            before = await mixed(inner)
            store = Sealed(inner, some_keys(2, 1))
            try:
                await rotate(store)
            except CannotWrite:
                assert await held(store) == before
                await rotate(store)
                stopped = True
            else:
                stopped = False
            assert await held(Sealed(inner, some_keys(2))) == before
            return stopped

    async def check():
        nth = 1
        while await stopped_at(nth):
            nth += 1
        assert nth > 5

    asyncio.run(check())


def test_a_record_that_no_key_opens_stops_it():
    async def check():
        async with MemoryStore() as inner:
            before = await mixed(inner)
            with pytest.raises(WrongKey):
                await rotate(Sealed(inner, some_keys(2)))
            assert await held(Sealed(inner, some_keys(1, 2))) == before

    asyncio.run(check())


def test_large_bodies_are_not_all_in_memory_at_once(monkeypatch):
    sizes = []

    class Watched(MemoryStore):
        async def replace(self, conversation, records):
            sizes.append(len(records))
            await super().replace(conversation, records)

    async def check():
        async with Watched() as inner:
            large = [Record(seq, b"{}", b"x" * 600_000) for seq in range(1, 21)]
            await keep(inner, "a", *large)
            await rotate(Sealed(inner, some_keys(1)))
        assert sum(sizes) == 20
        assert max(sizes) * 600_000 <= rotation.BATCH_BYTES

    asyncio.run(check())


def test_a_conversation_that_is_deleted_meanwhile_is_passed_over():
    class Deleting(MemoryStore):
        async def replace(self, conversation, records):
            if conversation == "a":
                await self.delete("a")
            await super().replace(conversation, records)

    async def check():
        async with Deleting() as inner:
            for conversation in ("a", "b"):
                await keep(inner, conversation, *odd_records())
            done = await rotate(Sealed(inner, some_keys(1)))
            assert done.resealed == 7
            assert list(await held(inner)) == ["b"]

    asyncio.run(check())


def test_any_other_refusal_is_told():
    class Refusing(MemoryStore):
        async def replace(self, conversation, records):
            raise OutOfStep("not now")

    async def check():
        async with Refusing() as inner:
            await keep(inner, "a", *odd_records())
            with pytest.raises(OutOfStep, match="not now"):
                await rotate(Sealed(inner, some_keys(1)))

    asyncio.run(check())


def test_others_write_meanwhile():
    async def check():
        async with MemoryStore() as inner:
            await keep(inner, "a", *[Record(n, b"{}") for n in range(1, 101)])
            store = Sealed(inner, some_keys(1))
            claim = await store.claim("a", owner="writer", seconds=60)

            tasks: list[asyncio.Task[None]] = []

            def write(_: int) -> None:
                after = 100 + len(tasks)
                work = store.append(claim, after, [Record(after + 1, b"{}")])
                tasks.append(asyncio.get_running_loop().create_task(work))

            await rotate(store, advance=write)
            await asyncio.gather(*tasks)
            assert len((await held(store))["a"]) == 200
            assert (await rotate(store)).resealed == 0

    asyncio.run(check())
