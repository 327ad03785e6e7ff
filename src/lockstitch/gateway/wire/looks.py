"""How often a busy event loop looks at its connections: so seldom that a look finds several events.

Where each event comes by itself most of what it costs is the wake-up: of the process, and of all
that it needs in the processor's caches. A look is free while there are few; beyond that the loop
rests a moment between two of them, as network cards do between two interrupts."""

from __future__ import annotations

import asyncio
import time
from typing import Final
from weakref import WeakKeyDictionary

PERIOD_SECONDS: Final = 0.002
"""Of a look, where there are many: the longest that an event waits for others. Models speak a word
every 10 to 50 ms."""

FREE_LOOKS: Final = 20
"""In a row without rest: who asks while hardly anybody else does never waits."""


_FREE_SECONDS: Final = FREE_LOOKS * PERIOD_SECONDS


class Looks:
    """The looks of one event loop. Whoever hears something, and finds that nobody has `looked` in
    this turn of the loop, says so."""

    __slots__ = ("_next", "looked")

    def __init__(self) -> None:
        self._next = 0.0
        self.looked = False

    def look(self, loop: asyncio.AbstractEventLoop) -> None:
        """The first word of this turn. Who looks knows the loop; to ask for it is a system call."""
        self.looked = True
        # In the next turn, before connections are looked at again.
        loop.call_soon(self._rest)

    def _rest(self) -> None:
        self.looked = False
        seconds = self.rest_seconds(time.monotonic())
        if seconds > 0:
            # The loop, too, shall wait: what was heard has been written, and all else can wait.
            time.sleep(seconds)

    def rest_seconds(self, now: float) -> float:
        """How long to rest after a look, now. A loop that is at work all the time does not rest."""
        due, free = self._next, now - _FREE_SECONDS
        # Compared, not `max`: it comes with each event where they are few.
        self._next = due = (due if due > free else free) + PERIOD_SECONDS
        return due - now if due > now else 0.0


_looks: WeakKeyDictionary[asyncio.AbstractEventLoop, Looks] = WeakKeyDictionary()


def looks_here() -> Looks:
    """Those of the running event loop."""
    loop = asyncio.get_running_loop()
    found = _looks.get(loop)
    if found is None:
        found = _looks[loop] = Looks()
    return found
