"""`/v1/conversations`, and all below it.

A conversation is where it was made: at an upstream that keeps state, which then is asked and has
the last word, or in the gateway's own journal."""

from __future__ import annotations

import msgspec
from aiohttp import web

from lockstitch.core.records import Name, Naming
from lockstitch.gateway.deciding.conversation_bodies import items_in, missing, read_body
from lockstitch.gateway.deciding.listing import MOST_LISTED_ITEMS, Paging, page, paging
from lockstitch.gateway.deciding.refusals import Refusal, conversation_not_found, unreachable
from lockstitch.gateway.doors.unknown import NOT_FOUND, asked_elsewhere, keepers, named
from lockstitch.gateway.events import body_of
from lockstitch.gateway.keeping.conversation_facts import Conversation
from lockstitch.gateway.keeping.conversations import EDIT_PATIENCE_SECONDS
from lockstitch.gateway.keeping.journal import is_id
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
from lockstitch.gateway.responding.preparing import check_references
from lockstitch.gateway.upstreams import Reached
from lockstitch.gateway.world import Caller, World

_ALL = Paging(limit=MOST_LISTED_ITEMS, newest_first=False)


async def create(world: World, caller: Caller, request: web.BaseRequest) -> web.StreamResponse:
    """`POST /v1/conversations`: at the first upstream that keeps them and can be reached. If none
    keeps any, here; also if none can be reached and there is another that can go on with one of
    ours."""
    await check_references(world, caller, items_in(await request.read()))
    lost: Refusal | None = None
    for upstream in keepers(world, caller):
        try:
            whole = await fetched(upstream, await asking_of(request, upstream, caller))
        except LineFailure as failure:
            # Should it be there all the same, nobody knows of it, and nobody misses it.
            caller.note_failure(upstream.name, failure)
            lost = unreachable(upstream.name, failure)
            continue
        return await _made(world, caller, upstream, whole)
    if lost is not None:
        if not any(_is_kept_for(one) for one in world.upstreams_for(caller)):
            return refused(caller, lost)
        caller.note("the gateway stores the conversation itself")
    asked = read_body(await request.read())
    made = await world.conversations.begin(
        caller.tenant, created=world.clock(), metadata=asked.metadata, items=asked.items or ()
    )
    return told_json(caller, made.body())


def _is_kept_for(upstream: Reached) -> bool:
    """Does the gateway keep responses and conversations for this upstream?"""
    return not upstream.keeps_state and "responses" in upstream.told.apis


async def _made(
    world: World, caller: Caller, upstream: Reached, whole: Whole
) -> web.StreamResponse:
    """Whose it is must be known before anybody has its id."""
    caller.upstream = upstream.name
    made = body_of(whole.body).id if whole.status < 300 else None
    if made is not None and is_id(made):
        await world.conversations.begin(
            caller.tenant, made, upstream=upstream.name, created=world.clock()
        )
    return told(caller, whole)


async def retrieve(
    world: World, caller: Caller, request: web.BaseRequest, conversation: str
) -> web.StreamResponse:
    """`GET /v1/conversations/{id}`"""
    found = await _here(world, caller, request, conversation)
    return found if isinstance(found, web.StreamResponse) else told_json(caller, found.body())


async def update(
    world: World, caller: Caller, request: web.BaseRequest, conversation: str
) -> web.StreamResponse:
    """`POST /v1/conversations/{id}`: other metadata, in place of all that was there."""
    found = await _here(world, caller, request, conversation)
    if isinstance(found, web.StreamResponse):
        return found
    body = await request.read()
    asked = read_body(body)
    if asked.metadata is None and b'"metadata"' not in body:
        raise missing("metadata")
    async with world.conversations.held(
        caller.tenant, conversation, wait=EDIT_PATIENCE_SECONDS
    ) as held:
        await held.set_metadata(asked.metadata or {})
        return told_json(caller, held.conversation.body())


async def delete(
    world: World, caller: Caller, request: web.BaseRequest, conversation: str
) -> web.StreamResponse:
    """`DELETE /v1/conversations/{id}`: nothing of it is left here."""
    known = await world.conversations.read(caller.tenant, conversation)
    if known is not None and not known.upstream:
        await world.conversations.delete(caller.tenant, conversation)
        gone = {"id": conversation, "object": "conversation.deleted", "deleted": True}
        return told_json(caller, msgspec.json.encode(gone))
    upstream = named(world, caller, known.upstream) if known is not None else None
    if upstream is None:
        return await _unknown(world, caller, request, conversation, known)
    caller.upstream = upstream.name
    whole = await fetched(upstream, await asking_of(request, upstream, caller))
    if whole.status < 300 or whole.status == NOT_FOUND:
        await world.conversations.delete(caller.tenant, conversation)
    return told(caller, whole)


async def add_items(
    world: World, caller: Caller, request: web.BaseRequest, conversation: str
) -> web.StreamResponse:
    """`POST /v1/conversations/{id}/items`. Sent twice they are there twice."""
    await check_references(world, caller, items_in(await request.read()))
    try:
        found = await _here(world, caller, request, conversation)
    except LineFailure as failure:
        caller.note_failure(caller.upstream, failure)
        return refused(caller, unreachable(caller.upstream, failure, again=False))
    if isinstance(found, web.StreamResponse):
        return found
    asked = read_body(await request.read())
    if asked.items is None:
        raise missing("items")
    async with world.conversations.held(
        caller.tenant, conversation, wait=EDIT_PATIENCE_SECONDS
    ) as held:
        before = len(held.conversation.entries)
        await held.add(asked.items)
        return told_json(caller, page(held.conversation.listed()[before:], _ALL))


async def list_items(
    world: World, caller: Caller, request: web.BaseRequest, conversation: str
) -> web.StreamResponse:
    """`GET /v1/conversations/{id}/items`"""
    found = await _here(world, caller, request, conversation)
    if isinstance(found, web.StreamResponse):
        return found
    return told_json(caller, page(found.listed(), paging(request.query)))


async def retrieve_item(
    world: World, caller: Caller, request: web.BaseRequest, conversation: str, item: str
) -> web.StreamResponse:
    """`GET /v1/conversations/{id}/items/{item_id}`"""
    found = await _here(world, caller, request, conversation)
    if isinstance(found, web.StreamResponse):
        return found
    return told_json(caller, found.shown(found.find(item)).item)


async def delete_item(
    world: World, caller: Caller, request: web.BaseRequest, conversation: str, item: str
) -> web.StreamResponse:
    """`DELETE /v1/conversations/{id}/items/{item_id}`: the answer is the conversation."""
    found = await _here(world, caller, request, conversation)
    if isinstance(found, web.StreamResponse):
        return found
    async with world.conversations.held(
        caller.tenant, conversation, wait=EDIT_PATIENCE_SECONDS
    ) as held:
        await held.remove(item)
        return told_json(caller, held.conversation.body())


# --- where it is -------------------------------------------------------------------------------


async def _here(
    world: World, caller: Caller, request: web.BaseRequest, conversation: str
) -> Conversation | web.StreamResponse:
    """The conversation, if the gateway keeps it; else the answer of whoever does."""
    known = await world.conversations.read(caller.tenant, conversation)
    if known is not None and not known.upstream:
        return known
    upstream = named(world, caller, known.upstream) if known is not None else None
    if upstream is None:
        return await _unknown(world, caller, request, conversation, known)
    asking = await asking_of(request, upstream, caller)
    return await passed(world, caller, request, upstream, asking)


async def _unknown(
    world: World,
    caller: Caller,
    request: web.BaseRequest,
    conversation: str,
    known: Conversation | None,
) -> web.StreamResponse:
    missing = conversation_not_found(conversation)
    if known is not None or await world.is_anothers(
        caller, Name(Naming.CONVERSATION, conversation)
    ):
        return refused(caller, missing)
    return await asked_elsewhere(world, caller, request, missing)
