"""A warm-up that no upstream can be asked for: the gateway gives the response itself.

It says nothing and can be gone on from; what it was asked is sent with the first real request."""

from __future__ import annotations

import secrets
from typing import Any

import msgspec
from msgspec import Raw

from lockstitch.gateway.deciding.asked import Asked
from lockstitch.gateway.deciding.retrying import Shown
from lockstitch.gateway.events import COMPLETED, CREATED, IN_PROGRESS, Heard, as_sse, peeked
from lockstitch.gateway.keeping.notes import AskedNote
from lockstitch.gateway.keeping.recordings import Recording
from lockstitch.gateway.responding.preparing import Prepared
from lockstitch.gateway.showing.streams import Stream
from lockstitch.gateway.upstreams import Reached
from lockstitch.gateway.world import Caller, World

LOCAL_ID = "resp_ls"
"""What the ids of responses begin with that the gateway itself gave."""

_ECHOED = ("instructions", "metadata", "model", "parallel_tool_calls", "tool_choice", "tools")


async def warmed_up(
    world: World,
    caller: Caller,
    found: Prepared,
    upstream: Reached,
    stream: Stream,
    *,
    first: Recording | None,
) -> None:
    """Give a response that says nothing, and write it down. Where an upstream had begun with it,
    as ``first``, the client is told only its end, and the id under which it began leads there."""
    begun = stream.shown is not Shown.NOTHING
    now = world.clock()
    response = f"{LOCAL_ID}{secrets.token_hex(16)}"
    note = AskedNote(
        upstream=upstream.name,
        local=True,
        model=found.asked.model or "",
        base=found.base,
        anchored=found.asked.previous_response_id is not None,
        stored=False,
        created=now,
    )
    recording = Recording(world.exchanges, caller.tenant, note, found.added, brief=False)
    recording.first = first
    recording.opened(response)
    types = (CREATED, IN_PROGRESS, COMPLETED)
    for number, type_ in enumerate(types):
        ended = type_ == COMPLETED
        if begun and not ended:
            continue
        body = _response(found.asked, response, now, "completed" if ended else "in_progress")
        data = msgspec.json.encode({"type": type_, "sequence_number": number, "response": body})
        heard = Heard(peeked(data), data)
        if ended:
            recording.ended(type_, number, Raw(msgspec.json.encode(body)))
            durable = recording.durable()
            if durable is not None:
                await durable
            if first is not None:
                await first.lead_to(response)
        stream.begin(200, ())
        stream.show(as_sse(type_, data), (heard,))


def _response(asked: Asked, id: str, created: float, status: str) -> dict[str, Any]:
    body: dict[str, Any] = {
        "id": id,
        "object": "response",
        "created_at": int(created),
        "status": status,
        "error": None,
        "incomplete_details": None,
        "output": [],
        "previous_response_id": asked.previous_response_id,
        "store": asked.store,
        "usage": None,
    }
    body |= {name: asked.fields[name] for name in _ECHOED if name in asked.fields}
    return body
