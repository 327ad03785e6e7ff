"""Which dialect is this? Detected from the items themselves.

Items are looked at in order until one of them can only be of one dialect. Text alone shows nothing,
and needs nothing: every dialect agrees about it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from lockstitch.core import families
from lockstitch.core.errors import UnknownDialect
from lockstitch.dialects.base import Dialect, text_of
from lockstitch.dialects.bedrock import Bedrock
from lockstitch.dialects.chat import Chat
from lockstitch.dialects.gemini import Gemini
from lockstitch.dialects.langchain import LangChain
from lockstitch.dialects.messages import Messages
from lockstitch.dialects.opencode import Opencode
from lockstitch.dialects.pi import Pi
from lockstitch.dialects.pydantic_ai import PydanticAI
from lockstitch.dialects.realtime import Realtime
from lockstitch.dialects.responses import Responses
from lockstitch.dialects.vercel import Vercel
from lockstitch.dialects.vercel_ui import VercelUI

DIALECTS: Final[dict[str, Dialect]] = {
    "responses": Responses(),
    "chat": Chat(),
    "messages": Messages(),
    "realtime": Realtime(),
    "gemini": Gemini(),
    "bedrock": Bedrock(),
    "pydantic-ai": PydanticAI(),
    "langchain": LangChain(),
    "pi": Pi(),
    "vercel": Vercel(),
    "vercel-ui": VercelUI(),
    "opencode": Opencode(),
}

_ASKED: Final = (
    "opencode",
    "realtime",
    "vercel",
    "vercel-ui",
    "pi",
    "pydantic-ai",
    "langchain",
    "gemini",
    "bedrock",
    "chat",
    "messages",
    "responses",
)
"""Which dialect an item is of is asked in this order: what is more specific comes first."""

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


def by_name(name: str) -> Dialect:
    """The dialect of that name."""
    try:
        return DIALECTS[name]
    except KeyError:
        known = ", ".join(DIALECTS)
        raise UnknownDialect(f"There is no dialect {name!r}. Choose one of: {known}.") from None


def sign(wire: Mapping[str, Any]) -> str | None:
    """The dialect that this wire item must be written in, if it shows."""
    return next((name for name in _ASKED if DIALECTS[name].claims(wire)), None)


def detect(history: Iterable[object], otherwise: Dialect | None = None) -> Dialect:
    """The dialect of a history. Where nothing shows it: ``otherwise``, or one that finds nothing
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
