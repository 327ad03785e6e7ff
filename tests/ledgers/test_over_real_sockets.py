"""A journal and the emulator over real HTTP and server-sent events, a thousand times at random.

`SEED=n` runs one of them, `THOROUGH=1` five times as many. A failure prints its seed and the
ledger's facts. Even seeds are kept in memory, odd ones in SQLite."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import pytest

from lockstitch import open_store
from lockstitch.core.continuation import Why
from lockstitch.core.families import RESPONSES_FAMILIES
from lockstitch.emulator import ALWAYS, Asked, Emulator, Reply, Script, Turn
from lockstitch.emulator.faults import FAULTS
from lockstitch.store.contract import Store
from tests.ledgers.socket_driver import Talk, met, told
from tests.ledgers.socket_judging import judge
from tests.ledgers.socket_provider import Provider

ORDINARY, THOROUGH = 1_000, 5_000
BLOCKS = 4
"""Tests that share the seeds, so that they can run on several cores."""
AT_ONCE = 12
TALK_SECONDS = 30
"""A conversation takes well below a second; one that takes this long hangs."""

OF_WEBSOCKETS = {"close", "refuse-upgrade"}

_COUNT = THOROUGH if os.environ.get("THOROUGH") else ORDINARY
_SEED = os.environ.get("SEED")
SEEDS = [int(_SEED)] if _SEED else list(range(_COUNT))

MEETS = {
    *(family.name for family in RESPONSES_FAMILIES),
    *(f"fault {name}" for name in FAULTS.keys() - OF_WEBSOCKETS),
    *(why.name for why in Why),
    *("Continue", "SettleFirst", "ReadBack", "Refuse"),
    *("found RequestRejected", "found ResponseEnded", "retrieved", "started after a cut"),
    *("fork", "filter", "death", "compaction here", "compaction there"),
}
"""What each block of conversations meets at least once."""


@dataclass
class Outcome:
    """What came of a number of conversations."""

    failed: list[str] = field(default_factory=list)
    met: Counter[str] = field(default_factory=Counter)


class Seat:
    """An emulator that serves one conversation after another."""

    def __init__(self) -> None:
        self.talk: Talk | None = None
        script = Script([Turn(decide=self._decide, times=ALWAYS)])
        self.emulator = Emulator(script=script)

    def _decide(self, asked: Asked) -> Reply:
        assert self.talk is not None
        return self.talk.desk.model.decide(asked)

    async def serve(self, seeds: Iterable[int], store: Store, outcome: Outcome) -> None:
        timeout = aiohttp.ClientTimeout(total=TALK_SECONDS)
        async with self.emulator, aiohttp.ClientSession(timeout=timeout) as session:
            provider = Provider(session, self.emulator.base_url)
            for seed in seeds:
                self.emulator.reset()
                self.talk = talk = Talk(seed, self.emulator, provider, store)
                try:
                    async with asyncio.timeout(TALK_SECONDS):
                        await talk.run()
                    judge(talk)
                except Exception as error:
                    why = f"SEED={seed} ({talk.desk.mode.value}): {type(error).__name__}: {error}"
                    outcome.failed.append(f"{why}\n{told(talk)}")
                outcome.met += met(talk)


async def _hold(seeds: list[int], folder: Path) -> Outcome:
    outcome = Outcome()
    async with AsyncExitStack() as stack:
        stores = [
            await stack.enter_async_context(open_store(url))
            for url in ("memory:", f"sqlite:///{folder / 'talks.db'}")
        ]
        todo = {at: iter([seed for seed in seeds if seed % 2 == at]) for at in (0, 1)}
        seats = (Seat().serve(todo[at % 2], stores[at % 2], outcome) for at in range(AT_ONCE))
        await asyncio.gather(*seats)
    return outcome


@pytest.mark.parametrize("block", range(BLOCKS))
def test_the_emulator_accepts_every_request_of_random_conversations(block, tmp_path):
    outcome = asyncio.run(_hold(SEEDS[block::BLOCKS], tmp_path))
    failed = outcome.failed
    assert not failed, f"{len(failed)} conversations failed. The first:\n{failed[0]}"
    if not _SEED:
        assert not MEETS - set(outcome.met), "the conversations were too tame"
