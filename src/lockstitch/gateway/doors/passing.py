"""Everything else under `/v1`: it goes to the first upstream that may be used, as it came.

What stands below an API (`/v1/messages/count_tokens`) goes to the first that has that API."""

from __future__ import annotations

from aiohttp import web

from lockstitch.gateway.deciding.asked import Api
from lockstitch.gateway.doors.joining import joined
from lockstitch.gateway.responding.passing import asking_of, passed
from lockstitch.gateway.world import Caller, World


async def everything_else(
    world: World, caller: Caller, request: web.BaseRequest, api: Api | None = None
) -> web.StreamResponse:
    """A request of which the gateway knows at most the API that it belongs to."""
    upstream, *_ = world.some_upstreams_for(caller, api=api)
    asking = await asking_of(request, upstream, caller)
    return await passed(world, caller, request, upstream, asking, api=api or Api.RESPONSES)


async def sockets(world: World, caller: Caller, request: web.BaseRequest) -> web.StreamResponse:
    """A WebSocket that the gateway knows nothing of."""
    return await joined(world, caller, request, world.some_upstreams_for(caller)[0])
