"""Wire items as bytes: how a ledger reads them in each dialect."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from lockstitch.core.errors import NotAnItem
from lockstitch.core.items import Item, Part
from lockstitch.core.known import Reading
from lockstitch.dialects.base import Dialect, Wire
from lockstitch.dialects.detection import DIALECTS, by_name
from lockstitch.dialects.responses import Fields, classify

_CALL: Final = Part.CALL

UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What decoding raises for bytes that are no JSON, or not what was asked for: a name may not be
UTF-8, and lists may be nested too deep."""

_object = msgspec.json.Decoder(dict[str, Any])


def decoded(item: bytes) -> Wire:
    """The wire item in these bytes."""
    if not isinstance(item, bytes):
        raise _no_bytes(item)
    try:
        return _object.decode(item)
    except UNREADABLE as error:
        raise _no_item(item, error) from None


def _reader(dialect: Dialect) -> Callable[[bytes], Sequence[Item]]:
    # Decoded in full: what a ledger takes, it must be able to give back.
    return lambda item: dialect.read(decoded(item))


class _Looked(Fields):
    """The fields of a Responses item that a ledger looks at."""

    status: Any = None


class _Whole(_Looked, forbid_unknown_fields=True):
    """The fields of a Responses item, where it has no others than these.

    Most are decoded only because a ledger must be able to give back what it takes. That is done
    in half the time that a dictionary takes."""

    arguments: Any = None
    content: Any = None
    input: Any = None
    action: Any = None
    summary: Any = None
    phase: Any = None
    namespace: Any = None


_whole = msgspec.json.Decoder(_Whole)


def _read_responses(item: bytes) -> Sequence[Item]:
    if not isinstance(item, bytes):
        raise _no_bytes(item)
    fields: _Looked
    try:
        fields = _whole.decode(item)
    except UNREADABLE:
        fields = msgspec.convert(decoded(item), _Looked)
    read = classify(fields)
    if fields.status == "incomplete" and read.part is _CALL:
        # It broke off half-way: it must not run, and no output is asked for it.
        read = msgspec.structs.replace(read, lone=True)
    return (read,)


def _no_bytes(item: object) -> NotAnItem:
    return NotAnItem(f"Not a wire item: {item!r:.40}. Pass the bytes of one JSON object.")


def _no_item(item: bytes, error: Exception) -> NotAnItem:
    shown = item[:40].decode("utf-8", "replace")
    return NotAnItem(f"Not a wire item ({error}): {shown!r}. Pass the bytes of one JSON object.")


READINGS: Final[dict[str, Reading]] = {
    name: Reading(name, dialect.order, _reader(dialect)) for name, dialect in DIALECTS.items()
} | {"responses": Reading("responses", DIALECTS["responses"].order, _read_responses)}


def reading(name: str) -> Reading:
    """How items of the dialect of that name are read."""
    return READINGS[by_name(name).name]
