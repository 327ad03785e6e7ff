"""When two wire items are the same item: for matching what comes back from outside.

Clients and providers give items back with fields added, dropped or spelled another way. A
likeness is what is left when all of that is taken away. It is never an identity: the second equal
message is a second message, so whoever matches walks both sides in order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from lockstitch.core.errors import NotAnItem
from lockstitch.dialects.base import Wire, text_of

_encoder = msgspec.json.Encoder(order="deterministic")

_PASSING: Final = frozenset({"id", "status", "object", "phase", "created_by", "internal_metadata"})
"""What one side adds to an item and the other does not keep."""

_PASSING_IN_PARTS: Final = frozenset({"annotations", "logprobs", "cache_control"})

_TEXTS: Final = frozenset({"input_text", "output_text", "text"})

_NAMED_BY_ID: Final = frozenset(
    {"mcp_approval_request", "item_reference", "local_shell_call", "local_shell_call_output"}
)
"""Items whose id is part of what they say."""


def likeness(wire: Mapping[str, Any]) -> bytes:
    """Bytes that are equal for two items that say the same."""
    kind = text_of(wire.get("type"))
    if kind == "reasoning":
        carried = wire.get("encrypted_content")
        return _encoded(["reasoning", carried or wire.get("id") or wire.get("summary")])
    said: dict[str, Any] = {}
    for name, value in wire.items():
        named = name == "id" and kind in _NAMED_BY_ID
        if value is None or value == [] or (name in _PASSING and not named):
            continue
        said[name] = value
    said.setdefault("type", "message")
    for name in ("content", "output"):
        if name in said:
            said[name] = _plain(said[name])
    return _encoded(said)


def _encoded(value: Any) -> bytes:
    try:
        return _encoder.encode(value)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise NotAnItem(f"This item cannot be written as JSON: {error}.") from None


def _plain(value: Any) -> Any:
    """Content as one text where it is nothing else."""
    if not isinstance(value, list):
        return value
    parts = [_part(part) for part in value]
    if len(parts) == 1 and isinstance(parts[0], str):
        return parts[0]
    return parts


def _part(part: Any) -> Any:
    if not isinstance(part, dict):
        return part
    kept: Wire = {
        name: value
        for name, value in part.items()
        if value is not None and name not in _PASSING_IN_PARTS
    }
    if kept.keys() == {"type", "text"} and text_of(kept["type"]) in _TEXTS:
        return kept["text"]
    return kept
