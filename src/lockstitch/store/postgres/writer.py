"""Appends and beginnings, written in groups: all that came while one group was being written is the
next group.

A group is one statement, so one round trip and one sync for all of it. Each write in it succeeds
or fails alone, except that a lost connection fails the whole group. One whose caller is cancelled
is written all the same."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from itertools import chain
from typing import Any, TypeAlias

from msgspec import Struct

from lockstitch.core.records import Record
from lockstitch.store.contract import Claim
from lockstitch.store.errors import OutOfStep
from lockstitch.store.postgres.claims import why_refused
from lockstitch.store.postgres.errors import FAILURES, fails_alone, writing_failed
from lockstitch.store.postgres.pool import Connection, Pool
from lockstitch.store.postgres.queries import QUERIES
from lockstitch.store.postgres.rows import Columns, numbers, truths
from lockstitch.store.postgres.text import kept, key

GROUP_WRITES = 512
"""The most writes in a group. More gain nothing, and the first would wait for the last."""

GROUP_BYTES = 4 * 1024 * 1024
"""A group that has reached this takes no more writes: all of it is in memory several times."""

WRITE_SECONDS = 60.0
"""A server that has not answered by then has lost the write, as far as we know."""


def _statement(*parts: str) -> str:
    return "".join(QUERIES[f"write_{part}"] for part in parts)


_APPENDS = _statement("appends", "onward", "records", "outcome")
_AND_LARGE_BODIES = _statement("appends", "onward", "records", "large_bodies", "outcome")
_AND_BEGINNINGS = _statement("appends", "begun", "records", "large_bodies", "outcome")


class Append(Struct, eq=False):
    """Records behind those of a conversation, and who waits for them."""

    conversation: str
    records: Sequence[Record]
    release: bool
    size: int
    claim: Claim
    after: int
    done: asyncio.Future[None]

    @property
    def length(self) -> int:
        return self.after + len(self.records)

    def goes_on_from(self, other: Write) -> bool:
        return (
            isinstance(other, Append)
            and self.after == other.length
            and self.claim.token == other.claim.token
            and not other.release
        )

    def written(self, token: int) -> None:
        if not self.done.done():  # whoever waited was cancelled
            self.done.set_result(None)


class Beginning(Struct, eq=False):
    """A new conversation with its first records, and who waits for it."""

    conversation: str
    records: Sequence[Record]
    release: bool
    size: int
    owner: str
    seconds: float
    done: asyncio.Future[Claim | None]

    def goes_on_from(self, other: Write) -> bool:
        return False

    def written(self, token: int) -> None:
        if not self.done.done():
            self.done.set_result(Claim(self.conversation, self.owner, token, 0))

    def refuse(self) -> None:
        """There is one of that name."""
        if not self.done.done():
            self.done.set_result(None)


Write: TypeAlias = Append | Beginning


class Writer:
    """Where writes go, in the order they come. One group at a time: two at once are smaller and
    cost more work in all. They gained on two idle cores, and lost on two busy ones.

    Its task lives while there is something to write."""

    def __init__(self, pool: Pool, url: str) -> None:
        self._pool = pool
        self._url = url
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[Write] = deque()
        self._task: asyncio.Task[None] | None = None

    def append(
        self, claim: Claim, after: int, records: Sequence[Record], *, release: bool
    ) -> asyncio.Future[None]:
        """Done when it is on disk."""
        size = self._measured(claim.conversation, after, records)
        done: asyncio.Future[None] = self._loop.create_future()
        self._ask(Append(claim.conversation, records, release, size, claim, after, done))
        return done

    def begin(
        self,
        conversation: str,
        records: Sequence[Record],
        *,
        owner: str,
        seconds: float,
        release: bool,
    ) -> asyncio.Future[Claim | None]:
        """The claim, when it is on disk; None if there is one of that name."""
        size = self._measured(conversation, 0, records)
        done: asyncio.Future[Claim | None] = self._loop.create_future()
        self._ask(Beginning(conversation, records, release, size, owner, seconds, done))
        return done

    def _measured(self, conversation: str, after: int, records: Sequence[Record]) -> int:
        """The size of records that are numbered as they should be."""
        seq = after
        size = 0
        for record in records:
            seq += 1
            size += len(record.payload) + len(record.body or b"")
            if record.seq != seq:
                raise OutOfStep(
                    f"Record {seq} of conversation {conversation!r} in {self._url} is numbered"
                    f" {record.seq} by its writer. Nothing was written. Number what is appended"
                    f" behind {after} from {after + 1} on."
                )
        return size

    def _ask(self, write: Write) -> None:
        self._waiting.append(write)
        if self._task is None:
            self._task = self._loop.create_task(self._work(), name="lockstitch-append")

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
        write that was taken is settled, or waits again."""
        group: list[list[Write]] = []
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

    async def _write_singly(self, group: Sequence[Sequence[Write]]) -> None:
        """One of them cannot be written, and nothing of the group was. Find out which."""
        for write in chain.from_iterable(group):
            try:
                async with self._pool.acquire() as connection:
                    for refused in await _write(connection, [[write]]):
                        await self._refuse(connection, refused)
            except Exception as error:
                self._fail([[write]], error, begun=True)

    def _next_group(self) -> list[list[Write]]:
        """What waits, by conversation; each write there goes on from the one before it."""
        group: dict[str, list[Write]] = {}
        waiting = self._waiting
        size = 0
        for _ in range(min(len(waiting), GROUP_WRITES)):
            write = waiting[0]
            before = group.get(write.conversation)
            if before is None:
                group[write.conversation] = [write]
            elif write.goes_on_from(before[-1]):
                before.append(write)
            else:
                break  # what is wrong with it shows when it is the first of its conversation
            waiting.popleft()
            size += write.size
            if size >= GROUP_BYTES:
                break
        # Groups of two processes that want the same rows should come to them in the same order.
        # Where the server's plan takes another, it may end one of them: see `_write_singly`.
        return [group[conversation] for conversation in sorted(group)]

    async def _refuse(self, connection: Connection, writes: Sequence[Write]) -> None:
        """Tell the first why; those behind it are judged again, on their own."""
        first, *rest = writes
        if isinstance(first, Beginning):
            first.refuse()  # it is alone
            return
        try:
            why = await why_refused(
                connection, self._url, first.claim, first.after, len(first.records)
            )
        except FAILURES as error:
            why = writing_failed(self._url, error, begun=False)
        _fail(first, why)
        self._waiting.extendleft(reversed(rest))

    def _fail(self, group: Sequence[Sequence[Write]], error: Exception, *, begun: bool) -> None:
        for write in chain.from_iterable(group):
            told = error
            if isinstance(error, FAILURES):
                told = writing_failed(self._url, error, begun=begun)
                told.__cause__ = error
            _fail(write, told)


def _fail(write: Write, error: Exception) -> None:
    if not write.done.done():
        write.done.set_exception(error)


async def _write(
    connection: Connection, group: Sequence[Sequence[Write]]
) -> Sequence[Sequence[Write]]:
    """Write a group, and tell those whose writes were written; what the server refused."""
    # A conversation that begins has one write, and nothing behind it: its claim is not known yet.
    begun = [one for writes in group for one in writes if isinstance(one, Beginning)]
    onward = [[one for one in writes if isinstance(one, Append)] for writes in group]
    onward = [appends for appends in onward if appends]
    in_place: list[Sequence[Write]] = [*onward, *([one] for one in begun)]
    rows = [
        (place, record)
        for place, writes in enumerate(in_place, 1)
        for write in writes
        for record in write.records
    ]
    columns = Columns([place for place, _ in rows], [record for _, record in rows])
    arguments = [*_of_appends(onward), *columns.of_records()]
    statement = _APPENDS
    if begun:
        arguments += [*columns.large_bodies, *_of_beginnings(begun)]
        statement = _AND_BEGINNINGS
    elif columns.large_bodies[0]:
        arguments += columns.large_bodies
        statement = _AND_LARGE_BODIES
    outcome = await connection.fetchrow(statement, *arguments, timeout=WRITE_SECONDS)
    assert outcome is not None  # it counts
    tokens = dict(zip(outcome["places"], outcome["tokens"], strict=True))
    refused: list[Sequence[Write]] = []
    for place, writes in enumerate(in_place, 1):
        if place in tokens:
            for write in writes:
                write.written(tokens[place])
        else:
            refused.append(writes)
    return refused


def _of_appends(group: Sequence[Sequence[Append]]) -> list[Any]:
    """As `write_appends` takes them; those of one conversation are one."""
    firsts = [appends[0] for appends in group]
    lasts = [appends[-1] for appends in group]
    return [
        [key(first.conversation) for first in firsts],
        numbers([first.claim.token for first in firsts]),
        numbers([first.after for first in firsts]),
        numbers([last.length for last in lasts]),
        truths([last.release for last in lasts]),
    ]


def _of_beginnings(begun: Sequence[Beginning]) -> list[Any]:
    """As `write_begun` takes them."""
    return [
        [key(one.conversation) for one in begun],
        [kept(one.conversation) for one in begun],
        [kept(one.owner) for one in begun],
        [float(one.seconds) for one in begun],
        numbers([len(one.records) for one in begun]),
        truths([one.release for one in begun]),
    ]
