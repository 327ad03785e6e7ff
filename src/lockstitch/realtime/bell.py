"""How tasks of a session wait for one another: whoever waits looks again when the bell rings."""

from __future__ import annotations

import asyncio


class Bell:
    """Rung when something has changed. Nothing is said with it: look at what is there."""

    def __init__(self) -> None:
        self._next: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def ring(self) -> None:
        waiting, self._next = self._next, asyncio.get_running_loop().create_future()
        waiting.set_result(None)

    async def rung(self, seconds: float | None = None) -> None:
        """Until it rings, or so long."""
        await asyncio.wait([self._next], timeout=seconds)
