"""Anthropic Messages: messages of blocks; results stand first in the user turn that follows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from lockstitch.core import families
from lockstitch.core.families import Family
from lockstitch.core.items import LONGEST_NOTE_CHARACTERS, Item, Part, Place
from lockstitch.core.outcomes import Settlement
from lockstitch.core.pairing import Order
from lockstitch.dialects.base import Answers, Wire, text_of, without

_INPUT_ITEM: Final = Item(Part.INPUT)
_MODEL_ITEM: Final = Item(Part.MODEL)
_OTHER_ITEM: Final = Item(Part.OTHER)

_SERVER_CALLS: Final = frozenset({"server_tool_use", "mcp_tool_use"})


class Messages:
    """The dialect of the Messages API. Slot n is the n-th content block of a message."""

    name = "messages"
    order = Order.NEXT_TURN
    answers = Answers.IN_TURN

    def read(self, wire: Mapping[str, Any]) -> Sequence[Item]:
        role = wire.get("role")
        if not isinstance(role, str):
            return (_OTHER_ITEM,)
        plain = _MODEL_ITEM if role == "assistant" else _INPUT_ITEM
        blocks = wire.get("content")
        if not isinstance(blocks, list):
            return (plain,)
        return [_block(block, n, plain.part) for n, block in enumerate(blocks)] or (plain,)

    def may_begin(self, items: Sequence[Item]) -> bool:
        # "first message must use the user role", and one that answers nothing before it.
        return all(item.part is Part.INPUT for item in items)

    def output(
        self, family: Family, key: str | None, said: Settlement, name: str | None = None
    ) -> Wire:
        if family is families.SERVER_TOOL_USE:
            return _server_result(key, None, said.text)
        return _result({"type": "tool_result", "tool_use_id": key}, said)

    def take(self, wire: Wire, slots: set[int]) -> tuple[Wire | None, list[Wire]]:
        blocks = wire["content"]
        taken = [block for n, block in enumerate(blocks) if n in slots]
        left = [block for n, block in enumerate(blocks) if n not in slots]
        return ({**wire, "content": left} if left else None), taken

    def put(self, outputs: list[Wire]) -> list[Wire]:
        return [{"role": "user", "content": outputs}]

    def put_into(self, wire: Wire, outputs: list[Wire]) -> Wire:
        content = wire.get("content")
        if isinstance(content, str) and content:
            content = [{"type": "text", "text": content}]
        blocks = content if isinstance(content, list) else []
        return {**wire, "content": [*outputs, *blocks]}

    def beside(self, family: Family, after: Place) -> bool:
        return family.by_server  # the server's results stand in the assistant's own message

    def put_beside(self, wire: Wire, slot: int, output: Wire) -> Wire:
        blocks = list(wire["content"])
        call = blocks[slot]
        name = None if call.get("type") == "mcp_tool_use" else text_of(call.get("name"))
        result = _server_result(output["tool_use_id"], name, str(output["content"]))
        return {**wire, "content": [*blocks[: slot + 1], result, *blocks[slot + 1 :]]}

    def retype(self, wire: Wire, slot: int, family: Family) -> Wire:
        block = wire["content"][slot]
        key = text_of(block.get("tool_use_id"))
        if family is families.TOOL_USE:
            new: Wire = {**block, "type": "tool_result"}
        else:
            new = _server_result(key, None, "")
            new["content"] = block.get("content")
        return _with_block(wire, slot, new)

    def rekey(self, wire: Wire, slot: int, old: str, new: str) -> Wire:
        block = wire["content"][slot]
        field = "tool_use_id" if "tool_use_id" in block else "id"
        return _with_block(wire, slot, {**block, field: new})

    def reword(self, wire: Wire, slot: int, said: Settlement) -> Wire:
        return _with_block(wire, slot, _result(wire["content"][slot], said))

    def strip_id(self, wire: Wire, slot: int) -> Wire:
        return wire  # blocks have no id of their own here


def _block(block: object, slot: int, plain: Part) -> Item:
    if not isinstance(block, dict):
        return Item(plain, slot=slot)
    kind = block.get("type")
    if kind == "tool_use" or kind in _SERVER_CALLS:
        key = text_of(block.get("id"))
        if key is None:
            return Item(Part.OTHER, slot=slot)
        family = families.TOOL_USE if kind == "tool_use" else families.SERVER_TOOL_USE
        return Item(Part.CALL, family, key, name=text_of(block.get("name")), slot=slot)
    if isinstance(kind, str) and kind.endswith("tool_result"):
        key = text_of(block.get("tool_use_id"))
        if key is None:
            return Item(Part.OTHER, slot=slot)
        family = families.TOOL_USE if kind == "tool_result" else families.SERVER_TOOL_USE
        content = block.get("content")
        short = isinstance(content, str) and len(content) <= LONGEST_NOTE_CHARACTERS
        return Item(Part.OUTPUT, family, key, slot=slot, note=content if short else None)
    if kind in ("thinking", "redacted_thinking"):
        return Item(Part.REASONING, slot=slot)
    return Item(plain, slot=slot)


def _result(block: Wire, said: Settlement) -> Wire:
    result = {**without(block, "is_error"), "content": said.text}
    return result if said.well else {**result, "is_error": True}


def _with_block(wire: Wire, slot: int, block: Wire) -> Wire:
    blocks = list(wire["content"])
    blocks[slot] = block
    return {**wire, "content": blocks}


def _server_result(key: str | None, name: str | None, text: str) -> Wire:
    """A result in the form that the server itself uses for a tool that failed."""
    if name is None:
        return {"type": "mcp_tool_result", "tool_use_id": key, "is_error": True, "content": text}
    error = {"type": f"{name}_tool_result_error", "error_code": "unavailable"}
    return {"type": f"{name}_tool_result", "tool_use_id": key, "content": error}
