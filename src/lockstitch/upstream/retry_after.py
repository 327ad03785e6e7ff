"""How long a provider asks to wait before the next try: seconds, milliseconds, or a date."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from math import isfinite
from typing import Any, Final

LONGEST_RETRY_AFTER_SECONDS: Final = 600.0
"""A provider may ask for any wait, or a date years ahead by mistake; nobody waits longer."""


def retry_after(headers: Mapping[str, Any], now: datetime | None = None) -> float | None:
    """The seconds that headers ask to wait, bounded; None if they ask for nothing readable."""
    named = {str(name).lower(): str(value).strip() for name, value in headers.items()}
    milliseconds = _number(named.get("retry-after-ms"))
    if milliseconds is not None:
        return _bounded(milliseconds / 1000)
    asked = named.get("retry-after")
    seconds = _number(asked)
    if seconds is None and asked:
        seconds = _until(asked, now or datetime.now(UTC))
    return None if seconds is None else _bounded(seconds)


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if isfinite(number) else None


def _until(date: str, now: datetime) -> float | None:
    try:
        then = parsedate_to_datetime(date)
    except (TypeError, ValueError):
        return None
    if then.tzinfo is None:
        then = then.replace(tzinfo=UTC)
    return (then - now).total_seconds()


def _bounded(seconds: float) -> float:
    return min(max(seconds, 0.0), LONGEST_RETRY_AFTER_SECONDS)
