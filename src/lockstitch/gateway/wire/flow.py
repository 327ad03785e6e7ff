"""What happens when a client does not read: its lines are paused, and after a while it is given up.

So what one client can hold in memory is bounded, and so is for how long."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from lockstitch.gateway.lines import Line
from lockstitch.gateway.wire.outlet import Outlet

PATIENCE_SECONDS: Final = 60.0
"""For a client that takes not one byte of what waits for it: a laptop that sleeps, a full pipe."""

WATCH_SECONDS: Final = 1.0
"""How often a client is looked at. One that goes away while its upstream is silent is noticed as
late as this; it costs a timer, not an event."""


class Flow:
    """Joins one client's outlet to the lines that fill it."""

    __slots__ = (
        "_lines",
        "_lost",
        "_outlet",
        "_patience_seconds",
        "_stalled",
        "_taken",
        "_timer",
        "_watch_seconds",
    )

    def __init__(
        self,
        outlet: Outlet,
        lost: Callable[[], None],
        *,
        patience_seconds: float = PATIENCE_SECONDS,
        watch_seconds: float = WATCH_SECONDS,
    ) -> None:
        """`lost` is called once if the client goes away, or is given up, before the end."""
        loop = asyncio.get_running_loop()
        self._outlet = outlet
        self._lost: Callable[[], None] | None = lost
        self._patience_seconds = patience_seconds
        self._watch_seconds = watch_seconds
        self._lines: list[Line] = []
        self._taken = 0
        self._stalled = 0
        self._timer: asyncio.TimerHandle | None = loop.call_later(watch_seconds, self._watch)
        outlet.when_full = self._pause
        outlet.when_drained = self._resume

    def follow(self, line: Line) -> None:
        """Hold this line back, too, when the client does not read."""
        self._lines.append(line)
        if self._outlet.full:
            line.pause()

    def forget(self, line: Line) -> None:
        """It is over. A line that goes on without this client is resumed."""
        if line in self._lines:
            self._lines.remove(line)
            if self._outlet.full:
                line.resume()

    def stop(self) -> None:
        """Nobody asks about this client any more. What it still has to take is watched."""
        self._lost = None
        for line in list(self._lines):
            self.forget(line)
        outlet = self._outlet
        if (outlet.ended or outlet.gone) and not outlet.backlog:
            self._let_go()

    def _pause(self) -> None:
        for line in self._lines:
            line.pause()

    def _resume(self) -> None:
        for line in list(self._lines):
            line.resume()

    def _watch(self) -> None:
        outlet = self._outlet
        backlog = outlet.backlog
        taken = outlet.written - backlog
        if taken != self._taken or not backlog:
            self._taken = taken
            self._stalled = 0
        else:
            # In looks, not by the clock: a loop that was held up is not the client's fault.
            self._stalled += 1
        if self._stalled * self._watch_seconds >= self._patience_seconds:
            # Also one that was closed already: closing waits for it to read.
            outlet.abort()
            backlog = 0
        if outlet.gone and not outlet.ended and self._lost is not None:
            lost, self._lost = self._lost, None
            lost()
        if not backlog and (outlet.gone or outlet.ended):
            self._let_go()
        else:
            self._timer = asyncio.get_running_loop().call_later(self._watch_seconds, self._watch)

    def _let_go(self) -> None:
        """The outlet knows the flow, and the flow its outlet: apart, both are free at once."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._outlet.let_go()

    def __repr__(self) -> str:
        held = "paused" if self._outlet.full else "flowing"
        return f"<Flow {held}, {len(self._lines)} lines, to {self._outlet!r}>"
