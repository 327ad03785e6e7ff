"""A response that the journal has: which upstream should have it, too, whether it is heard now, and
how it ended."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from enum import Enum, auto
from typing import Final
from urllib.parse import quote, urlencode

from aiohttp import web

from lockstitch.core.errors import IllegalFact, LockstitchError, NotAnItem
from lockstitch.gateway.deciding.refusals import RequestRefused, not_written_yet
from lockstitch.gateway.doors.unknown import named
from lockstitch.gateway.events import CANCELLED, Heard, body_of, number_of
from lockstitch.gateway.keeping.conversations import facts_of
from lockstitch.gateway.keeping.exchanges import Kept
from lockstitch.gateway.keeping.exchanges import kept as kept_in
from lockstitch.gateway.keeping.finishing import NOTHING_HEARD, finished
from lockstitch.gateway.keeping.recording import TOGETHER_SECONDS
from lockstitch.gateway.lines import Asking
from lockstitch.gateway.upstreams import Reached
from lockstitch.gateway.world import Caller, World
from lockstitch.store.errors import ConversationBusy

PATIENCE_SECONDS: Final = 1.0
"""For somebody who is about to be done: who only looks whether a response is heard, or has all but
heard its end, or has only just heard it begin."""


def keeper(world: World, caller: Caller, kept: Kept) -> Reached | None:
    """The upstream that should have a response."""
    if kept.asked.local or not kept.asked.stored:
        return None
    upstream = named(world, caller, kept.asked.upstream)
    if upstream is None or not upstream.keeps_state or not upstream.speaks_http:
        return None
    return upstream


def path_of(response: str, below: str = "") -> str:
    return f"/responses/{quote(response, safe='')}{below}"


def asking_for(
    request: web.BaseRequest,
    caller: Caller,
    upstream: Reached,
    target: str,
    **changed: str | None,
) -> Asking:
    """The request with another path, and these parts of its query changed, or left out if None."""
    query = [(name, value) for name, value in request.query.items() if name not in changed]
    query += [(name, value) for name, value in changed.items() if value is not None]
    written = urlencode(query)
    return Asking(
        method=request.method,
        target=f"{target}?{written}" if written else target,
        headers=upstream.headers(caller.headers),
    )


async def known(world: World, tenant: str, response: str) -> Kept | None:
    """The exchange of a response, if the tenant has one. One that is heard here and has only just
    begun is about to be written down."""
    for _ in range(round(PATIENCE_SECONDS / TOGETHER_SECONDS)):
        kept = await world.exchanges.exchange(tenant, response)
        log = world.runs.find(tenant, response)
        if kept is not None or log is None or log.over or not log.kept:
            return kept
        await asyncio.sleep(TOGETHER_SECONDS)
    raise RequestRefused(not_written_yet(response))


class Shows(Enum):
    """What a client may see of a response that its upstream shows as ended."""

    AS_IT_CAME = auto()
    """The end is in the journal, or the response has none yet."""
    UNDER_WAY = auto()
    """It is still heard by somebody, who has not come to its end, and writes that down."""
    ANOTHER = auto()
    """It broke off for whoever heard it, and was tried again: that is what its id leads to."""
    NOTHING = auto()
    """The journal failed."""


async def is_heard(world: World, tenant: str, response: str) -> bool:
    """Does anybody hear this response now: here, or in another process? Who does holds the claim on
    its exchange."""
    if world.runs.is_running(tenant, response):
        return True
    try:
        journal = await world.exchanges.reopened(tenant, response)
    except ConversationBusy:
        return True
    await journal.close()
    return False


async def write_end(
    world: World,
    caller: Caller,
    kept: Kept,
    response: bytes,
    *,
    by: Heard | None = None,
    heard: Mapping[bytes, int | None] = NOTHING_HEARD,
) -> Shows:
    """Write down how a response ended, if an upstream shows it and nobody has; what may the client
    see then? ``by`` is the event that shows it, where one does. What is no item cannot be kept, and
    passes all the same."""
    tenant = caller.tenant
    ended_by = by.event.type if by is not None else ""
    last = number_of(by) if by is not None else None
    try:
        if not finished(kept, response, ended_by=ended_by, last=last, heard=heard):
            return Shows.AS_IT_CAME
        cancelled = ended_by == CANCELLED or body_of(response).status == "cancelled"
        wait = 0 if cancelled else PATIENCE_SECONDS
        try:
            reopened = await world.exchanges.reopened(tenant, kept.id, wait=wait)
        except ConversationBusy:
            if cancelled:
                return Shows.AS_IT_CAME  # nothing goes on from it, and nobody tries it again
            return await _as_heard(world, tenant, kept.id)
        async with reopened as journal:
            now = kept_in(facts_of(journal))
            if isinstance(now, str):
                return Shows.ANOTHER
            if now is not None:
                facts = finished(now, response, ended_by=ended_by, last=last, heard=heard)
                if facts:
                    await journal.append(*facts)
    except (IllegalFact, NotAnItem) as error:
        caller.note(f"the end of {kept.id} cannot be stored: {error}")
    except LockstitchError as error:
        # Whoever asks next writes it down.
        caller.note(f"the end of {kept.id} was not stored: {error}")
        return Shows.NOTHING
    return Shows.AS_IT_CAME


async def _as_heard(world: World, tenant: str, response: str) -> Shows:
    """Where somebody hears it: they write down how it ends for them, or that it became another."""
    now = await world.exchanges.exchange(tenant, response)
    if now is not None and now.id != response:
        return Shows.ANOTHER
    return Shows.AS_IT_CAME if now is None or now.end_known else Shows.UNDER_WAY
