"""The bare loops that our stores are measured against: group commit, and nothing around it."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Self

import apsw
import asyncpg

TABLE = """(
    conversation {int} NOT NULL, seq {int} NOT NULL, call {text} NOT NULL, body {bytes},
    PRIMARY KEY (conversation, seq)
)"""

Row = tuple[int, int, str, bytes]
Insert = Callable[[int, int, str, bytes], Awaitable[None]]


def _open(path: Path) -> apsw.Connection:
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL")
    connection.execute(
        "CREATE TABLE item " + TABLE.format(int="INTEGER", text="TEXT", bytes="BLOB")
    )
    connection.execute("CREATE INDEX item_by_call ON item (call)")
    return connection


class BareSqlite:
    """One owner thread that takes all that waits and commits it at once."""

    def __init__(self, path: Path) -> None:
        self._connection = _open(path)
        self._queue: queue.SimpleQueue[tuple[Row, asyncio.Future[None]] | None] = (
            queue.SimpleQueue()
        )
        self._thread = threading.Thread(target=self._work)
        self._thread.start()

    async def insert(self, *row: int | str | bytes) -> None:
        future = asyncio.get_running_loop().create_future()
        self._queue.put((row, future))  # type: ignore[arg-type]
        await future

    def close(self) -> None:
        self._queue.put(None)
        self._thread.join()

    def _work(self) -> None:
        while (first := self._queue.get()) is not None:
            group = [first]
            while not self._queue.empty() and (more := self._queue.get()) is not None:
                group.append(more)
            with self._connection:
                self._connection.executemany(
                    "INSERT INTO item VALUES (?, ?, ?, ?)", [row for row, _ in group]
                )
            group[0][1].get_loop().call_soon_threadsafe(_done, [future for _, future in group])


def _done(futures: list[asyncio.Future[None]]) -> None:
    for future in futures:
        future.set_result(None)


class SingleSqlite:
    """A transaction for each item."""

    def __init__(self, path: Path) -> None:
        self._connection = _open(path)

    async def insert(self, *row: int | str | bytes) -> None:
        self._connection.execute("INSERT INTO item VALUES (?, ?, ?, ?)", row)
        await asyncio.sleep(0)


class BarePostgres:
    """One connection that takes all that waits and inserts it with one statement."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._waiting: list[tuple[Row, asyncio.Future[None]]] = []
        self._wake = asyncio.Event()

    async def __aenter__(self) -> Self:
        self._connection = await asyncpg.connect(self._url)
        columns = TABLE.format(int="bigint", text="text", bytes="bytea")
        await self._connection.execute(f"CREATE TABLE item {columns}")
        await self._connection.execute("CREATE INDEX item_by_call ON item (call)")
        self._task = asyncio.create_task(self._work())
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._task.cancel()
        await self._connection.close()

    async def insert(self, *row: int | str | bytes) -> None:
        future = asyncio.get_running_loop().create_future()
        self._waiting.append((row, future))  # type: ignore[arg-type]
        self._wake.set()
        await future

    async def _work(self) -> None:
        statement = await self._connection.prepare(
            "INSERT INTO item"
            " SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::bytea[])"
        )
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._waiting:
                group, self._waiting = self._waiting, []
                columns = zip(*(row for row, _ in group), strict=True)
                await statement.fetch(*map(list, columns))
                _done([future for _, future in group])


@asynccontextmanager
async def single_postgres(url: str) -> AsyncIterator[Insert]:
    """A transaction for each item, on a pool of 16."""
    async with asyncpg.create_pool(url, min_size=16, max_size=16) as pool:
        columns = TABLE.format(int="bigint", text="text", bytes="bytea")
        await pool.execute(f"CREATE TABLE single {columns}")
        await pool.execute("CREATE INDEX single_by_call ON single (call)")

        async def insert(*row: int | str | bytes) -> None:
            await pool.execute("INSERT INTO single VALUES ($1, $2, $3, $4)", *row)

        yield insert
