"""A store in one SQLite file: the door. An append is synced to disk when it returns.

One thread writes (`writer`), others read (`reading`), one keeps the write-ahead log
short (`checkpoints`); the event loop never waits for the disk. Several processes can share
a file, slowly; where many write, use PostgreSQL."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

import apsw

from lockstitch.core.records import Name, Record
from lockstitch.store.contract import Claim, Found, Stats, Summary
from lockstitch.store.errors import ConversationBusy, StoreError
from lockstitch.store.sqlite.checkpoints import Checkpoints
from lockstitch.store.sqlite.opening import let_go, opened_for_writing, url_of
from lockstitch.store.sqlite.reading import (
    Extent,
    Readers,
    extent,
    found,
    old_page,
    records_page,
    stats,
    summaries_page,
)
from lockstitch.store.sqlite.writer import Writer
from lockstitch.store.sqlite.writing import Writing

CLAIM_POLL_SECONDS = 0.05
"""How often a conversation that is held is looked at again: another process cannot wake us."""

_Result = TypeVar("_Result")


class SqliteStore:
    """Conversations in one file. `SqliteStore.open` makes one."""

    def __init__(
        self,
        path: Path,
        now: Callable[[], float],
        sleep: Callable[[float], Awaitable[object]],
    ) -> None:
        """Blocks. A store that raised has let go of the file."""
        self._path = path
        self._url = url_of(path)
        self._sleep = sleep
        self._closed = False
        self._closing = threading.Lock()
        # What was opened is let go of in the opposite order: the writer's connection comes last
        # and leaves no log behind.
        with ExitStack() as opened:
            connection = opened_for_writing(path)
            opened.callback(let_go, connection)
            opened.callback(Checkpoints(path, connection).stop)
            self._writer = Writer(Writing(connection, self._url, now), self._url)
            opened.callback(self._writer.stop)
            self._readers = Readers(path)
            opened.callback(self._readers.stop)
            self._opened = opened.pop_all()

    @classmethod
    async def open(
        cls,
        path: Path | str,
        *,
        now: Callable[[], float] = time.time,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> Self:
        """Open a file, or begin one. An older schema is migrated.

        ``now`` gives the time in seconds since 1970; ``sleep`` passes while a claim is waited for.
        Raises `CannotOpen`, `SchemaTooNew` or `Damaged`."""
        loop = asyncio.get_running_loop()
        opening = loop.run_in_executor(None, cls, Path(path), now, sleep)
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            opening.add_done_callback(cls._abandon)
            raise

    @classmethod
    def _abandon(cls, opening: asyncio.Future[Self]) -> None:
        """Close a store that nobody waits for any more."""
        if not opening.cancelled() and opening.exception() is None:
            threading.Thread(target=opening.result()._close).start()

    @property
    def url(self) -> str:
        return self._url

    # Claims

    async def claim(
        self, conversation: str, *, owner: str, seconds: float, wait: float = 0
    ) -> Claim:
        while True:
            self._check_open()
            try:
                # A claim that nobody heard of would keep everybody out until it ran out.
                return await self._writer.do_or_undo(
                    lambda writing: writing.claim(conversation, owner, seconds),
                    undo=Writing.release,
                )
            except ConversationBusy:
                if wait <= 0:
                    raise
            pause = min(CLAIM_POLL_SECONDS, wait)
            wait -= pause
            await self._sleep(pause)

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

        def undo(writing: Writing, claim: Claim | None) -> None:
            if claim is not None:
                writing.release(claim)

        return await self._writer.do_or_undo(
            lambda writing: writing.begin_conversation(
                conversation, records, owner, seconds, release
            ),
            undo,
        )

    async def renew(self, claim: Claim, *, seconds: float) -> None:
        await self._do(lambda writing: writing.renew(claim, seconds))

    async def release(self, claim: Claim) -> None:
        await self._do(lambda writing: writing.release(claim))

    # Records

    async def append(
        self, claim: Claim, after: int, records: Sequence[Record], *, release: bool = False
    ) -> None:
        await self._do(lambda writing: writing.append(claim, after, records, release))

    async def replace(self, conversation: str, records: Sequence[Record]) -> None:
        await self._do(lambda writing: writing.replace(conversation, records))

    async def read(
        self, conversation: str, *, after: int = 0, limit: int | None = None
    ) -> AsyncIterator[Record]:
        """As of the moment it begins; it ends early if the conversation is deleted meanwhile."""
        kept = await self._ask(partial(extent, conversation=conversation))
        if kept is None:
            return
        if limit is not None:
            kept = Extent(kept.id, min(kept.length, after + limit))
        while after < kept.length:
            page = await self._ask(partial(records_page, kept=kept, after=after))
            if not page:
                return
            for record in page:
                yield record
            after = page[-1].seq

    async def find(self, name: Name) -> list[Found]:
        return await self._ask(partial(found, name=name))

    async def conversations(self) -> AsyncIterator[Summary]:
        start = ""
        while page := await self._ask(partial(summaries_page, start=start)):
            for summary in page:
                yield summary
            start = _next_name(page[-1].conversation)

    async def stats(self) -> Stats:
        return await self._ask(partial(stats, path=self._path))

    # Forgetting

    async def delete(self, conversation: str) -> bool:
        return await self._do(lambda writing: writing.delete(conversation))

    async def delete_unchanged_since(self, moment: float) -> int:
        """In small transactions: writers need not wait for all of it."""
        deleted = 0
        start = ""
        while page := await self._ask(partial(old_page, start=start, moment=moment)):
            deleted += await self._do(
                partial(Writing.delete_unchanged, conversations=page, moment=moment)
            )
            start = _next_name(page[-1])
        return deleted

    async def vacuum(self) -> None:
        """Writes the file anew: it needs as much space again, and writers wait for it."""
        await self._do(Writing.vacuum, alone=True)

    # The end

    async def close(self) -> None:
        self._closed = True
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        with self._closing:  # who closes a second time waits for the first
            self._opened.close()

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
        return f"<SqliteStore {self._url}{' closed' if self._closed else ''}>"

    def _do(self, work: Callable[[Writing], _Result], *, alone: bool = False) -> Awaitable[_Result]:
        self._check_open()
        return self._writer.do(work, alone=alone)

    def _ask(self, question: Callable[[apsw.Connection], _Result]) -> Awaitable[_Result]:
        self._check_open()
        return self._readers.ask(question)

    def _check_open(self) -> None:
        if self._closed:
            raise StoreError(f"The store {self._url} is closed. Open it again to use it.")


def _next_name(name: str) -> str:
    """The first name behind it that there can be, in the order of their bytes."""
    return name + "\0"
