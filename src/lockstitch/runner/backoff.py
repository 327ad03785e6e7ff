"""How long to wait before a retry: doubling, with jitter, and as long as the provider asks."""

from __future__ import annotations

from collections.abc import Callable

from lockstitch.runner.limits import FIRST_DELAY_SECONDS, LONGEST_DELAY_SECONDS


def delay(attempt: int, retry_after: float | None, random: Callable[[], float]) -> float:
    """Seconds to wait before attempt ``attempt + 1``; ``random`` gives numbers from 0 to 1."""
    if retry_after is not None:
        return min(max(0.0, retry_after), LONGEST_DELAY_SECONDS)
    longest = FIRST_DELAY_SECONDS * 2.0 ** (attempt - 1)
    return min(longest, LONGEST_DELAY_SECONDS) * (0.5 + random() / 2)
