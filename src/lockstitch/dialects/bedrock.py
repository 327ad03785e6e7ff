"""Bedrock Converse: messages of blocks without a type; each block has one field that says what it
is. Results stand first in the user turn that follows, as in Anthropic Messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from lockstitch.core import families
from lockstitch.core.families import Family
from lockstitch.core.items import Item, Part, note_of
from lockstitch.core.outcomes import MARK, Settlement
from lockstitch.core.pairing import Order
from lockstitch.dialects import signs
from lockstitch.dialects.base import PartsOfMessages, Wire, marked, text_of, unread, without

_CALL, _OUTPUT, _MODEL, _INPUT = Part.CALL, Part.OUTPUT, Part.MODEL, Part.INPUT
_MODEL_ITEM: Final = Item(_MODEL)
_INPUT_ITEM: Final = Item(_INPUT)
_OTHER_ITEM: Final = Item(Part.OTHER)

_CLIENT: Final = families.BEDROCK_TOOL_USE
_SERVER: Final = families.BEDROCK_SERVER_TOOL_USE
_FIELDS: Final = frozenset({"role", "content"})
_PLAIN: Final = frozenset(
    {
        "text",
        "image",
        "document",
        "video",
        "audio",
        "guardContent",
        "cachePoint",
        "reasoningContent",
        "citationsContent",
        "searchResult",
        "toolAddition",
        "toolRemoval",
    }
)
"""Blocks in which no call can be."""
_BLOCKS: Final = _PLAIN | {"toolUse", "toolResult"}
_NOTHING_LEFT: Final = {"text": f"{MARK} A tool result that stood here was removed."}
"""The first message must be the user's, so it stays even if all its results go."""


class Bedrock(PartsOfMessages):
    """The dialect of the Bedrock Converse API. Slot n is the n-th block of a message."""

    name = "bedrock"
    order = Order.NEXT_TURN

    def claims(self, wire: Mapping[str, Any]) -> bool:
        content = wire.get("content")
        if not isinstance(content, list) or "type" in wire or not isinstance(wire.get("role"), str):
            return False
        for block in content:
            if isinstance(block, dict) and block:
                return _BLOCKS.issuperset(block)
        return False

    def read(self, wire: Mapping[str, Any]) -> Sequence[Item]:
        role = wire.get("role")
        blocks = wire.get("content")
        if not isinstance(role, str) and not _are_known(blocks):
            return (marked(_OTHER_ITEM, signs.sign_within(wire)),)
        plain = _MODEL_ITEM if role == "assistant" else _INPUT_ITEM
        if (sign := signs.sign_beside(wire, _FIELDS)) is not None or not isinstance(blocks, list):
            return (marked(plain, sign or signs.sign_within(blocks)),)
        items = [_block(block, n, plain) for n, block in enumerate(blocks)]
        if plain is _MODEL_ITEM and len(items) > 1:
            _with_their_calls(blocks, items)
        return items or (plain,)

    def output(
        self, family: Family, key: str | None, said: Settlement, name: str | None = None
    ) -> Wire:
        return {"toolResult": _saying({"toolUseId": key}, said)}

    def emptied(self, wire: Wire) -> Wire | None:
        return {**wire, "content": [_NOTHING_LEFT]}

    def put(self, outputs: list[Wire]) -> list[Wire]:
        return [{"role": "user", "content": outputs}]

    def put_into(self, wire: Wire, outputs: list[Wire]) -> Wire:
        content = wire.get("content")
        if isinstance(content, str) and content:
            wire = {**wire, "content": [{"text": content}]}
        return super().put_into(wire, outputs)

    def retype(self, wire: Wire, slot: int, family: Family, name: str | None = None) -> Wire:
        # Only a result in the model's turn can be of the wrong family, and its type shows that.
        block = wire["content"][slot]
        result = without(block["toolResult"], "type")
        return self.with_part(wire, slot, {**block, "toolResult": result})

    def rekey(self, wire: Wire, slot: int, old: str, new: str) -> Wire:
        block = wire["content"][slot]
        field = "toolUse" if block.get("toolUse") is not None else "toolResult"
        changed = {**block[field], "toolUseId": new}
        return self.with_part(wire, slot, {**block, field: changed})

    def reword(self, wire: Wire, slot: int, said: Settlement) -> Wire:
        block = wire["content"][slot]
        return self.with_part(
            wire, slot, {**block, "toolResult": _saying(block["toolResult"], said)}
        )


def _are_known(blocks: object) -> bool:
    """Are these blocks of this dialect, so that a message without a role is one all the same?"""
    if not isinstance(blocks, list) or not blocks:
        return False
    return all(isinstance(block, dict) and _BLOCKS.issuperset(block) for block in blocks)


def _block(block: object, slot: int, plain: Item) -> Item:
    if not isinstance(block, dict):
        return marked(Item(plain.part, slot=slot), signs.sign_within(block))
    call, result = block.get("toolUse"), block.get("toolResult")
    if call is not None:
        return unread("a call and a result in one block", slot) if result else _call(call, slot)
    if result is not None:
        return _result(result, slot, plain)
    if plain is _MODEL_ITEM and "reasoningContent" in block:
        item = Item(Part.REASONING, slot=slot)
    else:
        item = plain if slot == 0 else Item(plain.part, slot=slot)
    if len(block) == 1 and isinstance(block.get("text"), str):
        return item
    return marked(item, _sign_in_block(block))


def _sign_in_block(block: Mapping[str, Any]) -> str | None:
    for name, value in block.items():
        known = name in _PLAIN
        if known and (name == "text" or not isinstance(value, str)):
            sign = signs.sign_within(value)
        else:
            sign = signs.sign_in_field(name, value)
        if sign is not None:
            return f"`{name}`: {sign}"
    return None


def _call(call: object, slot: int) -> Item:
    key = text_of(call.get("toolUseId")) if isinstance(call, dict) else None
    if not isinstance(call, dict) or key is None:
        return unread("a toolUse block without an id", slot)
    family = _SERVER if call.get("type") == "server_tool_use" else _CLIENT
    given = call.get("input")
    said = given if given.__class__ is str and given else None
    return Item(
        _CALL,
        family,
        key,
        None,
        None,
        text_of(call.get("name")),
        slot,
        arguments=said,
    )


def _result(result: object, slot: int, plain: Item) -> Item:
    if not isinstance(result, dict):
        return unread("a toolResult that is not an object", slot)
    note = None
    content = result.get("content")
    if content.__class__ is list and len(content) == 1 and isinstance(content[0], dict):
        note = note_of(content[0].get("text"))
    in_model_turn = plain is _MODEL_ITEM
    # In the model's turn, a result with a type is what the server gave back.
    by_server = in_model_turn and result.get("type") is not None
    return Item(
        _OUTPUT,
        _SERVER if by_server else _CLIENT,
        text_of(result.get("toolUseId")),
        None,
        None,
        None,
        slot,
        False,
        note,
        None,
        in_model_turn and not by_server,
    )


def _with_their_calls(blocks: Sequence[object], items: list[Item]) -> None:
    """A result in the message of a call that the server ran is the server's, type or not."""
    served = {item.key for item in items if item.family is _SERVER and item.part is _CALL}
    if served:
        for n, item in enumerate(items):
            if item.part is _OUTPUT and item.misplaced and item.key in served:
                items[n] = Item(_OUTPUT, _SERVER, item.key, slot=n, note=item.note)


def _saying(result: Wire, said: Settlement) -> Wire:
    changed = {**without(result, "status"), "content": [{"text": said.text}]}
    return changed if said.well else {**changed, "status": "error"}
