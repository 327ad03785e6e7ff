"""Before the first try: what a request goes on from, where it may go, and whether it is whole.

What it finds is data for `answering`. A request that ends here raises `RequestRefused`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress

import msgspec
from msgspec import Struct

from lockstitch.core.errors import NotAnItem
from lockstitch.core.records import Name, Naming
from lockstitch.dialects.base import Wire
from lockstitch.dialects.reading import decoded
from lockstitch.gateway.deciding import evidence, guard, refusals
from lockstitch.gateway.deciding.asked import Asked, read, rebuilt
from lockstitch.gateway.deciding.guard import Guarding
from lockstitch.gateway.deciding.portable import only_named
from lockstitch.gateway.deciding.refusals import RequestRefused
from lockstitch.gateway.keeping.conversations import Held
from lockstitch.gateway.keeping.exchanges import Kept, OpenCall, open_calls
from lockstitch.gateway.keeping.prefixes import Running
from lockstitch.gateway.keeping.repetitions import without_repetitions
from lockstitch.gateway.upstreams import Reached
from lockstitch.gateway.world import Caller, World


class Prepared(Struct, kw_only=True, eq=False):
    """A request that can be tried."""

    asked: Asked
    route: tuple[str, ...]
    upstreams: dict[str, Reached]
    """Those of the route, as they were when it was prepared: they may be taken out meanwhile."""
    home: str | None
    """The upstream that said what comes before, where that is known."""
    foreign: bool
    """It was sent in full before, and something in it belonged to another upstream."""
    body: bytes
    """As the client sent it, but for what the guard did."""
    items: list[Wire]
    """All of its input, in the same way."""
    added: list[bytes]
    """What of it the journal does not have: what is written down."""
    base: str | None
    """The response that `added` stands behind."""
    parent: Kept | None
    """The response that the client named, if the journal has it."""
    held: Held | None
    """The conversation, if it is the gateway that keeps it."""
    bound: bool
    """It can only go to the first of its route: a conversation is there."""
    running: Running
    """The digest of everything up to here; empty where that is not known."""


async def prepared(world: World, caller: Caller, asked: Asked, stack: AsyncExitStack) -> Prepared:
    """All that is to be known of a request before it is tried; ``stack`` keeps what it holds."""
    parent = await _parent(world, caller, asked)
    base = await _base(world, caller, asked)
    before = parent or base.exchange
    home = before.asked.upstream if before is not None else None
    held: Held | None = None
    bound = False
    if asked.conversation is not None:
        # The rest of it is read where it matters: once nobody else can change it.
        known = await world.conversations.made(caller.tenant, asked.conversation)
        if known is None and (
            world.config.unknown_chains == "refuse"
            or await world.is_anothers(caller, Name(Naming.CONVERSATION, asked.conversation))
        ):
            raise RequestRefused(refusals.conversation_not_found(asked.conversation))
        if known is not None and known.upstream:
            home, bound = known.upstream, True
        elif known is not None:
            held = await stack.enter_async_context(
                world.conversations.held(caller.tenant, asked.conversation)
            )
    upstreams = world.route(caller, asked.api, asked.model, home=home, bound=bound)
    if asked.conversation is not None and not bound and held is None:
        # Nobody here knows it. Who keeps none would answer without a word of what was said before.
        upstreams = {name: one for name, one in upstreams.items() if one.keeps_state}
        if not upstreams:
            raise RequestRefused(refusals.conversation_not_found(asked.conversation))
    route = tuple(upstreams)
    first = upstreams[route[0]]
    if asked.previous_response_id is not None and held is not None:
        raise RequestRefused(refusals.two_anchors())
    if asked.background and not first.keeps_state:
        raise RequestRefused(refusals.no_background(first.name))
    await check_references(world, caller, asked.items())
    said = parent.said if parent is not None and parent.continues else None
    if held is not None:
        said = held.raw_items
    waiting = open_calls(said) if said is not None else None
    new = without_repetitions(asked.items(), waiting or ())
    body, items = await _guarded(
        world, caller, asked, first, parent=parent, waiting=waiting, new=new
    )
    if parent is not None and parent.id != asked.previous_response_id:
        # It was shown under another id than its upstream has it under.
        body = rebuilt(read(body, asked.api), previous_response_id=parent.id)
    if items is asked.items():
        added = [asked.raw_item(n) for n in new[base.items :]]
    else:
        added = [msgspec.json.encode(item) for item in items]
        base = _Base()  # the guard changed it: it is kept whole
    return Prepared(
        asked=asked,
        route=route,
        upstreams=upstreams,
        home=home,
        foreign=base.exchange is not None and base.exchange.asked.away,
        body=body,
        items=items,
        added=added,
        base=base.exchange.id if base.exchange is not None else asked.previous_response_id,
        parent=parent,
        held=held,
        bound=bound,
        running=_running(world, caller, asked, items, base.state),
    )


class _Base(Struct, frozen=True):
    """What a history that was sent in full goes on from, as far as the journal has it."""

    exchange: Kept | None = None
    items: int = 0
    """So many of its items are before that."""
    state: bytes = b""
    """The digest of all of it; empty where it cannot be made."""


async def _base(world: World, caller: Caller, asked: Asked) -> _Base:
    if asked.anchored:
        return _Base()
    try:
        response, at, state = world.prefixes.find(caller.tenant, asked.items())
    except NotAnItem:
        return _Base()
    if response is None:
        return _Base(state=state)
    exchange = await world.exchanges.exchange(caller.tenant, response)
    return _Base(exchange, at if exchange is not None else 0, state)


def _running(
    world: World, caller: Caller, asked: Asked, items: Sequence[Wire], state: bytes
) -> Running:
    """The digest of everything that the answer will stand behind; empty where nobody knows."""
    if not asked.anchored and items is asked.items():
        return Running(state)
    if asked.conversation is not None:
        return Running()
    running = Running()
    if asked.previous_response_id is not None:
        known = world.prefixes.state(caller.tenant, asked.previous_response_id)
        if known is None:
            return running
        running = Running(known)
    with suppress(NotAnItem):
        running.add_all(items)
        return running
    return Running()


async def _parent(world: World, caller: Caller, asked: Asked) -> Kept | None:
    if asked.previous_response_id is None:
        return None
    wanted = asked.previous_response_id
    parent = await world.exchanges.exchange(caller.tenant, wanted)
    if parent is None and (
        world.config.unknown_chains == "refuse"
        or await world.is_anothers(caller, Name(Naming.RESPONSE, wanted))
    ):
        raise RequestRefused(refusals.previous_response_not_found(wanted))
    return parent


async def check_references(world: World, caller: Caller, items: Sequence[Wire]) -> None:
    """An item that is only named is looked up by the upstream, whoever it belongs to. Raises
    `RequestRefused` if that is another key."""
    if not world.config.keys:
        return
    for n, item in enumerate(items):
        name = only_named(item)
        if name is not None and await world.is_anothers(caller, Name(Naming.ITEM, name)):
            raise RequestRefused(refusals.item_not_found(name, n))


async def _guarded(
    world: World,
    caller: Caller,
    asked: Asked,
    upstream: Reached,
    *,
    parent: Kept | None,
    waiting: Sequence[OpenCall] | None,
    new: Sequence[int],
) -> tuple[bytes, list[Wire]]:
    """The body and items to send: as the client sent them, or as the guard repaired them.
    ``parent`` is the stored response that the client named, and ``waiting`` the calls that are open
    before its items, as far as that is known; ``new`` are the positions of the items that do not
    only repeat them."""
    items = asked.items()
    mode = Guarding(caller.guard(upstream))
    if mode is Guarding.OFF:
        return asked.body, items
    behind = [one.call for one in waiting] if waiting is not None else None
    judged = [items[n] for n in new]
    seen = evidence.NOTHING
    if mode is Guarding.MEND:
        keys = evidence.wanted(judged, open_calls=behind)
        found = await _sent_elsewhere(world, caller, asked, parent, keys) if keys else ()
        seen = evidence.seen(map(decoded, found), keys=keys)
    result = guard.guarded(
        judged,
        mode=mode,
        anchored=asked.anchored,
        open_calls=behind,
        evidence=seen,
    )
    world.note_findings(caller, mode, result, asked.model)
    if result.refused:
        raise RequestRefused(refusals.not_whole(result.refused, asked.api))
    if result.items is not None and result.origins is not None:
        origins = [None if origin is None else new[origin] for origin in result.origins]
        return rebuilt(asked, items=result.items, origins=origins), result.items
    if mode is Guarding.MEND and len(new) < len(items):
        return rebuilt(asked, items=judged, origins=list(new)), judged
    return asked.body, items


async def _sent_elsewhere(
    world: World, caller: Caller, asked: Asked, parent: Kept | None, keys: Sequence[str]
) -> list[bytes]:
    """The outputs that were sent for these calls on other branches of the request's own chain.
    Where it cannot be proven which chain that is there are none."""
    if parent is not None:
        waiting = {one.call.key for one in open_calls(parent.said)}
        keys = [key for key in keys if key in waiting]
        return await world.exchanges.outputs_behind(caller.tenant, parent, keys)
    if asked.anchored:
        return []
    with suppress(NotAnItem):
        return await world.exchanges.outputs_within(caller.tenant, asked.items(), keys)
    return []
