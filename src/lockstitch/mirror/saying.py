"""What an item says, and whether two items say the same: likeness, with speech read as its words.

A client cannot give audio back: its copy of what was spoken is the transcript."""

from __future__ import annotations

from typing import Any, Final

from lockstitch.core import families
from lockstitch.core.items import Item, Part
from lockstitch.dialects.base import Wire
from lockstitch.dialects.likeness import likeness
from lockstitch.dialects.realtime import Realtime

_dialect = Realtime()

_HALVES: Final = {
    families.FUNCTION.call_type: Part.CALL,
    families.FUNCTION.output_type: Part.OUTPUT,
}

_OF_A_MESSAGE: Final = frozenset({"id", "type", "role", "content", "status", "object"})
_OF_A_TEXT: Final = frozenset({"type", "text"})
_TEXTS: Final = ("input_text", "output_text", "text")

_PARTS: Final = (Part.CALL, Part.OUTPUT)

_SPEECH: Final = ("input_audio", "output_audio", "audio")
"""Looked through, not hashed: what a part says is its type may be no text at all."""


def read(wire: Wire) -> Item:
    """The core item of a wire item."""
    (item,) = _dialect.read(wire)
    return item


def half(wire: Wire) -> tuple[Part, str] | None:
    """A call or an output, and the key that joins the two; None for anything else. As `read` has
    it, but those of functions are known without reading all of the item."""
    kind, key = wire.get("type", "message"), wire.get("call_id")
    if kind == "message":
        return None
    if kind.__class__ is str and key.__class__ is str and key and kind in _HALVES:
        return _HALVES[kind], key
    item = read(wire)
    return None if item.key is None or item.part not in _PARTS else (item.part, item.key)


def speech(wire: Wire) -> list[dict[str, Any]]:
    """The parts that are audio."""
    content = wire.get("content")
    if not isinstance(content, list):
        return []
    return [part for part in content if isinstance(part, dict) and part.get("type") in _SPEECH]


def has_speech(wire: Wire) -> bool:
    content = wire.get("content")
    if isinstance(content, list):
        for part in content:
            if isinstance(part, dict) and part.get("type") in _SPEECH:
                return True
    return False


def awaits_words(wire: Wire) -> bool:
    """Does it hold speech of the user that was not transcribed so far?"""
    return any(
        part["type"] == "input_audio" and not part.get("transcript") for part in speech(wire)
    )


def same(one: Wire, other: Wire) -> bool:
    """Do they say the same, as far as that can be told? Speech without words may say anything."""
    if one is other or one == other:
        return True
    words, others = _words(one), _words(other)
    if words is not None and others is not None:
        return words == others
    if any(not part.get("transcript") for wire in (one, other) for part in speech(wire)):
        return True
    return likeness(_worded(one)) == likeness(_worded(other))


def without_audio(wire: Wire) -> Wire:
    """Without the bytes that a retrieved item brings along."""
    if not any("audio" in part for part in speech(wire)):
        return wire
    return wire | {
        "content": [
            {name: value for name, value in part.items() if name != "audio"}
            if isinstance(part, dict)
            else part
            for part in wire["content"]
        ]
    }


def with_words(wire: Wire, index: int, words: str | None) -> Wire:
    """With the transcript of one part; None takes it away, and its text."""
    content = wire.get("content")
    if not isinstance(content, list) or not 0 <= index < len(content):
        return wire
    now = content[index]
    if not isinstance(now, dict):
        return wire
    part = {name: value for name, value in now.items() if name not in {"transcript", "text"}}
    if words is not None:
        part["transcript"] = words
    return wire | {"content": [*content[:index], part, *content[index + 1 :]]}


def creatable(wire: Wire) -> Wire | None:
    """The item as a client may create it; None if nothing of it is left.

    "Assistant audio cannot be created by a client (only its text)", and of what a user said the
    words are all that a mirror has."""
    if not has_speech(wire) or all("audio" in part for part in speech(wire)):
        return wire
    text = "output_text" if wire.get("role") == "assistant" else "input_text"
    content: list[Any] = []
    for part in wire["content"]:
        if not isinstance(part, dict) or part.get("type") not in _SPEECH or "audio" in part:
            content.append(part)
        elif part.get("transcript"):
            content.append({"type": text, "text": part["transcript"]})
    return wire | {"content": content} if content else None


def _words(wire: Wire) -> list[Any] | None:
    """Role and texts of a message that is nothing else, as most are; None for any other item. Two
    such are alike if these are the same."""
    content = wire.get("content")
    if wire.get("type") != "message" or not wire.keys() <= _OF_A_MESSAGE:
        return None
    if not isinstance(content, list):
        return None
    words = [wire.get("role")]
    for part in content:
        if not isinstance(part, dict) or part.keys() != _OF_A_TEXT or part["type"] not in _TEXTS:
            return None
        if not isinstance(part["text"], str):
            return None
        words.append(part["text"])
    return words


def _worded(wire: Wire) -> Wire:
    if not has_speech(wire):
        return wire
    return wire | {
        "content": [
            {"type": "text", "text": part["transcript"]}
            if isinstance(part, dict) and part.get("type") in _SPEECH
            else part
            for part in wire["content"]
        ]
    }
