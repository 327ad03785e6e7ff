"""LiveKit's items as items of the wire, and whether the two say the same."""

from __future__ import annotations

import json
from collections.abc import Callable
from operator import itemgetter
from typing import Any, Final, TypeAlias

from livekit.agents.llm import ChatItem, ChatMessage, ImageContent
from livekit.agents.llm.chat_context import Instructions
from livekit.plugins.openai.realtime.utils import livekit_item_to_openai_item

from lockstitch.dialects.base import Wire

Said: TypeAlias = tuple[str, ...]
"""What an item says, in words that can be compared; see `alike`."""

Fields: TypeAlias = tuple[Any, ...]
"""The id of an item, and what it says; nothing else of it matters."""

Attributes: TypeAlias = dict[str, Any]
"""An item's ``__dict__``: of a model, one attribute after the other takes longer to get."""

_FIELDS: Final[dict[str, Callable[[Attributes], Fields]]] = {
    "message": itemgetter("id", "role", "content"),
    "function_call": itemgetter("id", "call_id", "name", "arguments"),
    "function_call_output": itemgetter("id", "call_id", "output"),
}

_FIELDS_OF_OTHERS: Final[Callable[[Attributes], Fields]] = itemgetter("id", "type")

LONGEST_CALL_ID: Final = 32
"""Of a longer one LiveKit sends a digest."""


def to_wire(item: ChatItem, fields: Fields) -> Wire:
    """The item as a client creates it. What is plain text is written here: LiveKit's models take
    longer than all the rest of an edit."""
    kind = item.type
    if kind == "message":
        name, role, parts = fields
        content = _plain_content(role, parts)
        if content is not None:
            return {"id": name, "type": kind, "role": _role(role), "content": content}
    elif kind == "function_call":
        name, call_id, function, arguments = fields
        if len(call_id) <= LONGEST_CALL_ID:
            return {
                "id": name,
                "type": kind,
                "call_id": call_id,
                "name": function,
                "arguments": arguments,
            }
    elif kind == "function_call_output":
        name, call_id, output = fields
        if len(call_id) <= LONGEST_CALL_ID:
            return {"id": name, "type": kind, "call_id": call_id, "output": output}
    return livekit_item_to_openai_item(item).model_dump(by_alias=True, exclude_unset=True)


def fields_of(kind: str) -> Callable[[Attributes], Fields]:
    """What gives the fields that matter, of the attributes of an item of this kind."""
    return _FIELDS.get(kind, _FIELDS_OF_OTHERS)


def said_by(item: ChatItem) -> Said:
    return said_in(item.type, fields_of(item.type)(item.__dict__))


def said_in(kind: str, fields: Fields) -> Said:
    """Role and words of a message, with the ids of its images; name and arguments; output."""
    if kind == "message":
        _, role, content = fields
        images = [part.id for part in content if isinstance(part, ImageContent)]
        return (kind, _role(role), *_words(content), *images)
    return (kind, *fields[1:]) if kind in _FIELDS else ()


def alike(one: Said, other: Said) -> bool:
    """Do these say the same? Arguments do if they are the same JSON."""
    if one == other or one[:1] != ("function_call",):
        return one == other
    return one[:-1] == other[:-1] and _compact(one[-1]) == _compact(other[-1])


def same(item: ChatItem, wire: Wire) -> bool:
    """Does the provider's item say this, to the letter? Only text, calls and outputs are read."""
    if item.type == "message":
        return wire.get("role") == _role(item.role) and _all_text(item) == _text_of(wire)
    if item.type == "function_call":
        told = wire.get("arguments")
        return item.name == wire.get("name") and (
            item.arguments == told or _compact(item.arguments) == _compact(told)
        )
    return item.type == "function_call_output" and item.output == wire.get("output")


def is_speech(wire: Wire) -> bool:
    """Does it hold audio?"""
    return any(str(part.get("type")).endswith("audio") for part in _parts(wire))


def _compact(arguments: Any) -> str:
    """Arguments without the blanks between them: LiveKit writes them anew when a tool starts."""
    try:
        return json.dumps(json.loads(arguments), separators=(",", ":"))
    except (TypeError, ValueError):
        return str(arguments)


def _role(role: str) -> str:
    return "system" if role == "developer" else role  # the wire knows no developer


def _plain_content(role: str, parts: list[Any]) -> list[dict[str, str]] | None:
    """The parts of a message that is all text, of somebody whom the wire knows; else None."""
    kind = "output_text" if role == "assistant" else "input_text"
    content: list[dict[str, str]] = []
    for part in parts:
        if not isinstance(part, str):
            return None
        content.append({"type": kind, "text": part})
    return content


def _words(content: list[Any]) -> list[str]:
    return [str(part) for part in content if isinstance(part, (str, Instructions))]


def _all_text(item: ChatMessage) -> list[str] | None:
    words = _words(item.content)
    return words if len(words) == len(item.content) else None


def _text_of(wire: Wire) -> list[str] | None:
    """The words of its parts; None if a part has none."""
    parts = _parts(wire)
    words = [part.get("text", part.get("transcript")) for part in parts]
    told = [word for word in words if isinstance(word, str)]
    return told if parts and len(told) == len(parts) else None


def _parts(wire: Wire) -> list[dict[str, Any]]:
    content = wire.get("content")
    return [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []
