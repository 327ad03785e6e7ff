"""Versions of the schema: what is made, what is refused, what is migrated."""

from __future__ import annotations

import asyncio

import asyncpg
import pytest

from lockstitch.store.errors import CannotOpen, SchemaTooNew, SchemaTooOld
from lockstitch.store.postgres import PostgresStore
from lockstitch.store.postgres.queries import MIGRATIONS
from tests.store.postgres_parts import LONG_SECONDS, all_of, full_record, with_store

SECOND = "ALTER TABLE lockstitch.conversations ADD COLUMN colour text NOT NULL DEFAULT 'green'"
BROKEN = "ALTER TABLE lockstitch.conversations ADD COLUMN shape text; SELECT 1 / 0"


async def version_of(store: PostgresStore) -> int:
    return (await store.stats()).schema


def opened(url: str, *more: str, migrate: bool = False) -> int:
    """Open and close, with migrations that we do not have yet; the version."""

    async def run() -> int:
        migrations = (*MIGRATIONS, *more)
        async with await PostgresStore.open(url, migrate=migrate, migrations=migrations) as store:
            return await version_of(store)

    return asyncio.run(run())


def test_an_empty_database_gets_the_tables(postgres_url):
    assert with_store(postgres_url, version_of) == len(MIGRATIONS)


def test_many_processes_can_open_an_empty_database_at_once(postgres_url):
    async def run():
        stores = await asyncio.gather(*(PostgresStore.open(postgres_url) for _ in range(6)))
        assert {await version_of(store) for store in stores} == {len(MIGRATIONS)}
        await asyncio.gather(*(store.close() for store in stores))

    asyncio.run(run())


def test_an_older_schema_is_refused_with_what_to_do(postgres_url):
    opened(postgres_url)
    with pytest.raises(SchemaTooOld, match="lockstitch store migrate postgresql://") as refused:
        opened(postgres_url, SECOND)
    assert f"schema {len(MIGRATIONS)}" in str(refused.value)
    assert opened(postgres_url) == len(MIGRATIONS)  # nothing was changed


def test_a_migration_keeps_what_was_there(postgres_url):
    async def write(store):
        claim = await store.claim("a", owner="test", seconds=LONG_SECONDS)
        await store.append(claim, 0, [full_record(1, "a")])

    with_store(postgres_url, write)
    assert opened(postgres_url, SECOND, migrate=True) == len(MIGRATIONS) + 1

    async def check():
        async with await PostgresStore.open(
            postgres_url, migrations=(*MIGRATIONS, SECOND)
        ) as store:
            assert await all_of(store, "a") == [full_record(1, "a")]

    asyncio.run(check())


def test_a_migration_happens_once(postgres_url):
    opened(postgres_url)

    async def run():
        stores = await asyncio.gather(
            *(
                PostgresStore.open(postgres_url, migrate=True, migrations=(*MIGRATIONS, SECOND))
                for _ in range(4)
            )
        )
        await asyncio.gather(*(store.close() for store in stores))

    asyncio.run(run())
    assert opened(postgres_url, SECOND) == len(MIGRATIONS) + 1


def test_a_migration_that_fails_changes_nothing(postgres_url):
    opened(postgres_url)
    with pytest.raises(CannotOpen, match="division by zero"):
        opened(postgres_url, SECOND, BROKEN, migrate=True)
    assert opened(postgres_url) == len(MIGRATIONS)
    assert opened(postgres_url, SECOND, migrate=True) == len(MIGRATIONS) + 1


@pytest.mark.parametrize("migrate", [False, True])
def test_a_newer_schema_is_refused(postgres_url, migrate):
    opened(postgres_url, SECOND)
    known = len(MIGRATIONS)
    with pytest.raises(
        SchemaTooNew, match=rf"newer Lockstitch \(schema {known + 1}, this one knows {known}\)"
    ):
        opened(postgres_url, migrate=migrate)


def test_a_database_in_another_encoding_is_refused(postgres_server):
    postgres_server.execute("CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    with pytest.raises(CannotOpen, match="encoding LATIN1"):
        opened(postgres_server.url("latin"))
    postgres_server.execute("DROP DATABASE latin")


def test_tables_of_somebody_else_are_left_alone(postgres_url):
    async def make_their_own():
        connection = await asyncpg.connect(postgres_url)
        await connection.execute("CREATE SCHEMA lockstitch; CREATE TABLE lockstitch.records ()")
        await connection.close()

    asyncio.run(make_their_own())
    with pytest.raises(CannotOpen, match="not ours"):
        opened(postgres_url)
