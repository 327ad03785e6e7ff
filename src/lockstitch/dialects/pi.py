"""Messages of pi and OpenClaw (`AgentMessage`): calls are parts, each result is a message.

pi sends the results of one assistant message directly after it. It skips assistant messages that
ended in an error or were aborted, so calls in those are no calls, and a result for one is an
orphan. A call that the model did not finish writing still carries the unfinished text; it is read
in skipped messages too, because repairs elsewhere write results for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from lockstitch.core import families
from lockstitch.core.families import Family
from lockstitch.core.items import Item, Part, is_unfinished, note_of
from lockstitch.core.outcomes import Settlement
from lockstitch.core.pairing import Order
from lockstitch.dialects import signs
from lockstitch.dialects.base import OwnItems, Wire, marked, part_types, text_of, unread

_CALL, _OUTPUT = Part.CALL, Part.OUTPUT
_TOOL: Final = families.PI_TOOL
_INPUT_ITEM: Final = Item(Part.INPUT)
_MODEL_ITEM: Final = Item(Part.MODEL)
_OTHER_ITEM: Final = Item(Part.OTHER)
_SKIPPED: Final = frozenset({"error", "aborted"})
"""Stop reasons of assistant messages that pi never sends."""
_UNFINISHED: Final = ("partialJson", "partialArgs")
"""Where a call that was cut off keeps what the model had written of its arguments."""
_OTHER_IDS: Final = ("toolUseId", "tool_use_id", "tool_call_id", "callId", "call_id")
"""Fields in which OpenClaw looks for the call id of a result that has no `toolCallId`."""
_OWN_ROLES: Final = frozenset({"toolResult", "bashExecution", "compactionSummary", "branchSummary"})
_PLAIN_PARTS: Final = frozenset({"text", "thinking", "image"})
_NOTHING: Final = frozenset({"thinking"})
"""Parts that do not stay when all calls of their message go: providers refuse reasoning that leads
to nothing."""
_FIELDS: Final = frozenset(
    {
        "role",
        "content",
        "timestamp",
        "api",
        "provider",
        "model",
        "responseModel",
        "responseId",
        "diagnostics",
        "usage",
        "stopReason",
        "errorMessage",
        "customType",
        "display",
        "details",
    }
)
"""Fields of a message that hold no call but `content`, which is read."""


class Pi(OwnItems):
    """The dialect of pi. Slot n is the n-th part of an assistant message."""

    name = "pi"
    order = Order.NEXT

    def claims(self, wire: Mapping[str, Any]) -> bool:
        role = wire.get("role")
        if role != "assistant":
            if not isinstance(role, str):
                return False
            return role in _OWN_ROLES or (role == "custom" and "customType" in wire)
        content = wire.get("content")
        if not isinstance(content, list):
            return False
        return isinstance(wire.get("stopReason"), str) or "toolCall" in part_types(content)

    def read(self, wire: Mapping[str, Any]) -> Sequence[Item]:
        role = wire.get("role")
        if role == "toolResult":
            return (_output(wire),)
        if role == "assistant":
            return _said(wire)
        if not isinstance(role, str):
            return (marked(_OTHER_ITEM, signs.sign_within(wire)),)
        return (marked(_INPUT_ITEM, signs.sign_in_text(wire, _FIELDS)),)

    def may_begin(self, items: Sequence[Item]) -> bool:
        # Providers that pi talks to want the user's message first.
        return all(item.part is Part.INPUT for item in items)

    def output(
        self, family: Family, key: str | None, said: Settlement, name: str | None = None
    ) -> Wire:
        return {
            "role": "toolResult",
            "toolCallId": key,
            "toolName": name or "unknown",
            "content": [{"type": "text", "text": said.text}],
            "isError": not said.well,
        }

    def timed(self, output: Wire, neighbour: Wire) -> Wire:
        if "timestamp" not in neighbour:
            return output
        return {**output, "timestamp": neighbour["timestamp"]}

    def take(self, wire: Wire, slots: set[int]) -> tuple[Wire | None, list[Wire]]:
        if wire.get("role") == "toolResult":
            return None, [wire]
        parts = wire["content"]
        taken = [part for n, part in enumerate(parts) if n in slots]
        left = [part for n, part in enumerate(parts) if n not in slots]
        stays = not part_types(left) <= _NOTHING
        return ({**wire, "content": left} if stays else None), taken

    def retype(self, wire: Wire, slot: int, family: Family, name: str | None = None) -> Wire:
        return wire  # there is one family

    def rekey(self, wire: Wire, slot: int, old: str, new: str) -> Wire:
        if wire.get("role") == "toolResult":
            return {**wire, "toolCallId": new}
        parts = list(wire["content"])
        parts[slot] = {**parts[slot], "id": new}
        return {**wire, "content": parts}

    def reword(self, wire: Wire, slot: int, said: Settlement) -> Wire:
        text = [{"type": "text", "text": said.text}]
        return {**wire, "content": text, "isError": not said.well}

    def strip_id(self, wire: Wire, slot: int, nth: int = 2) -> Wire:
        return wire  # messages have no id here


def _output(wire: Mapping[str, Any]) -> Item:
    key = wire.get("toolCallId")
    if type(key) is not str or not key:
        key = None
        for name in _OTHER_IDS:
            if text_of(wire.get(name)) is not None:
                return unread(f"a toolResult with its call id in `{name}`")
    note = wire.get("content")
    if type(note) is list:
        note = note[0].get("text") if len(note) == 1 and type(note[0]) is dict else None
    return Item(
        _OUTPUT, _TOOL, key, None, None, text_of(wire.get("toolName")), 0, False, note_of(note)
    )


def _said(wire: Mapping[str, Any]) -> Sequence[Item]:
    """An assistant message."""
    parts = wire.get("content")
    if type(parts) is not list:
        return (marked(_MODEL_ITEM, signs.sign_beside(wire, _FIELDS)),)
    stop = wire.get("stopReason")
    if type(stop) is str and stop in _SKIPPED:
        return _cut_off(parts) or (_MODEL_ITEM,)
    calls = []
    sign = None
    for slot, part in enumerate(parts):
        kind = part.get("type") if type(part) is dict else None
        if kind == "toolCall":
            calls.append(_call(part, slot))
        elif type(kind) is str and kind in _PLAIN_PARTS:
            sign = sign or signs.sign_of(part)
        else:
            sign = sign or signs.sign_within(part)
    if sign is None and not calls:
        sign = signs.sign_beside(wire, _FIELDS)
    if not calls:
        return (marked(_MODEL_ITEM, sign),)
    if sign is not None:
        calls[0] = marked(calls[0], sign)
    return calls


def _call(part: dict[str, Any], slot: int) -> Item:
    key = part.get("id")
    if type(key) is not str or not key:
        return unread("a toolCall without an id", slot)
    said = part.get("arguments")
    if type(said) is not str:
        said = None
    name = part.get("name")
    if type(name) is not str:
        name = None
    if len(part) > 4 and is_cut_off(part):  # more than a type, an id, a name and arguments
        return Item(_CALL, _TOOL, key, None, None, name, slot, partial=True, arguments=said)
    return Item(_CALL, _TOOL, key, None, None, name, slot, arguments=said)


def _cut_off(parts: list[Any]) -> list[Item]:
    """The calls of a skipped message that the model did not finish writing. They may stand alone,
    and whatever answers them goes with them."""
    items = []
    for slot, part in enumerate(parts):
        if type(part) is dict and part.get("type") == "toolCall" and is_cut_off(part):
            key, name = text_of(part.get("id")), text_of(part.get("name"))
            if key is not None:
                items.append(Item(_CALL, _TOOL, key, None, None, name, slot, True, partial=True))
    return items


def is_cut_off(part: Mapping[str, Any]) -> bool:
    """Is this a call that the model did not finish writing?

    pi below 0.67.3 left the text of complete arguments in its files too, so the text decides."""
    for name in _UNFINISHED:
        text = part.get(name)
        if text is not None:
            return type(text) is not str or not text.strip() or is_unfinished(text)
    return False
