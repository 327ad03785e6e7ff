"""OpenAI Responses: a flat list of items; an output may stand anywhere behind its call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from lockstitch.core import families
from lockstitch.core.families import Family, Join
from lockstitch.core.items import Item, Part, note_of
from lockstitch.core.outcomes import MARK, Outcome, Settlement
from lockstitch.core.pairing import Order
from lockstitch.dialects import signs
from lockstitch.dialects.base import (
    OwnItems,
    Wire,
    as_json,
    marked,
    part_types,
    text_of,
    unread,
    without,
)
from lockstitch.dialects.screenshots import SCREENSHOT

_CALLS: Final = {family.call_type: family for family in families.RESPONSES_FAMILIES}
_OUTPUTS: Final = {family.output_type: family for family in families.RESPONSES_FAMILIES}

ITEM_TYPES: Final = frozenset(
    {
        *_CALLS,
        *_OUTPUTS,
        *families.SELF_CONTAINED,
        "message",
        "reasoning",
        "compaction",
        "compaction_trigger",
        "item_reference",
        "additional_tools",
    }
)
"""Every type this dialect knows; others pass through."""

_PARTS: Final = frozenset({"input_text", "output_text", "input_image", "input_file"})
"""Content that only this dialect has."""

_MESSAGE_FIELDS: Final = frozenset(
    {"type", "role", "content", "id", "status", "phase", "object", "created_at", "interrupted"}
)
"""Fields of a message that hold no call."""

_REFERENCE_FIELDS: Final = frozenset({"type", "id"})

_OTHER_ITEM: Final = Item(Part.OTHER)
_COMPACTION_ITEM: Final = Item(Part.COMPACTION)

# Bound once: members of an enum are slow to look up, and `classify` runs for every item.
_CALL, _OUTPUT, _REASONING = Part.CALL, Part.OUTPUT, Part.REASONING
_MODEL, _INPUT, _REFERENCE, _OTHER = Part.MODEL, Part.INPUT, Part.REFERENCE, Part.OTHER
_BY_CALL_ID, _BY_APPROVAL, _BY_CALL_ID_OR_ID = Join.CALL_ID, Join.APPROVAL, Join.CALL_ID_OR_ID


class Fields(msgspec.Struct, gc=False):
    """The fields of an item that pairing looks at; whatever they hold is legal.

    `read` makes one from a dictionary; readers of large files decode it from bytes at once."""

    type: Any = None
    id: Any = None
    call_id: Any = None
    name: Any = None
    role: Any = None
    approval_request_id: Any = None
    execution: Any = None
    output: Any = None
    encrypted_content: Any = None


def classify(fields: Fields, slot: int = 0) -> Item:
    """The core item of a Responses item."""
    kind = fields.type
    if type(kind) is not str:
        if kind is None:
            return _untyped(fields, slot)
        return _OTHER_ITEM
    item_id = fields.id
    if type(item_id) is not str or not item_id:
        item_id = None
    if kind == "message":
        part = _MODEL if fields.role == "assistant" else _INPUT
        return Item(part, None, None, None, item_id, None, slot)
    family = _CALLS.get(kind)
    if family is not None:
        return _call(fields, family, item_id, slot)
    family = _OUTPUTS.get(kind)
    if family is not None:
        return _output(fields, family, item_id, slot)
    if kind == "reasoning":
        carried = bool(fields.encrypted_content)
        return Item(_REASONING, id=item_id, slot=slot, carried=carried)
    if kind == "item_reference":
        return Item(_REFERENCE, id=item_id, slot=slot)
    if kind in families.SELF_CONTAINED:
        return Item(_MODEL, id=item_id, slot=slot)
    if kind == "compaction":
        return _COMPACTION_ITEM
    if fields.call_id is not None:
        return unread(f"type `{kind}` with a `call_id`", slot)
    return _OTHER_ITEM  # nothing is known of it, not even what its id means


def _untyped(fields: Fields, slot: int) -> Item:
    """The type may be left out of a message, and of a reference."""
    item_id = text_of(fields.id)
    if isinstance(fields.role, str):
        return Item(_MODEL if fields.role == "assistant" else _INPUT, id=item_id, slot=slot)
    return Item(_REFERENCE, id=item_id, slot=slot) if item_id else _OTHER_ITEM


def _call(fields: Fields, family: Family, item_id: str | None, slot: int) -> Item:
    key = fields.call_id
    if type(key) is not str or not key:
        key = None
    name = fields.name
    if type(name) is not str:
        name = None
    alias = joining_id = None
    join = family.join
    if join is not _BY_CALL_ID:
        joining_id = item_id
        if join is _BY_APPROVAL or key is None:
            key = item_id
        else:
            alias = item_id
        item_id = None
    if key is None:
        if not family.keyless_call:
            return unread(f"a {family.call_type} without an id", slot)
        return Item(
            _CALL, family, name=name, id=item_id, slot=slot, lone=fields.execution != "client"
        )
    lone = family.keyless_call and fields.execution == "server"
    return Item(_CALL, family, key, alias, item_id, name, slot, lone, None, joining_id)


def _output(fields: Fields, family: Family, item_id: str | None, slot: int) -> Item:
    key = fields.call_id
    if type(key) is not str or not key:
        key = None
    join = family.join
    if join is _BY_APPROVAL:
        key = text_of(fields.approval_request_id)
    elif join is _BY_CALL_ID_OR_ID:
        key, item_id = key or item_id, None
    lone = False
    if key is None:
        if family is families.FUNCTION and text_of(fields.name):
            return Item(_INPUT, id=item_id, slot=slot)  # a named external event
        lone = family is families.TOOL_SEARCH
    elif family.keyless_call:
        lone = fields.execution == "server"
    return Item(_OUTPUT, family, key, None, item_id, None, slot, lone, note_of(fields.output))


def _sign(wire: Mapping[str, Any], part: Part) -> str | None:
    """Why an item that is neither call nor output looks like one."""
    if wire.get("type") == "additional_tools":
        return signs.sign_in_field("tools", wire.get("tools"))
    if part is _OTHER or part is _REFERENCE:
        return signs.sign_within({name: value for name, value in wire.items() if name != "type"})
    if wire.get("type") in (None, "message"):
        return signs.sign_in_text(wire, _MESSAGE_FIELDS)
    return None  # a known type, whose fields belong to the provider


class Responses(OwnItems):
    """The dialect of the Responses API, and of everything that stores its items."""

    name = "responses"
    order = Order.ANYWHERE

    def claims(self, wire: Mapping[str, Any]) -> bool:
        kind = wire.get("type")
        if isinstance(kind, str) and kind in ITEM_TYPES and kind != "message":
            return True
        if not isinstance(wire.get("role"), str):
            return False
        return kind == "message" or not _PARTS.isdisjoint(part_types(wire.get("content")))

    def read(self, wire: Mapping[str, Any]) -> Sequence[Item]:
        get = wire.get
        item = classify(
            Fields(
                get("type"),
                get("id"),
                get("call_id"),
                get("name"),
                get("role"),
                get("approval_request_id"),
                get("execution"),
                get("output"),
                get("encrypted_content"),
            )
        )
        part = item.part
        if part is _OUTPUT:
            return (item,)
        if part is _CALL:
            said = get("arguments")
            partial = get("status") == "incomplete"
            if partial or type(said) is str:
                item = msgspec.structs.replace(item, partial=partial, arguments=said)
        elif item.unread is None:
            if (
                part is _REFERENCE
                and get("type") is None
                and not _REFERENCE_FIELDS.issuperset(wire)
            ):
                item, part = _OTHER_ITEM, _OTHER  # a reference without its type is an id alone
            item = marked(item, _sign(wire, part))
        return (item,)

    def output(
        self, family: Family, key: str | None, said: Settlement, name: str | None = None
    ) -> Wire:
        text = said.text
        if family is families.MCP_APPROVAL:
            return {
                "type": family.output_type,
                "approval_request_id": key,
                "approve": False,
                "reason": text,
            }
        if family is families.LOCAL_SHELL:
            # The form Codex writes and OpenAI accepts. It also says which call it answers.
            return {"type": families.FUNCTION.output_type, "call_id": key, "output": text}
        wire: Wire = {"type": family.output_type, "call_id": key}
        if family is families.COMPUTER:
            wire["output"] = {"type": "computer_screenshot", "image_url": SCREENSHOT[said.outcome]}
            wire["status"] = "completed" if said.well else "incomplete"
        elif family is families.SHELL:
            wire["output"] = [{"stdout": text, "stderr": "", "outcome": _shell_outcome(said)}]
        elif family is families.APPLY_PATCH:
            wire["status"] = "completed" if said.well else "failed"
            wire["output"] = text
        elif family is families.TOOL_SEARCH:
            wire.update(execution="client", status="incomplete", tools=[])
        elif family is families.PROGRAM:
            status = "completed" if said.well else "incomplete"
            wire.update(id=f"{key}_output", result=text, status=status)
        else:
            wire["output"] = text
        return wire

    def retype(self, wire: Wire, slot: int, family: Family, name: str | None = None) -> Wire:
        was = wire.get("output", wire.get("result"))
        text = was if isinstance(was, str) else None
        if family in (families.FUNCTION, families.CUSTOM) and (text or _is_content(was)):
            # Its own id goes: it begins with the prefix of the other family.
            changed = {name: value for name, value in wire.items() if name not in _OWN_FIELDS}
            return {**changed, "type": family.output_type, "call_id": _key_of(wire), "output": was}
        # What it says is kept as text; how the call ended cannot be told from another family.
        if text is None:
            text = as_json(wire if was is None else was).decode()
        head = f"{MARK} Recorded as {wire.get('type')}."
        said = Settlement(Outcome.UNKNOWN, f"{head}\nOutput:\n{text}")
        return self.output(family, _key_of(wire), said)

    def rekey(self, wire: Wire, slot: int, old: str, new: str) -> Wire:
        joining = ("call_id", "id", "approval_request_id")
        return {k: new if k in joining and v == old else v for k, v in wire.items()}

    def reword(self, wire: Wire, slot: int, said: Settlement) -> Wire:
        made = self.output(_OUTPUTS[wire["type"]], None, said)
        says = {name: value for name, value in made.items() if name not in _JOINING_FIELDS}
        # Where an output of this family does not speak, one like it must not contradict.
        kept = wire if "output" in says else without(wire, "output")
        return {**kept, **says}

    def strip_id(self, wire: Wire, slot: int, nth: int = 2) -> Wire:
        if wire.get("type") in _ID_REQUIRED:
            return {**wire, "id": f"{wire['id']}_ls{nth}"}
        return without(wire, "id")


_ID_REQUIRED: Final = frozenset({"computer_call", "program", "program_output"})
"""Types that a provider does not take without an id."""


_JOINING_FIELDS: Final = frozenset({"type", "id", "call_id", "approval_request_id"})
_OWN_FIELDS: Final = frozenset({"id", "result", "status", "tools", "execution", "approve"})
_CONTENT_TYPES: Final = frozenset({"input_text", "input_image", "input_file", "input_audio"})


def _is_content(value: object) -> bool:
    """Is this a list of content parts, which an output may be?"""
    return isinstance(value, list) and all(
        isinstance(part, dict) and text_of(part.get("type")) in _CONTENT_TYPES for part in value
    )


def _key_of(output: Wire) -> str | None:
    for field in ("call_id", "approval_request_id", "id"):
        key = text_of(output.get(field))
        if key is not None:
            return key
    return None


def _shell_outcome(said: Settlement) -> Wire:
    if said.outcome is not Outcome.FINISHED:
        return {"type": "timeout"}  # the only other way to end that the API knows
    code = said.exit_code if said.exit_code is not None else int(said.failed)
    return {"type": "exit", "exit_code": code}
