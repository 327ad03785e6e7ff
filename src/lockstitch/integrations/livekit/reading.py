"""LiveKit's items, read once: what an item says is worked out again only when it was changed.

Its items are models that anybody can change in place. So the fields of each are kept as they were,
and compared whenever a context comes again: that takes a fraction of the time of reading it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from livekit.agents.llm import ChatItem
from livekit.agents.llm.chat_context import DYNAMIC_INSTRUCTIONS_MESSAGE_ID
from livekit.agents.voice.generation import INSTRUCTIONS_MESSAGE_ID
from msgspec import Struct

from lockstitch.dialects.base import Wire
from lockstitch.integrations.livekit.contexts import says_nothing
from lockstitch.integrations.livekit.translating import Said, said_by
from lockstitch.mirror.ordering import ends_in_common, run_in_common

_OWN_TYPES: Final = frozenset({"agent_handoff", "agent_config_update"})

_OWN_NAMES: Final = frozenset({INSTRUCTIONS_MESSAGE_ID, DYNAMIC_INSTRUCTIONS_MESSAGE_ID})


class Reading(Struct, frozen=True, eq=False):
    """One item as it was when it was read. Equal to nothing but itself."""

    item: ChatItem
    fields: dict[str, Any]
    name: str
    said: Said
    silent: bool
    """It says nothing: a place that is kept for words."""
    own: bool
    """It is LiveKit's own business and never leaves the agent."""


class Agreed:
    """Items that say what the provider's say, and those, in the order of the context."""

    def __init__(self) -> None:
        self.readings: list[Reading] = []
        self.wires: list[Wire] = []

    def __repr__(self) -> str:
        return f"<Agreed {len(self.readings)} items>"

    def ends(self, readings: list[Reading], wires: list[Wire]) -> tuple[int, int]:
        """How many at the start, and at the end, are known to say the same on both sides."""
        first = min(
            run_in_common(readings, self.readings),
            run_in_common(wires, self.wires),
        )
        rest = min(len(readings), len(wires), len(self.readings)) - first
        if not rest:
            return first, 0
        end = slice(-1, -rest - 1, -1)
        return first, min(
            run_in_common(readings[end], self.readings[end]),
            run_in_common(wires[end], self.wires[end]),
        )


class Reader:
    """Reads the contexts of one kind, each of which is most often the last one, changed a bit."""

    def __init__(self) -> None:
        self._objects: list[int] = []
        """Which object each item was. The readings keep them alive."""
        self._fields: list[dict[str, Any]] = []
        self._readings: list[Reading] = []
        self.agreed = Agreed()

    def __repr__(self) -> str:
        return f"<Reader of {len(self._readings)} items>"

    def read(self, items: Sequence[ChatItem]) -> list[Reading]:
        """A reading of each: the one from the last time for every item that is as it was."""
        objects, fields = list(map(id, items)), list(map(vars, items))
        first, end = ends_in_common(objects, self._objects)
        stop, last = len(items) - end, len(self._readings) - end
        former = {id(one.item): one for one in self._readings[first:last]}
        middle = [_read(item, former.get(id(item))) for item in items[first:stop]]
        readings = self._readings[:first] + middle + self._readings[last:]
        known = self._fields[:first] + [one.fields for one in middle] + self._fields[last:]
        for at in _differing(fields, known):
            readings[at] = _read(items[at], None)
            known[at] = readings[at].fields
        self._objects, self._fields, self._readings = objects, known, readings
        return readings


def _differing(fields: list[dict[str, Any]], known: list[dict[str, Any]]) -> list[int]:
    """Where the two are not the same."""
    if fields == known:
        return []
    return [at for at, one in enumerate(fields) if one != known[at]]


def _read(item: ChatItem, former: Reading | None) -> Reading:
    if former is not None and former.fields == vars(item):
        return former
    fields = vars(item).copy()
    if item.type == "message":
        fields["content"] = list(item.content)
    return Reading(
        item=item,
        fields=fields,
        name=item.id,
        said=said_by(item),
        silent=says_nothing(item),
        own=item.type in _OWN_TYPES or item.id in _OWN_NAMES,
    )
