"""Appends, written in groups: all that came while one group was being written is the next group.

A group is one statement, so one round trip and one sync for all of it. Each append in it succeeds
or fails alone, except that a lost connection fails the whole group. An append whose caller is
cancelled is written all the same."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from itertools import chain

from lockstitch.core.records import Record
from lockstitch.store.contract import Claim
from lockstitch.store.errors import OutOfStep
from lockstitch.store.postgres.claims import why_refused
from lockstitch.store.postgres.errors import FAILURES, fails_alone, writing_failed
from lockstitch.store.postgres.pool import Connection, Pool
from lockstitch.store.postgres.queries import QUERIES
from lockstitch.store.postgres.rows import Columns, numbers
from lockstitch.store.postgres.text import key

GROUP_APPENDS = 512
"""The most appends in a group. More gain nothing, and the first would wait for the last."""

GROUP_BYTES = 4 * 1024 * 1024
"""A group that has reached this takes no more appends: all of it is in memory several times."""

WRITE_SECONDS = 60.0
"""A server that has not answered by then has lost the write, as far as we know."""


_RECORDS = QUERIES["append"] + QUERIES["append_outcome"]
_AND_LARGE_BODIES = QUERIES["append"] + QUERIES["append_large_bodies"] + QUERIES["append_outcome"]


class Append:
    """What somebody waits for."""

    __slots__ = ("after", "claim", "done", "length", "records", "size")

    def __init__(
        self,
        claim: Claim,
        after: int,
        records: Sequence[Record],
        size: int,
        done: asyncio.Future[None],
    ) -> None:
        self.claim = claim
        self.after = after
        self.records = records
        self.length = after + len(records)
        self.done = done
        self.size = size

    def settle(self, error: Exception | None = None) -> None:
        if self.done.done():
            return  # whoever waited was cancelled
        if error is None:
            self.done.set_result(None)
        else:
            self.done.set_exception(error)

    def goes_on_from(self, other: Append) -> bool:
        return self.after == other.length and self.claim.token == other.claim.token


class Writer:
    """Where appends go, in the order they come. One group at a time: two at once are smaller and
    cost more work in all. They gained on two idle cores, and lost on two busy ones.

    Its task lives while there is something to write."""

    def __init__(self, pool: Pool, url: str) -> None:
        self._pool = pool
        self._url = url
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[Append] = deque()
        self._task: asyncio.Task[None] | None = None

    def append(self, claim: Claim, after: int, records: Sequence[Record]) -> asyncio.Future[None]:
        """Done when it is on disk."""
        seq = after
        size = 0
        for record in records:
            seq += 1
            size += len(record.payload) + len(record.body or b"")
            if record.seq != seq:
                raise OutOfStep(
                    f"Record {seq} of conversation {claim.conversation!r} in {self._url} is"
                    f" numbered {record.seq} by its writer. Nothing was written. Number what is"
                    f" appended behind {after} from {after + 1} on."
                )
        done = self._loop.create_future()
        self._waiting.append(Append(claim, after, records, size, done))
        if self._task is None:
            self._task = self._loop.create_task(self._work(), name="lockstitch-append")
        return done

    async def finish(self) -> None:
        """Wait until all that was asked for is done."""
        while self._task is not None:
            await asyncio.wait([self._task])

    async def _work(self) -> None:
        try:
            while self._waiting:
                await self._write_groups()
        finally:
            self._task = None

    async def _write_groups(self) -> None:
        """Write while there is something to write, or until one fails. Whatever happens, every
        append that was taken is settled, or waits again."""
        group: list[list[Append]] = []
        begun = False
        try:
            async with self._pool.acquire() as connection:
                while self._waiting:
                    group, begun = self._next_group(), True
                    for refused in await _write(connection, group):
                        await self._refuse(connection, refused)
                    # Whoever was woken may have more: it joins, and nobody connects anew.
                    await asyncio.sleep(0)
        except Exception as error:
            group = group or self._next_group()
            if begun and sum(map(len, group)) > 1 and fails_alone(error):
                await self._write_singly(group)
            else:
                self._fail(group, error, begun=begun)

    async def _write_singly(self, group: Sequence[Sequence[Append]]) -> None:
        """One of them cannot be written, and nothing of the group was. Find out which."""
        for append in chain.from_iterable(group):
            try:
                async with self._pool.acquire() as connection:
                    for refused in await _write(connection, [[append]]):
                        await self._refuse(connection, refused)
            except Exception as error:
                self._fail([[append]], error, begun=True)

    def _next_group(self) -> list[list[Append]]:
        """What waits, by conversation; each append there goes on from the one before it."""
        group: dict[str, list[Append]] = {}
        waiting = self._waiting
        size = 0
        for _ in range(min(len(waiting), GROUP_APPENDS)):
            append = waiting[0]
            before = group.get(append.claim.conversation)
            if before is None:
                group[append.claim.conversation] = [append]
            elif append.goes_on_from(before[-1]):
                before.append(append)
            else:
                break  # what is wrong with it shows when it is the first of its conversation
            waiting.popleft()
            size += append.size
            if size >= GROUP_BYTES:
                break
        # Groups of two processes that want the same rows should come to them in the same order.
        # Where the server's plan takes another, it may end one of them: see `_write_singly`.
        return [group[conversation] for conversation in sorted(group)]

    async def _refuse(self, connection: Connection, appends: Sequence[Append]) -> None:
        """Tell the first why; those behind it are judged again, on their own."""
        first, *rest = appends
        try:
            why = await why_refused(
                connection, self._url, first.claim, first.after, len(first.records)
            )
        except FAILURES as error:
            why = writing_failed(self._url, error, begun=False)
        first.settle(why)
        self._waiting.extendleft(reversed(rest))

    def _fail(self, group: Sequence[Sequence[Append]], error: Exception, *, begun: bool) -> None:
        for appends in group:
            for append in appends:
                told = error
                if isinstance(error, FAILURES):
                    told = writing_failed(self._url, error, begun=begun)
                    told.__cause__ = error
                append.settle(told)


async def _write(
    connection: Connection, group: Sequence[Sequence[Append]]
) -> Sequence[Sequence[Append]]:
    """Write a group, and settle what was written; what the server refused."""
    firsts = [appends[0] for appends in group]
    rows = [
        (place, record)
        for place, appends in enumerate(group, 1)
        for append in appends
        for record in append.records
    ]
    columns = Columns([place for place, _ in rows], [record for _, record in rows])
    arguments = [
        [key(first.claim.conversation) for first in firsts],
        numbers([first.claim.token for first in firsts]),
        numbers([first.after for first in firsts]),
        numbers([appends[-1].length for appends in group]),
        *columns.of_records(),
    ]
    statement = _RECORDS
    if columns.large_bodies[0]:
        arguments += columns.large_bodies
        statement = _AND_LARGE_BODIES
    written = await connection.fetchval(statement, *arguments, timeout=WRITE_SECONDS)
    places = range(1, len(group) + 1) if len(written) == len(group) else frozenset(written)
    refused: list[Sequence[Append]] = []
    for place, appends in enumerate(group, 1):
        if place in places:
            for append in appends:
                append.settle()
        else:
            refused.append(appends)
    return refused
