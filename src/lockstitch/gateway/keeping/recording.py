"""One exchange on its way into the journal: facts in as they happen, durable in groups.

Events do not wait for the disk. What happened meanwhile goes with the next write; who must not go
on before something is durable asks for a future. An exchange that cannot be recorded is given up,
and said to be so; its traffic is not touched."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeAlias

from lockstitch.core.errors import IllegalFact, LockstitchError, NotAnItem
from lockstitch.core.facts import AnyFact
from lockstitch.gateway.watching.logs import careful
from lockstitch.store.errors import ConversationBusy, ConversationDeleted, StoreError
from lockstitch.store.journal import Journal


class NotDurable(LockstitchError):
    """The journal could not be written."""


TOGETHER_SECONDS: Final = 0.05
"""What nobody waits for is written one to two of these later, in ticks that all exchanges share:
one write for the beginnings of many answers. An item is mostly the last, and its end not far."""

DELETED: Final = "the response was deleted while it was said"

Begun: TypeAlias = Callable[[Sequence[AnyFact], bool], Awaitable[Journal]]
"""Begins a journal with its first facts; are they all there will be?"""


class Recorder:
    """Writes the facts of one exchange, in order."""

    def __init__(self, begun: Begun, took: Callable[[float], None] | None = None) -> None:
        """``took`` is told the seconds of each write."""
        self._begun = begun
        self._took = took
        self._journal: Journal | None = None
        self._facts: list[AnyFact] = []
        self._waiting: list[asyncio.Future[None]] = []
        self._writing: asyncio.Task[None] | None = None
        self._later: asyncio.TimerHandle | None = None
        self._last = False
        self.given_up: str | None = None
        """Why this exchange is not recorded, if it is not."""
        self.failure: Exception | None = None
        """Why nothing more can be written. What was promised before is kept."""

    def record(self, facts: Sequence[AnyFact], *, last: bool = False, waits: bool = False) -> None:
        """These facts happened. ``waits``: they may wait a little for others to go with them."""
        self._facts += facts
        self._last = self._last or last
        if not waits:
            self._begin()
        elif self._writing is None and self._later is None:
            loop = asyncio.get_running_loop()
            tick = (loop.time() // TOGETHER_SECONDS + 2) * TOGETHER_SECONDS
            self._later = loop.call_at(tick, self._begin)

    def durable(self) -> asyncio.Future[None]:
        """Done when everything so far is on disk; raises `NotDurable` if that cannot be."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if self.given_up is not None:
            future.set_result(None)
        elif self.failure is not None:
            future.set_exception(_not_durable(self.failure))
        else:
            self._waiting.append(future)
            self._begin()
        return future

    def give_up(self, reason: str) -> None:
        """This exchange is not recorded. Nothing is promised of it, and nobody waits for it."""
        self.given_up = reason
        self._facts.clear()

    async def close(self) -> None:
        """Until all that there is was written, and if that was the last, the exchange let go."""
        if self._facts:
            self._begin()
        while self._writing is not None:
            await asyncio.wait([self._writing])

    def _begin(self) -> None:
        if self._later is not None:
            self._later.cancel()
            self._later = None
        if self._writing is None:
            self._writing = asyncio.create_task(self._write())

    async def _write(self) -> None:
        try:
            while self._facts or self._waiting or (self._last and self._journal is not None):
                facts, self._facts = self._facts, []
                waiting, self._waiting = self._waiting, []
                begun = asyncio.get_running_loop().time()
                failure = await self._written(facts)
                if self._took is not None and facts:
                    self._took(asyncio.get_running_loop().time() - begun)
                for future in waiting:
                    if future.done():
                        continue
                    if failure is None:
                        future.set_result(None)
                    else:
                        future.set_exception(_not_durable(failure))
                if self._last and not self._facts and not self._waiting:
                    await self._release()
        finally:
            self._writing = None

    async def _written(self, facts: Sequence[AnyFact]) -> Exception | None:
        if self.failure is not None or self.given_up is not None or not facts:
            return self.failure
        try:
            last = self._last and not self._facts
            if self._journal is None:
                self._journal = await self._begun(facts, last)
            else:
                await self._journal.append(*facts, last=last)
        except (ConversationBusy, IllegalFact, NotAnItem) as error:
            # What the upstream took is no item to us, or cannot have happened, or it gave two
            # answers one id: it passes, but no promise can be made of it.
            self.give_up(str(error))
        except Exception as error:
            if _was_deleted(error):
                self.give_up(DELETED)
            else:
                self.failure = error
        return self.failure

    async def _release(self) -> None:
        journal, self._journal = self._journal, None
        if journal is not None:
            try:
                await journal.close()
            except StoreError as error:
                careful("a claim was not released", why=str(error))


def _was_deleted(error: Exception) -> bool:
    """Did somebody want nothing of it kept? Found out by this write, or before it."""
    return isinstance(error, ConversationDeleted) or isinstance(
        error.__cause__, ConversationDeleted
    )


def _not_durable(error: Exception) -> NotDurable:
    return NotDurable(f"The journal could not be written: {error}")
