"""Message objects of SDKs: read as the wire items they stand for, and made again after mending.

The table `SDKS` says which SDK an object is of, by the module of its class. SDKs are imported only
when one of their objects was passed, so none of them is a dependency. Objects of any other SDK that
have `model_dump()` (openai, anthropic) are read as what they would send, and stay dictionaries once
changed: both SDKs take dictionaries too."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Final

from msgspec import Struct

from lockstitch.core.errors import NotAHistory
from lockstitch.dialects.base import Wire
from lockstitch.objects import pydantic_ai


class Sdk(Struct, frozen=True):
    """How the message objects of one SDK become wire items, and back."""

    module: str
    """The package that the classes of its messages are in."""
    dump: Callable[[Any], Any]
    load: Callable[[Wire, Any], Any]
    """Makes a message from a wire item. The second argument is the object that the item was made
    from, or None if the item is new."""
    load_all: Callable[[list[Any], list[Any], list[Wire], list[Any]], list[Any]] | None = None
    """Makes the objects of a mended history, where that takes more than one wire item at a time.
    Its arguments are those of `objects_of`, without the SDK."""


def _langchain_load(wire: Wire, source: Any) -> Any:
    if hasattr(source, "model_copy"):
        # A copy keeps the class, which may be the user's own, and what the item does not show.
        was = source.model_dump()
        changed = {name: value for name, value in wire.items() if value != was.get(name, ...)}
        return source.model_copy(update=changed)
    messages = import_module("langchain_core.messages")
    return messages.messages_from_dict([{"type": wire.get("type"), "data": wire}])[0]


def _gemini_types() -> Any:
    return import_module("google.genai.types")


def _gemini_dump(message: Any) -> Any:
    """Only a `Content` is a message. Thought signatures and images stay bytes."""
    if isinstance(message, _gemini_types().Content):
        return message.model_dump(by_alias=True, exclude_none=True)
    return message


def _gemini_load(wire: Wire, source: Any) -> Any:
    return _gemini_types().Content.model_validate(wire)


SDKS: Final = (
    Sdk("langchain_core.messages", lambda message: message.model_dump(), _langchain_load),
    Sdk(
        "pydantic_ai.messages",
        pydantic_ai.dump,
        pydantic_ai.load,
        pydantic_ai.load_all,
    ),
    Sdk("google.genai.types", _gemini_dump, _gemini_load),
)


def sdk_of(item: object) -> Sdk | None:
    """The SDK whose message this object is; classes that users derive from one count too."""
    if isinstance(item, Mapping):
        return None
    for kind in type(item).__mro__:
        for sdk in SDKS:
            if kind.__module__ == sdk.module or kind.__module__.startswith(sdk.module + "."):
                return sdk
    return None


def objects_of(
    sdk: Sdk,
    items: list[Any],
    sources: list[Any],
    before: list[Wire],
    originals: list[Any],
) -> list[Any]:
    """A mended history as objects of the SDK. ``sources`` has for each item the object that it is,
    or was made from; ``before`` has the wire items of ``originals``."""
    if sdk.load_all is not None:
        return sdk.load_all(items, sources, before, originals)
    return [
        sdk.load(item, source) if isinstance(item, dict) and item is not source else item
        for item, source in zip(items, sources, strict=True)
    ]


def wire_of(item: Any, n: int) -> Wire:
    """What an item would be on the wire; the very object, where it is a dictionary throughout."""
    if isinstance(item, dict):
        return _plain_inside(item)
    if isinstance(item, Mapping):
        return _plain_inside(dict(item))
    sdk = sdk_of(item)
    dumped = _dumped(item) if sdk is None else sdk.dump(item)
    if isinstance(dumped, dict):
        return dumped
    raise NotAHistory(
        f"Item {n} is a {type(item).__name__}. A history holds dictionaries, or message objects"
        " of an SDK (with model_dump())."
    )


def _plain_inside(item: Wire) -> Wire:
    """SDK objects also come inside dictionaries: blocks of a message, calls of an assistant, parts
    of a content."""
    for field in ("content", "tool_calls", "parts"):
        inner = item.get(field)
        if isinstance(inner, list | tuple) and any(hasattr(one, "model_dump") for one in inner):
            item = {**item, field: [_dumped(one) for one in inner]}
    return item


def _dumped(item: Any) -> Any:
    dump = getattr(item, "model_dump", None)
    return item if dump is None else dump(mode="json", exclude_unset=True)
