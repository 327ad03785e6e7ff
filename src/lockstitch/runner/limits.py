"""The bounds of a turn, each with its reason."""

from __future__ import annotations

from msgspec import Struct


class Budget(Struct, frozen=True, kw_only=True):
    """What one turn may take."""

    rounds: int = 50
    """Answers in one turn: a model that calls tools for ever is stopped."""
    attempts: int = 6
    """Sends of one request, the first included."""
    seconds: float | None = None
    """All of it, tools included; None waits as long as they take."""
    silence_seconds: float = 300.0
    """Nothing heard for so long: the stream is taken for broken."""


FIRST_DELAY_SECONDS = 0.25
"""Before the first retry; doubled for each that follows."""

LONGEST_DELAY_SECONDS = 30.0
"""No backoff waits longer, whatever is asked for: the budget decides, not the provider."""

GRACE_SECONDS = 5.0
"""What a tool is given to end by itself when its turn is cancelled."""

MOST_TOOLS_AT_ONCE = 16
"""Calls of one answer that run together; the rest wait their turn."""
