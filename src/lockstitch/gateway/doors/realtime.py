"""`GET /v1/realtime` with an upgrade: it passes, with a mirror beside it.

What becomes of a frame is decided in `deciding.realtime`, and carried out in `joining`."""

from __future__ import annotations

from aiohttp import web

from lockstitch.gateway.deciding import refusals
from lockstitch.gateway.deciding.realtime import RealtimeConversation
from lockstitch.gateway.doors.joining import joined
from lockstitch.gateway.responding.passing import refused
from lockstitch.gateway.upstreams import Reached
from lockstitch.gateway.world import Caller, World


async def attend(world: World, caller: Caller, request: web.BaseRequest) -> web.StreamResponse:
    """Join the client to the first upstream that has the model."""
    model = request.query.get("model")
    fitting = (
        one for one in world.upstreams_for(caller) if model is None or one.told.serves(model)
    )
    upstream = next(fitting, None)
    if upstream is None:
        return refused(caller, refusals.no_such_model(model))
    return await joined(world, caller, request, upstream, _conversation(world, caller, upstream))


def _conversation(world: World, caller: Caller, upstream: Reached) -> RealtimeConversation | None:
    """What decides about the frames; None where all of them only pass."""
    if caller.guard(upstream) == "off":
        return None
    settings = world.config.realtime
    return RealtimeConversation(
        carries_out=settings.deletes_in_flight == "carry-out",
        held_seconds=settings.held_seconds,
    )
