"""What is read from a SQLite store: on connections that cannot write, on threads of their own.

Each reading sees everything that was committed before it began. Long ones go in pages, so that
none of them keeps the write-ahead log from being copied away."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TypeVar

import apsw
from msgspec import Struct

from lockstitch.core.records import Name, Record
from lockstitch.store.contract import Found, Stats, Summary
from lockstitch.store.sqlite.errors import TOLD, reading_failed
from lockstitch.store.sqlite.opening import SCHEMA, connected, let_go, url_of
from lockstitch.store.sqlite.queries import QUERIES
from lockstitch.store.sqlite.writing import names_of

READERS = 2
"""Connections that read. One long reading then does not hold all others up."""

PAGE_RECORDS = 256
PAGE_BYTES = 1_048_576
"""The most in one page of a reading: it is held in memory whole, and its reader holds a thread."""

OLD_AT_ONCE = 64
"""How many conversations are forgotten in one transaction."""

_Result = TypeVar("_Result")


class Readers:
    """The connections that read, and their threads."""

    def __init__(self, path: Path) -> None:
        self._url = url_of(path)
        self._idle: SimpleQueue[apsw.Connection] = SimpleQueue()
        self._threads = ThreadPoolExecutor(READERS, thread_name_prefix="lockstitch-read")
        try:
            for _ in range(READERS):
                self._idle.put(connected(path, apsw.SQLITE_OPEN_READONLY))
        except BaseException:
            self.stop()
            raise

    async def ask(self, read: Callable[[apsw.Connection], _Result]) -> _Result:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, self._ask, read)

    def stop(self) -> None:
        """Finish what is being read, then let go. Blocks until then."""
        self._threads.shutdown()
        while not self._idle.empty():
            let_go(self._idle.get())

    def _ask(self, read: Callable[[apsw.Connection], _Result]) -> _Result:
        connection = self._idle.get()
        try:
            return read(connection)
        except TOLD as error:
            raise reading_failed(self._url, error) from error
        finally:
            self._idle.put(connection)


class Extent(Struct, frozen=True):
    """A conversation as a reader found it."""

    id: int
    length: int


def extent(connection: apsw.Connection, conversation: str) -> Extent | None:
    row: Any = connection.execute(QUERIES["conversation"], (conversation,)).fetchone()
    if row is None:
        return None
    return Extent(row[0], connection.execute(QUERIES["length"], row[:1]).get)


def records_page(connection: apsw.Connection, kept: Extent, after: int) -> list[Record]:
    """The next records; none where the conversation was deleted meanwhile."""
    page: list[Record] = []
    size = 0
    rows: Any = connection.execute(QUERIES["read"], (kept.id, after, kept.length))
    for seq, payload, body, large, names, at in rows:
        # A file can be damaged in ways that SQLite does not see; no record may be lost in silence.
        if seq != after + 1 + len(page):
            break
        if body is None and large is not None:
            raise apsw.CorruptError(f"record {seq} has lost its body")
        page.append(Record(seq, payload, body, names_of(names), at))
        size += len(payload) + len(body or b"")
        if len(page) == PAGE_RECORDS or size >= PAGE_BYTES:
            break
    rows.close()
    if not page and connection.execute(QUERIES["is_there"], (kept.id,)).get:
        raise apsw.CorruptError(f"record {after + 1} is missing")
    return page


def summaries_page(connection: apsw.Connection, start: str) -> list[Summary]:
    """The next conversations, by name."""
    rows: Any = connection.execute(QUERIES["summaries"], (start, PAGE_RECORDS))
    return [Summary(*row) for row in rows]


def old_page(connection: apsw.Connection, start: str, moment: float) -> list[str]:
    """The next conversations, by name, that were not written to since."""
    rows: Any = connection.execute(QUERIES["old_conversations"], (start, moment, OLD_AT_ONCE))
    return [name for (name,) in rows]


def found(connection: apsw.Connection, name: Name) -> list[Found]:
    rows: Any = connection.execute(QUERIES["find"], (name.id, name.naming.value))
    return [Found(*row) for row in rows]


def stats(connection: apsw.Connection, path: Path) -> Stats:
    counts: Any = connection.execute(QUERIES["counts"]).fetchone()
    conversations, records, bodies = counts
    log = Path(f"{path}-wal")  # a reader is open: it is there
    size = path.stat().st_size + log.stat().st_size
    return Stats(conversations, records, bodies, size, SCHEMA)
