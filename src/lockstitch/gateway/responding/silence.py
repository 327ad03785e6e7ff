"""An attempt over a WebSocket that hears nothing for too long is ended here.

Lines over HTTP see to that themselves; a WebSocket is awake as long as it answers pings, whatever
becomes of its answers."""

from __future__ import annotations

import asyncio

from lockstitch.gateway.lines import LineFailure
from lockstitch.gateway.responding.attempts import Attempt


class Silence:
    """Watches one attempt. It looks now and then, so that an event costs no timer."""

    def __init__(self, attempt: Attempt, seconds: float) -> None:
        self._attempt = attempt
        self._seconds = seconds
        self._pieces = -1
        self._timer = asyncio.get_running_loop().call_later(0, self._look)

    def _look(self) -> None:
        if self._attempt.pieces == self._pieces:
            says = f"The upstream said nothing for {self._seconds:g} seconds."
            self._attempt.broke(LineFailure(says, sent=True, timed_out=True))
            return
        self._pieces = self._attempt.pieces
        self._timer = asyncio.get_running_loop().call_later(self._seconds, self._look)

    def end(self) -> None:
        self._timer.cancel()
