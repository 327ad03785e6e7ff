"""Vercel AI SDK, `ModelMessage[]`: messages of parts; results stand in messages of the role `tool`
that come before the next user or system message.

A provider runs a call with `providerExecuted` itself: its result stands in the assistant's own
message. A request for approval (`tool-approval-request`) is joined to its answer by `approvalId`,
and to the call by `toolCallId`. Parts of version 4 (`args`, `result`) are read and written too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from lockstitch.core import families
from lockstitch.core.families import Family
from lockstitch.core.items import Item, Part, note_of
from lockstitch.core.outcomes import MARK, Outcome, Settlement
from lockstitch.core.pairing import Order
from lockstitch.dialects import signs
from lockstitch.dialects.base import (
    APPROVAL_PREFIX,
    Answers,
    PartsOfMessages,
    Wire,
    as_json,
    marked,
    part_types,
    text_of,
    unread,
)

_CALL, _OUTPUT = Part.CALL, Part.OUTPUT
_INPUT_ITEM: Final = Item(Part.INPUT)
_MODEL_ITEM: Final = Item(Part.MODEL)
_OTHER_ITEM: Final = Item(Part.OTHER)

_TOOL: Final = families.VERCEL_TOOL
_PROVIDER_TOOL: Final = families.VERCEL_PROVIDER_TOOL
_TOOL_V4: Final = families.VERCEL_TOOL_V4
_APPROVALS: Final = (families.VERCEL_APPROVAL, families.VERCEL_PROVIDER_APPROVAL)

_PARTS: Final = frozenset(
    {"tool-call", "tool-result", "tool-approval-request", "tool-approval-response"}
)
"""Parts that only this dialect has."""
_FIELDS: Final = frozenset({"role", "content", "id", "providerOptions"})
"""Fields of a message that hold no part but `content`, which is read."""


class Vercel(PartsOfMessages):
    """The dialect of the AI SDK's model messages. Slot n is the n-th part of a message."""

    name = "vercel"
    order = Order.BEFORE_INPUT
    answers = Answers.BEHIND_CALLS

    def claims(self, wire: Mapping[str, Any]) -> bool:
        if not isinstance(wire.get("role"), str):
            return False
        return not _PARTS.isdisjoint(part_types(wire.get("content")))

    def read(self, wire: Mapping[str, Any]) -> Sequence[Item]:
        role = wire.get("role")
        parts = wire.get("content")
        if role == "tool":
            if not isinstance(parts, list):
                return (unread("role `tool`"),)
            if not _FIELDS.issuperset(wire):
                sign = signs.sign_beside({**wire, "role": "user"}, _FIELDS)
                if sign is not None:
                    return (unread(sign),)
            return [_tool_part(part, n) for n, part in enumerate(parts)] or (_MODEL_ITEM,)
        if not isinstance(role, str):
            return (marked(_OTHER_ITEM, signs.sign_within(wire)),)
        plain = _MODEL_ITEM if role == "assistant" else _INPUT_ITEM
        sign = signs.sign_beside(wire, _FIELDS)
        if sign is not None or not isinstance(parts, list):
            return (marked(plain, sign),)
        if role == "assistant":
            return [_assistant_part(part, n, parts) for n, part in enumerate(parts)] or (plain,)
        return [_input_part(part, n) for n, part in enumerate(parts)] or (plain,)

    def output(
        self, family: Family, key: str | None, said: Settlement, name: str | None = None
    ) -> Wire:
        if family in _APPROVALS:
            return _response(family, key, said)
        result = {"type": "tool-result", "toolCallId": key, "toolName": name or ""}
        return {**result, **_says(family, said)}

    def put(self, outputs: list[Wire]) -> list[Wire]:
        # The SDK writes the answer to a request for approval before the result of its call.
        ordered = sorted(outputs, key=lambda part: part.get("type") != "tool-approval-response")
        return [{"role": "tool", "content": ordered}]

    def retype(self, wire: Wire, slot: int, family: Family, name: str | None = None) -> Wire:
        part = wire["content"][slot]
        kind = part["type"]
        key = text_of(part.get("approvalId" if kind == "tool-approval-response" else "toolCallId"))
        if kind == "tool-approval-response" and family not in _APPROVALS:
            key = f"{APPROVAL_PREFIX}{key}"  # so it was read
        head = f"{MARK} Recorded as {kind}."
        said = Settlement(Outcome.UNKNOWN, f"{head}\nOutput:\n{as_json(part).decode()}")
        return self.with_part(wire, slot, self.output(family, key, said, name))

    def rekey(self, wire: Wire, slot: int, old: str, new: str) -> Wire:
        part = wire["content"][slot]
        if part["type"] in ("tool-approval-request", "tool-approval-response"):
            new = new.removeprefix(APPROVAL_PREFIX)
            return self.with_part(wire, slot, {**part, "approvalId": new})
        wire = self.with_part(wire, slot, {**part, "toolCallId": new})
        if part["type"] != "tool-call":
            return wire
        parts = wire["content"]
        for n in range(slot + 1, len(parts)):
            one = parts[n]
            if not isinstance(one, dict) or one.get("toolCallId") != old:
                continue
            if one.get("type") == "tool-call":
                break  # requests from here on ask about that one
            if one.get("type") == "tool-approval-request":
                wire = self.with_part(wire, n, {**one, "toolCallId": new})
        return wire

    def reword(self, wire: Wire, slot: int, said: Settlement) -> Wire:
        part = wire["content"][slot]
        if part["type"] == "tool-approval-response":
            family = _APPROVALS[part.get("providerExecuted") is True]
            return self.with_part(
                wire, slot, {**part, **_response(family, part.get("approvalId"), said)}
            )
        family = _TOOL_V4 if _is_v4(part, "result", "output") else _TOOL
        kept = {name: value for name, value in part.items() if name != "isError"}
        return self.with_part(wire, slot, {**kept, **_says(family, said)})


def _assistant_part(part: Any, slot: int, parts: list[Any]) -> Item:
    if not isinstance(part, dict):
        return _MODEL_ITEM
    kind = part.get("type")
    if kind == "tool-call":
        key = part.get("toolCallId")
        if type(key) is not str or not key:
            return unread("a tool-call part without a `toolCallId`", slot)
        given = part.get("input")
        family = _TOOL
        if part.get("providerExecuted") is True:
            family = _PROVIDER_TOOL
        elif given is None and _is_v4(part, "args", "input"):
            family = _TOOL_V4
            given = part["args"]
        name = part.get("toolName")
        return Item(
            _CALL,
            family,
            key,
            None,
            None,
            name if type(name) is str else None,
            slot,
            arguments=given if type(given) is str else None,
        )
    if kind == "tool-result":
        return _result(part, slot, _PROVIDER_TOOL)
    if kind == "tool-approval-request":
        return _request(part, slot, parts)
    if kind == "tool-approval-response":
        return _answer(part, slot, misplaced=True)
    if kind == "text" and len(part) == 2 and "text" in part:
        return _MODEL_ITEM
    return _plain(part, _MODEL_ITEM)


def _tool_part(part: Any, slot: int) -> Item:
    if not isinstance(part, dict):
        return _OTHER_ITEM
    kind = part.get("type")
    if kind == "tool-result":
        return _result(part, slot, _TOOL)
    if kind == "tool-approval-response":
        return _answer(part, slot)
    if kind in ("tool-call", "tool-approval-request"):
        return unread(f"a {kind} part in a message of the role `tool`", slot)
    return _plain(part, _OTHER_ITEM)


def _input_part(part: Any, slot: int) -> Item:
    if not isinstance(part, dict):
        return _INPUT_ITEM
    kind = part.get("type")
    if kind == "tool-result":
        return _result(part, slot, _TOOL, misplaced=True)
    if kind == "tool-approval-response":
        return _answer(part, slot, misplaced=True)
    if kind in ("tool-call", "tool-approval-request"):
        return unread(f"a {kind} part in a message from outside", slot)
    return _plain(part, _INPUT_ITEM)


def _plain(part: Mapping[str, Any], item: Item) -> Item:
    """A part that should be neither a call nor a result."""
    kind = part.get("type")
    if isinstance(kind, str):
        return marked(item, signs.sign_of(part))
    return marked(item, signs.sign_within(part))


def _result(part: Mapping[str, Any], slot: int, family: Family, *, misplaced: bool = False) -> Item:
    key = part.get("toolCallId")
    if type(key) is not str or not key:
        key = None
    output = part.get("output")
    if output is None and _is_v4(part, "result", "output"):
        note = part["result"]
        if family is _TOOL:
            family = _TOOL_V4
    elif isinstance(output, dict):
        note = output.get("value", output.get("reason"))
    else:
        note = None
    name = part.get("toolName")
    if type(name) is not str:
        name = None
    return Item(_OUTPUT, family, key, None, None, name, slot, False, note_of(note), None, misplaced)


def _request(part: Mapping[str, Any], slot: int, parts: list[Any]) -> Item:
    """A request for approval. The SDK writes it into the message of the call."""
    key, about = text_of(part.get("approvalId")), text_of(part.get("toolCallId"))
    if key is None or about is None:
        missing = "approvalId" if key is None else "toolCallId"
        return unread(f"a tool-approval-request part without a `{missing}`", slot)
    family, name = _APPROVALS[0], None
    for one in parts[:slot]:
        if isinstance(one, dict) and one.get("toolCallId") == about:
            family = _APPROVALS[one.get("providerExecuted") is True]
            name = text_of(one.get("toolName")) or name
    return Item(_CALL, family, APPROVAL_PREFIX + key, name=name, slot=slot, about=about)


def _answer(part: Mapping[str, Any], slot: int, *, misplaced: bool = False) -> Item:
    """The answer to a request for approval."""
    approved = part.get("approved")
    if type(approved) is not bool:
        return unread("a tool-approval-response part without `approved`", slot)
    key = text_of(part.get("approvalId"))
    return Item(
        _OUTPUT,
        _APPROVALS[part.get("providerExecuted") is True],
        None if key is None else APPROVAL_PREFIX + key,
        slot=slot,
        misplaced=misplaced,
        approved=approved,
    )


def _is_v4(part: Mapping[str, Any], old: str, new: str) -> bool:
    return old in part and new not in part


def _says(family: Family, said: Settlement) -> Wire:
    """The fields of a result that say how its call ended."""
    if family is _TOOL_V4:
        return {"result": said.text} if said.well else {"result": said.text, "isError": True}
    return {"output": {"type": "text" if said.well else "error-text", "value": said.text}}


def _response(family: Family, key: str | None, said: Settlement) -> Wire:
    response = {
        "type": "tool-approval-response",
        "approvalId": (key or "").removeprefix(APPROVAL_PREFIX),
        "approved": said.outcome is Outcome.FINISHED,
        "reason": said.text,
    }
    # Only so is the answer sent on to the provider, which waits for it.
    return {**response, "providerExecuted": True} if family is _APPROVALS[1] else response
