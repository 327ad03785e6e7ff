"""`kill -9` of a writer at random moments: what had been acknowledged is there, and whole.

Twenty times; THOROUGH=10 makes that ten times as many."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import random
import signal

from lockstitch.store.postgres import PostgresStore
from tests.store.postgres_killing import WRITERS, batch, write_until_killed
from tests.store.postgres_parts import all_of

KILLS = 20 * int(os.environ.get("THOROUGH", "1"))
FAREWELL_APPENDS = 40
"""A writer is killed when it has told of up to so many appends."""


def test_a_writer_that_is_killed_loses_nothing_it_had_written(postgres_url):
    # A warm process that forks: the next writer is there in some milliseconds.
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload(["tests.store.postgres_killing"])
    rng = random.Random()
    acknowledged: dict[str, int] = {}
    for number in range(KILLS):
        conversations = [f"run-{number}-{writer}" for writer in range(WRITERS)]
        acknowledged |= dict.fromkeys(conversations, 0)
        ours, theirs = processes.Pipe(duplex=False)
        writer = processes.Process(
            target=write_until_killed, args=(postgres_url, conversations, theirs), daemon=True
        )
        writer.start()
        theirs.close()
        for _ in range(rng.randrange(FAREWELL_APPENDS)):
            conversation, length = ours.recv()
            acknowledged[conversation] = length
        assert writer.pid is not None
        os.kill(writer.pid, signal.SIGKILL)
        writer.join()
        while ours.poll():  # what it had said before it died
            try:
                conversation, length = ours.recv()
            except (EOFError, OSError):
                break
            acknowledged[conversation] = length
        ours.close()

    async def check() -> None:
        async with await PostgresStore.open(postgres_url) as store:
            for conversation, length in acknowledged.items():
                kept = await all_of(store, conversation)
                assert len(kept) >= length
                expected: list[object] = []
                while len(expected) < len(kept):
                    expected += batch(conversation, len(expected))
                assert kept == expected  # an append that was cut is there whole, or not at all

    asyncio.run(check())
    assert sum(acknowledged.values()) > KILLS
