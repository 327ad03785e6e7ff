"""Gemini: contents of parts, in camel case (REST) or in snake case (Python).

A call and its response are joined by their ids, or by the tool's name where one of them has no id.
All responses to the calls of one turn stand in the content that follows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

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
_THOUGHT_ITEM: Final = Item(Part.REASONING)

_FIELDS: Final = frozenset({"role", "parts"})
_CALLS: Final = {family.call_type: family for family in families.GEMINI_FAMILIES}
_RESPONSES: Final = {family.output_type: family for family in families.GEMINI_FAMILIES}
_SNAKE: Final = frozenset({families.GEMINI_FUNCTION_SNAKE, families.GEMINI_TOOL_SNAKE})
_SERVER: Final = frozenset({families.GEMINI_TOOL, families.GEMINI_TOOL_SNAKE})

_PLAIN: Final = frozenset(
    {
        "text",
        "thought",
        *("thoughtSignature", "thought_signature"),
        *("inlineData", "inline_data"),
        *("fileData", "file_data"),
        *("executableCode", "executable_code"),
        *("codeExecutionResult", "code_execution_result"),
        *("videoMetadata", "video_metadata"),
        *("mediaResolution", "media_resolution"),
        *("mediaProcessing", "media_processing"),
        *("audioTranscription", "audio_transcription"),
    }
)
"""Fields of a part in which no call of a client can be."""
_METADATA: Final = frozenset({"partMetadata", "part_metadata"})
"""Fields that belong to the caller, who may put anything there."""
_PART_FIELDS: Final = _PLAIN | _METADATA | _CALLS.keys() | _RESPONSES.keys()
_BODY_FIELDS: Final = frozenset({"name", "args", "response", "toolType", "tool_type"})
_CALL_FIELDS: Final = frozenset({"id", "name", "args"})
_RESPONSE_TEXTS: Final = ("output", "error", "result")

_NOTHING_LEFT: Final = {"text": f"{MARK} A function response that stood here was removed."}
"""The first content must be the user's, so it stays even if all its responses go."""


class Gemini(PartsOfMessages):
    """The dialect of the Gemini API. Slot n is the n-th part of a content."""

    name = "gemini"
    order = Order.NEXT_TURN
    parts = "parts"

    def claims(self, wire: Mapping[str, Any]) -> bool:
        parts = wire.get("parts")
        if not isinstance(parts, list):
            return False
        for part in parts:
            if isinstance(part, str):
                return True  # an older SDK's short form of a text
            if isinstance(part, dict):
                if "type" in part or "part_kind" in part:
                    return False
                if not _PART_FIELDS.isdisjoint(part):
                    return True
        return False

    def read(self, wire: Mapping[str, Any]) -> Sequence[Item]:
        role = wire.get("role")
        plain = _MODEL_ITEM if role == "model" else _INPUT_ITEM
        parts = wire.get("parts")
        if not isinstance(parts, list):
            known = isinstance(role, str) or parts is not None
            return (marked(plain if known else _OTHER_ITEM, signs.sign_within(wire)),)
        if not _FIELDS.issuperset(wire) and (sign := _sign_beside(wire)) is not None:
            return (marked(plain, sign),)
        items = [_part(part, n, plain) for n, part in enumerate(parts)]
        if len(items) == 1:
            return items
        if any(item.partial for item in items):
            _join_pieces(parts, items, plain)
        if plain is _INPUT_ITEM and all(item.part is not _CALL for item in items):
            # Where in its content a response stands does not matter. Ids come before names.
            items.sort(key=_precedence)
        return items or (plain,)

    def output(
        self, family: Family, key: str | None, said: Settlement, name: str | None = None
    ) -> Wire:
        body: Wire = {} if key is None else {"id": key}
        if family in _SERVER:
            if name is not None:
                body["tool_type" if family in _SNAKE else "toolType"] = name
        else:
            body = {"name": name or key} if key == name else {**body, "name": name}
        return {family.output_type: _saying(body, said)}

    def emptied(self, wire: Wire) -> Wire | None:
        return {**wire, "parts": [_NOTHING_LEFT]}

    def put(self, outputs: list[Wire]) -> list[Wire]:
        return [{"role": "user", "parts": outputs}]

    def put_into(self, wire: Wire, outputs: list[Wire]) -> Wire:
        parts = wire.get("parts")
        if isinstance(parts, str) and parts:
            parts = [{"text": parts}]
        parts = list(parts) if isinstance(parts, list) else []
        # Behind the responses that are there: by name, the order says which call is meant.
        held = [n for n, part in enumerate(parts) if _field_of(part, _RESPONSES) is not None]
        start = held[-1] + 1 if held else 0
        return {**wire, "parts": [*parts[:start], *outputs, *parts[start:]]}

    def retype(self, wire: Wire, slot: int, family: Family, name: str | None = None) -> Wire:
        part = wire["parts"][slot]
        field = _response_field(part)
        old = part[field]
        body: Wire = {key: old[key] for key in ("id", "name") if text_of(old.get(key)) is not None}
        if family in _SERVER:
            body.pop("name", None)
            if name is not None:
                body["tool_type" if family in _SNAKE else "toolType"] = name
        else:
            body["name"] = name or text_of(old.get("name")) or text_of(old.get("id"))
        body["response"] = old.get("response")
        return self.with_part(wire, slot, {**without(part, field), family.output_type: body})

    def rekey(self, wire: Wire, slot: int, old: str, new: str) -> Wire:
        part = wire["parts"][slot]
        field = _field_of(part, _CALLS) or _response_field(part)
        if part[field].get("id") != old:
            return wire  # joined by its name
        return self.with_part(wire, slot, {**part, field: {**part[field], "id": new}})

    def reword(self, wire: Wire, slot: int, said: Settlement) -> Wire:
        part = wire["parts"][slot]
        field = _response_field(part)
        return self.with_part(wire, slot, {**part, field: _saying(part[field], said)})


def _precedence(item: Item) -> int:
    if item.part is not _OUTPUT or item.family in _SERVER:
        return 2
    return int(item.key == item.name)


def _part(part: object, slot: int, plain: Item) -> Item:
    if not isinstance(part, dict):
        if isinstance(part, str):
            return plain if slot == 0 else Item(plain.part, slot=slot)
        return marked(Item(plain.part, slot=slot), signs.sign_within(part))
    call = response = None
    for field, value in part.items():
        if field in _CALLS:
            if value is not None:
                if call is not None:
                    return unread("two calls in one part", slot)
                call = field
        elif field in _RESPONSES:
            if value is not None:
                if response is not None:
                    return unread("two responses in one part", slot)
                response = field
        elif value is None or field in _METADATA or _is_plain(field, value):
            continue
        elif (sign := _sign_in_unknown(field, value)) is not None:
            return unread(sign, slot)
    if call is not None:
        if response is not None:
            return unread("a call and a response in one part", slot)
        return _call(part[call], _CALLS[call], slot)
    if response is not None:
        return _response(part[response], _RESPONSES[response], slot, plain)
    if plain is _MODEL_ITEM and part.get("thought") is True:
        plain = _THOUGHT_ITEM
    return plain if slot == 0 else Item(plain.part, slot=slot)


def _is_plain(field: str, value: object) -> bool:
    return field in _PLAIN and not isinstance(value, dict | list)


def _call(call: object, family: Family, slot: int) -> Item:
    if not isinstance(call, dict):
        return unread(f"a {family.call_type} that is not an object", slot)
    key = text_of(call.get("id"))
    if family.by_server:
        tool = text_of(call.get("toolType")) or text_of(call.get("tool_type"))
        return Item(_CALL, family, key, None, None, tool, slot)
    name = text_of(call.get("name"))
    if name is None:
        return unread(f"a {family.call_type} without a name", slot)
    alias = None
    if key is None:
        key = name
    elif key != name:
        alias = name
    arguments = call.get("args")
    if arguments.__class__ is dict and _CALL_FIELDS.issuperset(call):
        return Item(_CALL, family, key, alias, None, name, slot)
    return Item(
        _CALL,
        family,
        key,
        alias,
        name=name,
        slot=slot,
        partial=_continues(call) or (arguments is None and bool(_partial_arguments(call))),
        arguments=text_of(arguments),
    )


def _response(response: object, family: Family, slot: int, plain: Item) -> Item:
    if not isinstance(response, dict):
        return unread(f"a {family.output_type} that is not an object", slot)
    key = text_of(response.get("id"))
    if family.by_server:
        return Item(_OUTPUT, family, key, slot=slot, note=_note(response.get("response")))
    if _continues(response):
        return unread(f"a {family.output_type} that will continue", slot)
    name = text_of(response.get("name"))
    return Item(
        _OUTPUT,
        family,
        name if key is None else key,
        None if key is None or key == name else name,
        None,
        name,
        slot,
        False,
        _note(response.get("response")),
        None,
        plain is _MODEL_ITEM,
    )


def _note(response: object) -> str | None:
    if response.__class__ is dict and len(response) == 1:
        for field in _RESPONSE_TEXTS:
            text = response.get(field)
            if isinstance(text, str):
                return note_of(text)
    return None


def _continues(value: Mapping[str, Any]) -> bool:
    return bool(value.get("willContinue") or value.get("will_continue"))


def _partial_arguments(call: Mapping[str, Any]) -> object:
    return call.get("partialArgs") or call.get("partial_args")


def _join_pieces(parts: Sequence[object], items: list[Item], plain: Item) -> None:
    """Streamed arguments come in pieces: a call with a name, and then calls without one. If the
    last piece is there, the call is complete; if not, all its pieces are a call cut off."""
    start: int | None = None
    for n, part in enumerate(parts):
        field = _field_of(part, _CALLS)
        call = part[field] if field is not None and isinstance(part, dict) else None
        if not isinstance(call, dict) or text_of(call.get("name")) is not None:
            start = n if items[n].partial and isinstance(call, dict) and _continues(call) else None
        elif start is not None and not items[n].partial and field is not None:
            first = items[start]
            if _continues(call):
                items[n] = Item(_CALL, _CALLS[field], first.name, name=first.name, slot=n)
                items[n] = msgspec.structs.replace(items[n], partial=True)
                continue
            for piece in range(start + 1, n + 1):
                items[piece] = Item(plain.part, slot=piece)
            items[start] = msgspec.structs.replace(first, partial=False)
            start = None


def _field_of(part: object, fields: Mapping[str, Family]) -> str | None:
    """The field of a part that holds its call, or its response."""
    if not isinstance(part, dict):
        return None
    return next((name for name in part if name in fields and part[name] is not None), None)


def _response_field(part: Wire) -> str:
    field = _field_of(part, _RESPONSES)
    assert field is not None, "only a part that was read as a response is changed as one"
    return field


def _saying(body: Wire, said: Settlement) -> Wire:
    return {**body, "response": {"output" if said.well else "error": said.text}}


def _sign_beside(wire: Mapping[str, Any]) -> str | None:
    """A sign in a field of a content that is not known."""
    for name, value in wire.items():
        if name not in _FIELDS and (sign := _sign_in_unknown(name, value)) is not None:
            return sign
    return None


def _sign_in_unknown(name: str, value: object) -> str | None:
    sign = signs.sign_in_field(name, value)
    if sign is not None or name == "metadata":  # an application may put anything there
        return sign
    if isinstance(value, dict) and not _BODY_FIELDS.isdisjoint(value):
        return f"`{name}` holds what a call or a response holds"
    return None
