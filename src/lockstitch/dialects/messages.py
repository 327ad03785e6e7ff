"""Anthropic Messages: messages of blocks; results stand first in the user turn that follows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from lockstitch.core import families
from lockstitch.core.families import Family
from lockstitch.core.items import Item, Part, note_of
from lockstitch.core.outcomes import MARK, Settlement
from lockstitch.core.pairing import Order
from lockstitch.dialects import signs
from lockstitch.dialects.base import (
    PartsOfMessages,
    Wire,
    marked,
    part_types,
    text_of,
    unread,
    without,
)

_INPUT_ITEM: Final = Item(Part.INPUT)
_MODEL_ITEM: Final = Item(Part.MODEL)
_OTHER_ITEM: Final = Item(Part.OTHER)
_FIELDS: Final = frozenset(
    {
        "role",
        "content",
        "id",
        "type",
        "model",
        "stop_reason",
        "stop_sequence",
        "stop_details",
        "usage",
        "container",
        "context_management",
    }
)
"""Fields of a message that hold no block but `content`, which is read."""
_BLOCKS: Final = frozenset(
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
"""Blocks that only this dialect has."""

_CALLS: Final = {
    family.call_type: family
    for family in (families.TOOL_USE, families.SERVER_TOOL_USE, families.MCP_TOOL_USE)
}
_RESULTS: Final = {
    family.output_type: family for family in (families.TOOL_USE, families.MCP_TOOL_USE)
}


_PLAIN_BLOCKS: Final = frozenset({"text", "image", "thinking", "redacted_thinking", "document"})
_NOTHING_LEFT: Final = {"type": "text", "text": f"{MARK} A result that stood here was taken away."}
"""The first message must be the user's, so it stays even if all its results go."""


class Messages(PartsOfMessages):
    """The dialect of the Messages API. Slot n is the n-th content block of a message."""

    name = "messages"
    order = Order.NEXT_TURN

    def claims(self, wire: Mapping[str, Any]) -> bool:
        if not isinstance(wire.get("role"), str):
            return False
        kinds = part_types(wire.get("content"))
        return any(kind in _BLOCKS or kind.endswith("_tool_result") for kind in kinds)

    def read(self, wire: Mapping[str, Any]) -> Sequence[Item]:
        role = wire.get("role")
        if not isinstance(role, str):
            return (marked(_OTHER_ITEM, signs.sign_within(wire)),)
        plain = _MODEL_ITEM if role == "assistant" else _INPUT_ITEM
        blocks = wire.get("content")
        if (sign := signs.sign_beside(wire, _FIELDS)) is not None or not isinstance(blocks, list):
            return (marked(plain, sign),)
        return [_block(block, n, plain.part) for n, block in enumerate(blocks)] or (plain,)

    def output(
        self, family: Family, key: str | None, said: Settlement, name: str | None = None
    ) -> Wire:
        if family is families.SERVER_TOOL_USE:
            return _server_result(key, name)
        if family is families.MCP_TOOL_USE:
            return _result({"type": family.output_type, "tool_use_id": key}, said)
        return _result({"type": "tool_result", "tool_use_id": key}, said)

    def emptied(self, wire: Wire) -> Wire | None:
        return {**wire, "content": [_NOTHING_LEFT]}

    def put(self, outputs: list[Wire]) -> list[Wire]:
        return [{"role": "user", "content": outputs}]

    def retype(self, wire: Wire, slot: int, family: Family, name: str | None = None) -> Wire:
        block = wire["content"][slot]
        kind = family.output_type
        if family is families.SERVER_TOOL_USE:
            kind = str(_server_result(None, name)["type"])
        return self.with_part(wire, slot, {**block, "type": kind})

    def rekey(self, wire: Wire, slot: int, old: str, new: str) -> Wire:
        block = wire["content"][slot]
        field = "id" if block.get("type") in _CALLS else "tool_use_id"
        return self.with_part(wire, slot, {**block, field: new})

    def reword(self, wire: Wire, slot: int, said: Settlement) -> Wire:
        return self.with_part(wire, slot, _result(wire["content"][slot], said))


def _block(block: object, slot: int, plain: Part) -> Item:
    kind = block.get("type") if isinstance(block, dict) else None
    if not isinstance(block, dict):
        return Item(plain, slot=slot)
    if not isinstance(kind, str):
        return marked(Item(plain, slot=slot), signs.sign_within(block))
    family = _CALLS.get(kind)
    if family is not None:
        key = text_of(block.get("id"))
        if key is None:
            return unread(f"a {kind} block without an id", slot)
        name, said = text_of(block.get("name")), text_of(block.get("input"))
        return Item(Part.CALL, family, key, name=name, slot=slot, arguments=said)
    if kind.endswith("tool_result"):
        key = text_of(block.get("tool_use_id"))
        family = _RESULTS.get(kind, families.SERVER_TOOL_USE)
        return Item(
            Part.OUTPUT,
            family,
            key,
            slot=slot,
            note=note_of(block.get("content")),
            # The user's side answers `tool_use`; the server answers in the model's own turn.
            misplaced=(plain is Part.MODEL) is not family.by_server,
        )
    if plain is Part.MODEL and kind in ("thinking", "redacted_thinking"):
        return Item(Part.REASONING, slot=slot)
    item = Item(plain, slot=slot)
    return marked(item, signs.sign_of(block))


def _result(block: Wire, said: Settlement) -> Wire:
    result = {**without(block, "is_error"), "content": said.text}
    return result if said.well else {**result, "is_error": True}


def _server_result(key: str | None, name: str | None) -> Wire:
    """A result in the form that the server itself uses for a tool that failed."""
    tool = name or "web_search"
    if tool.startswith("tool_search_tool"):
        tool = "tool_search_tool"  # its variants share one form
        return {
            "type": f"{tool}_result",
            "tool_use_id": key,
            "content": {"type": f"{tool}_result_error", "error_code": "unavailable"},
        }
    error = {"type": f"{tool}_tool_result_error", "error_code": "unavailable"}
    return {"type": f"{tool}_tool_result", "tool_use_id": key, "content": error}
