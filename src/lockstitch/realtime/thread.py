"""The thread of a session: its journal, and what is remembered from it.

What the provider has and the thread has not is written down here, before anybody acts on it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from msgspec import Struct

from lockstitch.core.calls import Call
from lockstitch.core.facts import CallSettled
from lockstitch.dialects.base import Wire
from lockstitch.ledgers.making import call_settled_honestly
from lockstitch.realtime.errors import RealtimeError
from lockstitch.realtime.line import Line
from lockstitch.realtime.remembering import Memory
from lockstitch.store.contract import Store
from lockstitch.store.journal import Journal

DIALECT = "realtime"


class News(Struct, frozen=True):
    """What was written down just now."""

    calls: Sequence[Call] = ()
    """Calls of the model; nobody has begun them."""
    answered: Sequence[Call] = ()
    """Calls that somebody else has given the output of, at the provider."""
    gone: Sequence[Call] = ()
    """Calls without an output that left the context."""


class Thread:
    """One conversation in a store, held by this process."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self._memory = Memory(journal.ledger, journal.conversation)
        self._writing = asyncio.Lock()

    def __repr__(self) -> str:
        return f"<Thread {self.name}, {self._memory!r}>"

    @classmethod
    async def open(cls, store: Store, name: str, *, wait: float) -> Thread:
        journal = await Journal.open(store, name, dialect=DIALECT, wait=wait)
        begun_in = journal.ledger.dialect.name
        if begun_in != DIALECT:
            await journal.close()
            raise RealtimeError(
                f"{name} was begun in the dialect {begun_in}: it is no realtime conversation. Begin"
                " another thread."
            )
        thread = cls(journal)
        try:
            # What an earlier process left behind is told as it is; nobody else will.
            ledger, forsaken = journal.ledger, thread._memory.forsaken()
            await journal.append(*(call_settled_honestly(ledger, call) for call in forsaken))
        except BaseException:
            await journal.close()
            raise
        return thread

    @property
    def name(self) -> str:
        return self.journal.conversation

    async def remember(self, line: Line) -> News:
        """Write down what the thread does not have. It is on disk on return."""
        async with self._writing:
            now = line.mirror.items
            gone = line.show({wire["id"] for wire in now})
            ledger = self.journal.ledger
            forsaken = self._memory.unsettled_of(gone)
            facts = self._memory.news(now, line.origins, gone)
            line.origins.written(now)
            if not facts:
                return News()
            first = len(ledger) + 1
            try:
                await self.journal.append(*facts)
            finally:
                self._memory.catch_up()  # the ledger has them, whoever stops waiting for the disk
            made = (ledger.calls.get((seq, 0)) for seq in range(first, first + len(facts)))
            return News(
                [call for call in made if call is not None],
                [ledger.calls[fact.call, 0] for fact in facts if isinstance(fact, CallSettled)],
                forsaken,
            )

    async def written(self) -> None:
        """Until nothing is being written down."""
        async with self._writing:
            pass

    def context(self) -> list[Wire]:
        """What a new session is filled with."""
        return self._memory.context()

    def unsettled(self) -> list[Call]:
        """Calls of the context that have no output."""
        return self._memory.unsettled()

    def outputs(self, calls: Sequence[Call]) -> list[Wire]:
        """The outputs of settled calls, as items to be created."""
        return [self._memory.output_of(call) for call in calls]

    def run_here(self, calls: Sequence[Call]) -> None:
        """A tool of ours answers these calls, and nobody else."""
        self._memory.run_here.update(call.seq for call in calls)

    def history(self) -> list[Wire]:
        return self._memory.history()
