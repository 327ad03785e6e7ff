"""A runner's own CPU for a turn of 200 events, against the bare client reading the same stream.

The emulator is a process of its own; this process is the client. The runner keeps its ledger in
SQLite, and every turn is one of a new thread."""

from __future__ import annotations

import asyncio
import secrets
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

from openai import AsyncOpenAI

from bench.emulator import EVENTS, Server, words_for
from bench.harness import REPEATS, Result
from lockstitch.runner import Runner, TurnEnded

TARGET = 1.3
TURNS_A_REPEAT = 30


def run() -> Iterator[Result]:
    server = Server("emulator", words_for(EVENTS))
    try:
        yield asyncio.run(_compared(f"http://127.0.0.1:{server.port}/v1"))
    finally:
        server.stop()


async def _compared(url: str) -> Result:
    client = AsyncOpenAI(base_url=url, api_key="bench")

    async def bare() -> None:
        stream = await client.responses.create(model="m", input="go", stream=True)
        events = [event async for event in stream]
        assert len(events) == EVENTS

    with tempfile.TemporaryDirectory() as folder:
        store = f"sqlite:///{Path(folder, 'bench.db')}"
        async with Runner(client=client, model="m", store=store) as runner:

            async def ours() -> None:
                events = [event async for event in runner.turn(secrets.token_hex(8), "go")]
                assert isinstance(events[-1], TurnEnded)

            times = await _times(bare, ours)
    return Result(
        f"a turn of {EVENTS} events",
        ours=times[1],
        peer=times[0],
        target=TARGET,
        unit="ms",
        peer_is="the bare openai client",
    )


async def _times(*works: Callable[[], Awaitable[None]]) -> list[float]:
    """Median CPU milliseconds of each, in turn, after one warm-up."""
    times: list[list[float]] = [[] for _ in works]
    for repeat in range(REPEATS + 1):
        for n, work in enumerate(works):
            start = time.process_time()
            for _ in range(TURNS_A_REPEAT):
                await work()
            if repeat:
                times[n].append((time.process_time() - start) / TURNS_A_REPEAT * 1000)
    return [statistics.median(each) for each in times]
