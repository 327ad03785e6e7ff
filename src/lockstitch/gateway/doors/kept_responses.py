"""A response that the journal has: which upstream should have it, too, whether it is heard now, and
how it ended."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import quote, urlencode

from aiohttp import web

from lockstitch.core.errors import IllegalFact, LockstitchError, NotAnItem
from lockstitch.gateway.doors.unknown import named
from lockstitch.gateway.keeping.conversations import facts_of
from lockstitch.gateway.keeping.exchanges import Kept
from lockstitch.gateway.keeping.exchanges import kept as kept_in
from lockstitch.gateway.keeping.finishing import NOTHING_HEARD, finished
from lockstitch.gateway.lines import Asking
from lockstitch.gateway.upstreams import Reached
from lockstitch.gateway.world import Caller, World
from lockstitch.store.errors import ConversationBusy

PATIENCE_SECONDS: Final = 1.0
"""For somebody who only looks whether a response is heard to let go of it."""


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
    **changed: str,
) -> Asking:
    """The request with another path, and these parts of its query changed."""
    query = [(name, value) for name, value in request.query.items() if name not in changed]
    written = urlencode([*query, *changed.items()])
    return Asking(
        method=request.method,
        target=f"{target}?{written}" if written else target,
        headers=upstream.headers(caller.headers),
    )


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
    last: int | None = None,
    numbers: Mapping[bytes, int] = NOTHING_HEARD,
) -> bool:
    """Write down how a response ended, if an upstream shows it and nobody has. False, if the
    journal failed: then it must not be shown as ended. What is no item, or is being written by
    somebody else, is none of that."""
    tenant = caller.tenant
    if world.runs.is_running(tenant, kept.id):
        return True
    try:
        if not finished(kept, response):
            return True
        reopened = await world.exchanges.reopened(tenant, kept.id, wait=PATIENCE_SECONDS)
        async with reopened as journal:
            now = kept_in(facts_of(journal))
            if isinstance(now, Kept):
                facts = finished(now, response, last=last, numbers=numbers)
                if facts:
                    await journal.append(*facts)
    except ConversationBusy:
        pass  # somebody is at it
    except (IllegalFact, NotAnItem) as error:
        caller.note(f"the end of {kept.id} cannot be kept: {error}")
    except LockstitchError as error:
        # Whoever asks next writes it down.
        caller.note(f"the end of {kept.id} was not written down: {error}")
        return False
    return True
