"""Wire items as bytes: how a ledger reads them in each dialect."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Final

import msgspec

from lockstitch.core.errors import NotAnItem
from lockstitch.core.families import FUNCTION
from lockstitch.core.items import Item, Part, note_of
from lockstitch.core.known import Reading
from lockstitch.dialects.base import Dialect, Wire
from lockstitch.dialects.detection import DIALECTS, by_name

# Bound once: looking a member up in its enum costs more than what is asked of it here.
_CALL, _OUTPUT, _REASONING = Part.CALL, Part.OUTPUT, Part.REASONING
_MODEL, _INPUT = Part.MODEL, Part.INPUT

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
    return lambda item: [_kept(one) for one in dialect.read(decoded(item))]


def _kept(item: Item) -> Item:
    """What a ledger keeps of an item. It knows from its own facts which calls are complete, and
    would only hold on to their arguments."""
    if item.arguments is None and not item.partial:
        return item
    return msgspec.structs.replace(item, arguments=None, partial=False)


_Text = Annotated[str, msgspec.Meta(min_length=1)]


class _Common(msgspec.Struct, gc=False, tag_field="type", forbid_unknown_fields=True):
    """An item of a type that most conversations are made of, with no fields but those named here.

    Decoding is the check, and says at once what `classify` finds out. What is not as such items
    mostly are is read the long way."""

    id: _Text | None = None
    status: Any = None


class _FunctionCall(_Common, tag=FUNCTION.call_type, kw_only=True):
    call_id: _Text
    name: str
    namespace: Any = None
    arguments: Any = None

    def read(self) -> Item:
        broke_off = self.status == "incomplete"
        return Item(_CALL, FUNCTION, self.call_id, None, self.id, self.name, 0, broke_off)


class _FunctionOutput(_Common, tag=FUNCTION.output_type, kw_only=True):
    call_id: _Text
    output: Any

    def read(self) -> Item:
        return Item(
            _OUTPUT, FUNCTION, self.call_id, None, self.id, None, 0, False, note_of(self.output)
        )


class _Message(_Common, tag="message", kw_only=True):
    role: str
    content: Any = None
    phase: Any = None

    def read(self) -> Item:
        return Item(_MODEL if self.role == "assistant" else _INPUT, id=self.id)


class _Reasoning(_Common, tag="reasoning", kw_only=True):
    summary: Any = None
    content: Any = None
    encrypted_content: Any = None

    def read(self) -> Item:
        return Item(_REASONING, id=self.id, carried=bool(self.encrypted_content))


_common = msgspec.json.Decoder(_FunctionCall | _FunctionOutput | _Message | _Reasoning)


def _read_responses(item: bytes) -> Sequence[Item]:
    if not isinstance(item, bytes):
        raise _no_bytes(item)
    try:
        return (_common.decode(item).read(),)
    except UNREADABLE:
        return (_classified(item),)


def _classified(item: bytes) -> Item:
    """The core item of any Responses item."""
    wire = decoded(item)
    (item_read,) = DIALECTS["responses"].read(wire)
    read = _kept(item_read)
    if wire.get("status") == "incomplete" and read.part is _CALL:
        # It broke off half-way: it must not run, and no output is asked for it.
        return msgspec.structs.replace(read, lone=True)
    return read


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
