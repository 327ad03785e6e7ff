"""Responses that are asked for again: `/v1/responses/{id}`, and all below it.

What a tenant's journal has is its own. The upstream that keeps a response is asked first; what it
has lost, or never had, is told from the journal. How a response ended that nobody heard is written
down when an upstream shows it."""

from __future__ import annotations

import msgspec
from aiohttp import web

from lockstitch.core.records import Name, Naming
from lockstitch.dialects.reading import UNREADABLE
from lockstitch.gateway.deciding.listing import flag, page, paging, whole_number
from lockstitch.gateway.deciding.refusals import (
    Refusal,
    journal_unavailable,
    response_not_found,
    unreachable,
)
from lockstitch.gateway.doors.kept_responses import (
    Shows,
    asking_for,
    is_heard,
    keeper,
    known,
    path_of,
    write_end,
)
from lockstitch.gateway.doors.streaming_again import StreamAgain
from lockstitch.gateway.doors.unknown import NOT_FOUND, asked_elsewhere
from lockstitch.gateway.events import changed
from lockstitch.gateway.keeping import telling
from lockstitch.gateway.keeping.chains import ChainUnknown
from lockstitch.gateway.keeping.exchanges import Kept
from lockstitch.gateway.lines import LineFailure
from lockstitch.gateway.responding.passing import JSON, Whole, fetched, refused, told, told_json
from lockstitch.gateway.showing.streams import Log
from lockstitch.gateway.world import Caller, World


async def retrieve(
    world: World, caller: Caller, request: web.BaseRequest, response: str
) -> web.StreamResponse:
    """`GET /v1/responses/{id}`, also as a stream, from behind an event."""
    query = request.query
    streams = flag("stream", query.get("stream"))
    after = whole_number("starting_after", query.get("starting_after"), -1)
    if streams:
        told_again = await _streamed(world, caller, request, response, after=after)
        return told_again or await _unknown(world, caller, request, response, streams=True)
    kept = await known(world, caller.tenant, response)
    if kept is None:
        return await _unknown(world, caller, request, response)
    whole = await _asked(world, caller, request, kept)
    if isinstance(whole, Refusal):
        return refused(caller, whole)
    if whole is not None:
        return told(caller, _restored(whole, kept, response))
    return await _told(world, caller, kept, response)


async def delete(
    world: World, caller: Caller, request: web.BaseRequest, response: str
) -> web.StreamResponse:
    """`DELETE /v1/responses/{id}`: at its upstream, and in the journal."""
    tenant = caller.tenant
    kept = await known(world, tenant, response)
    if kept is None:
        return await _unknown(world, caller, request, response)
    upstream = keeper(world, caller, kept)
    if upstream is not None:
        caller.upstream = upstream.name
        whole = await fetched(upstream, asking_for(request, caller, upstream, path_of(kept.id)))
        if whole.status >= 300 and whole.status != NOT_FOUND:
            return told(caller, whole)
    for name in await world.exchanges.ids(tenant, response):
        log = world.runs.find(tenant, name)
        world.runs.forget(tenant, name)
        if log is not None:
            log.drop()  # one that is heard now is not kept for anybody when it ends
        await world.exchanges.forget(tenant, name)
        world.prefixes.forget(tenant, name)
    gone = msgspec.json.encode({"id": response, "object": "response", "deleted": True})
    return told_json(caller, gone)


async def cancel(
    world: World, caller: Caller, request: web.BaseRequest, response: str
) -> web.StreamResponse:
    """`POST /v1/responses/{id}/cancel`: for responses in the background."""
    kept = await known(world, caller.tenant, response)
    if kept is None:
        return await _unknown(world, caller, request, response)
    whole = await _asked(world, caller, request, kept, "/cancel", changes=True)
    if isinstance(whole, Refusal):
        return refused(caller, whole)
    if whole is not None:
        return told(caller, _restored(whole, kept, response))
    # One that did not end and that nobody hears was in the background, and is lost.
    was_heard = kept.ending is not None or await is_heard(world, caller.tenant, kept.id)
    if was_heard and not telling.is_of_the_background(kept):
        return refused(
            caller,
            Refusal(
                status=400,
                message=f"Response with id '{response}' cannot be cancelled: only a background "
                "response can.",
            ),
        )
    return await _told(world, caller, kept, response)


async def input_items(
    world: World, caller: Caller, request: web.BaseRequest, response: str
) -> web.StreamResponse:
    """`GET /v1/responses/{id}/input_items`: all that the response saw."""
    asked = paging(request.query)
    kept = await known(world, caller.tenant, response)
    if kept is None:
        return await _unknown(world, caller, request, response)
    whole = await _asked(world, caller, request, kept, "/input_items")
    if isinstance(whole, Whole):
        return told(caller, whole)
    try:
        path = await world.exchanges.path(caller.tenant, response)
    except ChainUnknown as error:
        if isinstance(whole, Refusal):
            return refused(caller, whole)
        caller.note(str(error))
        return refused(
            caller,
            Refusal(
                status=404,
                message=f"The input of response '{response}' is not all in the journal: {error}",
            ),
        )
    return told_json(caller, page(telling.input_items(path), asked))


# --- where it is -------------------------------------------------------------------------------


async def _streamed(
    world: World, caller: Caller, request: web.BaseRequest, response: str, *, after: int
) -> web.StreamResponse | None:
    """The response as a stream; None if the tenant has none of that id."""
    again = StreamAgain(world, caller, request, shown=response, after=after)
    log = _log(world, caller.tenant, response)
    if log is None:
        kept = await known(world, caller.tenant, response)
        if kept is None:
            return None
        log = _log(world, caller.tenant, kept.id)
        if log is None:
            return await again.from_elsewhere(kept)
    return await again.from_log(log)


def _log(world: World, tenant: str, response: str) -> Log | None:
    """What this process remembers of the response's events."""
    log = world.runs.find(tenant, response)
    return log if log is not None and log.kept else None


async def _asked(
    world: World,
    caller: Caller,
    request: web.BaseRequest,
    kept: Kept,
    below: str = "",
    *,
    changes: bool = False,
) -> Whole | Refusal | None:
    """What the upstream that keeps a response says; None if it has none, or where the journal
    can answer in its place while it is away. ``changes``: only the upstream can do it."""
    upstream = keeper(world, caller, kept)
    if upstream is None:
        return None
    caller.upstream = upstream.name
    journal_knows = kept.end_known and not changes
    asking = asking_for(request, caller, upstream, path_of(kept.id, below))
    try:
        whole = await fetched(upstream, asking)
    except LineFailure as failure:
        caller.note_failure(upstream.name, failure)
        if journal_knows:
            caller.note(f"{upstream.name} cannot be reached: answered from the journal")
            return None
        return unreachable(upstream.name, failure)
    if whole.status == NOT_FOUND or (whole.status >= 500 and journal_knows):
        caller.note(f"{upstream.name} returned {whole.status}: answered from the journal")
        return None
    if whole.status == 200 and below != "/input_items":
        shows = await write_end(world, caller, kept, whole.body)
        if shows is Shows.NOTHING:
            return journal_unavailable(asked=True)
        if shows is not Shows.AS_IT_CAME:
            caller.note("still being received: reported as in_progress")
            return Whole(200, JSON, telling.response(kept, kept.id, under_way=True))
    return whole


async def _unknown(
    world: World,
    caller: Caller,
    request: web.BaseRequest,
    response: str,
    *,
    streams: bool = False,
) -> web.StreamResponse:
    missing = response_not_found(response)
    if await world.is_anothers(caller, Name(Naming.RESPONSE, response)):
        return refused(caller, missing)
    return await asked_elsewhere(
        world, caller, request, missing, probe=path_of(response) if streams else None
    )


# --- told whole --------------------------------------------------------------------------------


def _restored(whole: Whole, kept: Kept, shown: str) -> Whole:
    """A response that was tried again has another id at its upstream; one that was rebuilt was
    asked for there in other words."""
    fields = kept.asked.asked_for() | ({"id": shown} if kept.id != shown else {})
    if not fields or whole.status != 200:
        return whole
    try:
        return Whole(whole.status, whole.headers, changed(whole.body, fields))
    except UNREADABLE:
        return whole


async def _told(world: World, caller: Caller, kept: Kept, shown: str) -> web.Response:
    """The response as the journal has it."""
    under_way = kept.ending is None and await is_heard(world, caller.tenant, kept.id)
    if kept.ending is None and not under_way:
        # It may have come to its end in between.
        kept = await world.exchanges.exchange(caller.tenant, shown) or kept
    return told_json(caller, telling.response(kept, shown, under_way=under_way))
