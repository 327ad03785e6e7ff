"""What a script may hold: the values of JSON, no deeper and no larger than can be sent.

Scripts written in Python are held to it too: a draft that cannot be written as JSON is told when
it is given, not in the middle of an answer."""

import math
from typing import Any

from lockstitch.emulator.errors import BadScript

# Deeper than any item of the provider's; a limit keeps readers that recurse from failing.
MOST_NESTING_LEVELS = 64
# Shared or cyclic values of Python can grow without end when they are written out.
MOST_VALUES = 2_000_000
# What the JSON encoder can write.
LARGEST_INTEGER = 2**63 - 1


def bad(place: str, problem: str) -> BadScript:
    return BadScript(f"{place}: {problem}" if place else problem)


def check_plain(value: Any, place: str) -> None:
    """Raise BadScript unless `value` can be written as JSON."""
    waiting = [(value, place, 0)]
    seen = 0
    while waiting:
        value, where, depth = waiting.pop()
        seen += 1
        if depth > MOST_NESTING_LEVELS:
            raise bad(place, f"it is nested deeper than {MOST_NESTING_LEVELS} levels")
        if seen + len(waiting) > MOST_VALUES:
            raise bad(place, f"it has more than {MOST_VALUES} values")
        if isinstance(value, dict):
            for key, inner in value.items():
                _check_key(key, where)
                waiting.append((inner, f"{where}.{key}" if where else key, depth + 1))
        elif isinstance(value, list):
            waiting += [(each, f"{where}[{at}]", depth + 1) for at, each in enumerate(value)]
        else:
            _check_scalar(value, where)


def _check_key(key: Any, place: str) -> None:
    if not isinstance(key, str):
        raise bad(place, f"the key {shown(key)} must be text")
    _check_text(key, place)


def _check_scalar(value: Any, place: str) -> None:
    if value is None or isinstance(value, bool):
        return
    if isinstance(value, str):
        _check_text(value, place)
    elif isinstance(value, int):
        if abs(value) > LARGEST_INTEGER:
            raise bad(place, "the number is too large: write it in quotes")
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise bad(place, "the number is not finite: JSON cannot say it")
    else:
        raise bad(place, f"{kind(value)} cannot be written as JSON")


def _check_text(text: str, place: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise bad(place, "the text has half of a surrogate pair: UTF-8 cannot say it") from None


_KINDS = {
    str: "text",
    bool: "true or false",
    int: "a number",
    float: "a number",
    list: "a list",
    dict: "a mapping",
    type(None): "nothing",
}


def kind(value: Any) -> str:
    """What a value is, in the words of a script's author."""
    return _KINDS.get(type(value)) or f"a {type(value).__name__}"


def shown(value: Any, most: int = 60) -> str:
    """A value in a message: short, on one line, whatever it is."""
    try:
        text = repr(value)
    except Exception:
        text = kind(value)
    return text if len(text) <= most else f"{text[:most]}…"
