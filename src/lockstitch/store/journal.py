"""A ledger that is kept: what is appended is on disk before the append returns.

The ledger in memory is a view of the store. When a write fails nobody can tell what is on disk
without reading it, so the journal is stale from then on: `reload` it, and plan again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from types import TracebackType
from typing import Self

from lockstitch.core import records
from lockstitch.core.facts import AnyFact, Seq
from lockstitch.core.records import Record
from lockstitch.ledgers.ledger import Ledger
from lockstitch.store.contract import Claim, Store
from lockstitch.store.errors import ClaimLost, ConversationBusy, StoreError
from lockstitch.store.owners import is_gone, new_owner

CLAIM_SECONDS = 30.0
"""How long a conversation stays claimed after its writer died, where nobody can tell that."""

RENEWALS_IN_A_CLAIM = 3
"""How often a claim is renewed before it would end: two may fail."""


class JournalStale(StoreError):
    """A write failed or the claim was lost: what is on disk may differ from what is in memory."""


class Journal:
    """One conversation in a store, with its ledger, held by this process alone."""

    def __init__(
        self, store: Store, claim: Claim, ledger: Ledger, kept: int, seconds: float
    ) -> None:
        self.ledger = ledger
        """What is known. Read it, plan from it; append to the journal only."""
        self._store = store
        self._claim = claim
        self._kept = kept
        """How many facts were given to the store."""
        self._seconds = seconds
        self._stale: BaseException | None = None
        self._writing: set[asyncio.Task[None]] = set()
        self._open = False
        self._released = False
        self._renewal: asyncio.TimerHandle | None = None
        self._renewing: asyncio.Task[None] | None = None
        self._closing: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        return f"<Journal {self.conversation} in {self._store.url}, {len(self.ledger)} facts>"

    @property
    def conversation(self) -> str:
        return self._claim.conversation

    @classmethod
    async def open(
        cls,
        store: Store,
        conversation: str,
        *,
        dialect: str = "responses",
        wait: float = 0,
        seconds: float = CLAIM_SECONDS,
    ) -> Self:
        """Claim a conversation and read it; it begins if there is none of that name.

        ``dialect`` is for one that begins. Raises `ConversationBusy` if another process holds it
        for longer than ``wait`` seconds."""
        if not isinstance(conversation, str):
            raise TypeError(f"{conversation!r:.80} is no name of a conversation: it is no text.")
        claim = await _claimed(store, conversation, seconds, wait)
        try:
            found = store.read(conversation) if claim.length else _nothing()
            facts = [records.decoded(record) async for record in found]
            ledger = Ledger.rebuilt(facts) if facts else Ledger(dialect)
        except BaseException:
            await store.release(claim)
            raise
        journal = cls(store, claim, ledger, len(facts), seconds)
        journal._begin_renewing()
        return journal

    @classmethod
    async def begin(
        cls,
        store: Store,
        conversation: str,
        facts: Sequence[AnyFact],
        *,
        last: bool = False,
        dialect: str = "responses",
        seconds: float = CLAIM_SECONDS,
    ) -> Self | None:
        """Begin a conversation with these facts, in one write, and return when they are durable.
        ``last``: there will be no more, and the journal is closed.

        None, and nothing is done, if there is one of that name: `open` it. An illegal fact raises,
        and nothing is recorded."""
        ledger = Ledger(dialect)
        for fact in facts:
            ledger.append(fact)
        claim = await store.begin(
            conversation, _encoded(ledger, 0), owner=new_owner(), seconds=seconds, release=last
        )
        if claim is None:
            return None
        journal = cls(store, claim, ledger, len(ledger), seconds)
        if not last:
            journal._begin_renewing()
        return journal

    async def append(self, *facts: AnyFact, last: bool = False) -> Seq:
        """Record these facts, in order, and return when they are durable: the place of the last.
        ``last``: there will be no more, and the journal is closed.

        An illegal fact raises, and neither it nor those behind it are recorded. If the write
        fails, the journal is stale."""
        if self._stale is not None:
            raise self._is_stale() from self._stale
        end = len(self.ledger)
        try:
            for fact in facts:
                end = self.ledger.append(fact)
        except BaseException:
            await self._keep(last=False)  # it goes on: what was legal is kept, and the claim
            raise
        await self._keep(last)
        if last:
            await self.close()
        return end

    def _is_stale(self) -> JournalStale:
        return JournalStale(
            f"{self.conversation} is stale ({self._stale}). Reload it, and plan again."
        )

    async def _keep(self, last: bool) -> None:
        ledger, after = self.ledger, self._kept
        if after == len(ledger):
            return
        self._kept = len(ledger)
        try:
            new = _encoded(ledger, after)
        except BaseException as error:
            self._stale = error
            raise
        # Whoever waits for a write may be cancelled; the write is not.
        await asyncio.shield(self._begin(after, new, last))

    def _begin(self, after: int, new: Sequence[Record], last: bool) -> asyncio.Task[None]:
        begun: list[bool] = []

        def ended(writing: asyncio.Task[None]) -> None:
            self._writing.discard(writing)
            if writing.cancelled() and not begun:
                self._begin(after, new, last)  # cancelled before it could take its first step

        writing = asyncio.create_task(self._write(after, new, last, begun))
        self._writing.add(writing)
        writing.add_done_callback(ended)
        return writing

    async def _write(
        self, after: int, new: Sequence[Record], last: bool, begun: list[bool]
    ) -> None:
        begun.append(True)
        try:
            await self._store.append(self._claim, after, new, release=last)
            self._released = self._released or last
        except asyncio.CancelledError:
            # The end of an event loop cancels this task as well. The append may be there or not;
            # the next one is refused as out of step if it is not.
            raise
        except BaseException as error:
            if self._stale is not None and isinstance(error, StoreError):
                # The first says what happened; this one only follows from it.
                raise self._is_stale() from self._stale
            self._stale = self._stale or error
            raise

    async def reload(self) -> None:
        """Read the conversation again; the store is what is true."""
        await self._written()
        await self._store.renew(self._claim, seconds=self._seconds)
        found = self._store.read(self.conversation)
        facts = [records.decoded(record) async for record in found]
        dialect = self.ledger.reading.dialect
        self.ledger = Ledger.rebuilt(facts) if facts else Ledger(dialect)
        self._kept = len(facts)
        self._stale = None

    def _begin_renewing(self) -> None:
        self._open = True
        self._renew_later()

    def _renew_later(self) -> None:
        # Most are closed before: they need no task of their own.
        self._renewal = asyncio.get_running_loop().call_later(
            self._seconds / RENEWALS_IN_A_CLAIM, self._renew_now
        )

    def _renew_now(self) -> None:
        self._renewing = asyncio.create_task(self._renew())

    async def _renew(self) -> None:
        try:
            await self._store.renew(self._claim, seconds=self._seconds)
        except ClaimLost as error:
            self._stale = error
            return
        except Exception:
            pass  # a write will say so; until then the claim may still be ours
        self._renew_later()

    async def close(self) -> None:
        """Let others write. What was appended stays. Who stops waiting for it keeps nothing from
        happening."""
        if self._open:
            self._open = False
            if self._renewal is not None:
                self._renewal.cancel()
            if self._renewing is not None:
                self._renewing.cancel()
            if self._released and not self._writing:
                return  # the last write has let go of it
            self._closing = asyncio.create_task(self._let_go())
            await asyncio.shield(self._closing)
        elif self._closing is not None:
            await asyncio.wait([self._closing])

    async def _let_go(self) -> None:
        await self._written()
        if not self._released:
            await self._store.release(self._claim)

    async def _written(self) -> None:
        """Until all that was begun is written, or has failed."""
        if self._writing:
            # Not gathered: a cancel of who waits here would go on to the writes.
            await asyncio.wait(list(self._writing))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()


def _encoded(ledger: Ledger, after: int) -> list[Record]:
    new = ledger.facts[after:]
    return [
        records.encoded(seq, fact, ledger.parts.get(seq, ()))
        for seq, fact in enumerate(new, after + 1)
    ]


async def _claimed(store: Store, conversation: str, seconds: float, wait: float) -> Claim:
    """A claim of this process. One whose process is known to have ended is not waited for."""
    owner = new_owner()
    try:
        return await store.claim(conversation, owner=owner, seconds=seconds)
    except ConversationBusy as busy:
        if is_gone(busy.owner):
            await store.release(Claim(conversation, busy.owner, busy.token, 0))
    return await store.claim(conversation, owner=owner, seconds=seconds, wait=wait)


async def _nothing() -> AsyncIterator[Record]:
    """A conversation that has just begun need not be read."""
    none: tuple[Record, ...] = ()
    for record in none:
        yield record


async def kept_ledger(store: Store, conversation: str) -> Ledger | None:
    """The ledger of a conversation as it is in the store, to look at; None if there is none."""
    facts = [records.decoded(record) async for record in store.read(conversation)]
    return Ledger.rebuilt(facts) if facts else None
