"""Chat Completions: messages; the outputs of one assistant message follow it before any other.

The older `function_call` of an assistant and messages of the role `function` have no id that joins
them. They are not read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from lockstitch.core import families
from lockstitch.core.families import Family
from lockstitch.core.items import Item, Part, note_of
from lockstitch.core.outcomes import Settlement
from lockstitch.core.pairing import Order
from lockstitch.dialects import signs
from lockstitch.dialects.base import OwnItems, Wire, marked, part_types, text_of, unread, without

_INPUT_ITEM: Final = Item(Part.INPUT)
_MODEL_ITEM: Final = Item(Part.MODEL)
_OTHER_ITEM: Final = Item(Part.OTHER)
_ROLES: Final = frozenset({"tool", "function"})
_PARTS: Final = frozenset({"image_url", "input_audio", "refusal"})
_PARTS_AND_TEXT: Final = _PARTS | {"text", "file"}
_FIELDS: Final = frozenset(
    {
        "role",
        "content",
        "name",
        "refusal",
        "audio",
        "annotations",
        "reasoning_content",
        "tool_calls",
    }
)
"""Fields of a message that hold no call but `tool_calls`, which is read."""


class Chat(OwnItems):
    """The dialect of the Chat Completions API. Slot n is the n-th tool call of a message."""

    name = "chat"
    order = Order.NEXT

    def claims(self, wire: Mapping[str, Any]) -> bool:
        role = wire.get("role")
        if not isinstance(role, str):
            return False
        if isinstance(wire.get("tool_calls"), list):
            return True
        if role in _ROLES and ("tool_call_id" in wire or not isinstance(wire.get("content"), list)):
            return True  # a list without it may be of the Vercel AI SDK
        kinds = part_types(wire.get("content"))
        return (
            wire.get("type") is None and not _PARTS.isdisjoint(kinds) and kinds <= _PARTS_AND_TEXT
        )

    def read(self, wire: Mapping[str, Any]) -> Sequence[Item]:
        role = wire.get("role")
        if role == "assistant":
            calls = wire.get("tool_calls")
            if isinstance(calls, list) and calls:
                return [_call(call, n) for n, call in enumerate(calls)]
            return _plain(wire, _MODEL_ITEM)
        if role == "tool":
            key = text_of(wire.get("tool_call_id"))
            return (
                Item(
                    Part.OUTPUT,
                    families.CHAT_TOOL,
                    key,
                    name=text_of(wire.get("name")),
                    note=note_of(wire.get("content")),
                ),
            )
        if isinstance(role, str):
            return _plain(wire, _INPUT_ITEM)
        return (marked(_OTHER_ITEM, signs.sign_within(wire)),)

    def output(
        self, family: Family, key: str | None, said: Settlement, name: str | None = None
    ) -> Wire:
        return {"role": "tool", "tool_call_id": key, "content": said.text}

    def take(self, wire: Wire, slots: set[int]) -> tuple[Wire | None, list[Wire]]:
        if wire.get("role") == "tool":
            return None, [wire]
        taken = [call for n, call in enumerate(wire["tool_calls"]) if n in slots]
        left = [call for n, call in enumerate(wire["tool_calls"]) if n not in slots]
        if left:
            return {**wire, "tool_calls": left}, taken
        rest = without(wire, "tool_calls")
        return (rest if rest.get("content") else None), taken

    def retype(self, wire: Wire, slot: int, family: Family, name: str | None = None) -> Wire:
        return wire  # there is one family

    def rekey(self, wire: Wire, slot: int, old: str, new: str) -> Wire:
        if wire.get("role") == "tool":
            return {**wire, "tool_call_id": new}
        calls = list(wire["tool_calls"])
        calls[slot] = {**calls[slot], "id": new}
        return {**wire, "tool_calls": calls}

    def reword(self, wire: Wire, slot: int, said: Settlement) -> Wire:
        return {**wire, "content": said.text}

    def strip_id(self, wire: Wire, slot: int, nth: int = 2) -> Wire:
        return wire  # messages have no id here


def _plain(wire: Mapping[str, Any], item: Item) -> Sequence[Item]:
    """A message without calls, unless something in it looks like one."""
    return (marked(item, signs.sign_in_text(wire, _FIELDS)),)


def _call(call: object, slot: int) -> Item:
    key = text_of(call.get("id")) if isinstance(call, dict) else None
    if not isinstance(call, dict) or key is None:
        return unread("a tool call without an id", slot)
    body = call.get("function", call.get("custom"))
    name = arguments = None
    if isinstance(body, dict):
        name, arguments = text_of(body.get("name")), text_of(body.get("arguments"))
    return Item(Part.CALL, families.CHAT_TOOL, key, name=name, slot=slot, arguments=arguments)
