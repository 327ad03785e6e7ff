"""Pydantic AI messages: requests and responses of parts; results stand first in the request that
follows the calls.

This is the JSON of `ModelMessagesTypeAdapter`. `objects` reads and makes `ModelMessage` objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from lockstitch.core import families
from lockstitch.core.families import Family
from lockstitch.core.items import Item, Part, note_of
from lockstitch.core.outcomes import MARK, Settlement
from lockstitch.core.pairing import Order
from lockstitch.dialects import signs
from lockstitch.dialects.base import PartsOfMessages, Wire, marked, text_of, unread

# Bound once: members of an enum are slow to look up, and `read` runs for every message.
_CALL, _OUTPUT = Part.CALL, Part.OUTPUT
_TOOL, _NATIVE_TOOL = families.PYDANTIC_AI_TOOL, families.PYDANTIC_AI_NATIVE_TOOL
_FEW_SLOTS = 32
"""Items of so many slots are made once: most parts hold no call."""


def _in_slots(part: Part) -> tuple[Item, ...]:
    return tuple(Item(part, slot=slot) for slot in range(_FEW_SLOTS))


_INPUT_ITEMS: Final = _in_slots(Part.INPUT)
_MODEL_ITEMS: Final = _in_slots(Part.MODEL)
_REASONING_ITEMS: Final = _in_slots(Part.REASONING)
_OTHER_ITEM: Final = Item(Part.OTHER)

_CALLS: Final = {"tool-call": _TOOL, "builtin-tool-call": _NATIVE_TOOL}
_RETURNS: Final = {"tool-return": _TOOL, "builtin-tool-return": _NATIVE_TOOL}
_RETRY: Final = "retry-prompt"

_FIELDS: Final = frozenset(
    {
        "kind",
        "parts",
        "timestamp",
        "instructions",
        "run_id",
        "conversation_id",
        "metadata",
        "state",
        "usage",
        "model_name",
        "model_id",
        "provider_name",
        "provider_url",
        "provider_details",
        "provider_response_id",
        "canonical_system",
        "finish_reason",
        "workspace_ref",
        "history_digest",
        "failed_attempts",
        # The names of two fields before Pydantic AI 1.0.
        "vendor_details",
        "vendor_id",
    }
)
"""Fields of a message that hold no call but `parts`, which is read."""

_RETRY_FIELDS: Final = frozenset({"part_kind", "content", "tool_name", "tool_call_id", "timestamp"})

_PLAIN: Final = {
    "text": _MODEL_ITEMS,
    "thinking": _REASONING_ITEMS,
    "file": _MODEL_ITEMS,
    "user-prompt": _INPUT_ITEMS,
    "system-prompt": _INPUT_ITEMS,
    "retry-feedback": _INPUT_ITEMS,
}
"""Parts that hold no call, and stand in messages of one side only."""

_PLAIN_ANYWHERE: Final = frozenset({"compaction", "speech"})

_RECORDS: Final = frozenset(
    {
        "tool-availability-delta",
        "capability-load-delta",
        "model-settings-delta",
        "instruction-delta",
        "instruction-baseline",
    }
)
"""Parts of requests in which Pydantic AI notes what changed. They may stand before results: it
sends them elsewhere, or not at all."""

_NOTHING_LEFT: Final = f"{MARK} A result that stood here was taken away."
"""A history must begin with a request, so the first one stays even if all its results go."""


class PydanticAI(PartsOfMessages):
    """The dialect of Pydantic AI's message history. Slot n is the n-th part of a message."""

    name = "pydantic-ai"
    order = Order.NEXT_TURN
    parts = "parts"

    def claims(self, wire: Mapping[str, Any]) -> bool:
        return wire.get("kind") in ("request", "response") and isinstance(wire.get("parts"), list)

    def read(self, wire: Mapping[str, Any]) -> Sequence[Item]:
        kind, parts = wire.get("kind"), wire.get("parts")
        if not isinstance(parts, list):
            return (marked(_OTHER_ITEM, signs.sign_within(wire)),)
        if kind == "response":
            items = [_in_response(part, slot) for slot, part in enumerate(parts)]
        elif kind == "request":
            items = _request(parts)
        else:
            return (marked(_OTHER_ITEM, signs.sign_within(wire)),)
        if not _FIELDS.issuperset(wire):
            sign = signs.sign_of(wire) or signs.sign_within(
                {name: value for name, value in wire.items() if name not in _FIELDS}
            )
            if sign is not None:
                items.append(unread(sign, len(parts)))
        # Of an empty request a provider gets nothing: no message comes between calls and results.
        return items or (_MODEL_ITEMS[0],)

    def output(
        self, family: Family, key: str | None, said: Settlement, name: str | None = None
    ) -> Wire:
        return {
            "tool_name": name or "",
            "content": said.text,
            "tool_call_id": key,
            "outcome": _outcome(said),
            "part_kind": family.output_type,
        }

    def take(self, wire: Wire, slots: set[int]) -> tuple[Wire | None, list[Wire]]:
        left, taken = super().take(wire, slots)
        if (
            left is not None
            and wire.get("kind") == "response"
            and any(_kind(part) in _CALLS for part in taken)
            and all(_kind(part) == "thinking" for part in left["parts"])
        ):
            return None, taken  # a provider may reject thinking that nothing follows
        return left, taken

    def emptied(self, wire: Wire) -> Wire | None:
        if wire.get("kind") != "request":
            return None
        said: Wire = {"content": _NOTHING_LEFT, "part_kind": "user-prompt"}
        times = [part.get("timestamp") for part in wire["parts"] if isinstance(part, dict)]
        if times and text_of(times[0]):
            said["timestamp"] = times[0]
        return {**wire, "parts": [said]}

    def put(self, outputs: list[Wire]) -> list[Wire]:
        return [{"parts": outputs, "kind": "request"}]

    def retype(self, wire: Wire, slot: int, family: Family, name: str | None = None) -> Wire:
        was = wire["parts"][slot]
        kept = ("tool_name", "content", "tool_call_id", "metadata", "timestamp", "outcome")
        part = {field: was[field] for field in kept if field in was}
        if was.get("part_kind") == _RETRY:
            part["outcome"] = "retried"
        return self.with_part(wire, slot, {**part, "part_kind": family.output_type})

    def rekey(self, wire: Wire, slot: int, old: str, new: str) -> Wire:
        return self.with_part(wire, slot, {**wire["parts"][slot], "tool_call_id": new})

    def reword(self, wire: Wire, slot: int, said: Settlement) -> Wire:
        was = wire["parts"][slot]
        # What belonged to the former content goes with it.
        kept = {name: value for name, value in was.items() if name not in _OF_CONTENT}
        if was.get("part_kind") == _RETRY:
            kept["part_kind"] = _TOOL.output_type
        return self.with_part(wire, slot, {**kept, "content": said.text, "outcome": _outcome(said)})


_OF_CONTENT: Final = frozenset({"tool_kind", "retry", "content_file_digests"})


def _outcome(said: Settlement) -> str:
    # Every version that has outcomes knows these two, and `failed` is sent as an error.
    return "success" if said.well else "failed"


def _kind(part: object) -> object:
    return part.get("part_kind") if isinstance(part, dict) else None


def _in_response(part: object, slot: int) -> Item:
    if not isinstance(part, dict):
        return unread("a part that is not an object", slot)
    kind = part.get("part_kind")
    if kind == "tool-call":
        key = part.get("tool_call_id")
        if type(key) is not str or not key:
            return unread("a tool-call part without an id", slot)
        name, said = part.get("tool_name"), part.get("args")
        return Item(
            _CALL,
            _TOOL,
            key,
            None,
            None,
            name if type(name) is str else None,
            slot,
            False,
            None,
            None,
            False,
            False,
            None,
            False,
            said if type(said) is str else None,
        )
    if kind == "builtin-tool-call":
        # Without a return, Pydantic AI sends of it what a provider accepts, or nothing.
        key, name = text_of(part.get("tool_call_id")), text_of(part.get("tool_name"))
        return Item(_CALL, _NATIVE_TOOL, key, name=name, slot=slot, lone=True)
    return _plain(part, kind, slot, _MODEL_ITEMS) or _return(part, kind, slot, in_request=False)


def _request(parts: list[Any]) -> list[Item]:
    """The core items of a request, without what stands between its results: Pydantic AI writes
    requests in which more of the user follows a result, and moves that when it sends them."""
    items: list[Item] = []
    between: list[Item] = []
    answered = False
    for slot, part in enumerate(parts):
        if not isinstance(part, dict):
            items.append(unread("a part that is not an object", slot))
            continue
        kind = part.get("part_kind")
        item = _plain(part, kind, slot, _INPUT_ITEMS)
        if item is None:
            item = _return(part, kind, slot, in_request=True)
        elif kind in _RECORDS:
            continue
        if item.part is _OUTPUT:
            between.clear()
            answered = True
        elif answered and item.unread is None:
            between.append(item)
            continue
        items.append(item)
    return items + between if between else items


def _plain(part: Wire, kind: object, slot: int, side: tuple[Item, ...]) -> Item | None:
    """The core item of a part that holds no call and no result, if it is one."""
    if type(kind) is not str:
        return None
    items = _PLAIN.get(kind)
    if items is None:
        if kind in _PLAIN_ANYWHERE or (side is _INPUT_ITEMS and kind in _RECORDS):
            return _at(slot, side) if "tool_name" not in part else None
        return None
    item = _at(slot, items)
    return item if signs.FIELDS.isdisjoint(part) else marked(item, signs.sign_of(part))


def _at(slot: int, items: tuple[Item, ...]) -> Item:
    return items[slot] if slot < _FEW_SLOTS else Item(items[0].part, slot=slot)


def _return(part: Wire, kind: object, slot: int, *, in_request: bool) -> Item:
    """The core item of a result, or of a part that is not known."""
    family = _RETURNS.get(kind) if type(kind) is str else None
    if kind == _RETRY and part.get("tool_name") is not None:
        family = _TOOL
    if family is None:
        if type(kind) is str and kind in _CALLS:
            return unread(f"a {kind} part in a request", slot)
        item = _at(slot, _INPUT_ITEMS if in_request else _MODEL_ITEMS)
        if kind == _RETRY and _RETRY_FIELDS.issuperset(part):
            return item  # "`tool_name` says whether the retry answers a tool call"
        return marked(item, signs.sign_within(part))
    key, name, content = part.get("tool_call_id"), part.get("tool_name"), part.get("content")
    return Item(
        _OUTPUT,
        family,
        key if type(key) is str and key else None,
        None,
        None,
        name if type(name) is str else None,
        slot,
        False,
        note_of(content),
        None,
        in_request is (family is _NATIVE_TOOL),
    )
