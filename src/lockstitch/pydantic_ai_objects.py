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


def load_all(items: list[Any], before: list[Wire], originals: list[Any]) -> list[Any]:
    """The objects of a mended history; see `objects.objects_of`."""
    return _Loading(before, originals).load(items)


class _Loading:
    """The messages of a history as they were, while its mended items become objects again."""

    def __init__(self, before: list[Wire], originals: list[Any]) -> None:
        self._before = before
        self._originals = originals
        self._parts = {
            id(part): (part, made)
            for wire, message in zip(before, originals, strict=True)
            if not isinstance(message, dict)
            for part, made in zip(wire["parts"], message.parts, strict=True)
        }
        """The object of every part, by the identity of its JSON."""

    def load(self, items: list[Any]) -> list[Any]:
        kept = {id(message) for message in self._originals}
        at = 0
        time = None
        result: list[Any] = []
        for item in items:
            if id(item) in kept:
                while self._originals[at] is not item:
                    at += 1
                at += 1
                message = load(item) if isinstance(item, dict) else item
            else:
                n = next((n for n in range(at, len(self._before)) if self._was(item, n)), None)
                at = at if n is None else n + 1
                message = self._made(item, None if n is None else self._originals[n], time)
            time = getattr(message, "timestamp", None) or time
            result.append(message)
        return result

    def _was(self, item: Wire, at: int) -> bool:
        """Was this item made from the message at a position? Then all but its parts is the same."""
        wire = self._before[at]
        return item.keys() == wire.keys() and all(
            name == "parts" or wire[name] is value for name, value in item.items()
        )

    def _made(self, wire: Wire, source: Any, time: Any) -> Any:
        """The object of a changed or new message. ``time`` is that of the message before: new parts
        get it, as do the results that Pydantic AI itself adds, so that mending needs no clock."""
        made = [self._object(part) for part in wire["parts"]]
        new = [n for n, part in enumerate(made) if part is None]
        head = wire if source is None or isinstance(source, dict) else {"kind": wire["kind"]}
        loaded = load({**head, "parts": [_timed(wire["parts"][n], time) for n in new]})
        for n, part in zip(new, loaded.parts, strict=True):
            made[n] = part
        return dataclasses.replace(loaded if head is wire else source, parts=made)

    def _object(self, part: Wire) -> Any:
        """The object of a part, unless it is new or says something else than before."""
        known = self._parts.get(id(part))
        if known is not None:
            return known[1]
        was = self._by_values.get(_values(part))
        return was and dataclasses.replace(was, tool_call_id=part["tool_call_id"])

    @cached_property
    def _by_values(self) -> dict[_Values, Any]:
        """The objects of parts with a call id, by everything else that is in them."""
        return {
            _values(part): made for part, made in self._parts.values() if "tool_call_id" in part
        }


def _values(part: Wire) -> _Values:
    return tuple((name, id(value)) for name, value in part.items() if name != "tool_call_id")


def _timed(part: Wire, time: Any) -> Wire:
    if time is None or "timestamp" in part or part.get("part_kind") not in _TIMED:
        return part
    return {**part, "timestamp": time.isoformat()}
