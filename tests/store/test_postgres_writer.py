"""Group commit: appends that share a statement share nothing else."""

from __future__ import annotations

import asyncio

import pytest

from lockstitch.core.records import Record
from lockstitch.store.contract import Claim
from lockstitch.store.errors import CannotWrite, ClaimLost, ConversationDeleted, OutOfStep
from lockstitch.store.postgres import PostgresStore
from tests.store.postgres_parts import (
    LONG_SECONDS,
    all_of,
    behind_its_back,
    full_record,
    locked,
    record,
    waiting_backend,
    with_store,
)


async def claimed(store: PostgresStore, *conversations: str) -> list[Claim]:
    return [await store.claim(name, owner="test", seconds=LONG_SECONDS) for name in conversations]


def kinds(results: list[object]) -> list[type]:
    return [type(result) for result in results]


def test_appends_of_one_conversation_keep_their_order(postgres_url):
    async def work(store):
        [claim] = await claimed(store, "a")
        await asyncio.gather(
            *(store.append(claim, seq - 1, [full_record(seq, "a")]) for seq in range(1, 101))
        )
        assert await all_of(store, "a") == [full_record(seq, "a") for seq in range(1, 101)]

    with_store(postgres_url, work)


def test_an_append_that_is_refused_fails_alone(postgres_url):
    async def work(store):
        names = [f"conversation-{number}" for number in range(20)]
        claims = await claimed(store, *names)
        stale, deleted, behind = claims[3], claims[7], claims[11]
        await store.release(stale)
        await claimed(store, stale.conversation)
        await store.delete(deleted.conversation)
        results = await asyncio.gather(
            *(
                store.append(one, 1 if one is behind else 0, [record(2 if one is behind else 1)])
                for one in claims
            ),
            return_exceptions=True,
        )
        refused = {3: ClaimLost, 7: ConversationDeleted, 11: OutOfStep}
        assert kinds(results) == [refused.get(number, type(None)) for number in range(20)]
        for number, name in enumerate(names):
            assert len(await all_of(store, name)) == (number not in refused)

    with_store(postgres_url, work)


def test_an_append_behind_one_that_is_refused_is_judged_on_its_own(postgres_url):
    """A writer that repeats what it had written already, and goes on, is not held up by that."""

    async def work(store):
        [claim] = await claimed(store, "a")
        await store.append(claim, 0, [record(1)])
        results = await asyncio.gather(
            store.append(claim, 0, [record(1)]),
            store.append(claim, 1, [record(2)]),
            store.append(claim, 2, [record(3)]),
            store.append(claim, 7, [record(8)]),
            return_exceptions=True,
        )
        assert kinds(results) == [OutOfStep, type(None), type(None), OutOfStep]
        assert [one.seq for one in await all_of(store, "a")] == [1, 2, 3]

    with_store(postgres_url, work)


def test_what_the_server_will_not_take_fails_alone(postgres_server, postgres_url):
    async def work(store):
        claims = await claimed(store, "a", "b", "c", "d", "e", "f")
        # A record where there should be none: the next append to it breaks the primary key.
        async with store._pool.acquire() as connection:
            await connection.execute(
                "INSERT INTO lockstitch.records (conversation, seq, at, payload, group_number)"
                " SELECT id, 1, 0, '', 1 FROM lockstitch.conversations WHERE name = 'c'"
            )
        results = await asyncio.gather(
            *(store.append(claim, 0, [record(1)]) for claim in claims), return_exceptions=True
        )
        assert kinds(results) == [
            CannotWrite if claim.conversation == "c" else type(None) for claim in claims
        ]
        assert "Nothing was written" in str(results[2])

    with_store(postgres_url, work)


def test_what_the_driver_cannot_encode_fails_alone(postgres_url):
    async def work(store):
        claims = await claimed(store, "a", "b", "c", "d", "e", "f")
        too_far = 2**70
        results = await asyncio.gather(
            *(
                store.append(claim, too_far, [record(too_far + 1)])
                if claim.conversation == "c"
                else store.append(claim, 0, [record(1)])
                for claim in claims
            ),
            return_exceptions=True,
        )
        assert kinds(results) == [
            CannotWrite if claim.conversation == "c" else type(None) for claim in claims
        ]

    with_store(postgres_url, work)


def test_what_cannot_be_written_does_not_take_the_one_before_it_along(postgres_url):
    async def work(store):
        [claim] = await claimed(store, "a")
        results = await asyncio.gather(
            store.append(claim, 0, [record(1)]),
            store.append(claim, 1, [Record(2, b"{}", None, (), "noon")]),
            store.append(claim, 2, [record(3)]),
            return_exceptions=True,
        )
        assert kinds(results) == [type(None), CannotWrite, OutOfStep]
        assert [one.seq for one in await all_of(store, "a")] == [1]

    with_store(postgres_url, work)


def test_an_append_whose_caller_is_cancelled_is_written_all_the_same(postgres_url):
    async def work(store):
        first, second = await claimed(store, "a", "b")
        async with locked(postgres_url, "a") as other:
            cancelled = asyncio.create_task(store.append(first, 0, [record(1)]))
            beside = asyncio.create_task(store.append(second, 0, [record(1)]))
            await waiting_backend(other)
            queued = asyncio.create_task(store.append(first, 1, [record(2)]))
            await asyncio.sleep(0)
            cancelled.cancel()
            queued.cancel()
            await asyncio.wait([cancelled, queued])
            assert cancelled.cancelled()
            assert queued.cancelled()
        await beside
        await store.append(first, 2, [record(3)])
        assert [one.seq for one in await all_of(store, "a")] == [1, 2, 3]

    with_store(postgres_url, work)


def test_closing_finishes_what_was_begun(postgres_url):
    async def write():
        store = await PostgresStore.open(postgres_url)
        [claim] = await claimed(store, "a")
        appends = [
            asyncio.create_task(store.append(claim, seq - 1, [record(seq)])) for seq in range(1, 51)
        ]
        await asyncio.sleep(0)
        await store.close()
        await asyncio.gather(*appends)

    asyncio.run(write())
    assert len(with_store(postgres_url, lambda store: all_of(store, "a"))) == 50


def test_a_group_larger_than_the_limit_is_split(postgres_url, monkeypatch):
    monkeypatch.setattr("lockstitch.store.postgres.writer.GROUP_BYTES", 10_000)
    monkeypatch.setattr("lockstitch.store.postgres.writer.GROUP_WRITES", 7)

    async def work(store):
        claims = await claimed(store, *(f"c{number}" for number in range(30)))
        await asyncio.gather(
            *(store.append(one, 0, [full_record(1, one.conversation)]) for one in claims)
        )
        for one in claims:
            assert await all_of(store, one.conversation) == [full_record(1, one.conversation)]

    with_store(postgres_url, work)


def test_conversations_that_begin_and_appends_share_one_statement(postgres_url):
    async def work(store):
        claims = await claimed(store, *(f"old {n}" for n in range(20)))
        before = await behind_its_back(store, "SELECT last_value FROM lockstitch.groups")
        results = await asyncio.gather(
            *(store.append(claim, 0, [record(1)], release=True) for claim in claims),
            *(
                store.begin(f"new {n}", [record(1)], owner="test", seconds=LONG_SECONDS)
                for n in range(20)
            ),
        )
        after = await behind_its_back(store, "SELECT last_value FROM lockstitch.groups")
        assert after - before <= 1
        for claim in results[20:]:
            await store.append(claim, 1, [record(2)])

    with_store(postgres_url, work)


def test_groups_that_wait_for_each_other_are_written_in_the_end(postgres_url):
    """The server ends one of two that wait in a ring; if it is ours, nothing is lost by it."""

    async def work(store):
        claims = await claimed(store, "a", "b")
        async with locked(postgres_url, "b") as other:
            await other.execute("SET deadlock_timeout = '1h'")  # so that it is ours that is ended
            appends = [asyncio.create_task(store.append(one, 0, [record(1)])) for one in claims]
            await waiting_backend(other)  # the group has "a" now, and waits for "b"
            await other.execute("SELECT FROM lockstitch.conversations WHERE name = 'a' FOR UPDATE")
        await asyncio.gather(*appends)
        assert [len(await all_of(store, name)) for name in ("a", "b")] == [1, 1]

    with_store(postgres_url, work)


def test_a_lost_connection_says_that_the_write_may_have_happened(postgres_url):
    async def work(store):
        [claim] = await claimed(store, "a")
        async with locked(postgres_url, "a") as other:
            append = asyncio.create_task(store.append(claim, 0, [record(1)]))
            pid = await waiting_backend(other)
            await other.execute("SELECT pg_terminate_backend($1)", pid)
            with pytest.raises(CannotWrite, match="may or may not have happened"):
                await append
        assert await all_of(store, "a") == []
        await store.append(claim, 0, [record(1)])  # the next one has a new connection
        assert len(await all_of(store, "a")) == 1

    with_store(postgres_url, work)


def test_a_store_outlives_a_restart_of_the_server(postgres_server, postgres_url):
    async def work(store):
        [claim] = await claimed(store, "a")
        await store.append(claim, 0, [record(1)])
        try:
            await asyncio.to_thread(postgres_server.stop)
            with pytest.raises(CannotWrite):
                await store.append(claim, 1, [record(2)])
        finally:
            await asyncio.to_thread(postgres_server.start)
        length = len(await all_of(store, "a"))
        assert length == 1
        await store.append(claim, length, [record(2)])
        assert len(await all_of(store, "a")) == 2

    with_store(postgres_url, work)
