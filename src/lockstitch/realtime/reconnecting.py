"""What to do when a connection is lost: try again and when, and what of a lost response to ask for
again. Pure; the session carries it out."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lockstitch.core import families
from lockstitch.dialects.base import Wire
from lockstitch.realtime.connection import Event
from lockstitch.realtime.holding import Floor
from lockstitch.realtime.limits import Patience
from lockstitch.runner.backoff import delay
from lockstitch.upstream.contract import Fate


class Attempts:
    """How many connections in a row came to nothing."""

    def __init__(self, patience: Patience, random: Callable[[], float]) -> None:
        self._patience = patience
        self._random = random
        self.failures = 0

    def __repr__(self) -> str:
        return f"<Attempts {self.failures} failed, given up behind {self._patience.attempts}>"

    def lived(self, seconds: float) -> None:
        """A connection had the whole context for so long, and was lost then."""
        if seconds >= self._patience.steady_seconds:
            self.failures = 0

    def next(self, fate: Fate = Fate.LOST, retry_after: float | None = None) -> float | None:
        """One more has failed: how many seconds to wait before the next; None to give up."""
        self.failures += 1
        if fate is Fate.REFUSED or self.failures > self._patience.attempts:
            return None
        if self.failures == 1 and retry_after is None:
            return 0.0  # most losses are the only one
        return delay(self.failures - 1 or 1, retry_after, self._random)


def lost_request(floor: Floor) -> Event | None:
    """What to ask for again: a response was lost of which nothing is left, and nobody had cancelled
    it. None if there is none.

    Of one that had said something to its end nobody knows whether more was to come: what it said
    is in the context, its calls are answered as ever, and the conversation goes on from there."""
    for speaking in floor.speaking.values():
        if not speaking.said and not speaking.cancelled:
            asked = speaking.request or {}
            return {name: value for name, value in asked.items() if name == "response"}
    return None


def waits_for_an_answer(context: Sequence[Wire]) -> bool:
    """Does the context end with the output of a tool, which nobody has answered?"""
    return bool(context) and context[-1].get("type") == families.FUNCTION.output_type
