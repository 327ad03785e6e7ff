"""`GET /v1/models`, and one of them: what the upstreams have, each as far as it is asked for it."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
from aiohttp import web

from lockstitch.gateway.deciding.refusals import Refusal, unreachable
from lockstitch.gateway.lines import LineFailure
from lockstitch.gateway.responding.passing import (
    Whole,
    asking_of,
    fetched,
    passed,
    refused,
    told,
    told_json,
)
from lockstitch.gateway.upstreams import Reached
from lockstitch.gateway.world import Caller, World

NOT_FOUND = 404


async def models(world: World, caller: Caller, request: web.BaseRequest) -> web.StreamResponse:
    """The models that this key may use, of all upstreams."""
    upstreams = world.some_upstreams_for(caller)
    if len(upstreams) == 1 and upstreams[0].told.models == ("*",):
        asking = await asking_of(request, upstreams[0], caller)
        return await passed(world, caller, request, upstreams[0], asking)
    lists = await asyncio.gather(*(_listed(request, one, caller) for one in upstreams))
    if not any(isinstance(listed, list) for listed in lists):
        # That there are none would be something else. Any of them can say why.
        return next(told for told in lists if isinstance(told, web.Response))
    found: dict[str, Any] = {}
    for one, listed in zip(upstreams, lists, strict=True):
        for model in listed if isinstance(listed, list) else ():
            name = model.get("id") if isinstance(model, dict) else None
            if isinstance(name, str) and one.told.serves(name):
                found.setdefault(name, model)
    body = msgspec.json.encode({"object": "list", "data": list(found.values())})
    return told_json(caller, body)


async def model(
    world: World, caller: Caller, request: web.BaseRequest, name: str
) -> web.StreamResponse:
    """`GET /v1/models/{id}`: as the first upstream tells it that has it."""
    upstreams = world.some_upstreams_for(caller, model=name)
    missing: Whole | None = None
    away: Refusal | None = None
    for upstream in upstreams:
        try:
            whole = await fetched(upstream, await asking_of(request, upstream, caller))
        except LineFailure as failure:
            caller.note_failure(upstream.name, failure)
            away = away or unreachable(upstream.name, failure)
            continue
        caller.upstream = upstream.name
        if whole.status != NOT_FOUND:
            return told(caller, whole)
        missing = missing or whole
    if away is not None:
        # Where one could not be asked, nobody can say that it does not have it.
        return refused(caller, away)
    assert missing is not None
    return told(caller, missing)


async def _listed(
    request: web.BaseRequest, upstream: Reached, caller: Caller
) -> list[Any] | web.Response:
    """What an upstream lists; a refusal, its own or ours, where it does not say."""
    try:
        whole = await fetched(upstream, await asking_of(request, upstream, caller))
        if (why := upstream.why_refused(whole.status)) is not None:
            caller.note(why)
        if whole.status != 200:
            return told(caller, whole)
        data = msgspec.json.decode(whole.body).get("data")
    except LineFailure as failure:
        caller.note_failure(upstream.name, failure)
        return refused(caller, unreachable(upstream.name, failure))
    except (msgspec.DecodeError, ValueError, AttributeError, RecursionError):
        return []
    return data if isinstance(data, list) else []
