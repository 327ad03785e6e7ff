"""Chat Completions and Messages: the whole history comes with each request, so it is judged, and
passed on. Nothing of them is kept."""

from __future__ import annotations

from aiohttp import web

from lockstitch.gateway.deciding import guard, refusals, routing
from lockstitch.gateway.deciding.asked import Api, read, rebuilt
from lockstitch.gateway.deciding.guard import Guarding
from lockstitch.gateway.lines import Asking, LineFailure
from lockstitch.gateway.responding.passing import passed, refused, target_of
from lockstitch.gateway.world import Caller, World


async def exchange(
    world: World, caller: Caller, request: web.BaseRequest, api: Api
) -> web.StreamResponse:
    """Pass on a request whose history is whole, or was made so."""
    asked = read(await request.read(), api)
    upstreams = list(world.route(caller, api, asked.model).values())
    mode = Guarding(caller.guard(upstreams[0]))
    body = asked.body
    if mode is not Guarding.OFF:
        result = guard.guarded(asked.items(), mode=mode, dialect=api.dialect)
        world.note_findings(caller, mode, result.findings)
        if result.refused:
            return refused(caller, refusals.not_whole(result.refused, api), api)
        if result.items is not None:
            body = rebuilt(asked, items=result.items, origins=result.origins)
    # To the first that can be reached: what never left may go elsewhere.
    for upstream in upstreams:
        asking = Asking(
            method=request.method,
            target=target_of(request),
            headers=upstream.headers(caller.headers),
            body=body,
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
