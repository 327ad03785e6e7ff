"""The order of the items of one response: that of the response, not that of the events.

Reasoning stands before what it led to, and a provider that gets them back in another order refuses
them. So an item waits for those before it; the whole response tells which were never announced."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import Struct


class _Named(Struct):
    id: str | None = None


_names = msgspec.json.Decoder(_Named)


class ItemOrder:
    """The items of one response that were heard."""

    __slots__ = ("_due", "_held", "_ids", "_told")

    def __init__(self) -> None:
        # The place of the next item.
        self._due = 0
        self._held: dict[int, bytes] = {}
        self._told: set[int] = set()
        self._ids: dict[str | None, int] = {}

    @property
    def waits(self) -> bool:
        """Does an item wait for one before it?"""
        return bool(self._held)

    def done(self, index: int | None, item: bytes) -> Sequence[bytes]:
        """An item was said to its end, at this place if the provider tells; those that are next.

        One that comes twice is told once."""
        named = _id(item)
        if named in self._ids and (index is None or index == self._ids[named]):
            return ()
        if index is None or (self._is_taken(index) and named is not None):
            # Some servers count no places, or give one to all: then they come in order.
            index = max((self._due, *(place + 1 for place in self._held)))
        elif self._is_taken(index):
            return ()
        if named is not None:
            self._ids[named] = index
        self._held[index] = item
        return self._released()

    def rest(self, output: Sequence[bytes] = ()) -> Sequence[bytes]:
        """The response is over, and had these items: those that were not told yet."""
        missing = {
            place: item
            for place, item in enumerate(output)
            if not self._is_taken(place) and _id(item) not in self._ids
        }
        left = {**self._held, **missing}
        self._held.clear()
        self._told.update(left)
        return [left[place] for place in sorted(left)]

    def _is_taken(self, index: int) -> bool:
        return index in self._told or index in self._held

    def _released(self) -> Sequence[bytes]:
        released = []
        while self._due in self._held:
            released.append(self._held.pop(self._due))
            self._told.add(self._due)
            self._due += 1
        return released


def _id(item: bytes) -> str | None:
    try:
        return _names.decode(item).id
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None  # no object, or an id that is no text: it has no name
