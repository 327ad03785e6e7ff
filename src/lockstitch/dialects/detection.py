"""Which dialect is this? Told from the items themselves.

Items are looked at in order until one of them can only be of one dialect. Text alone tells
nothing, and needs nothing: every dialect agrees about it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from lockstitch.core import families
from lockstitch.core.errors import UnknownDialect
from lockstitch.dialects.base import Dialect, text_of
from lockstitch.dialects.chat import Chat
from lockstitch.dialects.messages import Messages
from lockstitch.dialects.realtime import Realtime
from lockstitch.dialects.responses import ITEM_TYPES, Responses

DIALECTS: Final[dict[str, Dialect]] = {
    "responses": Responses(),
    "chat": Chat(),
    "messages": Messages(),
    "realtime": Realtime(),
}

_REALTIME: Final = DIALECTS["realtime"]
_REALTIME_TYPES: Final = frozenset(
    {
        "message",
        "mcp_call",
        "mcp_list_tools",
        *(family.call_type for family in families.REALTIME_FAMILIES),
        *(family.output_type for family in families.REALTIME_FAMILIES),
    }
)
_CHAT_ROLES: Final = frozenset({"tool", "function"})
_CHAT_PARTS: Final = frozenset({"image_url", "input_audio", "refusal"})
_MESSAGES_BLOCKS: Final = frozenset(
    {
        "tool_use",
        "tool_result",
        "server_tool_use",
        "mcp_tool_use",
        "thinking",
        "redacted_thinking",
        "document",
    }
)
_RESPONSES_PARTS: Final = frozenset({"input_text", "output_text", "input_image", "input_file"})


def by_name(name: str) -> Dialect:
    """The dialect of that name."""
    try:
        return DIALECTS[name]
    except KeyError:
        known = ", ".join(DIALECTS)
        raise UnknownDialect(f"There is no dialect {name!r}. Choose one of: {known}.") from None


def sign(wire: Mapping[str, Any]) -> str | None:
    """The dialect that this wire item must be written in, if it tells."""
    if wire.get("object") == "realtime.item":
        return "realtime"
    kind = wire.get("type")
    if isinstance(kind, str) and kind in ITEM_TYPES and kind != "message":
        return "responses"
    role = wire.get("role")
    if not isinstance(role, str):
        return None
    if role in _CHAT_ROLES or isinstance(wire.get("tool_calls"), list):
        return "chat"
    parts = _part_types(wire.get("content"))
    if any(part in _MESSAGES_BLOCKS or part.endswith("_tool_result") for part in parts):
        return "messages"
    if kind == "message" or parts & _RESPONSES_PARTS:
        return "responses"
    return "chat" if parts & _CHAT_PARTS else None


def _part_types(content: object) -> set[str]:
    if not isinstance(content, list):
        return set()
    kinds = [part.get("type") for part in content if isinstance(part, dict)]
    return {kind for kind in kinds if isinstance(kind, str)}


def detect(history: Iterable[object], otherwise: Dialect | None = None) -> Dialect:
    """The dialect of a history. Where nothing tells: ``otherwise``, or one that finds nothing
    wrong with text."""
    saw_role = False
    for wire in history:
        if isinstance(wire, Mapping):
            name = sign(wire)
            if name is not None and not (otherwise is _REALTIME and _in_realtime_too(name, wire)):
                return DIALECTS[name]
            saw_role = saw_role or "role" in wire
    return otherwise or DIALECTS["chat" if saw_role else "responses"]


def _in_realtime_too(name: str, wire: Mapping[str, Any]) -> bool:
    """Without its `object` field, a realtime item looks like a Responses item of the same type."""
    return name == "responses" and text_of(wire.get("type")) in _REALTIME_TYPES
