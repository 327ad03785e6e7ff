"""What a client asked: a body read once, only as far as something is decided by it.

Fields that nobody changes keep their bytes, and so do items (`rebuilt`). A `response.create`
frame is the same body with a type. What is wrong with a body is said here, not decided: the
answer in the provider's form is made in `refusals`."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from enum import Enum
from typing import Any, Final, TypeVar

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from lockstitch.core.errors import LockstitchError
from lockstitch.dialects.base import Wire
from lockstitch.dialects.characters import whole_characters
from lockstitch.dialects.reading import UNREADABLE

Value = TypeVar("Value")


class Api(Enum):
    """Where a body was sent to."""

    RESPONSES = "responses"
    CHAT = "chat"
    MESSAGES = "messages"
    COMPACT = "compact"
    INPUT_TOKENS = "input_tokens"

    @property
    def dialect(self) -> str:
        """How its items are written."""
        return self.value if self in (Api.CHAT, Api.MESSAGES) else Api.RESPONSES.value

    @property
    def items_field(self) -> str:
        return "messages" if self in (Api.CHAT, Api.MESSAGES) else "input"


class NotARequest(LockstitchError, ValueError):
    """The client sent a body that nobody can answer."""

    def __init__(self, message: str, *, param: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.param = param
        self.code = code


CREATE_FRAME: Final = "response.create"
_CREATE_FRAME_RAW: Final = b'"response.create"'

_fields = msgspec.json.Decoder(dict[str, Raw])
_list = msgspec.json.Decoder(list[Any])
_raw_list = msgspec.json.Decoder(list[Raw])
_name = msgspec.json.Decoder(str)
_encoder = msgspec.json.Encoder()

MOST_FIELDS: Final = 1000
LONGEST_NAME_CHARACTERS: Final = 1000
"""The API has some forty fields with short names; each one that is not there costs time, too."""

_NAME = re.compile(rb'[\s{,]*("[^"\\]*(?:\\.[^"\\]*)*")\s*:\s*')
_END = re.compile(rb"\s*}\s*\Z")


class Asked(Struct, kw_only=True, eq=False):
    """One request body, and what is decided by."""

    api: Api
    body: bytes
    """As it came."""
    fields: Mapping[str, Raw]
    """Every field, in order, its value as it came."""
    model: str | None = None
    stream: bool = False
    previous_response_id: str | None = None
    conversation: str | None = None
    """The id, in whichever form it came."""
    store: bool = True
    background: bool = False
    generate: bool = True
    """False: a warm-up of a WebSocket, which is not answered by the model."""
    _items: list[Wire] | None = None
    _raw: list[Raw] | None = None

    def __repr__(self) -> str:
        behind = self.previous_response_id or self.conversation
        return f"<Asked {self.api.value} {self.model} behind {behind}, {len(self.body)} bytes>"

    @property
    def anchored(self) -> bool:
        """Does it go on from something that the provider keeps?"""
        return self.previous_response_id is not None or self.conversation is not None

    def items(self) -> list[Wire]:
        """The wire items of `input`, or the messages. A text alone is one message of the user.
        The list is read once: leave it as it is."""
        if self._items is None:
            self._items = self._read_items()
        return self._items

    def _read_items(self) -> list[Wire]:
        name = self.api.items_field
        given = _bytes(self.fields, name)
        if given is None:
            return []  # a conversation may be all there is
        if given[:1] == b'"':
            if name == "messages":
                raise wrong_type(name, "a list of messages")
            return [{"role": "user", "content": _decoded(given, str, name, "a text")}]
        if given[:1] != b"[":
            raise wrong_type(name, "a list" if name == "messages" else "a text or a list of items")
        try:
            items: list[Any] = _list.decode(given)
        except UNREADABLE as error:
            raise NotARequest(f"Invalid '{name}': {error}.", param=name) from None
        for n, item in enumerate(items):
            if not isinstance(item, dict):
                raise wrong_type(f"{name}[{n}]", "an object")
        return items

    def raw_item(self, at: int) -> bytes:
        """The bytes of one item as they came."""
        if self._raw is None:
            given = _bytes(self.fields, self.api.items_field) or b""
            is_list = given[:1] == b"["
            self._raw = _raw_list.decode(given) if is_list else [*map(_encoded, self.items())]
        return bytes(self._raw[at])

    def provider_acts(self) -> bool:
        """May the provider itself do something to the world before it answers: call a tool of an
        MCP server that nobody is asked about?"""
        try:
            tools = msgspec.json.decode(self.fields.get("tools", b"null"))
        except UNREADABLE:
            return False
        return isinstance(tools, list) and any(_acts(tool) for tool in tools)


def _acts(tool: object) -> bool:
    # Left out, `require_approval` means `always`; any other form lets some tools run unasked.
    asks = ("always", None)
    return (
        isinstance(tool, dict)
        and tool.get("type") == "mcp"
        and tool.get("require_approval") not in asks
    )


def read(body: bytes, api: Api = Api.RESPONSES) -> Asked:
    """Read a body, or a `response.create` frame. Raises `NotARequest`, in words. Frames of other
    types are the door's: nothing is continued by them."""
    fields = _read_fields(body)
    is_frame = api is Api.RESPONSES and _bytes(fields, "type") == _CREATE_FRAME_RAW
    store = _flag(fields, "store")
    generate = _flag(fields, "generate") if is_frame else None
    return Asked(
        api=api,
        body=body,
        fields=fields,
        model=_text(fields, "model"),
        stream=bool(_flag(fields, "stream")),
        previous_response_id=_text(fields, "previous_response_id"),
        conversation=_conversation(fields),
        # Only Responses are kept unless the client says otherwise.
        store=store is True if api.items_field == "messages" else store is not False,
        background=bool(_flag(fields, "background")),
        generate=generate is not False,
    )


# --- writing it again --------------------------------------------------------------------------


def rebuilt(
    asked: Asked,
    *,
    items: Sequence[Wire] | UnsetType = UNSET,
    origins: Sequence[int | None] | None = None,
    model: str | UnsetType = UNSET,
    previous_response_id: str | UnsetType | None = UNSET,
    conversation: str | UnsetType | None = UNSET,
    store: bool | UnsetType = UNSET,
    drop: Collection[str] = (),
) -> bytes:
    """The same body with these fields changed, and all others as they came; None takes a field
    away. ``origins`` names, for each item, the one of the request that it is, whose bytes are then
    kept; None for an item that is new."""
    fields = dict(asked.fields)
    if items is not UNSET:
        fields[asked.api.items_field] = _encoded(_items_raw(asked, items, origins))
    changed = {
        "model": model,
        "previous_response_id": previous_response_id,
        "conversation": conversation,
        "store": store,
    }
    for name, value in changed.items():
        if value is None:
            fields.pop(name, None)
        elif value is not UNSET:
            fields[name] = _encoded(value)
    for name in drop:
        fields.pop(name, None)
    return _encoder.encode(fields)


def _items_raw(
    asked: Asked, items: Sequence[Wire], origins: Sequence[int | None] | None
) -> Sequence[Wire | Raw]:
    if origins is None:
        return items
    return [
        item if origin is None else Raw(asked.raw_item(origin))
        for item, origin in zip(items, origins, strict=True)
    ]


def _encoded(value: Any) -> Raw:
    return Raw(_encoder.encode(value))


_ONLY_IN_FRAMES: Final = frozenset({"type", "stream_id", "generate"})
_ONLY_OVER_HTTP: Final = frozenset({"stream", "stream_options", "background"})


def http_body(body: bytes) -> bytes:
    """A frame as the body of an HTTP request for a stream. A warm-up has no such form."""
    asked = read(body)
    if not asked.generate:
        raise NotARequest(
            "A warm-up (generate: false) cannot be asked for over HTTP; send the request itself.",
            param="generate",
        )
    fields = {name: raw for name, raw in asked.fields.items() if name not in _ONLY_IN_FRAMES}
    fields["stream"] = _encoded(True)
    return _encoder.encode(fields)


def frame(body: bytes) -> bytes:
    """The body of an HTTP request as a frame. One in the background has no such form."""
    asked = read(body)
    if asked.background:
        raise NotARequest(
            "A response in the background cannot be asked for over a WebSocket; use HTTP.",
            param="background",
        )
    fields = {"type": _encoded(CREATE_FRAME)}
    for name, raw in asked.fields.items():
        if name not in _ONLY_OVER_HTTP:
            fields.setdefault(name, raw)
    return _encoder.encode(fields)


# --- reading -----------------------------------------------------------------------------------


def _read_fields(body: bytes) -> dict[str, Raw]:
    try:
        if not body.isascii():
            body.decode()  # values are only passed over, which does not look at their characters
        fields = _fields.decode(body)
    except UnicodeDecodeError:
        raise NotARequest("The body is not UTF-8. Send JSON in UTF-8.") from None
    except RecursionError:
        raise NotARequest("The body is nested too deeply. Send a flatter one.") from None
    except msgspec.ValidationError:
        raise NotARequest("The body is not a JSON object. Send one.") from None
    except msgspec.DecodeError as error:
        check_characters(body)
        raise NotARequest(f"The body is not valid JSON: {error}.") from None
    if len(fields) > MOST_FIELDS or any(len(name) > LONGEST_NAME_CHARACTERS for name in fields):
        raise NotARequest(
            f"The body has more than {MOST_FIELDS} fields, or a name of more than "
            f"{LONGEST_NAME_CHARACTERS} characters. Send what the API knows."
        )
    twice = _named_twice(body, fields)
    if twice is not None:
        # One reader takes the first, another the last: nobody could say what was asked.
        raise NotARequest(f"The body has the field {twice!r} twice. Send it once.", param=twice)
    return fields


def check_characters(body: bytes) -> None:
    """Raises `NotARequest` if a text in it was cut in the middle of a character. No provider takes
    that."""
    if whole_characters(body) != body:
        raise NotARequest(
            "The body has half of a character: a surrogate without its other half, such as "
            "\\ud83d. Send whole characters."
        )


def _named_twice(body: bytes, fields: Mapping[str, Raw]) -> str | None:
    """A field that the body has twice. Where it has none, its names and values stand in it one
    after the other just as they were read."""
    if _encoder.encode(fields) == body:
        return None  # as most clients write it, without a space
    at = 0
    seen: set[str] = set()
    for name, raw in fields.items():
        found = _NAME.match(body, at)
        if found is None:
            return name
        here = _name.decode(found[1])
        value = memoryview(raw)
        if here in seen or here != name or not body.startswith(value, found.end()):
            return here
        seen.add(here)
        at = found.end() + value.nbytes
    if fields and _END.match(body, at) is None:
        found = _NAME.match(body, at)
        return _name.decode(found[1]) if found else name
    return None


def value_of(fields: Mapping[str, Raw], name: str, kind: type[Value], words: str) -> Value | None:
    """The value of a field; None where it is left out, or null. Raises `NotARequest` if it is none
    of what the ``words`` say."""
    raw = _bytes(fields, name)
    return None if raw is None else _decoded(raw, kind, name, words)


def _decoded(raw: bytes, kind: type[Value], name: str, words: str) -> Value:
    try:
        return msgspec.json.decode(raw, type=kind)
    except UNREADABLE:
        raise wrong_type(name, words) from None


def _bytes(fields: Mapping[str, Raw], name: str) -> bytes | None:
    """The value of a field as it came; None if there is none, or null."""
    raw = fields.get(name)
    if raw is None:
        return None
    value = bytes(raw)
    return None if value == b"null" else value


def _text(fields: Mapping[str, Raw], name: str) -> str | None:
    return value_of(fields, name, str, "a text") if name in fields else None


def _flag(fields: Mapping[str, Raw], name: str) -> bool | None:
    return value_of(fields, name, bool, "true or false") if name in fields else None


class _Named(Struct):
    id: str


def _conversation(fields: Mapping[str, Raw]) -> str | None:
    raw = _bytes(fields, "conversation")
    if raw is None:
        return None
    if raw[:1] == b'"':
        return _text(fields, "conversation")
    return _decoded(raw, _Named, "conversation", "an id, or an object with an id").id


def wrong_type(name: str, words: str) -> NotARequest:
    return NotARequest(
        f"Invalid type for '{name}': expected {words}.", param=name, code="invalid_type"
    )
