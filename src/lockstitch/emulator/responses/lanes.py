"""One connection's lanes: what is in flight, and what the connection remembers.

Each `stream_id` is a lane: first in, first out. The connection caches the newest response of
each lane, also one that is not stored; a failed request drops its parent from the cache."""

import re
from typing import Any

from lockstitch.emulator import refusals
from lockstitch.emulator.limits import (
    LONGEST_LANE_NAME_CHARACTERS,
    MOST_IN_FLIGHT_RESPONSES,
    MOST_LANES,
)
from lockstitch.emulator.responses.context import Context
from lockstitch.emulator.responses.run import Run

# The name of the lane of requests that give none. It is not one of the names that are counted.
UNNAMED = ""

_NAME = re.compile(rf"[A-Za-z0-9_.-]{{1,{LONGEST_LANE_NAME_CHARACTERS}}}")


class Lanes:
    """The lanes of one connection."""

    __slots__ = ("_cache", "_in_flight", "_names")

    def __init__(self) -> None:
        self._names: set[str] = set()
        self._in_flight = 0
        self._cache: dict[str, tuple[str, Context]] = {}

    def enter(self, named: Any) -> str:
        """A request arrived, with this `stream_id`; it is in flight until it leaves. Its lane."""
        if named is None:
            lane = UNNAMED
        elif isinstance(named, str) and _NAME.fullmatch(named):
            lane = named
        else:
            raise refusals.wrong_lane_name()
        if self._in_flight >= MOST_IN_FLIGHT_RESPONSES:
            raise refusals.too_many_in_flight(MOST_IN_FLIGHT_RESPONSES)
        if lane and lane not in self._names:
            if len(self._names) >= MOST_LANES:
                raise refusals.too_many_lanes(MOST_LANES)
            self._names.add(lane)
        self._in_flight += 1
        return lane

    def leave(self) -> None:
        self._in_flight -= 1

    def context(self, id: str) -> Context | None:
        """What a response left behind, if it is the newest of a lane."""
        for cached, context in self._cache.values():
            if cached == id:
                return context
        return None

    def keep(self, lane: str, run: Run) -> None:
        if run.after is not None:
            self._cache[lane] = (run.id, run.after)

    def evict(self, lane: str, parent: str | None) -> None:
        """A request on this lane failed: its parent is no longer cached."""
        cached = self._cache.get(lane)
        if cached is not None and cached[0] == parent:
            del self._cache[lane]

    def forget(self) -> None:
        self._cache.clear()

    def __repr__(self) -> str:
        return f"<Lanes {len(self._names)} used, {self._in_flight} in flight>"
