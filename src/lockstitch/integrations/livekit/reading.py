"""LiveKit's items, read once: what an item says is worked out again only when it was changed.

Its items are models that anybody can change in place. So what matters of each is kept as it was,
and compared whenever a context comes again: that takes a fraction of the time of reading it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import call, is_
from typing import Any, Final

from livekit.agents.llm import ChatItem
from livekit.agents.llm.chat_context import DYNAMIC_INSTRUCTIONS_MESSAGE_ID
from livekit.agents.voice.generation import INSTRUCTIONS_MESSAGE_ID
from msgspec import Struct

from lockstitch.dialects.base import Wire
from lockstitch.integrations.livekit.translating import Fields, Said, fields_of, said_in
from lockstitch.mirror.ordering import ends_in_common

_OWN_TYPES: Final = frozenset({"agent_handoff", "agent_config_update"})

_OWN_NAMES: Final = frozenset({INSTRUCTIONS_MESSAGE_ID, DYNAMIC_INSTRUCTIONS_MESSAGE_ID})


class Reading(Struct, eq=False):
    """One item as it was when it was read. Equal to nothing but itself."""

    item: ChatItem
    kind: str
    name: str
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
        self._fields_of: list[Callable[[ChatItem], Fields]] = []
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
        first, end = _ends_of_same_objects(items, self._items)
        stop, last = len(items) - end, len(self._items) - end
        self._fields_of[first:last] = map(fields_of, items[first:stop])
        now = list(map(call, self._fields_of, items))
        former = {id(one.item): one for one in self._readings[first:last]}
        readings = [
            _read(item, fields, former.get(id(item)))
            for item, fields in zip(items[first:stop], now[first:stop], strict=True)
        ]
        self._before = self._readings
        self._items = items
        self._readings = self._before[:first] + readings + self._before[last:]
        self._fields[first:last] = [one.fields for one in readings]
        for at in _differing(now, self._fields):
            self._readings[at] = _read(items[at], now[at], None)
            self._fields[at] = self._readings[at].fields
            first, end = min(first, at), min(end, len(items) - at - 1)
        self._ends = first, end
        return self._readings

    def items(self, readings: list[Reading]) -> list[ChatItem]:
        """The items that these are of. Not to be changed."""
        return self._items if readings is self._readings else [one.item for one in readings]

    def ends_in_common(self, readings: list[Reading], others: list[Reading]) -> tuple[int, int]:
        """How many are the same at the start, and at the end; known already for the last two."""
        if readings is self._before and others is self._readings:
            return self._ends
        return ends_in_common(readings, others)


def _ends_of_same_objects(some: list[Any], others: list[Any]) -> tuple[int, int]:
    """Like `ends_in_common`. Two models are equal that say the same, and anybody can change one."""
    shorter = min(len(some), len(others))
    first = bytes(map(is_, some, others)).find(False)
    if first < 0:
        return shorter, 0
    end = bytes(map(is_, reversed(some), reversed(others))).find(False)
    return first, min(end, shorter - first) if end >= 0 else shorter - first


def _differing(some: list[Fields], others: list[Fields]) -> list[int]:
    """Where the two are not the same."""
    if some == others:
        return []
    return [at for at, one in enumerate(some) if one != others[at]]


def _read(item: ChatItem, fields: Fields, former: Reading | None) -> Reading:
    if former is not None and former.fields == fields:
        return former
    kind, name = item.type, fields[0]
    silent = False
    if kind == "message":
        _, role, content = fields
        fields = (name, role, list(content))  # anybody can change that list
        silent = not any(content)
    elif kind == "function_call":
        silent = not fields[-1]
    return Reading(item, kind, name, fields, silent, kind in _OWN_TYPES or name in _OWN_NAMES)
