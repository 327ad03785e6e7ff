"""opencode sessions: messages `{"info": …, "parts": […]}`; a tool part holds its call and result.

The `state` of a tool part says how far the call came: `pending` while the model writes it, then
`running`, then `completed` or `error`, which both hold the result."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from lockstitch.core import families
from lockstitch.core.families import Family
from lockstitch.core.items import Item, Part, Place, note_of
from lockstitch.core.outcomes import Settlement
from lockstitch.core.pairing import Order
from lockstitch.dialects import signs
from lockstitch.dialects.base import (
    Answers,
    PartsOfMessages,
    Wire,
    marked,
    text_of,
    unread,
    without,
)

_CALL, _OUTPUT = Part.CALL, Part.OUTPUT
_TOOL: Final = families.OPENCODE_TOOL
_INPUT_ITEM: Final = Item(Part.INPUT)
_MODEL_ITEM: Final = Item(Part.MODEL)
_OTHER_ITEM: Final = Item(Part.OTHER)

_FIELDS: Final = len(("info", "parts"))
_PLAIN_PARTS: Final = frozenset(
    {
        "text",
        "reasoning",
        "file",
        "step-start",
        "step-finish",
        "patch",
        "snapshot",
        "agent",
        "subtask",
        "compaction",
        "retry",
    }
)
"""Types of parts that hold no call."""

_ABORTED: Final = "MessageAbortedError"
PARTIAL_OUTPUT: Final = "\nOutput on record up to then:\n"
"""Comes before what a running tool had written, in the result of a call that never ended."""


class Opencode(PartsOfMessages):
    """The dialect of opencode's messages. Slot n is the n-th part, for a call and its result."""

    name = "opencode"
    order = Order.ANYWHERE
    answers = Answers.BEHIND_CALLS
    parts = "parts"

    def claims(self, wire: Mapping[str, Any]) -> bool:
        return type(wire.get("info")) is dict and type(wire.get("parts")) is list

    def read(self, wire: Mapping[str, Any]) -> Sequence[Item]:
        info = wire.get("info")
        parts = wire.get("parts")
        if type(parts) is not list:
            # A message of another form, as long as it is text, is read as every dialect reads it.
            text = _INPUT_ITEM if isinstance(wire.get("role"), str) else _OTHER_ITEM
            return (marked(text, signs.sign_within(wire)),)
        plain = _OTHER_ITEM
        if type(info) is dict:
            plain = _INPUT_ITEM if info.get("role") == "user" else _MODEL_ITEM
            if "error" in info and _is_left_out(info["error"]):
                return (plain,)
        items: list[Item] = []
        results: list[Item] = []
        for slot, part in enumerate(parts):
            if type(part) is not dict:
                continue
            kind = part.get("type")
            if kind == "tool":
                _read_tool(part, slot, items, results)
                continue
            if kind == "step-start" and results:
                # Sent as: the calls of one step, then their results.
                items += results
                results = []
            if "callID" in part or "state" in part:
                items.append(unread("it has a call id or a state", slot))
            elif type(kind) is not str or kind not in _PLAIN_PARTS:
                sign = signs.sign_within(part)
                if sign is not None:
                    items.append(unread(sign, slot))
        if len(wire) > _FIELDS:
            rest = {name: wire[name] for name in wire if name not in ("info", "parts")}
            sign = signs.sign_within(rest)
            if sign is not None:
                items.append(unread(sign))
        if plain is _INPUT_ITEM or not (items or results):
            items.insert(0, plain)
        return items + results if results else items

    def take(self, wire: Wire, slots: set[int]) -> tuple[Wire | None, list[Wire]]:
        left, taken = super().take(wire, slots)
        # The message stays: others name it as their parent, and opencode skips empty ones.
        return (left if left is not None else {**wire, "parts": []}), taken

    def put(self, outputs: list[Wire]) -> list[Wire]:
        raise AssertionError("a result is always in the part of its call")

    def output(
        self, family: Family, key: str | None, said: Settlement, name: str | None = None
    ) -> Wire:
        if said.well:
            return {"status": "completed", "output": said.text}
        return {"status": "error", "error": said.text}

    def beside(self, family: Family, after: Place) -> bool:
        return True

    def put_beside(self, wire: Wire, slot: int, output: Wire) -> Wire:
        part = wire["parts"][slot]
        state = _settled(part["state"], output, _created(wire))
        return self.with_part(wire, slot, {**part, "state": state})

    def retype(self, wire: Wire, slot: int, family: Family, name: str | None = None) -> Wire:
        return wire  # there is one family

    def rekey(self, wire: Wire, slot: int, old: str, new: str) -> Wire:
        return self.with_part(wire, slot, {**wire["parts"][slot], "callID": new})

    def reword(self, wire: Wire, slot: int, said: Settlement) -> Wire:
        part = wire["parts"][slot]
        output = self.output(_TOOL, None, said)
        state = without(without(part["state"], "output"), "error")
        return self.with_part(
            wire, slot, {**part, "state": _settled(state, output, _created(wire))}
        )


def _is_left_out(error: object) -> bool:
    """Does opencode leave out a message with this error when it sends the conversation?"""
    name = error.get("name") if isinstance(error, dict) else None
    return isinstance(name, str) and name != _ABORTED


def _read_tool(part: Wire, slot: int, items: list[Item], results: list[Item]) -> None:
    """Add the call of a tool part to ``items``, and its result to ``results``."""
    state = part.get("state")
    if type(state) is not dict:
        items.append(unread("a tool part without a state", slot))
        return
    key = part.get("callID")
    if type(key) is not str or not key:
        key = None
    status = state.get("status")
    if status == "completed":
        output = state.get("output")
        if not isinstance(output, str | dict | list) or type(state.get("time")) is not dict:
            items.append(unread("a completed tool part without an output or a time", slot))
            return
    elif status == "error":
        output = _error_text(state)
    elif status in ("pending", "running"):
        if key is None:
            items.append(unread("a tool part without a callID", slot))
        else:
            items.append(_open_call(part, state, key, slot))
        return
    else:
        items.append(unread("a tool part with an unknown status", slot))
        return
    if "input" not in state:
        items.append(unread("a tool part without an input", slot))
        return
    if key is not None:
        items.append(Item(_CALL, _TOOL, key, None, None, text_of(part.get("tool")), slot))
    results.append(Item(_OUTPUT, _TOOL, key, None, None, None, slot, False, note_of(output)))


def _open_call(part: Wire, state: Wire, key: str, slot: int) -> Item:
    if state["status"] == "running":
        if "input" not in state:
            return unread("a tool part without an input", slot)
        return Item(_CALL, _TOOL, key, None, None, text_of(part.get("tool")), slot)
    raw = text_of(state.get("raw"))
    return Item(
        _CALL,
        _TOOL,
        key,
        name=text_of(part.get("tool")),
        slot=slot,
        # opencode notes a call as soon as it begins, and its input only when that is complete.
        partial=not state.get("input") and raw is None,
        arguments=None if state.get("input") else raw,
    )


def _error_text(state: Wire) -> object:
    """What opencode sends as the result of a call that failed."""
    metadata = state.get("metadata")
    if isinstance(metadata, dict) and metadata.get("interrupted") is True:
        output = metadata.get("output")
        if isinstance(output, str):
            return output
    return state.get("error")


def _settled(state: Wire, output: Wire, created: Any) -> Wire:
    """The state of a call with a result, with the fields that opencode's schema requires."""
    metadata = state.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    # Else opencode sends what the tool had written as if it were all of the result.
    metadata = without(metadata, "interrupted")
    time = state.get("time")
    time = time if isinstance(time, dict) else {}
    start = time.get("start", created)
    settled = {
        **without(state, "raw"),
        **output,
        "input": _input(state),
        "metadata": metadata,
        "time": {**time, "start": start, "end": time.get("end", start)},
    }
    if output["status"] == "completed":
        settled["title"] = text_of(state.get("title")) or ""
        return settled
    so_far = metadata.get("output")
    if isinstance(so_far, str) and so_far:
        settled["error"] = output["error"] + PARTIAL_OUTPUT + so_far
    return settled


def _input(state: Wire) -> Any:
    """The input of a call; of one that was never started, what the model wrote."""
    given = state.get("input")
    raw = state.get("raw")
    if given or not isinstance(raw, str) or not raw:
        return given if isinstance(given, dict) else {"value": given} if given else {}
    try:
        read = json.loads(raw)
    except (ValueError, RecursionError):
        read = raw
    return read if isinstance(read, dict) else {"value": read}


def _created(wire: Wire) -> Any:
    """When the message began: the time of a call that has none of its own."""
    time = wire["info"].get("time")
    created = time.get("created") if isinstance(time, dict) else None
    return created if isinstance(created, int | float) else 0
