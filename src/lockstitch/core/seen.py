"""Which ids have been seen, in memory that does not grow with the history.

Small histories are remembered exactly. In large ones an id is only *suspected*: `SeenIds` has a
filter of fixed size that never forgets but may suspect wrongly; `SeenKeys` suspects every key it
is asked about. Suspects are settled by reading the history once more with ``watch``,
which remembers the suspects, exactly, and nothing else. So the answer is exact on every path, and
Python's randomised string hash cannot show in it."""

from __future__ import annotations

from array import array
from collections.abc import Set
from functools import cache
from typing import Any, Generic, TypeVar

from msgspec import Struct

T = TypeVar("T")

EXACT_IDS = 5_000
"""Below this a dictionary is small, and no second reading is ever needed."""

FILTER_WORDS = 1 << 19
"""4 MiB of bits, so that it mostly stays in the processor's cache: 150,000 ids lead to a wrong
suspicion in about one history of a hundred, more ids to more of them."""

MASKS = 1 << 12


@cache
def _masks() -> tuple[int, ...]:
    """Words with up to four bits set, well spread; an id sets the bits of two of them."""
    mixed = [n * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF for n in range(1, MASKS + 1)]
    return tuple(
        1 << (m >> 58) | 1 << (m >> 49 & 63) | 1 << (m >> 40 & 63) | 1 << (m >> 31 & 63)
        for m in mixed
    )


class SeenIds(Struct, eq=False):
    """Ids that must be unique, and where each was seen first."""

    _watch: Set[str] | None = None
    suspects: set[str] = set()
    """Ids that may have been seen before. Not empty: read again, watching `to_watch`."""
    _places: dict[str, int] = {}
    _filter: Any = None  # array[int] | None
    _masks: tuple[int, ...] = ()
    _certain: set[str] = set()

    def __repr__(self) -> str:
        how = "watching" if self._watch is not None else "filter" if self._filter else "exact"
        return f"<SeenIds {how}, {len(self.suspects)} suspects>"

    def add(self, id: str, at: int) -> int | None:
        """Remember ``id``; where it was seen before, if that is certain."""
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
        places = self._places
        before = places.get(id)
        if before is not None:
            self._certain.add(id)
        elif self._watch is None or id in self._watch:
            places[id] = at
            if len(places) > EXACT_IDS and self._watch is None:
                self._filter = array("Q", bytes(8 * FILTER_WORDS))
                self._masks = _masks()
                self._places = {}
                for one, place in places.items():
                    self.add(one, place)
                # Some of these may have suspected each other, but all of them were new.
                self.suspects.clear()
        return before

    def to_watch(self) -> set[str] | None:
        """What a second reading must remember; None if remembering as before is exact."""
        return self.suspects | self._certain if self.suspects else None


class SeenKeys(Struct, Generic[T], eq=False):
    """Keys of pairs that are closed, with the last call of each. Asked about only when an output
    comes that no open call waits for, and that is rare."""

    _watch: Set[str] | None = None
    suspects: set[str] = set()
    """Keys that were asked about in vain. Not empty: read again, watching `to_watch`."""
    _calls: dict[str, Any] | None = {}
    _certain: set[str] = set()

    def __repr__(self) -> str:
        exact = self._calls is not None
        how = "watching" if self._watch is not None else "exact" if exact else "forgetful"
        return f"<SeenKeys {how}, {len(self.suspects)} suspects>"

    def close(self, key: str, call: T) -> None:
        """Remember that the pair of this call is whole."""
        calls = self._calls
        if calls is not None and (self._watch is None or key in self._watch):
            calls[key] = call
            if len(calls) > EXACT_IDS and self._watch is None:
                self._calls = None

    def find(self, key: str) -> T | None:
        """The last call with this key whose pair is whole, if that is certain."""
        if self._calls is None:
            self.suspects.add(key)
            return None
        call: T | None = self._calls.get(key)
        if call is not None:
            self._certain.add(key)
        return call

    def to_watch(self) -> set[str] | None:
        """What a second reading must remember; None if remembering as before is exact."""
        return self.suspects | self._certain if self.suspects else None
