"""Plans carried out over the wire, and what is heard made into facts, event by event."""

from __future__ import annotations

import aiohttp
import msgspec

from lockstitch.core.exchanges import Exchange, Standing
from lockstitch.facts import (
    AnchorLost,
    AnyFact,
    Continue,
    Ending,
    Mode,
    Replay,
    RequestLost,
    RequestRejected,
    RequestSent,
    ResponseEnded,
    ResponseOpened,
    Seq,
    item_completed,
    request_prepared,
)
from tests.ledgers import socket_faults
from tests.ledgers.socket_desk import Desk
from tests.ledgers.socket_filters import filtered
from tests.ledgers.socket_losses import BROKEN_OFF, look_after
from tests.ledgers.socket_model import Wire
from tests.ledgers.socket_provider import Refusal, Said, events, refusal
from tests.ledgers.socket_tools import Tools


class Requests:
    def __init__(self, desk: Desk, tools: Tools) -> None:
        self._desk = desk
        self._tools = tools
        self._locks = 0
        self.window: list[Wire] | None = None
        """What the provider compacted, until it was sent."""
        self.last: Seq = 0

    async def send(self, plan: Continue | Replay) -> bool:
        """Carry out a plan; whether the turn's last word came."""
        desk = self._desk
        items = desk.ledger.items(plan)
        if self.window is not None:
            # "starts a new chain as it is"
            assert items[: len(self.window)] == self.window, "the compacted window was changed"
            self.window = None
        rewritten = None
        if desk.likely(0.1):
            desk.met["filter"] += 1
            rewritten = items = filtered(items, desk.rng, desk.account)
        new = None
        if plan.mode is Mode.CONVERSATION and plan.anchor is None:
            new = desk.conversation = (await desk.provider.post("/conversations", {}))["id"]
        facts = request_prepared(desk.ledger, plan, items=rewritten, conversation=new)
        self.last = request = await desk.journal.append(*facts)
        desk.may_die(0.02)
        await desk.journal.append(RequestSent(request=request))
        desk.may_die(0.02)
        self._arm(plan)
        exchange = desk.ledger.exchange(request)
        await self._exchange(exchange, self._body(items, new or plan.anchor))
        over = desk.note(exchange)
        desk.may_die(0.02)
        return over

    def _body(self, items: list[Wire], anchor: str | None) -> Wire:
        desk = self._desk
        body: Wire = {"input": items, "store": desk.stored}
        if desk.encrypted:
            body["include"] = ["reasoning.encrypted_content"]
        if anchor is not None:
            body[desk.mode.value] = anchor
        return body

    def _arm(self, plan: Continue | Replay) -> None:
        desk = self._desk
        if not (desk.faults and desk.likely(0.3)):
            return
        desk.faults -= 1
        fault = socket_faults.drawn(desk.rng, plan, forgets=not desk.adopts)
        desk.emulator.fault(fault)
        self._locks += fault.startswith("lock")
        if fault.startswith("forget what=everything"):
            known = (link for link in desk.ledger.links.values() if isinstance(link, Exchange))
            names = (name for each in known for name in (each.id, each.anchor) if name)
            desk.account.forgotten.update(names)
        elif fault.startswith("forget") and plan.anchor is not None:
            desk.account.forgotten.add(plan.anchor)

    async def _exchange(self, exchange: Exchange, body: Wire) -> None:
        desk = self._desk
        why = "the stream ended early"
        try:
            async with desk.provider.create(body) as answer:
                if answer.status != 200:
                    await self._refused(exchange, refusal(answer.status, await answer.read()))
                    return
                await self._hear(exchange, answer)
        except BROKEN_OFF as error:
            why = type(error).__name__
            self._not_heard(exchange)
        if exchange.in_flight:
            await desk.lost(exchange, why)
        await self._tools.ended()
        desk.may_die(0.0)
        if exchange.standing is Standing.LOST:
            await look_after(desk, self._tools, exchange)

    def _not_heard(self, exchange: Exchange) -> None:
        """A refusal that was lost on the way is in the record all the same."""
        account = self._desk.account
        if exchange.anchor in account.forgotten:
            for rule in ("anchor-not-found", "not-found"):
                account.allowed[rule] = self._desk.emulator.record.broken[rule]

    async def _hear(self, exchange: Exchange, answer: aiohttp.ClientResponse) -> None:
        done: dict[int, bytes] = {}
        async for event in events(answer):
            self._desk.may_die(0.004)
            if exchange.in_flight:  # what comes after the end was in the end, too
                await self._heard(exchange, event, done)

    async def _heard(self, exchange: Exchange, event: Said, done: dict[int, bytes]) -> None:
        append, request = self._desk.journal.append, exchange.seq
        match event.type:
            case "response.created" if exchange.id is None:
                await append(ResponseOpened(request=request, id=event.response["id"]))
            case "response.output_item.done":
                # One that overtook another waits for it: the order is the provider's.
                done[event.output_index] = bytes(event.item)
                while len(exchange.said) in done:
                    await self._completed(exchange, done[len(exchange.said)])
            case "response.completed" | "response.incomplete":
                for item in event.response["output"][len(exchange.said) :]:
                    await self._completed(exchange, msgspec.json.encode(item))
                ending = Ending(event.type.removeprefix("response."))
                await append(ResponseEnded(request=request, ending=ending))
            case "response.failed" | "error":
                await append(ResponseEnded(request=request, ending=Ending.FAILED))

    async def _completed(self, exchange: Exchange, item: bytes) -> None:
        known = len(exchange.calls)
        await self._desk.journal.append(item_completed(exchange.seq, item))
        for call in exchange.calls[known:]:
            if not call.by_server:
                await self._tools.announced(call)

    async def _refused(self, exchange: Exchange, said: Refusal) -> None:
        desk, anchor = self._desk, exchange.anchor
        facts: list[AnyFact] = []
        gone = said.code == "previous_response_not_found" or (
            said.status == 404 and said.param == "conversation"
        )
        locked = said.code == "conversation_locked"
        if locked and self._locks:
            self._locks -= 1
            desk.account.allow("conversation-locked")
        elif gone and anchor is not None:
            desk.account.missed(anchor, said)
            facts.append(AnchorLost(anchor=anchor))
        broken = desk.emulator.record.broken
        assert broken == desk.account.allowed, f"{said} (request {exchange.seq})"
        if locked or said.status >= 500:
            # An earlier request may be at work there; or it says nothing of what was done before
            # it went wrong.
            facts.append(RequestLost(request=exchange.seq, reason=str(said)))
        else:
            facts.append(RequestRejected(request=exchange.seq, reason=str(said)))
        await desk.journal.append(*facts)
