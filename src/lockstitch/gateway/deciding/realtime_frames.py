"""Frames of the Realtime API as the gateway sees them: which concern items, and what is read of it.

All others, audio above all, are told by their type and never read. Pure; what follows from a
frame is decided in `realtime`."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec
from msgspec import Struct

CREATE: Final = "conversation.item.create"
DELETE: Final = "conversation.item.delete"

ADDED: Final = "conversation.item.added"
CREATED: Final = "conversation.item.created"
"""Azure's word for it."""
DONE: Final = "conversation.item.done"
DELETED: Final = "conversation.item.deleted"
COMMITTED: Final = "input_audio_buffer.committed"
OUTPUT_ADDED: Final = "response.output_item.added"
OUTPUT_DONE: Final = "response.output_item.done"
RESPONSE_DONE: Final = "response.done"
ERROR: Final = "error"

TELLING: Final = frozenset({ADDED, CREATED, DONE})
"""Events that tell of an item of the conversation, and where it stands. One that was only retrieved
may stand anywhere, and may have been answered before anybody listened."""

WATCHED: Final = TELLING | {DELETED, COMMITTED, OUTPUT_ADDED, OUTPUT_DONE, RESPONSE_DONE, ERROR}
"""Events that anything follows from, or that name a predecessor. All others only pass."""

CALL: Final = "function_call"
OUTPUT: Final = "function_call_output"
INVALID: Final = "invalid_request_error"


class Item(Struct, gc=False):
    """What is read of an item: never what it says."""

    id: str | None = None
    type: str | None = None
    call_id: str | None = None
    status: str | None = None


class Response(Struct):
    """What is read of a response that ended."""

    id: str | None = None
    output: list[Item] | None = None


class Refused(Struct, gc=False):
    """What is read of an error."""

    event_id: str | None = None
    """The client event that it answers."""


class ClientFrame(Struct):
    """What is read of a client's event."""

    type: str = ""
    event_id: str | None = None
    item_id: str | None = None
    item: Item | None = None


class ServerFrame(Struct):
    """What is read of the provider's event."""

    type: str = ""
    event_id: str | None = None
    item_id: str | None = None
    previous_item_id: str | None = None
    item: Item | None = None
    response_id: str | None = None
    response: Response | None = None
    error: Refused | None = None


_client: Final = msgspec.json.Decoder(ClientFrame).decode
_server: Final = msgspec.json.Decoder(ServerFrame).decode
_typed: Final = re.compile(rb'\s*\{\s*"type"\s*:\s*"([^"\\]*)"').match
_WATCHED: Final = frozenset(named.encode() for named in WATCHED)
_UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def from_client(payload: bytes) -> ClientFrame | None:
    """A client's event, if it may be about an item."""
    if not _may_name_items(payload):
        return None
    try:
        return _client(payload)
    except _UNREADABLE:
        return None  # the provider tells what is wrong with it


def _may_name_items(payload: bytes) -> bool:
    """Does it hold the name of such an event, or letters that are escaped and may be one?

    Clients write the type in front of the audio or behind it. Audio has no dots and no escapes, so
    next to nothing is left to search, and finding that out costs nearly nothing."""
    first, last = payload.find(b"."), payload.rfind(b".")
    return payload.find(b".item.", first, last + 1) >= 0 or b"\\" in payload


def from_upstream(payload: bytes) -> ServerFrame | None:
    """The provider's event, if anything follows from it. Providers write the type first."""
    named = _typed(payload)
    if named is not None and named[1] not in _WATCHED:
        return None
    try:
        frame = _server(payload)
    except _UNREADABLE:
        return None
    return frame if frame.type in WATCHED else None


def delete_of(item_id: str, event_id: str) -> bytes:
    """A delete of the gateway's own."""
    return msgspec.json.encode({"type": DELETE, "event_id": event_id, "item_id": item_id})


def error_for(client_event: str | None, own_id: str, *, code: str, message: str) -> bytes:
    """An `error` in the provider's form; ``own_id`` is its own event id."""
    error: dict[str, Any] = {"type": INVALID, "code": code, "message": message, "param": None}
    error["event_id"] = client_event
    return msgspec.json.encode({"type": ERROR, "event_id": own_id, "error": error})
