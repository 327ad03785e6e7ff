"""What a SQLite store does beyond the contract that all stores keep (`test_contract`)."""

from __future__ import annotations

import asyncio
import stat
import subprocess
import sys
import threading
from pathlib import Path

import apsw
import pytest

from lockstitch.core.records import Name, Naming, Record
from lockstitch.store.bodies import LARGE_BODY_BYTES
from lockstitch.store.contract import Found
from lockstitch.store.errors import CannotWrite, ClaimLost, ConversationBusy
from lockstitch.store.sqlite import SqliteStore
from lockstitch.store.sqlite import checkpoints as sqlite_checkpoints
from lockstitch.store.sqlite import reading as sqlite_reading
from lockstitch.store.sqlite.store import CLAIM_POLL_SECONDS
from lockstitch.testing.store_contract.opened import (
    claimed,
    contents,
    filled,
    record,
    refused,
    several,
)


class Clock:
    """Time that passes when somebody sleeps, and at no other time."""

    def __init__(self) -> None:
        self.time = 1_000.0
        self.slept: list[float] = []

    def now(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.time += seconds
        await asyncio.sleep(0)


def rows(path: Path, query: str) -> list[tuple]:
    """What is in the file, behind the store's back."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return list(connection.execute(query))
    finally:
        connection.close()


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "store.db"


def test_a_store_is_private_to_its_user_with_all_that_is_beside_it(path):
    async def look() -> dict[str, int]:
        async with await SqliteStore.open(path) as store:
            await filled(store, "one", 1)
            return {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}

    assert asyncio.run(look()) == dict.fromkeys(["store.db", "store.db-wal", "store.db-shm"], 0o600)


def test_a_closed_store_is_one_file_and_its_threads_have_ended(path):
    before = set(threading.enumerate())

    async def live() -> None:
        async with await SqliteStore.open(path) as store:
            await filled(store, "one", 1)
            await contents(store, "one")
            await asyncio.gather(store.close(), store.close())
            ours = [one for one in threading.enumerate() if one.name.startswith("lockstitch")]
            assert set(ours) <= before

    asyncio.run(live())
    assert [file.name for file in path.parent.iterdir()] == ["store.db"]


def test_a_store_says_where_it_is_and_whether_it_is_open(path):
    async def live() -> None:
        store = await SqliteStore.open(str(path))
        assert store.url == f"sqlite:///{path}"
        assert repr(store) == f"<SqliteStore sqlite:///{path}>"
        await store.close()
        assert repr(store) == f"<SqliteStore sqlite:///{path} closed>"

    asyncio.run(live())


def test_a_claim_is_respected_until_the_clock_says_so(path):
    async def live() -> None:
        clock = Clock()
        async with await SqliteStore.open(path, now=clock.now, sleep=clock.sleep) as store:
            first = await store.claim("one", owner="host 1", seconds=30)
            clock.time += 29
            with pytest.raises(ConversationBusy, match=r"held by host 1 for 1\.0 s more"):
                await store.claim("one", owner="host 2", seconds=30)
            await store.renew(first, seconds=30)
            clock.time += 29
            await refused(ConversationBusy, store.claim("one", owner="host 2", seconds=30))
            clock.time += 1
            second = await store.claim("one", owner="host 2", seconds=30)
            assert second.token > first.token
            with pytest.raises(ClaimLost, match="taken over by host 2"):
                await store.renew(first, seconds=30)

    asyncio.run(live())


def test_waiting_for_a_claim_looks_again_at_short_intervals_and_no_longer_than_asked(path):
    async def live() -> None:
        clock = Clock()
        async with await SqliteStore.open(path, now=clock.now, sleep=clock.sleep) as store:
            await store.claim("one", owner="host 1", seconds=30)
            await refused(
                ConversationBusy, store.claim("one", owner="host 2", seconds=30, wait=0.12)
            )
            assert clock.slept == pytest.approx([CLAIM_POLL_SECONDS, CLAIM_POLL_SECONDS, 0.02])
            await store.claim("one", owner="host 2", seconds=30, wait=60)
            assert clock.time == pytest.approx(1_030, abs=2 * CLAIM_POLL_SECONDS)

    asyncio.run(live())


def test_a_claim_whose_caller_was_cancelled_is_given_back(path):
    async def live() -> None:
        async with await SqliteStore.open(path) as store:
            for turns in range(4):  # cancelled before it was handed over, and after
                asking = asyncio.create_task(claimed(store, "one"))
                for _ in range(turns):
                    await asyncio.sleep(0)
                asking.cancel()
                await asyncio.wait([asking])
                if asking.cancelled():
                    await store.release(await claimed(store, "one"))
                else:
                    await store.release(asking.result())

    asyncio.run(live())


def test_what_one_of_a_group_asks_for_cannot_harm_the_others(path):
    # SQLite takes no such text. The names of a record are written with those of all others.
    broken = record(1, names=[Name(Naming.ITEM, "\ud800")])

    async def live() -> None:
        async with await SqliteStore.open(path) as store:
            claims = [await claimed(store, f"{number}") for number in range(5)]
            results = await asyncio.gather(
                *(
                    store.append(claim, 0, [broken] if number == 2 else several(1, 2))
                    for number, claim in enumerate(claims)
                ),
                return_exceptions=True,
            )
            kinds = [type(result) for result in results]
            assert kinds.pop(2) is CannotWrite
            assert set(kinds) == {type(None)}
            lengths = [len(await contents(store, claim.conversation)) for claim in claims]
            assert lengths == [2, 2, 0, 2, 2]
            await store.append(claims[2], 0, several(1, 2))

    asyncio.run(live())


def test_one_store_serves_several_event_loops(path):
    async def append(store: SqliteStore, conversation: str) -> None:
        claim = await claimed(store, conversation)
        for after in range(20):
            await store.append(claim, after, several(after + 1, after + 1))

    async def live() -> None:
        async with await SqliteStore.open(path) as store:
            await asyncio.gather(
                append(store, "here"),
                asyncio.to_thread(asyncio.run, append(store, "there")),
            )
            assert await contents(store, "here") == await contents(store, "there")

    asyncio.run(live())


def test_the_event_loop_may_end_while_an_append_is_under_way(path):
    store = asyncio.run(SqliteStore.open(path))
    claim = asyncio.run(claimed(store, "one"))

    async def leave() -> None:
        asyncio.ensure_future(store.append(claim, 0, several(1, 1)))  # noqa: RUF006
        await asyncio.sleep(0)

    asyncio.run(leave())
    assert len(asyncio.run(contents(store, "one"))) in (0, 1)
    asyncio.run(store.close())


def test_a_large_body_is_one_row_and_a_small_one_is_none(path):
    large, small = b"x" * LARGE_BODY_BYTES, b"x" * (LARGE_BODY_BYTES - 1)
    bodies = [large, small, large, None, b""]
    records = [record(seq, body=body) for seq, body in enumerate(bodies, 1)]

    async def live() -> None:
        async with await SqliteStore.open(path) as store:
            for conversation in ("one", "two"):
                claim = await claimed(store, conversation)
                await store.append(claim, 0, records)
                assert await contents(store, conversation) == records

    asyncio.run(live())
    assert rows(path, "SELECT length(body) FROM bodies") == [(LARGE_BODY_BYTES,)] * 2
    assert rows(path, "SELECT count(large), count(body) FROM records") == [(4, 4)]


def test_a_replaced_body_goes_when_nobody_refers_to_it_any_more(path):
    old, new = b"x" * LARGE_BODY_BYTES, b"y" * LARGE_BODY_BYTES

    async def live() -> None:
        async with await SqliteStore.open(path) as store:
            claim = await claimed(store, "one")
            await store.append(claim, 0, [record(seq, body=old) for seq in (1, 2)])
            await store.replace("one", [record(1, body=new)])
            assert (await store.stats()).bodies == 2
            await store.replace("one", [record(2, body=new)])
            assert (await store.stats()).bodies == 1
            await store.replace("one", [record(seq, body=b"small") for seq in (1, 2)])
            assert (await store.stats()).bodies == 0

    asyncio.run(live())


def test_a_deleted_conversation_leaves_no_row_behind(path):
    async def live() -> None:
        async with await SqliteStore.open(path) as store:
            claim = await claimed(store, "one")
            name = Name(Naming.CALL, "call_1")
            large = b"x" * LARGE_BODY_BYTES
            await store.append(claim, 0, [record(1, body=large, names=[name])])
            await store.delete("one")

    asyncio.run(live())
    for table in ("conversations", "records", "bodies", "names"):
        assert rows(path, f"SELECT count(*) FROM {table}") == [(0,)], table


def test_many_old_conversations_are_forgotten_and_the_young_are_kept(path):
    async def live() -> None:
        clock = Clock()
        async with await SqliteStore.open(path, now=clock.now) as store:
            old = [await claimed(store, f"old {number}") for number in range(150)]
            await asyncio.gather(*(store.append(claim, 0, several(1, 1)) for claim in old))
            clock.time += 10
            await store.append(old[75], 1, several(2, 2))
            await filled(store, "young", 1)
            # Imported: it says that it is old, but was written to now.
            claim = await claimed(store, "imported")
            await store.append(claim, 0, [Record(1, b"", at=5.0)])
            assert await store.delete_unchanged_since(clock.time) == 149
            left = [one.conversation async for one in store.conversations()]
            assert left == ["imported", "old 75", "young"]

    asyncio.run(live())


def test_what_was_written_last_is_found_first_whatever_time_it_bears(path):
    name = Name(Naming.RESPONSE, "resp_1")

    async def live() -> list[Found]:
        async with await SqliteStore.open(path) as store:
            for conversation, at in (("first", 2.0), ("second", 3.0), ("third", 1.0)):
                claim = await claimed(store, conversation)
                await store.append(
                    claim, 0, [Record(seq, b"", None, (name,), at) for seq in (1, 2)]
                )
            return await store.find(name)

    order = ("third", "second", "first")
    assert asyncio.run(live()) == [Found(name, seq) for name in order for seq in (2, 1)]


def test_vacuuming_gives_the_space_back(path):
    async def live() -> None:
        async with await SqliteStore.open(path) as store:
            claim = await claimed(store, "one")
            await store.append(claim, 0, [record(1, body=b"x" * 2_000_000)])
            await filled(store, "kept", 3)
            await store.delete("one")
            await store.vacuum()
            assert (await store.stats()).size_bytes < 200_000
            assert await contents(store, "kept") == several(1, 3)

    asyncio.run(live())


def test_a_long_reading_comes_in_pages_by_number_and_by_size(path, monkeypatch):
    monkeypatch.setattr(sqlite_reading, "PAGE_RECORDS", 3)
    monkeypatch.setattr(sqlite_reading, "PAGE_BYTES", 1_000)
    records = [record(seq, body=b"x" * (600 if seq > 5 else 1)) for seq in range(1, 11)]
    asked = []
    page = sqlite_reading.records_page
    monkeypatch.setattr(
        "lockstitch.store.sqlite.store.records_page",
        lambda *where, **rest: asked.append(page(*where, **rest)) or asked[-1],
    )

    async def live() -> None:
        async with await SqliteStore.open(path) as store:
            claim = await claimed(store, "one")
            await store.append(claim, 0, records)
            assert await contents(store, "one") == records

    asyncio.run(live())
    assert [len(one) for one in asked] == [3, 3, 2, 2]


def test_a_reading_ends_where_the_conversation_was_deleted_and_begins_no_other(path, monkeypatch):
    monkeypatch.setattr(sqlite_reading, "PAGE_RECORDS", 2)

    async def live() -> None:
        async with await SqliteStore.open(path) as store:
            await filled(store, "one", 6)
            reading = store.read("one")
            first = await anext(reading)
            await store.delete("one")
            await filled(store, "one", 6)
            rest = [one.seq async for one in reading]
            assert [first.seq, *rest] == [1, 2]

    asyncio.run(live())


def test_the_log_begins_anew_while_there_are_writers(path, monkeypatch):
    monkeypatch.setattr(sqlite_checkpoints, "CHECKPOINT_PAGES", 20)

    async def live() -> None:
        async with asyncio.timeout(60), await SqliteStore.open(path) as store:
            claim = await claimed(store, "one")
            log = path.with_name("store.db-wal")
            written = after = 0
            # Were it never begun anew, it would hold everything that was written.
            while written <= 2 * log.stat().st_size:
                await store.append(claim, after, [record(after + 1, body=b"x" * 4_000)])
                after += 1
                written += 4_000
            assert len(await contents(store, "one")) == after

    asyncio.run(live())


WRITER = """
import asyncio, sys
from lockstitch.core.records import Record
from lockstitch.store.errors import ConversationBusy
from lockstitch.store.sqlite import SqliteStore

async def main(path, own):
    async with await SqliteStore.open(path) as store:
        claim = await store.claim(own, owner=own, seconds=60)
        for after in range(40):
            await store.append(claim, after, [Record(after + 1, own.encode())])
            shared = await store.claim("shared", owner=own, seconds=60, wait=60)
            await store.append(shared, shared.length, [Record(shared.length + 1, own.encode())])
            await store.release(shared)

asyncio.run(main(*sys.argv[1:]))
"""


def test_several_processes_write_to_one_file(path):
    processes = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(path), f"process {number}"])
        for number in range(3)
    ]
    assert [process.wait(timeout=60) for process in processes] == [0, 0, 0]

    async def look() -> None:
        async with await SqliteStore.open(path) as store:
            for number in range(3):
                assert len(await contents(store, f"process {number}")) == 40
            shared = await contents(store, "shared")
            assert [one.seq for one in shared] == list(range(1, 121))

    asyncio.run(look())
