"""LiveKit's items, read once: what an item says is worked out again only when it was changed.

Its items are models that anybody can change in place. So what matters of each is kept as it was,
and compared whenever a context comes again: that takes a fraction of the time of reading it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter, call, is_
from typing import Final

from livekit.agents.llm import ChatItem
from livekit.agents.llm.chat_context import DYNAMIC_INSTRUCTIONS_MESSAGE_ID
from livekit.agents.voice.generation import INSTRUCTIONS_MESSAGE_ID
from msgspec import Struct

from lockstitch.dialects.base import Wire
from lockstitch.integrations.livekit.translating import (
    Attributes,
    Fields,
    Said,
    fields_of,
    said_in,
)
from lockstitch.mirror.ordering import ends_in_common, run_in_common

_OWN_TYPES: Final = frozenset({"agent_handoff", "agent_config_update"})

_OWN_NAMES: Final = frozenset({INSTRUCTIONS_MESSAGE_ID, DYNAMIC_INSTRUCTIONS_MESSAGE_ID})

_attributes: Final[Callable[[ChatItem], Attributes]] = attrgetter("__dict__")


class Reading(Struct, eq=False):
    """One item as it was when it was read. Equal to nothing but itself."""

    item: ChatItem
    kind: str
    name: str
    fields_of: Callable[[Attributes], Fields]
    fields: Fields
    silent: bool
    """It says nothing: a place that is kept for words."""
    own: bool
    """It is LiveKit's own business and never leaves the agent."""
    agrees: Wire | None = None
    """The provider's item that is known to say the same."""

    @property
    def said(self) -> Said:
        return said_in(self.kind, self.fields)


class Reader:
    """Reads the contexts of one kind, each of which is most often the last one, changed a bit."""

    def __init__(self) -> None:
        # One for each item of the context that was read last.
        self._items: list[ChatItem] = []
        self._fields_of: list[Callable[[Attributes], Fields]] = []
        self._fields: list[Fields] = []
        self._readings: list[Reading] = []
        self._before: list[Reading] = []
        """The readings of the context before that one."""
        self._ends = (0, 0)
        """How many of them are the same, at the start and at the end."""

    def __repr__(self) -> str:
        return f"<Reader of {len(self._readings)} items>"

    def read(self, items: Sequence[ChatItem]) -> list[Reading]:
        """A reading of each: the one from the last time for every item that is as it was."""
        items = list(items)
        first, end = self._ends_as_they_were(items)
        stop, last = len(items) - end, len(self._items) - end
        former = {one.name: one for one in self._readings[first:last]}
        readings = [_read(item, former.get(item.id)) for item in items[first:stop]]
        self._fields_of[first:last] = [one.fields_of for one in readings]
        self._fields[first:last] = [one.fields for one in readings]
        self._items = items
        self._before, self._ends = self._readings, (first, end)
        self._readings = self._before[:first] + readings + self._before[last:]
        return self._readings

    def _ends_as_they_were(self, items: list[ChatItem]) -> tuple[int, int]:
        """How many at the start, and at the end, are the same objects and say what they said."""
        shorter = min(len(items), len(self._items))
        first = self._run_as_it_was(items, slice(0, shorter))
        rest = shorter - first
        return first, self._run_as_it_was(items, slice(-1, -rest - 1, -1)) if rest else 0

    def _run_as_it_was(self, items: list[ChatItem], part: slice) -> int:
        # Thousands of items, each time: none of this is done by Python, item by item.
        some = items[part]
        some = some[: _run(map(is_, some, self._items[part]))]
        now = map(call, self._fields_of[part], map(_attributes, some))
        return run_in_common(list(now), self._fields[part])

    def items(self, readings: list[Reading]) -> list[ChatItem]:
        """The items that these are of. Not to be changed."""
        return self._items if readings is self._readings else [one.item for one in readings]

    def ends_in_common(self, readings: list[Reading], others: list[Reading]) -> tuple[int, int]:
        """How many are the same at the start, and at the end; known already for the last two."""
        if readings is self._before and others is self._readings:
            return self._ends
        return ends_in_common(readings, others)


def _run(true: Iterable[bool]) -> int:
    """How many are true, before the first that is not."""
    told = bytes(true)
    first_not = told.find(False)
    return len(told) if first_not < 0 else first_not


def _read(item: ChatItem, former: Reading | None) -> Reading:
    attributes = item.__dict__
    if former is not None and former.item is item and former.fields == former.fields_of(attributes):
        return former
    kind = item.type
    get_fields = fields_of(kind)
    fields = get_fields(attributes)
    name, silent = fields[0], False
    if kind == "message":
        _, role, content = fields
        fields = (name, role, list(content))  # anybody can change that list
        silent = not any(content)
    elif kind == "function_call":
        silent = not fields[-1]
    own = kind in _OWN_TYPES or name in _OWN_NAMES
    return Reading(item, kind, name, get_fields, fields, silent, own)
