"""What a caller gives, as plain JSON: looked through before anything is decided about it.

A copy, so that what the caller does to its own later changes nothing that is on its way."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any

from lockstitch.dialects.base import Wire
from lockstitch.realtime.errors import NotSendable


def sendable(given: Mapping[str, Any], what: str) -> Wire:
    """This, as what JSON can say. ``what`` it is is told with what is wrong: `NotSendable`."""
    if not isinstance(given, Mapping):
        raise _refused(what, "", f"it is {_kind(given)}, and a dictionary is wanted")
    try:
        return _mapping(given, what, "")
    except RecursionError:
        raise _refused(what, "", "it holds itself, or is nested too deeply") from None


def sendable_item(given: Mapping[str, Any]) -> Wire:
    """An item, which is named by its id if it has one."""
    named = given.get("id") if isinstance(given, Mapping) else None
    what = f"The item {named!s:.80}" if named else "An item"
    if named is not None and not isinstance(named, str):
        raise _refused(what, "id", f"it is {_kind(named)}, and a text is wanted")
    return sendable(given, what)


def _plain(value: Any, what: str, where: str) -> Any:
    if value is None or value is True or value is False:
        return value
    if isinstance(value, str):
        return _text(value, what, where)
    if isinstance(value, Mapping):
        return _mapping(value, what, where)
    if isinstance(value, list | tuple):
        return [_plain(one, what, f"{where}[{index}]") for index, one in enumerate(value)]
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        if not isfinite(value):
            raise _refused(what, where, f"{value} is no number of JSON")
        return float(value)
    if isinstance(value, bytes | bytearray | memoryview):
        raise _refused(what, where, f"it is {_kind(value)}; give it as text, in base64")
    raise _refused(what, where, f"it is {_kind(value)}, and JSON has no such thing")


def _mapping(value: Mapping[Any, Any], what: str, where: str) -> Wire:
    plain: Wire = {}
    for name, inside in value.items():
        if not isinstance(name, str):
            raise _refused(what, where, f"its key {name!r:.40} is no text")
        inner = f"{where}.{name}" if where else name
        plain[_text(name, what, inner)] = _plain(inside, what, inner)
    return plain


def _text(value: str, what: str, where: str) -> str:
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise _refused(what, where, "it holds half a character (a lone surrogate)") from None
    return str(value)


def _kind(value: object) -> str:
    return f"of type {type(value).__name__}"


def _refused(what: str, where: str, why: str) -> NotSendable:
    at = f" at {where}" if where else ""
    return NotSendable(f"{what} cannot be sent{at}: {why}. Nothing was sent, and nothing changed.")
