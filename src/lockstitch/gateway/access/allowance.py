"""How much each key may ask for, and whether that is used up. Pure: time is an argument.

It counts what one process lets in; for several workers it is `running.shared_allowance`. How a
refusal is said to a client is `refusals`."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final, Literal

from msgspec import Struct

from lockstitch.gateway.config.model import Key

BUSY_SECONDS: Final = 1.0
"""When to ask again where too much is under way: nobody knows when one of it ends."""


class Exhausted(Struct, frozen=True, kw_only=True):
    """A key may ask for nothing now."""

    key: str
    of: Literal["requests_per_minute", "concurrent"]
    limit: int
    retry_after: float
    """Seconds until it is worth asking again."""


class Bucket:
    """What one key has left. It fills at an even pace, up to the requests of one minute."""

    __slots__ = ("at", "filled", "running")

    def __init__(self, filled: float = math.inf, at: float = 0.0, running: int = 0) -> None:
        self.filled = filled
        self.at = at
        self.running = running
        """Requests under way, in all processes that share the bucket."""

    def take(self, key: Key, now: float) -> Exhausted | None:
        """Begin a request, if the limits of the key allow it."""
        if key.concurrent is not None and self.running >= key.concurrent:
            return Exhausted(
                key=key.name, of="concurrent", limit=key.concurrent, retry_after=BUSY_SECONDS
            )
        if key.requests_per_minute is not None:
            self._refill(key.requests_per_minute, now)
            if self.filled < 1:
                return Exhausted(
                    key=key.name,
                    of="requests_per_minute",
                    limit=key.requests_per_minute,
                    retry_after=(1 - self.filled) * 60 / key.requests_per_minute,
                )
            self.filled -= 1
        self.running += 1
        return None

    def _refill(self, per_minute: int, now: float) -> None:
        # A clock that was set back gives nothing, and takes nothing.
        gained = max(0.0, now - self.at) * per_minute / 60
        self.filled = min(float(per_minute), self.filled + gained)
        self.at = now


class Allowance:
    """What each key has left. So many requests at once as a minute allows, then at an even pace."""

    def __init__(self) -> None:
        self._buckets: dict[str, Bucket] = {}

    def take(self, key: Key, now: float) -> Exhausted | None:
        """Begin a request of this key: None, and `give_back` must follow; or why not."""
        bucket = self._buckets.get(key.name)
        if bucket is None:
            bucket = self._buckets[key.name] = Bucket()
        return bucket.take(key, now)

    def give_back(self, key: Key) -> None:
        """A request of this key has ended."""
        bucket = self._buckets.get(key.name)
        if bucket is not None and bucket.running > 0:
            bucket.running -= 1

    def keep_only(self, keys: Iterable[Key]) -> None:
        """Forget keys that are no more, but not what is still running."""
        names = {key.name for key in keys}
        for name in [name for name in self._buckets if name not in names]:
            if not self._buckets[name].running:
                del self._buckets[name]
