"""What was made elsewhere: an id that the journal does not know, and who may have it.

By the configuration it is refused, or passed on; what another tenant made is never passed on,
because the upstream would give it to anybody who comes with the gateway's key."""

from __future__ import annotations

from aiohttp import web
from msgspec import structs

from lockstitch.gateway.deciding.refusals import Refusal, unreachable
from lockstitch.gateway.lines import LineFailure
from lockstitch.gateway.responding.passing import asking_of, fetched, passed, refused, told
from lockstitch.gateway.upstreams import Reached
from lockstitch.gateway.world import Caller, World

NOT_FOUND = 404


def named(world: World, caller: Caller, name: str) -> Reached | None:
    """The upstream of this name; None if there is none any more, or not for this key."""
    return next((one for one in world.upstreams_for(caller) if one.name == name), None)


def keepers(world: World, caller: Caller) -> list[Reached]:
    """The upstreams that keep responses and conversations, as far as this key may use them."""
    return [
        upstream
        for upstream in world.upstreams_for(caller)
        if upstream.keeps_state and upstream.speaks_http and "responses" in upstream.told.apis
    ]


async def asked_elsewhere(
    world: World,
    caller: Caller,
    request: web.BaseRequest,
    missing: Refusal,
    *,
    probe: str | None = None,
) -> web.StreamResponse:
    """Pass a request about an unknown id on: to each upstream in turn, until one does not say that
    there is no such thing. ``probe`` is what is asked instead to find out, where the answer itself
    is a stream."""
    upstreams = keepers(world, caller)
    if world.config.unknown_chains == "refuse" or not upstreams:
        return refused(caller, missing)
    caller.note("unknown to the journal: passed on")
    if len(upstreams) == 1:
        asking = await asking_of(request, upstreams[0], caller)
        return await passed(world, caller, request, upstreams[0], asking)
    down: Refusal | None = None
    for upstream in upstreams:
        asking = await asking_of(request, upstream, caller)
        first = asking if probe is None else structs.replace(asking, target=probe)
        try:
            whole = await fetched(upstream, first)
        except LineFailure as failure:
            caller.note_failure(upstream.name, failure)
            down = unreachable(upstream.name, failure)
            continue
        if whole.status == NOT_FOUND:
            continue
        if probe is not None:
            return await passed(world, caller, request, upstream, asking)
        caller.upstream = upstream.name
        return told(caller, whole)
    # Where one could not be asked, nobody can say that it does not have it.
    return refused(caller, missing if down is None else down)
