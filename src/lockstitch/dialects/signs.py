"""Signs of a tool call or a tool result in JSON that a dialect did not read as one.

A checker may call a history clean only if it understood every call in it. So whatever a dialect
passes over is asked here: does it look like a call or a result? The tables are in this file; a
dialect that knows better (a known type, a payload that belongs to a tool) does not ask."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

DEEPEST_LEVEL = 4
"""How many levels below a message are searched: a renamed list, its parts, a part's own object, and
one to spare. Deeper JSON belongs to tools, which may hold anything."""

_WORDS: Final = (
    "tool call",
    "tool calls",
    "tool call id",
    "tool use",
    "tool use id",
    "tool result",
    "tool invocation",
    "tool invocations",
    "invalid tool calls",
    "function call",
    "function response",
    "call id",
    "approval request id",
    "approval id",
    "partial json",
)
"""Field names that only calls, results and what holds them have, in any spelling."""

_SHARED_WORDS: Final = ("call id", "approval id")
"""Those of them that other software uses too, about telephone calls for example."""

_CALLERS_FIELDS: Final = frozenset({"metadata", "tools"})
"""Fields in which applications put their own data and the descriptions of tools. Only what can
be nothing else counts as a sign in them."""

_NAMES: Final = frozenset({"name", "toolName", "tool_name", "tool"})
_ARGUMENTS: Final = frozenset({"input", "arguments", "args"})
_BODY_FIELDS: Final = _ARGUMENTS | {"response"}
_TAGS: Final = ("type", "kind", "part_kind", "role")
_TOOL_TAG: Final = re.compile(
    r"(?:tool|function)[-_. ]?(?:call|use|result|response|return|output|invocation|approval)"
    r"|custom_tool|tool-|dynamic-tool",
    re.IGNORECASE,
)
_CALL_TAG: Final = re.compile(
    r"(?:tool|function)[-_. ]?(?:call|use|result|response|return|output|invocation)"
    r"|mcp_approval_request",
    re.IGNORECASE,
)
_TOOL_ROLES: Final = frozenset({"tool", "function"})
_PLAIN_TAGS: Final = frozenset(
    {
        "user",
        "assistant",
        "system",
        "developer",
        "model",
        "message",
        "text",
        "input_text",
        "output_text",
    }
)
"""The commonest tags, which need no search."""


PLAIN_PARTS: Final = frozenset(
    {
        "text",
        "input_text",
        "output_text",
        "refusal",
        "image",
        "image_url",
        "input_image",
        "audio",
        "input_audio",
        "output_audio",
        "file",
        "input_file",
        "document",
        "thinking",
        "redacted_thinking",
    }
)
"""Parts of messages in which no call can be. What they hold may be anything."""


def _spellings(words: str) -> Iterable[str]:
    first, *rest = words.split()
    yield "_".join((first, *rest))
    yield "-".join((first, *rest))
    yield first + "".join(word.title() for word in rest)
    yield first + "".join("ID" if word == "id" else word.title() for word in rest)


FIELDS: Final = frozenset(name for words in _WORDS for name in _spellings(words))
_SHARED_FIELDS: Final = frozenset(name for words in _SHARED_WORDS for name in _spellings(words))


def sign_of(part: Mapping[str, Any]) -> str | None:
    """What makes this object look like a call or a result, in words; None if nothing does.

    Looks at the object itself, not into it. Fields that are empty or null are no sign."""
    if not FIELDS.isdisjoint(part):
        for name, value in part.items():
            if name in FIELDS and value not in (None, "", [], {}):
                return f"`{name}`"
    for name in _TAGS:
        tag = part.get(name)
        if not isinstance(tag, str) or tag in _PLAIN_TAGS:
            continue
        if tag == "tool" or _TOOL_TAG.search(tag) or (name == "role" and tag in _TOOL_ROLES):
            return f"{name} `{tag}`"
    if not _ARGUMENTS.isdisjoint(part) and not _NAMES.isdisjoint(part):
        return "a name with arguments"
    return None


def certain_sign_of(part: Mapping[str, Any]) -> str | None:
    """Like `sign_of`, for JSON that may be anything: descriptions of tools, schemas and settings
    have the same field names, but not with an id, calls or a type tag in them."""
    if not FIELDS.isdisjoint(part):
        for name, value in part.items():
            if name in FIELDS and value and (isinstance(value, str | list) or _is_body(value)):
                return f"`{name}`"
    for name in _TAGS:
        tag = part.get(name)
        if isinstance(tag, str) and _CALL_TAG.fullmatch(tag):
            return f"{name} `{tag}`"
    return None


def _is_body(value: object) -> bool:
    """Is this what a field of a call or a response holds: the tool's name, with more?"""
    if not isinstance(value, Mapping) or _BODY_FIELDS.isdisjoint(value):
        return False
    return any(isinstance(value.get(name), str) for name in ("name", "toolType", "tool_type"))


def _callers_sign_of(part: Mapping[str, Any]) -> str | None:
    """Like `certain_sign_of`, for data of an application, in which an id may be of anything."""
    if not _SHARED_FIELDS.isdisjoint(part):
        part = {name: value for name, value in part.items() if name not in _SHARED_FIELDS}
    return certain_sign_of(part)


def sign_within(
    value: object,
    *,
    level: int = DEEPEST_LEVEL,
    sign: Callable[[Mapping[str, Any]], str | None] = sign_of,
) -> str | None:
    """The first sign in a value or below it, ``level`` levels deep."""
    if isinstance(value, Mapping):
        found = sign(value)
        if found is not None or not level:
            return found
        for name, one in value.items():
            below = _callers_sign_of if name in _CALLERS_FIELDS else sign
            found = sign_within(one, level=level - 1, sign=below)
            if found is not None:
                return found
    elif isinstance(value, list | tuple) and level:
        for one in value:
            found = sign_within(one, level=level - 1, sign=sign)
            if found is not None:
                return found
    return None


def sign_in_field(name: str, value: object) -> str | None:
    """A sign in one field of a message: in its name, or anywhere in its value."""
    return sign_within({name: value}, level=DEEPEST_LEVEL + 1)


def sign_beside(
    wire: Mapping[str, Any], known: frozenset[str], content: str = "content"
) -> str | None:
    """A sign in a message: in the message itself, or anywhere in a field whose name is not
    ``known``. Its ``content`` is not looked at if it is there."""
    found = sign_of(wire)
    if found is None:
        if wire.get(content) is None:
            return sign_within(wire)  # then the content may be under any name
        if known.issuperset(wire):
            return None
        for name, value in wire.items():
            if name not in known and (found := sign_in_field(name, value)) is not None:
                return f"`{name}`: {found}"
    return found


def sign_in_text(wire: Mapping[str, Any], known: frozenset[str]) -> str | None:
    """A sign in a message that should hold only texts, images and files."""
    found = sign_beside(wire, known)
    if found is None and type(content := wire.get("content")) is not str:
        found = sign_in_parts(content)
    return found


def sign_in_parts(parts: object) -> str | None:
    """A sign in parts that should be texts, images and files."""
    if not isinstance(parts, list | tuple):
        return sign_within(parts)
    for part in parts:
        if isinstance(part, Mapping):
            kind = part.get("type")
            plain = type(kind) is str and kind in PLAIN_PARTS
            found = sign_of(part) if plain else sign_within(part)
            if found is not None:
                return found
    return None
