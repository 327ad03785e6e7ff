"""How long to wait before a retry: doubling, with jitter, and as long as the provider asks."""

from __future__ import annotations

from collections.abc import Callable

from lockstitch.runner.limits import FIRST_DELAY_SECONDS, LONGEST_DELAY_SECONDS

MOST_DOUBLINGS = 64
"""The bound is reached long before; a float has no room for a thousand of them."""


def delay(attempt: int, retry_after: float | None, random: Callable[[], float]) -> float:
    """Seconds to wait before attempt ``attempt + 1``; ``random`` gives numbers from 0 to 1."""
    if retry_after is not None:
        return min(max(0.0, retry_after), LONGEST_DELAY_SECONDS)
    doubled = min(attempt - 1, MOST_DOUBLINGS)
    longest = FIRST_DELAY_SECONDS * 2.0**doubled
    return min(longest, LONGEST_DELAY_SECONDS) * (0.5 + random() / 2)
