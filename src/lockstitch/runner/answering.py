"""One request and its answer: sent, heard, and written down as it comes.

A failure leaves the ledger knowing exactly as much as is known; what to do about it is decided in
`turn`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence

from lockstitch.core.calls import Call
from lockstitch.core.errors import NotAnItem
from lockstitch.core.exchanges import Exchange, Standing
from lockstitch.core.facts import (
    MODEL_NOTE,
    AnchorLost,
    AnyFact,
    Ending,
    Noted,
    RequestLost,
    RequestRejected,
    RequestSent,
    ResponseEnded,
    ResponseOpened,
    Seq,
)
from lockstitch.dialects.reading import decoded
from lockstitch.ledgers.making import item_completed
from lockstitch.runner.events import Event, ItemSaid, TextDelta
from lockstitch.store.journal import Journal
from lockstitch.upstream.contract import (
    Delta,
    Ended,
    Fate,
    Heard,
    ItemDone,
    Opened,
    Request,
    Upstream,
    UpstreamFailure,
)

SHOWN_BYTES = 80
"""How much of what cannot be read is shown."""


class Answering:
    """Sends one request and writes down what is heard."""

    def __init__(
        self,
        upstream: Upstream,
        journal: Journal,
        *,
        tell: Callable[[Event], None],
        take: Callable[[Sequence[Call]], None],
        silence_seconds: float,
    ) -> None:
        self._upstream = upstream
        self._journal = journal
        self._tell = tell
        self._take = take
        self._silence = silence_seconds
        self._noted_model: bytes | None = None

    async def send(self, prepared: Sequence[AnyFact], request: Request) -> Ended:
        """Send it, and hear it to its end. Raises `UpstreamFailure`, with the ledger up to date."""
        ledger = self._journal.ledger
        seq = len(ledger) + len(prepared)
        try:
            # One write for all: the request is on disk before its first byte leaves.
            sent = RequestSent(request=seq)
            await self._journal.append(*prepared, sent, *self._model_note(request.model))
        except asyncio.CancelledError:
            unsent = RequestRejected(request=seq, reason="the turn was stopped before it was sent")
            await self._journal.append(unsent)
            raise
        try:
            return await self._heard_or_found(seq, request)
        except BaseException:
            await self._let_go(seq)
            raise

    def _model_note(self, model: str) -> list[AnyFact]:
        """A note of the model, if it is not the one that was asked before."""
        note = model.encode(errors="replace")
        if self._noted_model is None:
            facts = reversed(self._journal.ledger.facts)
            notes = (one.note for one in facts if isinstance(one, Noted) and one.kind == MODEL_NOTE)
            self._noted_model = next(notes, None)
        if note == self._noted_model:
            return []
        self._noted_model = note
        return [Noted(kind=MODEL_NOTE, note=note)]

    async def _heard_or_found(self, seq: Seq, request: Request) -> Ended:
        try:
            return await self._hear(seq, self._upstream.stream(request))
        except UpstreamFailure as failure:
            found = await self._found(seq, failure)
            if found is not None:
                return found
            await self._write_failure(seq, request, failure)
            raise

    async def _hear(self, seq: Seq, stream: AsyncIterator[Heard]) -> Ended:
        try:
            while True:
                try:
                    async with asyncio.timeout(self._silence):
                        heard = await anext(stream)
                except TimeoutError:
                    silent = f"nothing was heard for {self._silence:g} seconds"
                    raise UpstreamFailure(silent, fate=Fate.LOST) from None
                except StopAsyncIteration:
                    broke = "the stream ended without an end of the response"
                    raise UpstreamFailure(broke, fate=Fate.LOST) from None
                if isinstance(heard, Delta):
                    if heard.kind != "arguments":
                        self._tell(TextDelta(heard.text, heard.kind))
                else:
                    await self._write(seq, heard)
                    if isinstance(heard, Ended):
                        return heard
        finally:
            close = getattr(stream, "aclose", None)
            if close is not None:
                await close()

    async def _write(self, seq: Seq, heard: Opened | ItemDone | Ended) -> None:
        ledger = self._journal.ledger
        if isinstance(heard, Opened):
            # Some compatible servers give two answers the same id. It names the first, then.
            named = ledger.response(heard.id) if heard.id is not None else None
            own = heard.id if named is None or named.seq == seq else None
            await self._journal.append(ResponseOpened(request=seq, id=own))
        elif isinstance(heard, ItemDone):
            said = await self._keep(seq, heard.item)
            self._tell(ItemSaid(decoded(heard.item)))
            made = [call for call in ledger.exchange(seq).calls if call.seq == said]
            self._take([call for call in made if not call.by_server])
        else:
            await self._journal.append(ResponseEnded(request=seq, ending=heard.ending))

    async def _keep(self, seq: Seq, item: bytes) -> Seq:
        try:
            return await self._journal.append(item_completed(seq, item))
        except NotAnItem:
            shown = item[:SHOWN_BYTES].decode("utf-8", "replace")
            raise UpstreamFailure(
                f"the provider said something that is no item: {shown}", fate=Fate.LOST
            ) from None

    async def _found(self, seq: Seq, failure: UpstreamFailure) -> Ended | None:
        """The rest of an answer that broke off, if the provider kept it: asked for by its id."""
        exchange = self._journal.ledger.exchange(seq)
        if failure.fate is not Fate.LOST or exchange.id is None:
            return None
        try:
            kept = await self._upstream.retrieved(exchange.id)
        except UpstreamFailure:
            return None
        if not kept or not isinstance(kept[-1], Ended) or kept[-1].ending is Ending.FAILED:
            return None
        items = [heard for heard in kept if isinstance(heard, ItemDone)]
        if not self._begins_as_heard(exchange, items):
            return None
        for item in items[len(exchange.said) :]:
            await self._write(seq, item)
        await self._write(seq, kept[-1])
        return kept[-1]

    def _begins_as_heard(self, exchange: Exchange, items: Sequence[ItemDone]) -> bool:
        """Do these go on from what was heard? Only kinds and ids are compared: a provider may have
        kept less of an item than it said."""
        heard = [self._journal.ledger.item(seq) for seq in exchange.said]
        kept = [done.item for done in items[: len(heard)]]
        try:
            return list(map(_kind_and_id, kept)) == list(map(_kind_and_id, heard))
        except NotAnItem:
            return False

    async def _write_failure(self, seq: Seq, request: Request, failure: UpstreamFailure) -> None:
        exchange = self._journal.ledger.exchange(seq)
        reason = str(failure)
        facts: list[AnyFact] = []
        if failure.fate is Fate.ANCHOR_LOST and request.anchor is not None:
            facts.append(AnchorLost(anchor=request.anchor))
        if exchange.standing is Standing.ANSWERING:
            facts.append(ResponseEnded(request=seq, ending=Ending.CUT))
        elif failure.fate in (Fate.LOST, Fate.LOCKED):
            facts.append(RequestLost(request=seq, reason=reason))
        else:
            facts.append(RequestRejected(request=seq, reason=reason))
        await self._journal.append(*facts)

    async def _let_go(self, seq: Seq) -> None:
        """The turn is over in the middle of an answer: it was cut, by us."""
        exchange = self._journal.ledger.exchange(seq)
        if exchange.standing is Standing.ANSWERING:
            await self._journal.append(ResponseEnded(request=seq, ending=Ending.CUT))
        elif exchange.standing is Standing.SENT:
            await self._journal.append(RequestLost(request=seq, reason="the turn was stopped"))


def _kind_and_id(item: bytes) -> tuple[object, object]:
    wire = decoded(item)
    return wire.get("type"), wire.get("id")
