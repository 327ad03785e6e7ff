"""What happens to pairs when part of a history is taken away: by a compaction, by a rollback.

Clients keep such parts in the file and skip them when they resume. Half of a pair can be left on
either side of the cut; both sides are told here, so that the finding names its cause."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from lockstitch.core.groups import Cut
from lockstitch.core.items import Item, Part, Place
from lockstitch.core.pairing import Pairing


class DeadRange(NamedTuple):
    """Lines that were taken back, up to the line that did so."""

    start: Place
    end: int
    by: str = "rollback"

    def holds(self, place: Place) -> bool:
        return self.start <= place and place.at < self.end


class DeadRanges:
    """The dead ranges of a file, asked in the order of its lines."""

    def __init__(self, ranges: list[DeadRange]) -> None:
        self._all = ranges
        self._rest: Iterator[DeadRange] = iter(ranges)
        self._current = next(self._rest, None)

    def at(self, line: int) -> DeadRange | None:
        """The range that this line is in. Lines must be asked in order."""
        while self._current is not None and line >= self._current.end:
            self._current = next(self._rest, None)
        if self._current is not None and line >= self._current.start.at:
            return self._current
        return None

    def hold(self, place: Place) -> bool:
        return any(one.holds(place) for one in self._all)

    def __bool__(self) -> bool:
        return self._current is not None


def bury(range_: DeadRange, live: list[DeadRange]) -> list[DeadRange]:
    """The dead ranges with one more, which may swallow earlier ones."""
    return [*(one for one in live if one.start < range_.start), range_]


def replaced_at(pairing: Pairing, at: int) -> dict[str, Cut]:
    """Calls that a compaction at ``at`` cuts off: an output behind it will be half a pair."""
    cut = Cut(at, "compaction")
    lost = {call.item.key: cut for call in pairing.open_calls() if call.item.key}
    return {**pairing.cut, **lost}


def take_back(pairing: Pairing, item: Item, range_: DeadRange, testimony: object, at: int) -> None:
    """Pass an item that is no longer live; it can take half a pair with it. An output that is
    taken back still tells how its call ended."""
    if item.key is None:
        return
    cut = Cut(range_.end, range_.by)
    if item.part is Part.CALL:
        pairing.cut[item.key] = cut
    elif item.part is Part.OUTPUT and pairing.cut.pop(item.key, None) is None:
        call = pairing.open_call(item.key)
        pairing.lose(item.key, cut)
        if call is not None and call.testimony is None:
            pairing.witness(item.key, testimony, at)
