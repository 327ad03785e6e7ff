"""JSON that a client sent, no deeper than can be walked and written again."""

from typing import Any

import msgspec

from lockstitch.emulator import refusals
from lockstitch.emulator.limits import MOST_NESTING_LEVELS

_CONTAINERS = (dict, list)


def decoded(data: bytes) -> Any:
    """The JSON in a body or a frame; raises `Refused` if it is none, or is nested too deep."""
    try:
        value = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise refusals.unreadable_body() from None
    except RecursionError:
        raise refusals.nested_too_deep(MOST_NESTING_LEVELS) from None
    # What opens nothing, or little, cannot be deep: nearly all bodies end here.
    if data.count(b"[") + data.count(b"{") > MOST_NESTING_LEVELS and _is_too_deep(value):
        raise refusals.nested_too_deep(MOST_NESTING_LEVELS)
    return value


def _is_too_deep(value: Any) -> bool:
    """Level by level, without recursion."""
    level = [value] if isinstance(value, _CONTAINERS) else []
    for _ in range(MOST_NESTING_LEVELS):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, _CONTAINERS)
        ]
        if not level:
            return False
    return True
