"""Items in the form in which a provider lists them, and pages of them.

What is kept is what came; here it gets what a list must show: an id, a type, whole parts of a
message, a status. Fields that are not known stay as they are. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Raw, Struct

from lockstitch.core.errors import NotAnItem
from lockstitch.gateway.deciding.asked import NotARequest, wrong_type
from lockstitch.gateway.deciding.refusals import Refusal, RequestRefused
from lockstitch.gateway.events import changed

MOST_LISTED_ITEMS: Final = 100
LISTED_ITEMS: Final = 20
"""The provider's own: how many a page may have, and how many it has where nobody says."""

PREFIXES: Final = {
    "message": "msg",
    "reasoning": "rs",
    "function_call": "fc",
    "function_call_output": "fco",
    "custom_tool_call": "ctc",
    "custom_tool_call_output": "ctco",
    "computer_call": "cu",
    "computer_call_output": "cuo",
    "shell_call": "sh",
    "shell_call_output": "sho",
    "local_shell_call": "lsh",
    "local_shell_call_output": "lsho",
    "apply_patch_call": "apc",
    "apply_patch_call_output": "apco",
    "tool_search_call": "tsc",
    "tool_search_output": "tso",
    "program": "prog",
    "program_output": "progo",
    "mcp_approval_request": "mcpr",
    "mcp_approval_response": "mcpa",
    "mcp_call": "mcp",
    "mcp_list_tools": "mcpl",
    "web_search_call": "ws",
    "file_search_call": "fs",
    "code_interpreter_call": "ci",
    "image_generation_call": "ig",
    "compaction": "cmp",
    "additional_tools": "at",
}
"""What the id of an item begins with. Of those that are well known a provider refuses any other."""

_NO_STATUS: Final = frozenset(
    {
        "mcp_approval_request",
        "mcp_approval_response",
        "mcp_list_tools",
        "program",
        "compaction",
        "additional_tools",
        "item_reference",
    }
)

_NO_STATUS_IN_CONVERSATIONS: Final = frozenset({"custom_tool_call", "custom_tool_call_output"})
"""The official types of conversations know none on these two; those of responses require it."""

_BORROWED_IDS: Final = frozenset({"local_shell_call_output", "item_reference"})
"""Their id is that of another item, and nobody can make it up."""


class NoSuchItem(RequestRefused):
    """An item was asked for that is not there."""

    def __init__(self, id: str, param: str) -> None:
        message = f"Item with id '{id}' not found."
        super().__init__(Refusal(status=404, message=message, param=param))


# --- items -------------------------------------------------------------------------------------


class _Peeked(Struct, gc=False):
    id: Any = None
    type: Any = None
    role: Any = None
    status: Any = None
    content: Raw = Raw(b"null")


_peeked = msgspec.json.Decoder(_Peeked)


def _peek(item: bytes) -> _Peeked:
    """What is read of an item. Raises `NotAnItem`."""
    try:
        return _peeked.decode(item)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise NotAnItem(f"Not a wire item: {error}. Pass the bytes of one JSON object.") from None


class Listed(Struct, frozen=True):
    """An item as it is listed."""

    id: str
    item: bytes


def id_of(item: bytes) -> str | None:
    """The item's own id, if it has one."""
    named = _peek(item).id
    return named if isinstance(named, str) and named else None


def type_of(item: bytes) -> str:
    return _type(_peek(item))


def _type(item: _Peeked) -> str:
    if isinstance(item.type, str):
        return item.type
    return "message" if item.role is not None else ""


def new_id(type: str, digits: str) -> str:
    """An id for an item of this type; ``digits`` are 48 that nobody else has."""
    return f"{PREFIXES.get(type, 'item')}_{digits}"


def with_id(item: bytes, digits: str) -> bytes:
    """The item with an id of its own: the one that it came with, or a new one."""
    if id_of(item) is not None or type_of(item) in _BORROWED_IDS:
        return item
    return changed(item, {"id": new_id(type_of(item), digits)})


def listed(item: bytes, place: str, *, in_conversation: bool = False) -> Listed:
    """The item as it is listed. One that came without an id gets one that follows from its
    ``place``, and so is the same every time."""
    peeked = _peek(item)
    kind = _type(peeked)
    own = peeked.id if isinstance(peeked.id, str) and peeked.id else None
    named = own or new_id(kind, sha256(place.encode()).hexdigest()[:48])
    added: dict[str, Any] = {}
    if own is None:
        added["id"] = named
    if peeked.type is None and kind:
        added["type"] = kind
    none = _NO_STATUS | _NO_STATUS_IN_CONVERSATIONS if in_conversation else _NO_STATUS
    if peeked.status is None and kind in PREFIXES and kind not in none:
        added["status"] = "completed"
    if kind == "message" and bytes(peeked.content)[:1] == b'"':
        added["content"] = [_part(peeked.role, peeked.content)]
    drop = ("status",) if in_conversation and kind in _NO_STATUS_IN_CONVERSATIONS else ()
    return Listed(named, changed(item, added, drop=drop) if added or drop else item)


def _part(role: object, text: Raw) -> dict[str, Any]:
    if role == "assistant":
        return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    return {"type": "input_text", "text": text}


# --- pages -------------------------------------------------------------------------------------


class Paging(Struct, frozen=True, kw_only=True):
    """Which part of a list is asked for."""

    after: str | None = None
    limit: int = LISTED_ITEMS
    newest_first: bool = True


def paging(query: Mapping[str, str]) -> Paging:
    """What a query asks for. Raises `NotARequest`."""
    order = query.get("order") or "desc"
    if order not in ("asc", "desc"):
        raise NotARequest(
            f"Invalid value: '{order}'. Supported values are: 'asc' and 'desc'.",
            param="order",
            code="invalid_value",
        )
    limit = whole_number("limit", query.get("limit"), LISTED_ITEMS)
    if not 1 <= limit <= MOST_LISTED_ITEMS:
        raise NotARequest(
            f"Invalid 'limit': expected a value between 1 and {MOST_LISTED_ITEMS}.",
            param="limit",
            code="invalid_value",
        )
    return Paging(after=query.get("after") or None, limit=limit, newest_first=order == "desc")


def page(items: Sequence[Listed], asked: Paging) -> bytes:
    """One page of these items, which are in their own order. Raises `NoSuchItem`."""
    ordered = list(reversed(items)) if asked.newest_first else list(items)
    if asked.after is not None:
        places = [place for place, one in enumerate(ordered) if one.id == asked.after]
        if not places:
            raise NoSuchItem(asked.after, "after")
        ordered = ordered[places[-1] + 1 :]
    shown = ordered[: _end(ordered, asked.limit)]
    return msgspec.json.encode(
        {
            "object": "list",
            "data": [Raw(one.item) for one in shown],
            "first_id": shown[0].id if shown else "",
            "last_id": shown[-1].id if shown else "",
            "has_more": len(ordered) > len(shown),
        }
    )


def _end(ordered: Sequence[Listed], limit: int) -> int:
    """Where the page ends: never between two items of the same id (an output may borrow its
    call's), because `after` that id is after both."""
    end = min(limit, len(ordered))
    last = {one.id: place for place, one in enumerate(ordered)}
    while end and last[ordered[end - 1].id] >= end:
        end = last[ordered[end - 1].id] + 1
    return end


# --- what a query says -------------------------------------------------------------------------

Default = TypeVar("Default")


def whole_number(name: str, text: str | None, default: Default) -> int | Default:
    """A number in a query. Raises `NotARequest`."""
    if text is None:
        return default
    if not text.isdecimal() or not text.isascii():
        raise wrong_type(name, "an integer, but got a string instead")
    return int(text[:18])


def flag(name: str, text: str | None) -> bool:
    """A yes or no in a query; left out, it is a no. Raises `NotARequest`."""
    if text is None or text.lower() in ("false", "0"):
        return False
    if text.lower() not in ("true", "1"):
        raise wrong_type(name, "a boolean, but got a string instead")
    return True
