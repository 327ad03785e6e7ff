"""Everything else under `/v1`: it goes to the first upstream that may be used, as it came."""

from __future__ import annotations

from aiohttp import web

from lockstitch.gateway.doors.joining import joined
from lockstitch.gateway.responding.passing import asking_of, passed
from lockstitch.gateway.world import Caller, World


async def everything_else(
    world: World, caller: Caller, request: web.BaseRequest
) -> web.StreamResponse:
    """A request that the gateway knows nothing of."""
    upstream = world.some_upstreams_for(caller)[0]
    asking = await asking_of(request, upstream, caller)
    return await passed(world, caller, request, upstream, asking)


async def sockets(world: World, caller: Caller, request: web.BaseRequest) -> web.StreamResponse:
    """A WebSocket that the gateway knows nothing of."""
    return await joined(world, caller, request, world.some_upstreams_for(caller)[0])
