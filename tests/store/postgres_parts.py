"""What the tests of the PostgreSQL store share: records to write, and a look behind its back."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import asyncpg

from lockstitch.core.records import Name, Naming, Record
from lockstitch.store.bodies import LARGE_BODY_BYTES
from lockstitch.store.postgres import PostgresStore

LONG_SECONDS = 600.0
"""A claim that outlasts the test."""


def record(seq: int, *, payload: bytes | None = None, body: bytes | None = None) -> Record:
    return Record(seq, payload if payload is not None else b'{"seq":%d}' % seq, body)


def full_record(seq: int, mark: str) -> Record:
    """One with everything: two names, and a large body that every third one shares."""
    names = (Name(Naming.CALL, f"call_{mark}_{seq}"), Name(Naming.ITEM, f"item_{mark}_{seq}"))
    body = b"%d" % (seq % 3) * LARGE_BODY_BYTES
    return Record(seq, f'{{"mark":"{mark}","seq":{seq}}}'.encode(), body, names, float(seq))


async def all_of(store: PostgresStore, conversation: str) -> list[Record]:
    return [one async for one in store.read(conversation)]


def with_store(url: str, work: Callable[[PostgresStore], Awaitable[Any]]) -> Any:
    """Run ``work`` on a store that is open."""

    async def run() -> Any:
        async with await PostgresStore.open(url) as store:
            return await work(store)

    return asyncio.run(run())


async def behind_its_back(store: PostgresStore, statement: str) -> Any:
    """Run one statement on the database of a store; the first value, if any."""
    async with store._pool.acquire() as connection:
        return await connection.fetchval(statement)


@asynccontextmanager
async def locked(url: str, conversation: str):
    """Somebody holds the row of a conversation: whoever writes to it waits."""
    connection = await asyncpg.connect(url)
    try:
        async with connection.transaction():
            await connection.execute(
                "SELECT FROM lockstitch.conversations WHERE name = $1 FOR UPDATE", conversation
            )
            yield connection
    finally:
        await connection.close()


async def waiting_backend(connection: asyncpg.Connection) -> int:
    """The process of the server that waits for a lock, as soon as one does."""
    async with asyncio.timeout(20):
        while True:
            # A transaction sees the same activity again and again unless told otherwise.
            await connection.execute("SELECT pg_stat_clear_snapshot()")
            pid = await connection.fetchval(
                "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
                " AND application_name = 'lockstitch' AND datname = current_database()"
            )
            if pid is not None:
                return pid
