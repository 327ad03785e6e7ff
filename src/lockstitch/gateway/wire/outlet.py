"""The way out to a client: bytes straight into its transport, and how many it has not taken.

A write never waits. Who holds the upstream back meanwhile is `flow`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

HIGH_WATER_BYTES: Final = 256 * 1024
"""More than a usual answer has: only a client that does not read gets here."""

LOW_WATER_BYTES: Final = 64 * 1024
"""What a client still has to take when the upstream is read again, so that it does not run dry."""

POLL_SECONDS: Final = 0.05
"""Where a transport says that it is free although more than the high-water mark waits in it."""


def _nothing() -> None:
    return None


class Outlet:
    """One client's transport."""

    __slots__ = (
        "_drain",
        "_full",
        "_high_water",
        "_look_at",
        "_transport",
        "_waiting",
        "ended",
        "when_drained",
        "when_full",
        "written",
    )

    def __init__(
        self,
        transport: asyncio.Transport,
        drain: Callable[[], Awaitable[None]],
        *,
        high_water: int = HIGH_WATER_BYTES,
        low_water: int = LOW_WATER_BYTES,
    ) -> None:
        """`drain` waits until the transport is below its low-water mark, or gone."""
        transport.set_write_buffer_limits(high_water, low_water)
        self._transport = transport
        self._drain = drain
        self._high_water = high_water
        self._full = False
        self._waiting: asyncio.Task[None] | None = None
        self.ended = False
        """Nothing more will be written."""
        self.written = 0
        """Bytes that the transport got from here, taken by the client or not."""
        self._look_at = 0
        """Before so many were written it cannot be full."""
        self.when_full: Callable[[], None] = _nothing
        """Called when more than the high-water mark waits for the client."""
        self.when_drained: Callable[[], None] = _nothing
        """Called when a full outlet has drained below the low-water mark, or its client is gone."""

    @property
    def backlog(self) -> int:
        """Bytes that the client has not taken."""
        return self._transport.get_write_buffer_size()

    @property
    def full(self) -> bool:
        return self._full

    @property
    def gone(self) -> bool:
        """Has the client gone away? What is written to it then is dropped."""
        return self._transport.is_closing()

    def put(self, data: bytes) -> None:
        transport = self._transport
        if transport.is_closing():
            return
        transport.write(data)
        self.written += len(data)
        if self.written > self._look_at:
            self.check()

    def check(self) -> None:
        """Look how much waits, where something was written past this."""
        room = self._high_water - self.backlog
        self._look_at = self.written + max(room, 0)
        if room < 0 and not self._full:
            self._fill()

    def _fill(self) -> None:
        self._full = True
        self._waiting = asyncio.get_running_loop().create_task(self._wait_until_drained())
        self.when_full()

    def let_go(self) -> None:
        """Tell nobody any more how full it is."""
        self.when_full = self.when_drained = _nothing

    def abort(self) -> None:
        """Break the connection, whatever still waits in it."""
        self._transport.abort()

    async def _wait_until_drained(self) -> None:
        try:
            await self._drain()
            while self.backlog > self._high_water and not self.gone:
                await asyncio.sleep(POLL_SECONDS)
        except ConnectionError:
            pass  # gone: nothing holds the upstream back
        self._full = False
        self._waiting = None
        self.when_drained()

    def __repr__(self) -> str:
        state = "gone" if self.gone else "ended" if self.ended else "open"
        return f"<{type(self).__name__} {state}, {self.backlog} of {self.written} bytes wait>"
