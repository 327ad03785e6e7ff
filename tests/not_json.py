"""Dictionaries that look like wire items, and cannot be written as JSON."""

from __future__ import annotations

from typing import Any

_itself: dict[str, Any] = {"role": "user"}
_itself["content"] = _itself

_deep: list[Any] = []
for _ in range(100_000):
    _deep = [_deep]

NOT_JSON: dict[str, dict[str, Any]] = {
    "half a surrogate pair": {"content": "\ud800"},
    "half a surrogate pair as a name": {"\ud800": 1},
    "an object": {"content": object()},
    "a function": {"content": len},
    "a complex number": {"content": 1j},
    "itself": _itself,
    "too deep": {"content": _deep},
}
