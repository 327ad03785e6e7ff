"""Time, as an argument: the real clock, and one that a test moves by hand."""

import asyncio
import heapq
import time
from typing import Protocol

# Where a virtual clock starts: 2026-01-01T00:00:00Z. Any fixed moment would do.
VIRTUAL_START = 1_767_225_600.0
# The clock on the wall can be set: look again now and then.
_LONGEST_SLEEP_SECONDS = 3_600.0


class Clock(Protocol):
    def now(self) -> float:
        """Seconds since the epoch."""

    async def sleep(self, seconds: float) -> None: ...

    async def until(self, moment: float) -> None:
        """Wait for a moment without making it come."""


class RealClock:
    def now(self) -> float:
        return time.time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def until(self, moment: float) -> None:
        while (left := moment - time.time()) > 0:
            await asyncio.sleep(min(left, _LONGEST_SLEEP_SECONDS))

    def __repr__(self) -> str:
        return "<RealClock>"


class VirtualClock:
    """A clock that stands still until told.

    With `flowing`, a sleep moves the clock to its own end and returns at once: nothing waits, and
    a recording's times depend on the script alone. Without it, sleepers wait for `advance`."""

    def __init__(self, *, flowing: bool = True, start: float = VIRTUAL_START) -> None:
        self._start = start
        self._now = start
        self._flowing = flowing
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._slept = 0

    def now(self) -> float:
        return self._now

    async def sleep(self, seconds: float) -> None:
        if self._flowing:
            self.advance(max(0.0, seconds))
            await asyncio.sleep(0)
        else:
            await self.until(self._now + seconds)

    async def until(self, moment: float) -> None:
        if moment <= self._now:
            await asyncio.sleep(0)
            return
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._slept += 1
        heapq.heappush(self._sleepers, (moment, self._slept, woken))
        await woken

    def advance(self, seconds: float) -> None:
        """Move time on and wake those whose time has come, in the order of their times."""
        until = self._now + seconds
        while self._sleepers and self._sleepers[0][0] <= until:
            at, _, woken = heapq.heappop(self._sleepers)
            self._now = at
            if not woken.done():
                woken.set_result(None)
        self._now = until

    def reset(self) -> None:
        """Back to the start. Those who sleep have as long to go as they had."""
        passed = self._now - self._start
        self._now = self._start
        self._sleepers = [(at - passed, number, woken) for at, number, woken in self._sleepers]

    def __repr__(self) -> str:
        return f"<VirtualClock +{self._now - VIRTUAL_START:g}s, {len(self._sleepers)} asleep>"
