"""LangGraph checkpoints as bytes: what a saver stored, decoded as far as messages need it.

Messages, and every other value, stay the bytes they are until one is asked for, so that what is
not changed is written back as it was. LangGraph itself is not needed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from lockstitch.dialects.base import Wire

EXT_KEYWORDS: Final = 2
EXT_PYDANTIC_V1: Final = 4
EXT_PYDANTIC_V2: Final = 5
EXT_DELTA_SNAPSHOT: Final = 7
"""Extension types of LangGraph's `JsonPlusSerializer`. The first three hold the module, the name
and the fields of an object; the last one the whole value of a `DeltaChannel`."""

_OBJECTS: Final = frozenset({EXT_KEYWORDS, EXT_PYDANTIC_V1, EXT_PYDANTIC_V2})
_FIELDS_AT: Final = 2
_TOOL_MESSAGE: Final = ("langchain_core.messages.tool", "ToolMessage")
_AI_MESSAGE: Final = ("langchain_core.messages.ai", "AIMessage")
_VALIDATE: Final = "model_validate_json"

VALUE: Final = "value"
"""The field under which a value that is no object is shown to a dialect."""

_OVERWRITE: Final = "__overwrite__"
_REMOVE_ALL: Final = "__remove_all__"

DAMAGED: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, ValueError, TypeError)
"""What decoding raises for bytes that are not what they should be."""


class UnknownSerialization(Exception):
    """A value is stored in a way that is not known here."""


class Codec:
    """How a saver serialises: as MessagePack, or as JSON as it did before."""

    def __init__(self, kind: object) -> None:
        if kind not in ("msgpack", "json"):
            raise UnknownSerialization(str(kind))
        self.kind = str(kind)
        self._module: Any = msgspec.msgpack if kind == "msgpack" else msgspec.json

    def decode(self, data: Any, type: Any = Any) -> Any:
        return self._module.decode(data, type=type)

    def encode(self, value: Any) -> bytes:
        encoded: bytes = self._module.encode(value)
        return encoded

    def table(self, data: Any) -> dict[str, Raw]:
        """The values of an object, by name; each as its own bytes."""
        table: dict[str, Raw] = self.decode(data, dict[str, Raw])
        return table

    def elements(self, data: Any) -> list[Raw] | None:
        """The elements of a list; None if this is not a list."""
        try:
            inner = self.snapshot(data)
            found: list[Raw] = self.decode(data if inner is None else inner, list[Raw])
        except msgspec.ValidationError:
            return None
        return [_owned(raw) for raw in found]

    def snapshot(self, data: Any) -> bytes | None:
        """The value of a `DeltaChannel` that is stored in full; None if this is something else."""
        if self.kind != "msgpack":
            return None
        value = _extension(data)
        return bytes(value.data) if value is not None and value.code == EXT_DELTA_SNAPSHOT else None


def _extension(data: Any) -> msgspec.msgpack.Ext | None:
    try:
        return msgspec.msgpack.decode(data, type=msgspec.msgpack.Ext)
    except msgspec.ValidationError:
        return None


def _owned(raw: Raw) -> Raw:
    """The bytes alone, not a view of all that they were part of."""
    return Raw(bytes(raw))


class Message(Struct):
    """One element of a list of messages."""

    raw: Raw | None
    """As it is stored; None if it is new or changed."""
    wire: Wire
    """What a dialect reads."""
    extension: int | None = None
    """The extension type that holds it, if one does."""
    holder: list[Any] | None = None
    """The module, the name, the fields, and what else the extension holds."""

    def encoded(self, codec: Codec) -> Raw:
        if self.raw is not None:
            return self.raw
        if self.extension is None or self.holder is None:
            return Raw(codec.encode(self.wire))
        holder = [*self.holder[:_FIELDS_AT], self.wire, *self.holder[_FIELDS_AT + 1 :]]
        return Raw(codec.encode(msgspec.msgpack.Ext(self.extension, codec.encode(holder))))

    def changed(self, wire: Wire) -> Message:
        """The message with other fields."""
        return Message(None, wire, self.extension, self.holder)

    @property
    def is_object(self) -> bool:
        return self.extension is not None


def message_of(raw: Raw, codec: Codec) -> Message:
    """An element of a list, as a message."""
    value = codec.decode(raw)
    if isinstance(value, msgspec.msgpack.Ext):
        holder = codec.decode(value.data) if value.code in _OBJECTS else None
        if isinstance(holder, list) and len(holder) > _FIELDS_AT:
            fields = holder[_FIELDS_AT]
            if _is_object(fields):
                return Message(raw, fields, value.code, holder)
        return Message(raw, {VALUE: opened(value, codec)})
    return Message(raw, value if _is_object(value) else {VALUE: opened(value, codec)})


def new_message(wire: Wire, *, as_object: bool) -> Message:
    """A message that was not there, as an object of LangChain's or as the dictionary it is."""
    if not as_object:
        return Message(None, wire)
    module, name = _TOOL_MESSAGE if wire.get("type") == "tool" else _AI_MESSAGE
    return Message(None, wire, EXT_PYDANTIC_V2, [module, name, wire, _VALIDATE])


def _is_object(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(name, str) for name in value)


def opened(value: Any, codec: Codec) -> Any:
    """A value with what its extensions hold in their place, for reading only."""
    if isinstance(value, msgspec.msgpack.Ext):
        try:
            return opened(codec.decode(value.data), codec)
        except DAMAGED:
            return None
    if isinstance(value, dict):
        return {str(name): opened(inner, codec) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [opened(inner, codec) for inner in value]
    return value


def texts_in(value: Any, codec: Codec) -> set[str]:
    """Every text in a value."""
    value = opened(value, codec)
    if isinstance(value, str):
        return {value}
    inner: Iterable[Any] = ()
    if isinstance(value, dict):
        inner = value.values()
    elif isinstance(value, list):
        inner = value
    return {text for one in inner for text in texts_in(one, codec)}


# --- channels that are stored as what was written to them --------------------------------------


def written(data: Any, codec: Codec) -> tuple[list[Message], bool]:
    """The messages in a write to a channel, and whether they replace what was there."""
    value = _extension(data) if codec.kind == "msgpack" else None
    if value is not None and value.code == EXT_KEYWORDS:
        holder = codec.decode(value.data, list[Raw])
        if codec.decode(holder[1]) == "Overwrite":
            fields = codec.table(holder[_FIELDS_AT])
            return _messages(fields["value"], codec), True
    if value is None:
        try:
            table = codec.table(data)
        except msgspec.ValidationError:
            table = {}
        if set(table) == {_OVERWRITE}:
            return _messages(table[_OVERWRITE], codec), True
    return _messages(data, codec), False


def _messages(data: Any, codec: Codec) -> list[Message]:
    elements = codec.elements(data)
    if elements is None:
        if codec.decode(data) is None:
            return []
        elements = [_owned(Raw(data))]
    return [message_of(raw, codec) for raw in elements]


def merged(messages: list[Message], new: Iterable[Message]) -> list[Message]:
    """Messages with others merged into them as LangGraph's `add_messages` does it: one with the
    id of another replaces it, a `RemoveMessage` removes it, the rest come after."""
    kept: list[Message | None] = list(messages)
    places: dict[Any, int] = {}
    for n, message in enumerate(messages):
        places.setdefault(_id_of(message), n)
    for message in new:
        name = _id_of(message)
        at = places.get(name) if name is not None else None
        if message.wire.get("type") == "remove":
            if name == _REMOVE_ALL:
                kept, places = [], {}
            elif at is not None:
                kept[at] = None
                del places[name]
        elif at is not None:
            kept[at] = message
        else:
            places.setdefault(name, len(kept))
            kept.append(message)
    return [message for message in kept if message is not None]


def _id_of(message: Message) -> str | None:
    name = message.wire.get("id")
    return name if isinstance(name, str) and name else None


# --- a checkpoint behind another ---------------------------------------------------------------

_TIME_LOW_BITS: Final = 12
_BELOW_TIME_BITS: Final = 64
_VERSION_BITS: Final = 4
_ID_HEX_DIGITS: Final = 32
_VERSION_DIGITS: Final = 32


def next_id(name: str) -> str | None:
    """The id that comes right after that of a checkpoint: a UUID of version 6, one tick later.
    None if the id is of another kind."""
    digits = name.replace("-", "")
    try:
        number = int(digits, 16)
    except ValueError:
        return None
    if len(digits) != _ID_HEX_DIGITS:
        return None
    rest = number & ((1 << _BELOW_TIME_BITS) - 1)
    head = number >> _BELOW_TIME_BITS
    low = head & ((1 << _TIME_LOW_BITS) - 1)
    version = (head >> _TIME_LOW_BITS) & ((1 << _VERSION_BITS) - 1)
    time = ((head >> (_TIME_LOW_BITS + _VERSION_BITS)) << _TIME_LOW_BITS | low) + 1
    high, low = time >> _TIME_LOW_BITS, time & ((1 << _TIME_LOW_BITS) - 1)
    head = (high << _VERSION_BITS | version) << _TIME_LOW_BITS | low
    text = f"{head << _BELOW_TIME_BITS | rest:032x}"
    if len(text) > _ID_HEX_DIGITS:
        return None
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def next_version(versions: Mapping[str, Any]) -> Any:
    """The version that comes after all of these, as a saver would make it."""
    texts = [one for one in versions.values() if isinstance(one, str)]
    numbers = [one for one in versions.values() if isinstance(one, int | float)]
    if numbers and not texts:
        return int(max(numbers)) + 1
    newest = max(texts, default="0").split(".")[0]
    number = int(newest) if newest.isdecimal() else 0
    return f"{number + 1:0{_VERSION_DIGITS}}.0"


def metadata_after(metadata: object, channels: Iterable[str]) -> bytes:
    """The metadata of a checkpoint in which these channels were set from outside, made from that
    of the one before it."""
    try:
        before = json.loads(metadata) if isinstance(metadata, str | bytes) else {}
    except ValueError:
        before = {}
    before = before if isinstance(before, dict) else {}
    step = before.get("step")
    after: dict[str, Any] = {**before, "source": "update"}
    after["step"] = step + 1 if isinstance(step, int) else 0
    after.setdefault("parents", {})
    after.pop("writes", None)
    counters = after.get("counters_since_delta_snapshot")
    if isinstance(counters, dict):
        left = {name: value for name, value in counters.items() if name not in channels}
        after["counters_since_delta_snapshot"] = left
    return json.dumps(after, ensure_ascii=False).encode("utf-8", "ignore")
