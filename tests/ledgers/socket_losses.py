"""After a loss: what a runner does about an answer that broke off or never came."""

from __future__ import annotations

import aiohttp

from lockstitch.core.calls import Life
from lockstitch.core.exchanges import Exchange
from lockstitch.facts import (
    AnchorLost,
    AnyFact,
    Ending,
    ReadBack,
    RequestRejected,
    ResponseEnded,
    ResponseOpened,
    found,
    item_completed,
)
from tests.ledgers.socket_desk import Desk
from tests.ledgers.socket_provider import Refusal
from tests.ledgers.socket_tools import Tools

BROKEN_OFF = (aiohttp.ClientError, ConnectionError, TimeoutError)
"""What a connection raises that did not end well."""


async def look_after(desk: Desk, tools: Tools, exchange: Exchange) -> None:
    """An answer that broke off: one of its calls may be started all the same, or the rest of it
    be asked for by its id. Or neither."""
    waiting = [
        call for call in exchange.calls if call.life is Life.ANNOUNCED and not call.by_server
    ]
    if waiting and desk.likely(0.8):
        desk.met["started after a cut"] += 1
        await tools.run(desk.rng.choice(waiting))
    if exchange.id is not None and desk.stored and desk.likely(0.5):
        await _retrieve(desk, exchange)


async def _retrieve(desk: Desk, exchange: Exchange) -> None:
    request = exchange.seq
    try:
        body = await desk.provider.get(f"/responses/{exchange.id}")
    except Refusal as said:
        if said.status != 404:
            raise
        desk.account.allow("not-found")
        return
    except BROKEN_OFF:
        return
    if body["status"] not in ("completed", "incomplete"):
        return
    desk.met["retrieved"] += 1
    facts: list[AnyFact] = [ResponseOpened(request=request, id=exchange.id)]
    facts += [item_completed(request, item) for item in body["output"][len(exchange.said) :]]
    facts.append(ResponseEnded(request=request, ending=Ending(body["status"])))
    await desk.journal.append(*facts)


async def read_back(desk: Desk, plan: ReadBack) -> bool:
    """See what the provider has of a request to its conversation; whether the turn is over."""
    await desk.idle()
    limit = desk.rng.choice((2, 5, 100))
    try:
        listed = await desk.provider.listed(plan.conversation, plan.after, limit)
    except Refusal as said:
        if (said.status, said.param) != (404, "conversation"):
            raise
        desk.account.missed(plan.conversation, said)
        gone = RequestRejected(request=plan.request, reason=str(said))
        await desk.journal.append(AnchorLost(anchor=plan.conversation), gone)
        return False
    facts = found(desk.ledger, plan, listed)
    desk.met[f"found {type(facts[-1]).__name__}"] += 1
    await desk.journal.append(*facts)
    return desk.note(desk.ledger.exchange(plan.request))
