"""A target in which a summary stands for the oldest items, and no pair is torn.

Only what the snapshot shows finished is summarised away; what stays of the oldest part (a call
that waits, the half of a pair whose other half is newer) stands behind the summary."""

from __future__ import annotations

from collections.abc import Sequence

from lockstitch.core.items import Part
from lockstitch.dialects.base import Wire
from lockstitch.mirror.saying import read


def summarised(
    items: Sequence[Wire],
    summary: Wire,
    *,
    count: int | None = None,
    fraction: float | None = None,
    leading: int = 0,
) -> list[Wire]:
    """The target: ``summary`` instead of the oldest items, ``count`` of them or a ``fraction``.

    ``leading`` items at the start (instructions) stay in front of it and do not count."""
    if (count is None) == (fraction is None):
        raise ValueError("Pass either count or fraction.")
    if count is not None and count < 0:
        raise ValueError(f"count is {count}. Say how many of the oldest items to sum up.")
    if fraction is not None and not 0 <= fraction <= 1:
        raise ValueError(f"fraction is {fraction}. Say which part of the items, from 0 to 1.")
    if leading < 0:
        raise ValueError(f"leading is {leading}. Say how many items at the start stay.")
    rest = items[leading:]
    if count is None:
        count = int(len(rest) * (fraction or 0.0))
    count = min(count, len(rest))
    if not count:
        return list(items)
    partners = _partners(rest)
    kept = [
        wire
        for at, wire in enumerate(rest[:count])
        if wire.get("status") == "in_progress" or partners.get(at, at) >= count
    ]
    if len(kept) == count:
        return list(items)  # nothing that a summary could stand for
    return [*items[:leading], summary, *kept, *rest[count:]]


def _partners(items: Sequence[Wire]) -> dict[int, int]:
    """Where the other half of each call and output stands; a call that waits: beyond the end."""
    open_calls: dict[str, list[int]] = {}
    partners: dict[int, int] = {}
    for at, wire in enumerate(items):
        item = read(wire)
        if item.part is Part.CALL and item.key is not None:
            open_calls.setdefault(item.key, []).append(at)
            if wire.get("status") != "incomplete":
                partners[at] = len(items)
        elif item.part is Part.OUTPUT and open_calls.get(item.key or ""):
            call = open_calls[item.key or ""].pop(0)
            partners[call], partners[at] = at, call
    return partners
