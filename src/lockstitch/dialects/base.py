"""What a dialect is: how wire items are read into core items, and how edits are written back.

A wire item is a dictionary, as it came: fields and types that a dialect does not know stay
untouched. The order in which edits are carried out lives in `rewriting`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, Protocol, TypeAlias

import msgspec

from lockstitch.core.errors import NotAnItem
from lockstitch.core.families import Family
from lockstitch.core.items import Item, Part, Place
from lockstitch.core.outcomes import Settlement
from lockstitch.core.pairing import Order

Wire: TypeAlias = dict[str, Any]


class Answers(Enum):
    """Where an output goes that is written or moved."""

    BEHIND_CALLS = "into a wire item of its own behind the calls"
    IN_TURN = "into the message that follows the calls, at its start"
    BEFORE_TURN = "into a message of its own before the one that follows the calls"


class Dialect(Protocol):
    """One way of writing conversations."""

    name: str
    order: Order
    answers: Answers
    parts: str
    """The field that holds the parts of a message."""

    def claims(self, wire: Mapping[str, Any]) -> bool:
        """Can this wire item only be of this dialect? Asked in the order of
        `detection.DIALECTS`."""
        ...

    def read(self, wire: Mapping[str, Any]) -> Sequence[Item]:
        """The core items of one wire item. Any mapping is legal, whatever it holds. What looks like
        a call or an output and cannot be read as one becomes an item that is `unread`."""
        ...

    def may_begin(self, items: Sequence[Item]) -> bool:
        """May a history begin with this wire item (given as its core items)?"""
        ...

    def leads(self, wire: Mapping[str, Any]) -> bool:
        """Does this wire item hold instructions, as those at the start of a history do?"""
        ...

    def output(
        self, family: Family, key: str | None, said: Settlement, name: str | None = None
    ) -> Wire:
        """A synthetic output: an item, a message or a block."""
        ...

    def timed(self, output: Wire, neighbour: Wire) -> Wire:
        """A synthetic output with the time of the wire item that it follows, where a dialect has
        times in its wire items."""
        ...

    def take(self, wire: Wire, slots: set[int]) -> tuple[Wire | None, list[Wire]]:
        """What is left of a wire item without these slots, and what was in them."""
        ...

    def emptied(self, wire: Wire) -> Wire | None:
        """What stays of a wire item that should not go when everything in it is taken."""
        ...

    def put(self, outputs: list[Wire]) -> list[Wire]:
        """New wire items that hold these outputs."""
        ...

    def put_into(self, wire: Wire, outputs: list[Wire]) -> Wire:
        """The wire item with these outputs at its start, where a dialect does that."""
        ...

    def beside(self, family: Family, after: Place) -> bool:
        """Does an output for the call at ``after`` go into the call's own wire item?"""
        ...

    def put_beside(self, wire: Wire, slot: int, output: Wire) -> Wire:
        """The wire item with an output behind one of its slots."""
        ...

    def retype(self, wire: Wire, slot: int, family: Family, name: str | None = None) -> Wire:
        """The wire item with its output made one of this family."""
        ...

    def rekey(self, wire: Wire, slot: int, old: str, new: str) -> Wire:
        """The wire item with one call id replaced."""
        ...

    def reword(self, wire: Wire, slot: int, said: Settlement) -> Wire:
        """The wire item with one of its outputs saying this instead."""
        ...

    def strip_id(self, wire: Wire, slot: int, nth: int = 2) -> Wire:
        """The wire item without the id of one of its items, the ``nth`` that has it."""
        ...


class _Roles:
    """Dialects in which the `role` of a message says who speaks."""

    def leads(self, wire: Mapping[str, Any]) -> bool:
        role = wire.get("role")
        return role in ("system", "developer") and wire.get("type", "message") == "message"


class OwnItems(_Roles):
    """Dialects in which an output is a wire item of its own, and may stand behind its call."""

    answers = Answers.BEHIND_CALLS
    parts = "content"

    def may_begin(self, items: Sequence[Item]) -> bool:
        return True

    def timed(self, output: Wire, neighbour: Wire) -> Wire:
        return output

    def take(self, wire: Wire, slots: set[int]) -> tuple[Wire | None, list[Wire]]:
        return None, [wire]

    def emptied(self, wire: Wire) -> Wire | None:
        return None

    def put(self, outputs: list[Wire]) -> list[Wire]:
        return outputs

    def put_into(self, wire: Wire, outputs: list[Wire]) -> Wire:
        raise AssertionError("outputs are wire items of their own in this dialect")

    def beside(self, family: Family, after: Place) -> bool:
        return False

    def put_beside(self, wire: Wire, slot: int, output: Wire) -> Wire:
        raise AssertionError("outputs never stand inside another wire item in this dialect")


class PartsOfMessages(_Roles):
    """Dialects in which calls and outputs are parts of messages. Slot n is the n-th part.

    A dialect of this kind says in `put` which message holds outputs of its own, and may override
    the rest."""

    answers = Answers.IN_TURN
    parts = "content"

    def may_begin(self, items: Sequence[Item]) -> bool:
        # A conversation begins with its user, who answers nothing before it.
        return all(item.part is Part.INPUT for item in items)

    def timed(self, output: Wire, neighbour: Wire) -> Wire:
        return output

    def take(self, wire: Wire, slots: set[int]) -> tuple[Wire | None, list[Wire]]:
        parts = wire[self.parts]
        taken = [part for n, part in enumerate(parts) if n in slots]
        left = [part for n, part in enumerate(parts) if n not in slots]
        return ({**wire, self.parts: left} if left else None), taken

    def emptied(self, wire: Wire) -> Wire | None:
        return None

    def put_into(self, wire: Wire, outputs: list[Wire]) -> Wire:
        parts = wire.get(self.parts)
        if isinstance(parts, str) and parts:
            parts = [{"type": "text", "text": parts}]
        return {**wire, self.parts: [*outputs, *(parts if isinstance(parts, list) else [])]}

    def beside(self, family: Family, after: Place) -> bool:
        return family.by_server  # the server's results stand in the model's own message

    def put_beside(self, wire: Wire, slot: int, output: Wire) -> Wire:
        parts = list(wire[self.parts])
        return {**wire, self.parts: [*parts[: slot + 1], output, *parts[slot + 1 :]]}

    def with_part(self, wire: Wire, slot: int, part: Wire) -> Wire:
        """The message with another part in one slot."""
        parts = list(wire[self.parts])
        parts[slot] = part
        return {**wire, self.parts: parts}

    def strip_id(self, wire: Wire, slot: int, nth: int = 2) -> Wire:
        return wire  # parts have no id of their own


def unread(sign: str, slot: int = 0) -> Item:
    """Something that must be a call or an output, for the reason given, and cannot be read as
    one."""
    return Item(Part.OTHER, slot=slot, unread=sign)


def marked(item: Item, sign: str | None) -> Item:
    """The item, with the reason why it looks like a call or an output that was not read."""
    return item if sign is None else msgspec.structs.replace(item, unread=sign)


def text_of(value: object) -> str | None:
    """The value, if it is a text that is not empty: what may serve as an id or a key."""
    return value if isinstance(value, str) and value else None


def part_types(content: object) -> set[str]:
    """The types of the parts of a message."""
    if not isinstance(content, list):
        return set()
    kinds = [part.get("type") for part in content if isinstance(part, dict)]
    return {kind for kind in kinds if isinstance(kind, str)}


def as_json(value: Any, *, indent: int | None = None) -> bytes:
    """A value as JSON, on one line or indented; whatever came as JSON can be written so again."""
    try:
        text = msgspec.json.encode(value)
        return text if indent is None else msgspec.json.format(text, indent=indent)
    except (OverflowError, ValueError, msgspec.MsgspecError):
        # An integer beyond 64 bits, or half of a surrogate pair. That can only be written as the
        # escape in which it came; Python's own is the same.
        between = (",", ":") if indent is None else None
        return json.dumps(
            value, ensure_ascii=False, separators=between, indent=indent, default=_unwritable
        ).encode(errors="backslashreplace")


def _unwritable(value: object) -> object:
    raise NotAnItem(
        f"An item cannot be written as JSON: it holds half of a surrogate pair, or a number beyond"
        f" 64 bits, and a {type(value).__name__}."
    )


APPROVAL_PREFIX = "approval "
"""What the key of a request for approval begins with, where its id is of another kind than the ids
of calls and may be equal to one."""


def without(wire: Wire, key: str) -> Wire:
    """A copy without one field."""
    return {name: value for name, value in wire.items() if name != key}
