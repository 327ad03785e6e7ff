"""Frames of the Realtime API as the gateway sees them: which concern items, and what is read of it.

All others, audio above all, are told by their type and never read. Pure; what follows from a
frame is decided in `realtime`."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Raw, Struct

from lockstitch.dialects.characters import whole_characters
from lockstitch.dialects.reading import UNREADABLE
from lockstitch.gateway.events import changed

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

LONGEST_ID_CHARACTERS: Final = 256
"""Ids come from outside, and are remembered for as long as their connection lives. Providers' have
about 30; what has a longer one is not known."""


def is_too_long(text: str | None) -> bool:
    """Is it no id that is remembered?"""
    return text is not None and len(text) > LONGEST_ID_CHARACTERS


class Item(Struct, gc=False):
    """What is read of an item: never what it says."""

    id: str | None = None
    type: str | None = None
    call_id: str | None = None
    status: str | None = None

    def __post_init__(self) -> None:
        if is_too_long(self.id):
            self.id = None
        if is_too_long(self.type):
            self.type = None
        if is_too_long(self.call_id):
            self.call_id = None
        if is_too_long(self.status):
            self.status = None


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
    previous_item_id: str | None = None
    item: Item | None = None


class ServerFrame(Struct):
    """What is read of the provider's event."""

    type: str = ""
    item_id: str | None = None
    previous_item_id: str | None = None
    item: Item | None = None
    response_id: str | None = None
    response: Response | None = None
    error: Refused | None = None

    def __post_init__(self) -> None:
        if is_too_long(self.response_id):
            self.response_id = None
        if self.previous_item_id is not None:
            # One that is too long stays so: without it the item would stand at the head.
            self.previous_item_id = self.previous_item_id[: LONGEST_ID_CHARACTERS + 1]


_client: Final = msgspec.json.Decoder(ClientFrame).decode
_server: Final = msgspec.json.Decoder(ServerFrame).decode
_typed: Final = re.compile(rb'\s*\{\s*"type"\s*:\s*"([^"\\]*)"').match
_WATCHED: Final = frozenset(named.encode() for named in WATCHED)


def from_client(payload: bytes) -> ClientFrame | None:
    """A client's event, if it may be about an item."""
    if not _may_name_items(payload):
        return None
    try:
        return _client(payload)
    except UNREADABLE:
        return _loosely(ClientFrame, _mended(payload))


def _may_name_items(payload: bytes) -> bool:
    """Does it hold the name of such an event, or letters that are escaped and may be one?

    Clients write the type in front of the audio or behind it. Audio has no dots and no escapes, so
    next to nothing is left to search, and finding that out costs nearly nothing."""
    first, last = payload.find(b"."), payload.rfind(b".")
    return payload.find(b".item.", first, last + 1) >= 0 or payload.find(b"\\") >= 0


def from_upstream(payload: bytes) -> ServerFrame | None:
    """The provider's event, if anything follows from it. Providers write the type first."""
    named = _typed(payload)
    if named is not None and named[1] not in _WATCHED:
        return None
    frame: ServerFrame | None
    try:
        frame = _server(payload)
    except UNREADABLE:
        frame = _loosely(ServerFrame, _mended(payload))
    return frame if frame is not None and frame.type in WATCHED else None


# --- frames that are not quite right -------------------------------------------------------------
# Providers and clients take more than we can read: half a character that somebody cut in two, a
# field of another type. What can be read of such a frame counts all the same; a call whose output
# went unheard would be in flight for ever.

_escaped_half: Final = re.compile(rb"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")

_Read = TypeVar("_Read", ClientFrame, ServerFrame, Item, Response, Refused)


def _mended(payload: bytes) -> bytes:
    """A frame that says something else, but in whole characters. Ids and types have no others."""
    whole = payload.decode("utf-8", "replace").encode()
    return _escaped_half.sub(b"?", whole.replace(rb"\\", b"??"))


def _by_field(kind: type[Struct]) -> type[Struct]:
    unread = [(field.name, Raw, Raw(b"null")) for field in msgspec.structs.fields(kind)]
    return msgspec.defstruct(f"{kind.__name__}ByField", unread)


_BY_FIELD: Final = {
    kind: msgspec.json.Decoder(_by_field(kind))
    for kind in (ClientFrame, ServerFrame, Item, Response, Refused)
}
_INNER: Final = {"item": Item, "response": Response, "error": Refused}


def _loosely(kind: type[_Read], payload: bytes | Raw) -> _Read | None:
    """What can be read, each field by itself; of a list nothing is."""
    try:
        fields = msgspec.structs.asdict(_BY_FIELD[kind].decode(payload))
    except UNREADABLE:
        return None  # it is no JSON, and whoever gets it tells what is wrong with it
    found: dict[str, Any] = {}
    for name, value in fields.items():
        with suppress(*UNREADABLE):
            inner = _INNER.get(name)
            found[name] = _text(value) if inner is None else _loosely(inner, value)
    return kind(**found)


_text: Final = msgspec.json.Decoder(str).decode


# --- frames that are made here -------------------------------------------------------------------


def behind(payload: bytes, previous: str | None) -> bytes | None:
    """The same frame with this predecessor; None if not all of it can be read: what is changed
    would not stay as it came."""
    if whole_characters(payload) != payload:
        return None
    try:
        return changed(payload, {"previous_item_id": previous})
    except UNREADABLE:
        return None


def delete_of(item_id: str, event_id: str) -> bytes:
    """A delete of the gateway's own."""
    return msgspec.json.encode({"type": DELETE, "event_id": event_id, "item_id": item_id})


def error_for(client_event: str | None, own_id: str, *, code: str, message: str) -> bytes:
    """An `error` in the provider's form; ``own_id`` is its own event id."""
    error: dict[str, Any] = {"type": INVALID, "code": code, "message": message, "param": None}
    error["event_id"] = client_event
    return msgspec.json.encode({"type": ERROR, "event_id": own_id, "error": error})
