"""What only the PostgreSQL store has to promise; the rest is in the contract."""

from __future__ import annotations

import asyncio

import asyncpg
import pytest

from lockstitch.core.records import Name, Naming, Record
from lockstitch.store.contract import Found
from lockstitch.store.errors import CannotOpen, CannotWrite, ClaimLost, ConversationBusy, Damaged
from lockstitch.store.postgres import PostgresStore
from lockstitch.store.postgres.errors import opening_failed, writing_failed
from lockstitch.store.postgres.queries import QUERIES
from lockstitch.store.postgres.text import kept, key, original
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

# Opening


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("postgresql://ann:s3cret@127.0.0.1:1/x", "cannot be reached"),
        ("postgresql://ann:s3cret@/x?host=/no/such/folder", "cannot be reached"),
        ("postgresql://ann:pa/s3cret@db/x", "percent-encode"),
        ("http://ann:s3cret@db/x", "not the URL of a PostgreSQL database"),
    ],
)
def test_what_cannot_be_opened_is_told_without_the_password(url, says):
    with pytest.raises(CannotOpen, match=says) as refused:
        asyncio.run(PostgresStore.open(url))
    assert "s3cret" not in str(refused.value)


def test_a_database_that_is_not_there_is_named(postgres_server):
    with pytest.raises(CannotOpen, match=r'no such database .*"nowhere"'):
        asyncio.run(PostgresStore.open(postgres_server.url("nowhere")))


def test_a_user_that_is_not_there_is_a_refused_login(postgres_server):
    url = postgres_server.url().replace("postgres@", "nobody@")
    with pytest.raises(CannotOpen, match="rejected the login"):
        asyncio.run(PostgresStore.open(url))


def test_a_wrong_password_is_a_refused_login():
    told = opening_failed("postgresql://ann@db/x", asyncpg.InvalidPasswordError("no"))
    assert "Look at the user and the password" in str(told)


def test_a_user_that_may_not_make_tables_is_told_so(postgres_server, postgres_url):
    postgres_server.execute("CREATE ROLE guest LOGIN")
    with pytest.raises(CannotOpen, match="Grant it CREATE"):
        asyncio.run(PostgresStore.open(postgres_url.replace("postgres@", "guest@")))
    postgres_server.execute("DROP ROLE guest")


def test_the_url_of_a_store_has_no_password(postgres_url):
    url = postgres_url.replace("postgres@", "postgres:s3cret@")

    async def work(store):
        assert store.url == postgres_url
        assert "s3cret" not in repr(store)

    with_store(url, work)


def test_the_promises_do_not_depend_on_how_the_server_is_set(postgres_server, postgres_url):
    database = postgres_url.partition("?")[0].rpartition("/")[2]
    for setting in ("synchronous_commit = off", "default_transaction_isolation = 'serializable'"):
        postgres_server.execute(f"ALTER DATABASE {database} SET {setting}")

    async def work(store):
        for pool in (store._pool, store._appending):
            async with pool.acquire() as connection:
                assert await connection.fetchval("SHOW synchronous_commit") == "on"
                assert await connection.fetchval("SHOW transaction_isolation") == "read committed"

    with_store(postgres_url, work)


# Writing


def test_a_server_that_is_read_only_is_told_as_that(postgres_server, postgres_url):
    async def write(store):
        claim = await store.claim("a", owner="test", seconds=LONG_SECONDS)
        await store.append(claim, 0, [record(1)])
        return claim

    claim = with_store(postgres_url, write)
    database = postgres_url.partition("?")[0].rpartition("/")[2]
    postgres_server.execute(f"ALTER DATABASE {database} SET default_transaction_read_only = on")

    async def work(store):
        with pytest.raises(CannotWrite, match="read-only"):
            await store.append(claim, 1, [record(2)])
        assert len(await all_of(store, "a")) == 1

    with_store(postgres_url, work)


def test_a_full_disk_is_told_as_that():
    told = writing_failed("postgresql://db/x", asyncpg.DiskFullError("no space left"))
    assert isinstance(told, CannotWrite)
    assert "the disk of the server is full" in str(told)
    assert "The earlier records are unchanged" in str(told)


def test_damage_is_told_as_that(postgres_url):
    async def work(store):
        claim = await store.claim("a", owner="test", seconds=LONG_SECONDS)
        await store.append(claim, 0, [full_record(1, "a")])
        await behind_its_back(store, "DELETE FROM lockstitch.bodies")
        with pytest.raises(Damaged, match=r"Record 1 .* has lost its body"):
            await all_of(store, "a")
        await behind_its_back(store, "DROP TABLE lockstitch.records")
        with pytest.raises(Damaged):
            await all_of(store, "a")

    with_store(postgres_url, work)


# Text


@pytest.mark.parametrize(
    "text", ["", "plain", "\0", "\x01", "a\0b\x01c", "\ud800", "\x010000", "ü😀", "\\x00", "\x7f"]
)
def test_any_text_comes_back(text):
    assert original(kept(text)) == text
    kept(text).encode()
    assert "\0" not in kept(text)


def test_a_key_is_short_and_nobody_elses():
    long = ["x" * 500 + tail for tail in ("", "a", "b", "\x01")]
    keys = [key(name) for name in (*long, *map(key, long[1:]))]
    assert len(set(keys)) == len(keys)
    assert max(len(one.encode()) for one in keys) < 2_500
    assert max(len(key("😀" * 600).encode()) for _ in keys) < 2_700


def test_names_that_postgres_cannot_hold_are_kept_and_found(postgres_url):
    strange = ["a\0b", "\x01", "\ud800", "long" * 2_000, ""]

    async def work(store):
        for conversation in strange:
            claim = await store.claim(conversation, owner="o\0o", seconds=LONG_SECONDS)
            names = tuple(Name(Naming.CALL, conversation + one) for one in strange)
            await store.append(claim, 0, [Record(1, b"{}", None, names, 1.0)])
            assert await all_of(store, conversation) == [Record(1, b"{}", None, names, 1.0)]
            for name in names:
                assert conversation in [found.conversation for found in await store.find(name)]
            with pytest.raises(ConversationBusy, match="o\0o"):
                await store.claim(conversation, owner="other", seconds=1)
        assert {one.conversation async for one in store.conversations()} == set(strange)

    with_store(postgres_url, work)


def test_records_with_any_number_of_names_share_an_append(postgres_url):
    counts = [0, 1, 2, 0, 3, 5, 1, 0]
    long = "long" * 200

    async def work(store):
        written = [
            Record(
                seq,
                b"{}",
                None,
                tuple(Name(Naming.ITEM, f"{seq}-{n}{long * (n == 4)}") for n in range(count)),
                1.0,
            )
            for seq, count in enumerate(counts, 1)
        ]
        claim = await store.claim("a", owner="test", seconds=LONG_SECONDS)
        await store.append(claim, 0, written)
        assert await all_of(store, "a") == written
        for one in written:
            for name in one.names:
                assert await store.find(name) == [Found("a", one.seq)]

    with_store(postgres_url, work)


def test_a_name_is_found_by_an_index_wherever_it_stands(postgres_url):
    async def work(store):
        async with store._pool.acquire() as connection:
            await connection.execute("SET enable_seqscan = off")  # there is little to scan here
            plan = await connection.fetch("EXPLAIN " + QUERIES["find"], "item:one")
        told = "\n".join(row[0] for row in plan)
        for place in ("first_name", "second_name", "other_names"):
            assert f"records_by_{place}" in told

    with_store(postgres_url, work)


# Reading


def test_a_long_conversation_is_read_in_pages(postgres_url, monkeypatch):
    monkeypatch.setattr("lockstitch.store.postgres.store.PAGE_RECORDS", 7)
    monkeypatch.setattr("lockstitch.store.postgres.store.PAGE_BYTES", 20_000)

    async def work(store):
        written = [full_record(seq, "a") for seq in range(1, 31)]
        written += [Record(seq, b"{}", b"x" * 100, (), 1.0) for seq in range(31, 61)]
        written.append(Record(61, b"{}", b"x" * 50_000, (), 1.0))
        claim = await store.claim("a", owner="test", seconds=LONG_SECONDS)
        await store.append(claim, 0, written)
        assert await all_of(store, "a") == written
        assert [one async for one in store.read("a", after=33)] == written[33:]

    with_store(postgres_url, work)


def test_conversations_are_listed_in_pages(postgres_url, monkeypatch):
    monkeypatch.setattr("lockstitch.store.postgres.store.PAGE_CONVERSATIONS", 3)
    names = ["", "a", "a\0", "a\x01", "aa", "b" * 500, "b" * 501, "b" * 500 + "\0", "B", "ü"]

    async def work(store):
        for name in names:
            await store.claim(name, owner="test", seconds=LONG_SECONDS)
        assert [one.conversation async for one in store.conversations()] == sorted(names)

    with_store(postgres_url, work)


def test_many_old_conversations_are_deleted_in_small_transactions(postgres_url, monkeypatch):
    monkeypatch.setattr("lockstitch.store.postgres.store.FORGET_CONVERSATIONS", 4)

    async def work(store):
        for number in range(10):
            claim = await store.claim(f"c{number}", owner="test", seconds=LONG_SECONDS)
            await store.append(claim, 0, [full_record(1, claim.conversation)])
        assert await store.delete_unchanged_since(4e9) == 10
        for table in ("conversations", "records", "bodies"):
            assert await behind_its_back(store, f"SELECT count(*) FROM lockstitch.{table}") == 0

    with_store(postgres_url, work)


def test_what_is_written_while_a_deletion_waits_is_deleted_too(postgres_url):
    async def work(store):
        claim = await store.claim("a", owner="test", seconds=LONG_SECONDS)
        async with locked(postgres_url, "a") as other:
            deletion = asyncio.create_task(store.delete("a"))
            await waiting_backend(other)
            # As an append would, had it come first.
            await other.execute(
                "INSERT INTO lockstitch.records (conversation, seq, at, payload, group_number)"
                " SELECT id, 1, 0, '', 1 FROM lockstitch.conversations"
            )
        assert await deletion
        assert await behind_its_back(store, "SELECT count(*) FROM lockstitch.records") == 0
        with pytest.raises(ClaimLost, match="was deleted"):
            await store.append(claim, 0, [record(1)])

    with_store(postgres_url, work)


def test_a_claim_whose_caller_is_cancelled_is_taken_back(postgres_url):
    async def work(store):
        first = await store.claim("a", owner="first", seconds=LONG_SECONDS)
        await store.release(first)
        async with locked(postgres_url, "a") as other:
            claiming = asyncio.create_task(store.claim("a", owner="gone", seconds=LONG_SECONDS))
            await waiting_backend(other)
            claiming.cancel()
            await asyncio.wait([claiming])
        await store.claim("a", owner="second", seconds=LONG_SECONDS, wait=20)

    with_store(postgres_url, work)
