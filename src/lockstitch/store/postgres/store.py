"""A store in a PostgreSQL database: the door. Many processes can share it.

Appends and beginnings go to `writer` in groups; claims are in `claims`, the tables and their
migrations in `schema`, every statement in `sql`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Self

from lockstitch.core.records import Name, Record
from lockstitch.store.contract import Claim, Found, Stats, Summary
from lockstitch.store.errors import ConversationBusy, Damaged, OutOfStep, StoreError
from lockstitch.store.postgres import claims
from lockstitch.store.postgres.errors import (
    FAILURES,
    opening_failed,
    reading_failed,
    writing_failed,
)
from lockstitch.store.postgres.opening import APPENDING, open_pool
from lockstitch.store.postgres.pool import Connection, Pool
from lockstitch.store.postgres.queries import MIGRATIONS, QUERIES
from lockstitch.store.postgres.rows import Columns, name_key, record_of
from lockstitch.store.postgres.schema import check_schema
from lockstitch.store.postgres.text import key, next_after, original
from lockstitch.store.postgres.writer import Writer
from lockstitch.store.urls import public_url

CONNECTIONS = 8
"""The most connections for everything but groups of writes, which have one of their own: they must
not wait behind readers."""

CLAIM_POLL_SECONDS = 0.05
"""How often a conversation that is held is looked at again."""

PAGE_RECORDS = 500
PAGE_BYTES = 4 * 1024 * 1024
"""What a reader has in memory at once: so many records, or bytes, or one record of any size."""

PAGE_CONVERSATIONS = 1_000
"""How many conversations of a listing are asked for at once."""

FORGET_CONVERSATIONS = 200
"""How many conversations are deleted in one transaction: whoever writes to one waits for it."""


class PostgresStore:
    """Conversations in a database. `PostgresStore.open` makes one."""

    def __init__(self, url: str, pool: Pool, appending: Pool) -> None:
        self._url = url
        self._pool = pool
        self._appending = appending
        self._writer = Writer(appending, url)
        self._taking_back: set[asyncio.Task[None]] = set()
        self._closed = False

    @classmethod
    async def open(
        cls, url: str, *, migrate: bool = False, migrations: Sequence[str] = MIGRATIONS
    ) -> Self:
        """Open a database; the tables are made where there are none.

        An older schema is refused unless ``migrate``. Raises `CannotOpen`, `SchemaTooOld` or
        `SchemaTooNew`."""
        shown = public_url(url)
        pool = await open_pool(url, connections=CONNECTIONS)
        try:
            async with pool.acquire() as connection:
                await check_schema(connection, shown, migrations, migrate=migrate)
            return cls(shown, pool, await open_pool(url, connections=1, settings=APPENDING))
        except FAILURES as error:
            pool.terminate()
            raise opening_failed(shown, error) from error
        except BaseException:
            pool.terminate()
            raise

    @property
    def url(self) -> str:
        return self._url

    # Claims

    async def claim(
        self, conversation: str, *, owner: str, seconds: float, wait: float = 0
    ) -> Claim:
        loop = asyncio.get_running_loop()
        patience_ends = loop.time() + wait
        while True:
            attempt = asyncio.create_task(self._claim(conversation, owner, seconds))
            try:
                return await asyncio.shield(attempt)
            except ConversationBusy:
                patience = patience_ends - loop.time()
                if patience <= 0:
                    raise
            except asyncio.CancelledError:
                self._take_back(attempt)
                raise
            await asyncio.sleep(min(CLAIM_POLL_SECONDS, patience))

    async def _claim(self, conversation: str, owner: str, seconds: float) -> Claim:
        async with self._writing() as connection:
            return await claims.claim(
                connection, self._url, conversation, owner=owner, seconds=seconds
            )

    async def begin(
        self,
        conversation: str,
        records: Sequence[Record],
        *,
        owner: str,
        seconds: float,
        release: bool = False,
    ) -> Claim | None:
        self._check_open()
        attempt = self._writer.begin(
            conversation, records, owner=owner, seconds=seconds, release=release
        )
        try:
            return await asyncio.shield(attempt)
        except asyncio.CancelledError:
            self._take_back(attempt)
            raise

    def _take_back(self, attempt: asyncio.Future[Claim] | asyncio.Future[Claim | None]) -> None:
        """A claim that nobody heard of would keep everybody out until it ran out."""

        async def take_back() -> None:
            await asyncio.wait([attempt])
            if attempt.cancelled() or attempt.exception() is not None:
                return
            claim = attempt.result()
            if claim is not None:
                async with self._writing(closing=True) as connection:
                    await claims.release(connection, claim)

        task = asyncio.create_task(take_back())
        self._taking_back.add(task)
        task.add_done_callback(self._taking_back.discard)

    async def renew(self, claim: Claim, *, seconds: float) -> None:
        async with self._writing() as connection:
            await claims.renew(connection, self._url, claim, seconds=seconds)

    async def release(self, claim: Claim) -> None:
        async with self._writing() as connection:
            await claims.release(connection, claim)

    # Records

    async def append(
        self, claim: Claim, after: int, records: Sequence[Record], *, release: bool = False
    ) -> None:
        self._check_open()
        await self._writer.append(claim, after, records, release=release)

    async def replace(self, conversation: str, records: Sequence[Record]) -> None:
        columns = Columns([0] * len(records), records)
        seqs = columns.seqs
        async with self._writing() as connection, connection.transaction():
            row = await connection.fetchrow(QUERIES["lock_conversation"], key(conversation))
            length = row["length"] if row is not None else 0
            missing = [seq for seq in seqs if not 1 <= seq <= length]
            if row is None or missing:
                raise OutOfStep(
                    f"Conversation {conversation!r} in {self._url} has {length} records: there is"
                    f" none to replace at {missing[:1]}. Nothing was written."
                )
            before = await connection.fetch(QUERIES["digests"], row["id"], seqs)
            await connection.execute(QUERIES["keep_bodies"], row["id"], *columns.large_bodies[1:])
            await connection.execute(
                QUERIES["replace_records"],
                *(row["id"], seqs, columns.payloads, columns.bodies, columns.digests),
            )
            await connection.execute(
                QUERIES["drop_bodies"], row["id"], [old["digest"] for old in before]
            )

    async def read(
        self, conversation: str, *, after: int = 0, limit: int | None = None
    ) -> AsyncIterator[Record]:
        """As of the moment it begins; it ends early if the conversation is deleted meanwhile."""
        async with self._reading() as connection:
            extent = await connection.fetchrow(QUERIES["extent"], key(conversation))
        if extent is None:
            return
        end = extent["length"] if limit is None else min(extent["length"], after + limit)
        while after < end:
            async with self._reading() as connection:
                page = await connection.fetch(
                    QUERIES["records_page"],
                    *(extent["id"], after, end, PAGE_RECORDS, PAGE_BYTES),
                )
            if not page:
                return
            for row in page:
                if row["body_is_lost"]:
                    raise Damaged(
                        f"Record {row['seq']} of conversation {conversation!r} in {self._url} has"
                        " lost its body. Restore the database from a backup."
                    )
                yield record_of(row)
            after = page[-1]["seq"]

    async def find(self, name: Name) -> list[Found]:
        async with self._reading() as connection:
            rows = await connection.fetch(QUERIES["find"], name_key(name))
        return [Found(original(row["name"]), row["seq"]) for row in rows]

    async def conversations(self) -> AsyncIterator[Summary]:
        start = ""
        while True:
            async with self._reading() as connection:
                page = await connection.fetch(QUERIES["summaries_page"], start, PAGE_CONVERSATIONS)
            for row in page:
                yield Summary(original(row["name"]), row["length"], row["created"], row["changed"])
            if len(page) < PAGE_CONVERSATIONS:
                return
            start = next_after(page[-1]["name"])

    async def stats(self) -> Stats:
        async with self._reading() as connection:
            row = await connection.fetchrow(QUERIES["stats"])
        assert row is not None  # it selects from nothing
        return Stats(**dict(row))

    # Forgetting

    async def delete(self, conversation: str) -> bool:
        async with self._writing() as connection, connection.transaction():
            row = await connection.fetchrow(QUERIES["forget"], key(conversation))
            if row is None:
                return False
            await _forget_contents(connection, [row["id"]])
            return True

    async def delete_unchanged_since(self, moment: float) -> int:
        """In small transactions: writers need not wait for all of it."""
        deleted = 0
        while True:
            async with self._writing() as connection, connection.transaction():
                rows = await connection.fetch(
                    QUERIES["forget_unchanged"], float(moment), FORGET_CONVERSATIONS
                )
                if not rows:
                    return deleted
                await _forget_contents(connection, [row["id"] for row in rows])
            deleted += len(rows)

    async def vacuum(self) -> None:
        """Makes the space free for what is written next; writers need not wait for it."""
        async with self._writing() as connection:
            await connection.execute(QUERIES["vacuum"])

    # The end

    async def close(self) -> None:
        self._closed = True
        await self._writer.finish()
        await asyncio.gather(*self._taking_back, return_exceptions=True)
        for pool in (self._appending, self._pool):
            await pool.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<PostgresStore {self._url}{' closed' if self._closed else ''}>"

    @asynccontextmanager
    async def _reading(self) -> AsyncIterator[Connection]:
        self._check_open()
        try:
            async with self._pool.acquire() as connection:
                yield connection
        except FAILURES as error:
            raise reading_failed(self._url, error) from error

    @asynccontextmanager
    async def _writing(self, *, closing: bool = False) -> AsyncIterator[Connection]:
        if not closing:
            self._check_open()
        begun = False
        try:
            async with self._pool.acquire() as connection:
                begun = True
                yield connection
        except FAILURES as error:
            raise writing_failed(self._url, error, begun=begun) from error

    def _check_open(self) -> None:
        if self._closed:
            raise StoreError(f"The store {self._url} is closed. Open it again to use it.")


async def _forget_contents(connection: Connection, ids: Sequence[int]) -> None:
    """What hangs on conversations that are gone. A statement of its own sees what was written
    while theirs waited for the lock."""
    for query in ("forget_records", "forget_bodies"):
        await connection.execute(QUERIES[query], ids)
