"""OpenAI Realtime items: Responses items of fewer kinds, in the order of the server's list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lockstitch.core import families
from lockstitch.core.families import Family
from lockstitch.core.items import Item, Part
from lockstitch.core.outcomes import Settlement
from lockstitch.dialects.base import Wire
from lockstitch.dialects.responses import Responses

LONGEST_CALL_ID_CHARACTERS = 32
"""The provider's limit for a realtime `call_id`."""


class Realtime(Responses):
    """The dialect of a realtime conversation's items."""

    name = "realtime"

    def claims(self, wire: Mapping[str, Any]) -> bool:
        return wire.get("object") == "realtime.item"

    def read(self, wire: Mapping[str, Any]) -> Sequence[Item]:
        (item,) = super().read(wire)
        if item.family is not None and item.family not in families.REALTIME_FAMILIES:
            # A call of another family cannot be in a realtime conversation; if one is, it is a
            # type this dialect does not know.
            sign = f"type `{wire.get('type')}`, which a realtime conversation cannot hold"
            return (Item(Part.OTHER, id=item.id, unread=sign),)
        if item.part is Part.INPUT and wire.get("type") == families.FUNCTION.output_type:
            # "function_call_output.call_id is required": without one it answers nothing.
            return (Item(Part.OUTPUT, families.FUNCTION, id=item.id),)
        return (item,)

    def output(
        self, family: Family, key: str | None, said: Settlement, name: str | None = None
    ) -> Wire:
        wire = super().output(family, key, said, name)
        if family is families.MCP_APPROVAL:
            wire["id"] = f"{key}_response"  # required here
        return wire

    def rekey(self, wire: Wire, slot: int, old: str, new: str) -> Wire:
        if len(new) > LONGEST_CALL_ID_CHARACTERS:
            # From the front: what tells ids apart is at their end.
            new = new[-LONGEST_CALL_ID_CHARACTERS:]
        return super().rekey(wire, slot, old, new)
