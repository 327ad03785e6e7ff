"""When a connection is given up for a new one: before the provider ends it, at a quiet moment.

Pure: time and what is under way are arguments. `lines` carries it out."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from lockstitch.realtime.holding import Act, Busy, may
from lockstitch.realtime.limits import LOOK_SECONDS, Patience


class Renewal:
    """The age of one connection, and for how long it was quiet."""

    def __init__(self, patience: Patience, opened: float) -> None:
        self._patience = patience
        self._opened = opened
        self._quiet_since: float | None = None

    def __repr__(self) -> str:
        return f"<Renewal of a connection from {self._opened:g}>"

    def look(self, now: float, busy: AbstractSet[Busy]) -> float | None:
        """How many seconds to wait before the next look; None if this is the moment."""
        patience, age = self._patience, now - self._opened
        if age < patience.renew_after_seconds:
            return patience.renew_after_seconds - age
        act = Act.RENEW if age < patience.renew_by_seconds else Act.RENEW_LATE
        if not may(act, busy):
            self._quiet_since = None
            return LOOK_SECONDS
        if self._quiet_since is None:
            self._quiet_since = now
        left = self._quiet_since + patience.quiet_seconds - now
        return left if left > 0 else None
