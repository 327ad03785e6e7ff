"""LiveKit's `ChatContext.to_dict()`: items much like Responses items, with fields of their own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from lockstitch.core.families import Family
from lockstitch.core.outcomes import Settlement
from lockstitch.dialects.base import Wire, text_of
from lockstitch.dialects.responses import Responses

_OWN_TYPES: Final = frozenset({"agent_handoff", "agent_config_update"})
_SHARED_TYPES: Final = frozenset({"message", "function_call", "function_call_output"})


def is_chat_context(history: Iterable[Any]) -> bool:
    """Are these LiveKit's items? Told by what only LiveKit writes."""
    for wire in history:
        if not isinstance(wire, dict):
            return False
        kind = text_of(wire.get("type"))
        if kind in _OWN_TYPES or (kind == "function_call_output" and "is_error" in wire):
            return True
        if kind == "message" and isinstance(wire.get("interrupted"), bool):
            return True
        if kind not in _SHARED_TYPES:
            return False
    return False


class LiveKitItems(Responses):
    """Items of a `ChatContext`: one family of calls; an output says whether it is an error."""

    name = "livekit"

    def output(
        self, family: Family, key: str | None, said: Settlement, name: str | None = None
    ) -> Wire:
        return {
            "id": f"item_{key}_output",
            "type": "function_call_output",
            "name": name or "",
            "call_id": key,
            "output": said.text,
            "is_error": not said.well,
        }
