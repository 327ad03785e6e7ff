"""Durable appends from 64 writers: our stores against bare loops of the same grouping.

A bare loop inserts a row with its key and an index on the call's id, and does nothing else: no
claim, no check of the length, no retention. The wall clock counts here: most of it is waiting
for the disk or the server. PostgreSQL comes from pip and is started here."""

from __future__ import annotations

import asyncio
import secrets
import shutil
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from pathlib import Path

from bench.bare_stores import BarePostgres, BareSqlite, SingleSqlite, single_postgres
from bench.harness import Result
from lockstitch.core.records import Name, Naming, Record
from lockstitch.store import Claim, Store, open_store
from tests.postgres import running_postgres

WRITERS = 64
APPENDS_OF_EACH = 60
BODY = b'{"type":"function_call_output","output":"' + b"x" * 950 + b'"}'
PAYLOAD = b'{"fact":"call_settled","call":7,"item":"","slot":0,"outcome":"finished"}'
ROUNDS = 7

BARE_TARGET = 1 / 0.6
"""At least 60 % of the bare loop's throughput."""
SINGLE_TARGET = 1 / 5
"""At least five times the throughput of one transaction for each item."""

Work = Callable[[], Awaitable[None]]
Insert = Callable[[int, int, str, bytes], Awaitable[None]]


def run() -> Iterator[Result]:
    folder = Path(tempfile.mkdtemp(prefix="lockstitch-bench-"))
    try:
        yield from asyncio.run(_sqlite(folder))
        with running_postgres() as server:
            yield from asyncio.run(_postgres(server.url()))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


async def _sqlite(folder: Path) -> list[Result]:
    async with open_store(f"sqlite:///{folder / 'ours.db'}") as store:
        bare, single = BareSqlite(folder / "bare.db"), SingleSqlite(folder / "single.db")
        times = await _rounds(_ours(store), _bare(bare.insert), _bare(single.insert))
        bare.close()
    return _results("SQLite", *times)


async def _postgres(url: str) -> list[Result]:
    async with open_store(url) as store, BarePostgres(url) as bare, single_postgres(url) as single:
        times = await _rounds(_ours(store), _bare(bare.insert), _bare(single))
    return _results("PostgreSQL", *times)


def _results(name: str, ours: float, bare: float, single: float) -> list[Result]:
    return [
        Result(f"{name}, 64 writers", ours, bare, BARE_TARGET, peer_is="a bare grouped loop"),
        Result(f"{name}, grouped", ours, single, SINGLE_TARGET, peer_is="a transaction for each"),
    ]


async def _rounds(*made: Callable[[], Awaitable[Work]]) -> list[float]:
    """The median seconds of each, run in turn, after one warm-up. What comes before the appends
    (a claim is made once for a conversation) is not timed."""
    times: list[list[float]] = [[] for _ in made]
    for _ in range(ROUNDS + 1):
        for n, make in enumerate(made):
            work = await make()
            start = time.perf_counter()
            await work()
            times[n].append(time.perf_counter() - start)
    return [statistics.median(each[1:]) for each in times]


def _ours(store: Store) -> Callable[[], Awaitable[Work]]:
    async def make() -> Work:
        run = secrets.token_hex(4)
        names = [f"{run}-{n}" for n in range(WRITERS)]
        claims = [await store.claim(name, owner="bench", seconds=60) for name in names]

        async def writer(claim: Claim) -> None:
            for seq in range(1, APPENDS_OF_EACH + 1):
                name = Name(Naming.CALL, f"call_{secrets.token_hex(12)}")
                await store.append(claim, seq - 1, [Record(seq, PAYLOAD, BODY, (name,))])

        return lambda: _all(writer(claim) for claim in claims)

    return make


def _bare(insert: Insert) -> Callable[[], Awaitable[Work]]:
    first = iter(range(0, 1_000_000_000, WRITERS))

    async def make() -> Work:
        begin = next(first)

        async def writer(n: int) -> None:
            for seq in range(APPENDS_OF_EACH):
                await insert(begin + n, seq, f"call_{secrets.token_hex(12)}", PAYLOAD + BODY)

        return lambda: _all(writer(n) for n in range(WRITERS))

    return make


async def _all(writers: Iterable[Awaitable[None]]) -> None:
    await asyncio.gather(*writers)
