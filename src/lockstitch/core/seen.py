"""Which ids have been seen, in memory that does not grow with the history.

Small histories are remembered exactly. Past `EXACT_IDS` a filter of fixed size takes over; it
never forgets, but may suspect an id wrongly. Suspects are then settled by reading the history
once more with ``Seen(watch=suspects)``, which remembers the suspects, exactly, and nothing else.
So the answer is exact on every path, and Python's randomised string hash cannot show in it."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from functools import cache
from typing import Generic, TypeVar

T = TypeVar("T")

EXACT_IDS = 5_000
"""Below this a dictionary is both smaller and faster than the filter."""

FILTER_WORDS = 1 << 19
"""8 MiB of bits: 150,000 ids lead to a wrong suspicion in about one history of two hundred, a
million ids to a few hundred suspects. More ids cost a second reading, never a wrong answer."""


MASKS = 1 << 12


@cache
def _masks() -> tuple[int, ...]:
    """Words with up to three bits set, well spread; an id sets the bits of two of them."""
    mixed = [n * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF for n in range(1, MASKS + 1)]
    return tuple(1 << (m >> 58) | 1 << (m >> 46 & 63) | 1 << (m >> 34 & 63) for m in mixed)


class Seen(Generic[T]):
    """Ids, and something to know of each (where it was seen)."""

    __slots__ = ("_filter", "_known", "_masks", "_watch", "suspects")

    def __init__(self, watch: Iterable[str] | None = None) -> None:
        self._known: dict[str, T] = {}
        self._filter: array[int] | None = None
        self._masks: tuple[int, ...] = ()
        self._watch = None if watch is None else frozenset(watch)
        self.suspects: set[str] = set()
        """Ids that may have been seen before. Not empty: read again, watching them."""

    def __repr__(self) -> str:
        how = "watching" if self._watch is not None else "filter" if self._filter else "exact"
        return f"<Seen {how}, {len(self.suspects)} suspects>"

    def add(self, id: str, value: T) -> T | None:
        """Remember ``id``; what was known of it before, if it was certainly seen."""
        words = self._filter
        if words is not None:
            masks = self._masks
            h = hash(id)
            index = h & (FILTER_WORDS - 1)
            mask = masks[(h >> 20) & (MASKS - 1)] | masks[(h >> 32) & (MASKS - 1)]
            word = words[index]
            if word & mask == mask:
                self.suspects.add(id)
            else:
                words[index] = word | mask
            return None
        known = self._known
        before = known.get(id)
        if before is None and (self._watch is None or id in self._watch):
            known[id] = value
            if len(known) > EXACT_IDS and self._watch is None:
                self._filter = array("Q", bytes(8 * FILTER_WORDS))
                self._masks = _masks()
                self._known = {}
                for one, its_value in known.items():
                    self.add(one, its_value)
                # Some of these may have suspected each other, but all of them were new.
                self.suspects.clear()
        return before

    def replace(self, id: str, value: T) -> None:
        """Remember ``id`` with this value; to see it again is nothing special."""
        words = self._filter
        if words is not None:
            masks = self._masks
            h = hash(id)
            mask = masks[(h >> 20) & (MASKS - 1)] | masks[(h >> 32) & (MASKS - 1)]
            words[h & (FILTER_WORDS - 1)] |= mask
        elif id in self._known:
            self._known[id] = value
        else:
            self.add(id, value)

    def find(self, id: str) -> T | None:
        """What is known of ``id``, if it was certainly seen. May add a suspect."""
        words = self._filter
        if words is None:
            return self._known.get(id)
        masks = self._masks
        h = hash(id)
        mask = masks[(h >> 20) & (MASKS - 1)] | masks[(h >> 32) & (MASKS - 1)]
        if words[h & (FILTER_WORDS - 1)] & mask == mask:
            self.suspects.add(id)
        return None
