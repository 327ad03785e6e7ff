"""Vercel AI SDK, `UIMessage[]`: a tool part is a call, and its result stands in the same part.

The field `state` of a tool part (`tool-NAME` or `dynamic-tool`) says how far the call has come. The
SDK makes one step of a message into one assistant message and one tool message; a `step-start`
part begins a step. So results count as given at the end of their step.

Messages of version 4 (`toolInvocations`, `tool-invocation` parts) are not read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from lockstitch.core import families
from lockstitch.core.families import Family
from lockstitch.core.items import Item, Part, Place, note_of
from lockstitch.core.outcomes import Outcome, Settlement
from lockstitch.core.pairing import Order
from lockstitch.dialects import signs
from lockstitch.dialects.base import PartsOfMessages, Wire, marked, part_types, text_of, unread

_CALL, _OUTPUT, _OTHER = Part.CALL, Part.OUTPUT, Part.OTHER
_INPUT_ITEM: Final = Item(Part.INPUT)
_MODEL_ITEM: Final = Item(Part.MODEL)
_OTHER_ITEM: Final = Item(_OTHER)

_TOOL: Final = families.VERCEL_UI_TOOL
_PROVIDER_TOOL: Final = families.VERCEL_UI_PROVIDER_TOOL
_APPROVAL: Final = families.VERCEL_UI_APPROVAL

_TOOL_PREFIX: Final = "tool-"
_DATA_PREFIX: Final = "data-"
_DYNAMIC: Final = "dynamic-tool"
_OUTPUT_STATES: Final = {
    "output-available": "output",
    "output-error": "errorText",
    "output-denied": None,
}
"""The states of a tool part that has its result, and the field that the result is in."""
_SILENT_PARTS: Final = frozenset({"source-url", "source-document"})
"""Parts that the SDK never sends to a model; `data-NAME` parts are such, too."""
_PARTS: Final = _SILENT_PARTS | {_DYNAMIC, "step-start", "text", "reasoning", "file"}
_FIELDS: Final = frozenset({"id", "role", "metadata", "parts", "createdAt"})
"""Fields of a message that hold no part but `parts`, which is read."""
_ENDINGS: Final = frozenset({"state", "output", "errorText", "preliminary"})
"""Fields of a tool part that are replaced when its result is written."""


class VercelUI(PartsOfMessages):
    """The dialect of the AI SDK's UI messages. Slot n is the n-th part of a message."""

    name = "vercel-ui"
    order = Order.ANYWHERE
    parts = "parts"

    def claims(self, wire: Mapping[str, Any]) -> bool:
        if not isinstance(wire.get("role"), str):
            return False
        return any(
            kind in _PARTS or kind.startswith((_TOOL_PREFIX, _DATA_PREFIX))
            for kind in part_types(wire.get("parts"))
        )

    def read(self, wire: Mapping[str, Any]) -> Sequence[Item]:
        role = wire.get("role")
        if not isinstance(role, str):
            return (marked(_OTHER_ITEM, signs.sign_within(wire)),)
        plain = _MODEL_ITEM if role == "assistant" else _INPUT_ITEM
        parts = wire.get("parts")
        sign = signs.sign_beside(wire, _FIELDS, "parts")
        if sign is not None or not isinstance(parts, list):
            return (marked(plain, sign or signs.sign_within(parts)),)
        items: list[Item] = []
        results: list[Item] = []
        for slot, part in enumerate(parts):
            kind = part.get("type") if isinstance(part, dict) else None
            if type(kind) is not str:
                items.append(marked(plain, signs.sign_within(part)))
            elif kind.startswith(_TOOL_PREFIX) or kind == _DYNAMIC:
                if plain is _INPUT_ITEM:
                    items.append(unread(f"a {kind} part in a message from outside", slot))
                else:
                    _read_tool(part, kind, slot, items, results)
            elif kind == "step-start" and len(part) == 1:
                if results:
                    items += results
                    results = []
            elif kind == "steering-message":
                # The user said this between two steps.
                items += [*results, marked(_INPUT_ITEM, signs.sign_of(part))]
                results = []
            elif kind.startswith(_DATA_PREFIX):
                # The application chose the name.
                sign = signs.sign_of({**part, "type": "text"})
                if sign is not None:
                    items.append(marked(_OTHER_ITEM, sign))
            elif (sign := signs.sign_of(part)) is not None:
                items.append(marked(plain, sign))
            elif kind not in _SILENT_PARTS:
                items.append(plain)
        items += results
        return items or (plain,)

    def output(
        self, family: Family, key: str | None, said: Settlement, name: str | None = None
    ) -> Wire:
        """The fields that `put_beside` writes into the part of the call."""
        if said.well:
            return {"state": "output-available", "output": said.text}
        failed: Wire = {"state": "output-error", "errorText": said.text}
        if said.outcome is Outcome.NEVER_STARTED:
            failed["approval"] = {"approved": False, "reason": said.text}
        return failed

    def put(self, outputs: list[Wire]) -> list[Wire]:
        raise AssertionError("an output is written into the part of its call in this dialect")

    def beside(self, family: Family, after: Place) -> bool:
        return True

    def put_beside(self, wire: Wire, slot: int, output: Wire) -> Wire:
        part = wire["parts"][slot]
        approval = part.get("approval")
        ending = {name: value for name, value in output.items() if name != "approval"}
        kept = {name: value for name, value in part.items() if name not in _ENDINGS}
        if isinstance(approval, dict) and approval.get("approved") is not True:
            denial = output.get("approval")
            if denial is not None and text_of(approval.get("id")):
                reason = text_of(approval.get("reason")) or denial["reason"]
                kept["approval"] = {**approval, "approved": False, "reason": reason}
                ending = {"state": "output-denied"}
            else:
                del kept["approval"]  # only a call that was approved may have an output
        return self.with_part(wire, slot, {**kept, **ending})

    def retype(self, wire: Wire, slot: int, family: Family, name: str | None = None) -> Wire:
        return wire  # a result is always of the family of its own part

    def rekey(self, wire: Wire, slot: int, old: str, new: str) -> Wire:
        part = wire["parts"][slot]
        if part.get("toolCallId") == old:
            return self.with_part(wire, slot, {**part, "toolCallId": new})
        return wire  # the edit to its call did it

    def reword(self, wire: Wire, slot: int, said: Settlement) -> Wire:
        return self.put_beside(wire, slot, self.output(_TOOL, None, said))


def _read_tool(
    part: Mapping[str, Any], kind: str, slot: int, items: list[Item], results: list[Item]
) -> None:
    """Read one tool part: its call, and its result if it has one."""
    key = part.get("toolCallId")
    if type(key) is not str or not key:
        items.append(unread(f"a {kind} part without a `toolCallId`", slot))
        return
    state = part.get("state")
    family = _PROVIDER_TOOL if part.get("providerExecuted") is True else _TOOL
    name = kind[len(_TOOL_PREFIX) :] if kind != _DYNAMIC else text_of(part.get("toolName"))
    given = part.get("input")
    arguments = given if type(given) is str else None
    if type(state) is str and state in _OUTPUT_STATES:
        field = _OUTPUT_STATES[state]
        note = note_of(part.get(field)) if field is not None else None
        items.append(Item(_CALL, family, key, None, None, name, slot, arguments=arguments))
        results.append(Item(_OUTPUT, family, key, None, None, name, slot, False, note))
    elif state == "input-available":
        items.append(Item(_CALL, family, key, name=name, slot=slot, arguments=arguments))
    elif state == "input-streaming":
        items.append(Item(_CALL, family, key, name=name, slot=slot, partial=True))
    elif state == "approval-requested":
        items.append(Item(_CALL, _APPROVAL, key, name=name, slot=slot))
    elif state == "approval-responded":
        approval = part.get("approval")
        approved = approval.get("approved") if isinstance(approval, dict) else None
        if type(approved) is not bool:
            items.append(unread(f"a {kind} part without the answer to its approval", slot))
            return
        items.append(Item(_CALL, family, key, name=name, slot=slot, arguments=arguments))
        results.append(Item(_OTHER, slot=slot, about=key, approved=approved))
    else:
        items.append(unread(f"a {kind} part in the unknown state {state!r:.40}", slot))
