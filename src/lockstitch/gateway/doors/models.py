"""`GET /v1/models`: what the upstreams have, each as far as it is asked for it."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
from aiohttp import web

from lockstitch.gateway.lines import LineFailure
from lockstitch.gateway.responding.passing import asking_of, fetched, passed, told_json
from lockstitch.gateway.upstreams import Reached
from lockstitch.gateway.world import Caller, World


async def models(world: World, caller: Caller, request: web.BaseRequest) -> web.StreamResponse:
    """The models that this key may use, of all upstreams."""
    upstreams = world.some_upstreams_for(caller)
    if len(upstreams) == 1 and upstreams[0].told.models == ("*",):
        asking = await asking_of(request, upstreams[0], caller)
        return await passed(world, caller, request, upstreams[0], asking)
    lists = await asyncio.gather(*(_listed(request, one, caller) for one in upstreams))
    found: dict[str, Any] = {}
    for one, listed in zip(upstreams, lists, strict=True):
        for model in listed:
            name = model.get("id") if isinstance(model, dict) else None
            if isinstance(name, str) and one.told.serves(name):
                found.setdefault(name, model)
    body = msgspec.json.encode({"object": "list", "data": list(found.values())})
    return told_json(caller, body)


async def _listed(request: web.BaseRequest, upstream: Reached, caller: Caller) -> list[Any]:
    try:
        whole = await fetched(upstream, await asking_of(request, upstream, caller))
        data = msgspec.json.decode(whole.body).get("data") if whole.status == 200 else None
    except LineFailure as failure:
        caller.note_failure(upstream.name, failure)
        return []
    except (msgspec.DecodeError, ValueError, AttributeError, RecursionError):
        return []
    return data if isinstance(data, list) else []
