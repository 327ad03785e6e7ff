"""Everything else under `/v1`: it goes to the first upstream that may be used, as it came."""

from __future__ import annotations

from aiohttp import web

from lockstitch.gateway.deciding import refusals
from lockstitch.gateway.doors.joining import joined
from lockstitch.gateway.responding.passing import asking_of, passed, refused
from lockstitch.gateway.world import Caller, World


async def everything_else(
    world: World, caller: Caller, request: web.BaseRequest
) -> web.StreamResponse:
    """A request that the gateway knows nothing of."""
    upstreams = world.upstreams_for(caller)
    if not upstreams:
        return refused(caller, refusals.no_such_model(None))
    asking = await asking_of(request, upstreams[0], caller)
    return await passed(world, caller, request, upstreams[0], asking)


async def sockets(world: World, caller: Caller, request: web.BaseRequest) -> web.StreamResponse:
    """A WebSocket that the gateway knows nothing of."""
    upstreams = world.upstreams_for(caller)
    if not upstreams:
        return refused(caller, refusals.no_such_model(None))
    return await joined(world, caller, request, upstreams[0])
