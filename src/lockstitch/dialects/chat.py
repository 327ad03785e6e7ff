"""Chat Completions: messages; the outputs of one assistant message follow it before any other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from lockstitch.core import families
from lockstitch.core.families import Family
from lockstitch.core.items import LONGEST_NOTE_CHARACTERS, Item, Part
from lockstitch.core.outcomes import Settlement
from lockstitch.core.pairing import Order
from lockstitch.dialects.base import OwnItems, Wire, text_of

_INPUT_ITEM: Final = Item(Part.INPUT)
_MODEL_ITEM: Final = Item(Part.MODEL)
_OTHER_ITEM: Final = Item(Part.OTHER)


class Chat(OwnItems):
    """The dialect of the Chat Completions API. Slot n is the n-th tool call of a message."""

    name = "chat"
    order = Order.NEXT

    def read(self, wire: Mapping[str, Any]) -> Sequence[Item]:
        role = wire.get("role")
        if role == "assistant":
            calls = wire.get("tool_calls")
            if not isinstance(calls, list):
                return (_MODEL_ITEM,)
            read = [item for n, call in enumerate(calls) if (item := _call(call, n)) is not None]
            return read or (_MODEL_ITEM,)
        if role == "tool":
            key = text_of(wire.get("tool_call_id"))
            if key is None:
                return (_OTHER_ITEM,)
            content = wire.get("content")
            short = isinstance(content, str) and len(content) <= LONGEST_NOTE_CHARACTERS
            return (
                Item(
                    Part.OUTPUT,
                    families.CHAT_TOOL,
                    key,
                    name=text_of(wire.get("name")),
                    note=content if short else None,
                ),
            )
        return (_INPUT_ITEM,) if isinstance(role, str) else (_OTHER_ITEM,)

    def output(
        self, family: Family, key: str | None, said: Settlement, name: str | None = None
    ) -> Wire:
        return {"role": "tool", "tool_call_id": key, "content": said.text}

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


def _call(call: object, slot: int) -> Item | None:
    if not isinstance(call, dict):
        return None
    key = text_of(call.get("id"))
    if key is None:
        return None
    body = call.get("function", call.get("custom"))
    name = text_of(body.get("name")) if isinstance(body, dict) else None
    return Item(Part.CALL, families.CHAT_TOOL, key, name=name, slot=slot)
