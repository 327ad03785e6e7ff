"""Chat Completions and Messages: the whole history comes with each request, so it is judged, and
passed on. Nothing of them is kept."""

from __future__ import annotations

from aiohttp import web

from lockstitch.gateway.deciding import guard, refusals, routing
from lockstitch.gateway.deciding.asked import Api, Asked, read, rebuilt
from lockstitch.gateway.deciding.guard import Guarding
from lockstitch.gateway.deciding.refusals import RequestRefused
from lockstitch.gateway.lines import Asking, LineFailure
from lockstitch.gateway.responding.passing import passed, refused, target_of
from lockstitch.gateway.world import Caller, World


async def exchange(
    world: World, caller: Caller, request: web.BaseRequest, api: Api
) -> web.StreamResponse:
    """Pass on a request whose history is whole, or was made so."""
    asked = read(await request.read(), api)
    bodies: dict[Guarding, bytes] = {Guarding.OFF: asked.body}
    # To the first that can be reached: what never left may go elsewhere.
    for upstream in world.route(caller, api, asked.model).values():
        mode = Guarding(caller.guard(upstream))
        if mode not in bodies:
            bodies[mode] = _judged(world, caller, asked, mode)
        asking = Asking(
            method=request.method,
            target=target_of(request),
            headers=upstream.headers(caller.headers),
            body=bodies[mode],
        )
        try:
            return await passed(world, caller, request, upstream, asking, api=api)
        except LineFailure as failure:
            caller.note_failure(upstream.name, failure)
            lost = upstream.name, failure
            if failure.sent:
                break
            upstream.cooling_until = routing.cooling_until(world.clock())
    return refused(caller, refusals.unreachable(*lost), api)


def _judged(world: World, caller: Caller, asked: Asked, mode: Guarding) -> bytes:
    """The body as this guard lets it go on. Raises `RequestRefused`."""
    result = guard.guarded(asked.items(), mode=mode, dialect=asked.api.dialect)
    world.note_findings(caller, mode, result, asked.model)
    if result.refused:
        raise RequestRefused(refusals.not_whole(result.refused, asked.api))
    if result.items is None:
        return asked.body
    return rebuilt(asked, items=result.items, origins=result.origins)
