"""A disk that fails under a SQLite store: nothing acknowledged is lost, nothing is torn.

The fault loop: fail the first call to the disk, the second, … until a run meets no fault."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lockstitch.core.records import Name, Naming, Record
from lockstitch.store.bodies import LARGE_BODY_BYTES
from lockstitch.store.contract import Claim
from lockstitch.store.errors import CannotOpen, CannotWrite, StoreError
from lockstitch.store.sqlite import SqliteStore
from lockstitch.store.sqlite import checkpoints as sqlite_checkpoints
from lockstitch.testing.store_contract.opened import (
    claimed,
    contents,
    filled,
    refused,
    several,
)
from tests.store.sqlite_faults import Disk, Fault, faulty_disk

NAME = Name(Naming.CALL, "call_1")

Kept = dict[str, list[Record]]


def batch(after: int) -> list[Record]:
    """Three records: a large one, a small one, one that has a name."""
    return [
        Record(after + 1, b"large", b"x" * LARGE_BODY_BYTES),
        Record(after + 2, b"small", b"%d" % after),
        Record(after + 3, b"named", None, (NAME,)),
    ]


class Life:
    """Two writers, one of whom is forgotten; and what of it all was acknowledged."""

    def __init__(self, path: Path, crashes: Path | None = None) -> None:
        self.path = path
        self.kept: Kept = {}
        self.crashes = crashes
        self.left_by_crash: list[tuple[Path, Kept]] = []
        """Copies of the files from when something failed, and what was acknowledged by then."""

    async def live(self) -> None:
        try:
            store = await SqliteStore.open(self.path)
        except StoreError:
            return
        async with store:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._converse(store, "kept", appends=2))
                group.create_task(self._converse(store, "forgotten", appends=1))
            forgotten = self.kept.pop("forgotten", None)
            if not await self._tried(store.delete("forgotten")) and forgotten is not None:
                self.kept["forgotten"] = forgotten

    async def _converse(self, store: SqliteStore, conversation: str, appends: int) -> None:
        claim = await self._tried(claimed(store, conversation))
        if claim is None:
            return
        kept: list[Record] = []
        self.kept[conversation] = kept
        for _ in range(appends):
            more = batch(len(kept))
            if await self._done(store.append(claim, len(kept), more)):
                kept += more
            assert await contents(store, conversation) == kept
        other = Record(1, b"other", b"y" * LARGE_BODY_BYTES)
        if kept and await self._done(store.replace(conversation, [other])):
            kept[0] = other
        await self._tried(store.release(claim))

    async def _done(self, work) -> bool:
        """Was it acknowledged?"""

        async def done() -> bool:
            await work
            return True

        return await self._tried(done()) or False

    async def _tried(self, work):
        try:
            return await work
        except StoreError:
            if self.crashes is not None:
                self._crash(self.crashes / str(len(self.left_by_crash)) / self.path.name)
            return None

    def _crash(self, copy: Path) -> None:
        copy.parent.mkdir(parents=True)
        for suffix in ("", "-wal"):
            shutil.copy(f"{self.path}{suffix}", f"{copy}{suffix}")
        kept = {name: list(records) for name, records in self.kept.items()}
        self.left_by_crash.append((copy, kept))


async def kept_in(path: Path) -> Kept:
    """What is in a file, which must be a store that can be written to."""
    async with await SqliteStore.open(path) as store:
        kept: Kept = {}
        async for one in store.conversations():
            kept[one.conversation] = await contents(store, one.conversation)
        named = {(name, one.seq) for name, records in kept.items() for one in records if one.names}
        assert {(found.conversation, found.seq) for found in await store.find(NAME)} == named
        await filled(store, "written afterwards", 2)
    return kept


@pytest.fixture
def begun(tmp_path) -> Path:
    """A store with nothing in it."""

    async def begin() -> None:
        await (await SqliteStore.open(tmp_path / "begun.db")).close()

    asyncio.run(begin())
    return tmp_path / "begun.db"


def every_call(fault: Fault, begun: Path) -> Iterator[tuple[Path, Disk]]:
    """A copy of a store, and a disk that fails the first call; the second; … until none fails."""
    nth = 0
    injected = True
    while injected:
        nth += 1
        path = begun.with_name(f"{nth}.db")
        shutil.copy(begun, path)
        with faulty_disk() as disk:
            disk.fail_nth(fault, nth)
            yield path, disk
            injected = disk.injected > 0
    assert nth > 5, "next to nothing was failed"


def test_whichever_call_fails_what_was_acknowledged_is_there_and_nothing_is_torn(begun, tmp_path):
    for path, disk in every_call(Fault.IO, begun):
        life = Life(path, tmp_path / "crashes" / path.stem)
        asyncio.run(life.live())
        disk.work()
        assert asyncio.run(kept_in(path)) == life.kept
        for copy, acknowledged in life.left_by_crash:
            there = asyncio.run(kept_in(copy))
            for name, records in acknowledged.items():
                assert there[name][1 : len(records)] == records[1:]
                # What failed may have reached the disk before the crash, but never in part.
                assert [one.seq for one in there[name]] == list(range(1, len(there[name]) + 1))
                assert len(there[name]) % len(batch(0)) == 0
    assert life.kept.keys() == {"kept"}
    assert len(life.kept["kept"]) == 6


def test_whichever_call_fails_while_the_log_is_copied_nothing_is_lost(begun, monkeypatch):
    monkeypatch.setattr(sqlite_checkpoints, "CHECKPOINT_PAGES", 1)

    async def live(path: Path) -> list[Record]:
        kept: list[Record] = []
        async with await SqliteStore.open(path) as store:
            claim = await claimed(store, "kept")
            for _ in range(3):
                with contextlib.suppress(CannotWrite):
                    more = several(len(kept) + 1, len(kept) + 2)
                    await store.append(claim, len(kept), more)
                    kept += more
        return kept

    for path, disk in every_call(Fault.IO, begun):
        kept = []
        with contextlib.suppress(CannotOpen, CannotWrite):
            kept = asyncio.run(live(path))
        disk.work()
        assert asyncio.run(kept_in(path)).get("kept", []) == kept
    assert kept == several(1, 6)


def test_whichever_call_fails_while_a_store_begins_it_can_be_opened_afterwards(tmp_path):
    empty = tmp_path / "empty.db"
    empty.touch()
    for path, disk in every_call(Fault.IO, empty):
        try:
            asyncio.run(opened_and_closed(path))
        except CannotOpen as error:
            assert str(path) in str(error)  # noqa: PT017
        disk.work()
        assert asyncio.run(kept_in(path)) == {}


async def opened_and_closed(path: Path) -> None:
    await (await SqliteStore.open(path)).close()


def test_whichever_call_fails_in_a_vacuum_all_is_kept(begun):
    async def fill() -> None:
        async with await SqliteStore.open(begun) as store:
            await filled(store, "kept", 3)

    async def vacuum(path: Path, disk: Disk) -> None:
        disk.work()
        async with await SqliteStore.open(path) as store:
            disk.go_on()
            try:
                await store.vacuum()
            except CannotWrite:
                assert disk.injected
            disk.work()
            assert await contents(store, "kept") == several(1, 3)
            await filled(store, "more", 2)

    asyncio.run(fill())
    for path, disk in every_call(Fault.IO, begun):
        asyncio.run(vacuum(path, disk))
        assert asyncio.run(kept_in(path)) == {"kept": several(1, 3), "more": several(1, 2)}


def test_an_append_is_synced_when_it_returns(begun):
    async def append() -> None:
        with faulty_disk() as disk:
            async with await SqliteStore.open(begun) as store:
                claim = await claimed(store, "kept")
                for after in range(3):
                    disk.calls.clear()
                    await store.append(claim, after, several(after + 1, after + 1))
                    assert "write" in disk.calls
                    assert disk.calls[-1] == "sync"

    asyncio.run(append())


def test_what_is_asked_for_in_one_turn_of_the_loop_is_synced_once(begun):
    async def append(store: SqliteStore, claim: Claim) -> None:
        time.sleep(0.002)  # the writer's thread could wake up here
        await store.append(claim, 0, several(1, 2))

    async def live() -> None:
        with faulty_disk() as disk:
            async with await SqliteStore.open(begun) as store:
                claims = [await claimed(store, f"{number}") for number in range(8)]
                disk.calls.clear()
                await asyncio.gather(*(append(store, claim) for claim in claims))
                assert disk.calls.count("sync") == 1

    asyncio.run(live())


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        (Fault.FULL, "the disk is full.* Free some space"),
        (Fault.READ_ONLY, "read-only.* Make both writable"),
        (Fault.IO, "Look at the disk"),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_while_the_disk_fails_writes_say_why_reads_work_and_all_goes_on_afterwards(
    fault, why, begun
):
    async def fail() -> None:
        with faulty_disk() as disk:
            async with await SqliteStore.open(begun) as store:
                claim = await filled(store, "kept", 3)
                disk.fail_all(fault)
                for _ in range(2):
                    with pytest.raises(CannotWrite, match=why):
                        await store.append(claim, 3, several(4, 5))
                assert await contents(store, "kept") == several(1, 3)
                disk.work()
                await store.append(claim, 3, several(4, 5))
                assert await contents(store, "kept") == several(1, 5)

    asyncio.run(fail())


def test_a_failed_commit_fails_all_of_its_group_and_none_of_it_is_there(begun):
    async def fail() -> None:
        with faulty_disk() as disk:
            async with await SqliteStore.open(begun) as store:
                claims = [await claimed(store, f"{n}") for n in range(8)]
                disk.fail_all(Fault.FULL)
                results = await asyncio.gather(
                    *(store.append(claim, 0, several(1, 2)) for claim in claims),
                    return_exceptions=True,
                )
                assert [type(result) for result in results] == [CannotWrite] * 8
                assert len({id(result) for result in results}) == 8, "each has an error of its own"
                disk.work()
                for claim in claims:
                    assert await contents(store, claim.conversation) == []
                    await store.append(claim, 0, several(1, 2))

    asyncio.run(fail())


def test_a_page_of_the_disk_that_cannot_be_read_is_said(begun):
    async def fail() -> None:
        async with await SqliteStore.open(begun) as store:
            await filled(store, "kept", 3)
        with faulty_disk() as disk:
            async with await SqliteStore.open(begun) as store:
                disk.fail_all(Fault.READ)
                error = await refused(CannotOpen, contents(store, "kept"))
                assert "cannot be read" in str(error)
                disk.work()
                assert await contents(store, "kept") == several(1, 3)

    asyncio.run(fail())
