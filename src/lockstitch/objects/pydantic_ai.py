"""Pydantic AI's message objects: dumped as JSON, and made again after mending.

A message that was changed is made from the object it was: parts that were not changed are the very
same objects, because their content may be anything that a tool returned. Only parts that are new or
changed go through Pydantic AI's `ModelMessagesTypeAdapter`."""

from __future__ import annotations

import dataclasses
from functools import cached_property
from importlib import import_module
from typing import Any, Final, TypeAlias

from lockstitch.dialects.base import Wire, as_json

_Values: TypeAlias = tuple[tuple[str, int], ...]
"""The fields of a part, each with the identity of its value."""

_TIMED: Final = frozenset({"tool-return", "builtin-tool-return", "user-prompt"})
"""New parts that have a time."""


def _adapter() -> Any:
    return import_module("pydantic_ai.messages").ModelMessagesTypeAdapter


def dump(message: Any) -> Any:
    """The message as JSON. What JSON cannot hold becomes a text: the object itself stays."""
    return _adapter().dump_python([message], mode="json", fallback=str, warnings=False)[0]


def load(wire: Wire, source: Any = None) -> Any:
    """The message object of some JSON."""
    return _adapter().validate_json(as_json([wire]))[0]


def load_all(
    items: list[Any], sources: list[Any], before: list[Wire], originals: list[Any]
) -> list[Any]:
    """The objects of a mended history; see `sdks.objects_of`."""
    parts = _Parts(before, originals)
    time = None
    result: list[Any] = []
    for item, source in zip(items, sources, strict=True):
        if item is not source:
            message = _made(item, source, parts, time)
        else:
            message = load(item) if isinstance(item, dict) else item
        time = getattr(message, "timestamp", None) or time
        result.append(message)
    return result


def _made(wire: Wire, source: Any, parts: _Parts, time: Any) -> Any:
    """The object of a changed or new message. ``time`` is that of the message before: new parts
    get it, as do the results that Pydantic AI itself adds, so that mending needs no clock."""
    made = [parts.object_of(part) for part in wire["parts"]]
    new = [n for n, part in enumerate(made) if part is None]
    head = wire if source is None or isinstance(source, dict) else {"kind": wire["kind"]}
    loaded = load({**head, "parts": [_timed(wire["parts"][n], time) for n in new]})
    for n, part in zip(new, loaded.parts, strict=True):
        made[n] = part
    return dataclasses.replace(loaded if head is wire else source, parts=made)


class _Parts:
    """The part objects of a history as it was, found from their JSON.

    JSON is found by its identity, and held here so that no identity is used twice."""

    def __init__(self, before: list[Wire], originals: list[Any]) -> None:
        self._made = {
            id(part): (part, made)
            for wire, message in zip(before, originals, strict=True)
            if not isinstance(message, dict)
            for part, made in zip(wire["parts"], message.parts, strict=True)
        }
        """Each part and its object, by the identity of the part."""

    def object_of(self, part: Wire) -> Any:
        """The object of a part, unless it is new or says something else than before."""
        known = self._made.get(id(part))
        if known is not None:
            return known[1]
        was = self._by_values.get(_values(part))
        return was and dataclasses.replace(was, tool_call_id=part["tool_call_id"])

    @cached_property
    def _by_values(self) -> dict[_Values, Any]:
        """The objects of parts with a call id, by everything else that is in them."""
        return {_values(part): made for part, made in self._made.values() if "tool_call_id" in part}


def _values(part: Wire) -> _Values:
    return tuple((name, id(value)) for name, value in part.items() if name != "tool_call_id")


def _timed(part: Wire, time: Any) -> Wire:
    if time is None or "timestamp" in part or part.get("part_kind") not in _TIMED:
        return part
    return {**part, "timestamp": time.isoformat()}
