"""What the driver of one conversation has at hand: journal, provider, account, chance, and death.

Everything here outlives the process that dies, but the journal, which is opened again."""

from __future__ import annotations

import asyncio
from collections import Counter
from random import Random

from lockstitch import Journal
from lockstitch.core.exchanges import Exchange, Standing
from lockstitch.emulator import Emulator
from lockstitch.facts import Ending, Mode, RequestLost, ResponseEnded
from lockstitch.ledgers import Ledger
from lockstitch.store.contract import Store
from tests.ledgers.socket_account import Account
from tests.ledgers.socket_model import Model
from tests.ledgers.socket_provider import Provider

MOST_FAULTS = 8
MOST_DEATHS = 4
MOST_COMPACTIONS = 2
CLAIM_PATIENCE_SECONDS = 5


class Died(Exception):
    """The process of the runner died here, as far as the conversation can tell."""


class Desk:
    def __init__(self, seed: int, emulator: Emulator, provider: Provider, store: Store) -> None:
        self.seed = seed
        self.rng = rng = Random(seed)
        self.emulator = emulator
        self.provider = provider
        self._store = store
        self.account = Account()
        self.met: Counter[str] = Counter()
        """What happened, by name: a test that meets nothing proves nothing."""
        self.model = Model(Random(f"{seed} model"), answered=self.account.unknown)
        self.journal: Journal
        # What kind of conversation it is.
        self.mode = rng.choice(list(Mode))
        self.stored = self.mode is Mode.CHAIN or rng.random() < 0.5
        self.encrypted = not self.stored or rng.random() < 0.5
        self.adopts = self.mode is not Mode.FULL and rng.random() < 0.08
        self.turns = rng.randint(2, 5)
        self.eager = rng.random() ** 2
        """How likely a tool starts while the answer is still coming."""
        self.faults = MOST_FAULTS if rng.random() < 0.8 else 0
        self.compactions = MOST_COMPACTIONS if rng.random() < 0.4 and not self.adopts else 0
        self._deaths = MOST_DEATHS if rng.random() < 0.6 else 0
        self.dying = False
        self.conversation: str | None = None
        """The provider's conversation that is used now, in that mode."""

    @property
    def ledger(self) -> Ledger:
        return self.journal.ledger

    def likely(self, probability: float) -> bool:
        return self.rng.random() < probability

    def may_die(self, probability: float, rng: Random | None = None) -> None:
        """Whoever runs beside others brings a chance of its own: a seed is to be told again."""
        if self.dying:
            raise Died
        if (rng or self.rng).random() < probability and self._deaths:
            self._deaths -= 1
            self.dying = True
            raise Died

    async def open(self) -> None:
        name = f"talk {self.seed}"
        self.journal = await Journal.open(self._store, name, wait=CLAIM_PATIENCE_SECONDS)

    async def come_back(self) -> None:
        """Open the journal again, and say of what was under way that it is not known."""
        self.met["death"] += 1
        before = self.ledger.state()
        await self.journal.close()
        await self.open()
        assert self.ledger.state() == before, "the store gave back another ledger"
        for exchange in self.ledger.doubts():
            if exchange.in_flight:
                await self.idle()
                await self.lost(exchange, "the process died")

    async def idle(self) -> None:
        """A provider that we hung up on may still be at work, and a listing would tell too early.
        No request of its API says so: this looks inside."""
        known = {each.id: each for each in self.emulator.conversations.all()}
        while self.conversation in known and known[self.conversation].locked:
            await asyncio.sleep(0.001)

    async def lost(self, exchange: Exchange, why: str) -> None:
        """Nobody here knows what became of a request, or of the rest of its answer."""
        if exchange.standing is Standing.ANSWERING:
            await self.journal.append(ResponseEnded(request=exchange.seq, ending=Ending.CUT))
        else:
            await self.journal.append(RequestLost(request=exchange.seq, reason=why))
        self.note(exchange)

    def note(self, exchange: Exchange) -> bool:
        """Bring the account up to date; whether the turn's last word was said and is ours."""
        if exchange.standing is not Standing.ACCEPTED:
            if exchange.kept:
                self.account.joined(exchange.calls)
            return False
        self.account.accepted(exchange)
        last = self.ledger.wire(exchange.said[-1]) if exchange.said else {}
        content = last.get("content") or [{}]
        return last.get("type") == "message" and content[0].get("text") == self.model.final()
