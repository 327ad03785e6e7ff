"""Reads one table of a TOML document, key by key, and collects what is wrong.

Each reader gives a value that can be used, also where the document has none: so that one reading
finds every problem. A value is shown in a message only where it cannot be a secret."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from difflib import get_close_matches
from typing import Any, TypeVar, get_args

from lockstitch.gateway.config.errors import Problem
from lockstitch.gateway.config.line_numbers import Path

T = TypeVar("T")


class Problems:
    """What was found wrong so far."""

    def __init__(self, lines: Mapping[Path, int] | None = None) -> None:
        self._lines = lines or {}
        self._found: list[Problem] = []

    def add(self, path: Path, says: str) -> None:
        self._found.append(Problem(path=path, says=says, line=self.line(path)))

    def line(self, path: Path) -> int | None:
        """Where it stands, or what it would stand in."""
        while path and path not in self._lines:
            path = path[:-1]
        return self._lines.get(path)

    def in_order(self) -> list[Problem]:
        return sorted(self._found, key=lambda problem: problem.line or 0)

    def __bool__(self) -> bool:
        return bool(self._found)


class Table:
    """One table, and the keys of it that were asked for."""

    def __init__(self, values: Mapping[str, Any], path: Path, problems: Problems) -> None:
        self.path = path
        self.problems = problems
        self._values = values
        self._asked: list[str] = []

    def has(self, key: str) -> bool:
        return key in self._values

    def wrong(self, key: str, says: str) -> None:
        self.problems.add((*self.path, key), says)

    def line(self, key: str) -> int | None:
        return self.problems.line((*self.path, key))

    def missing(self, key: str, says: str) -> None:
        self.problems.add(self.path, f"{key} is missing. {says}")

    # One value

    def text(self, key: str, default: T, *, what: str = "a text") -> str | T:
        value = self._value(key)
        if value is None:
            return default
        if not isinstance(value, str) or not value:
            self.wrong(key, f"must be {what}, in quotes{_but(value)}.")
            return default
        return value

    def texts(self, key: str, default: T, *, what: str) -> tuple[str, ...] | T:
        value = self._value(key)
        if value is None:
            return default
        if not isinstance(value, list) or not all(isinstance(one, str) and one for one in value):
            self.wrong(key, f"must be a list of {what}, each in quotes{_but(value)}.")
            return default
        if not value:
            self.wrong(key, f"is empty. Name {what}, or leave the key out.")
            return default
        return tuple(value)

    def integer(self, key: str, default: T, *, least: int, most: int) -> int | T:
        value = self._value(key)
        if value is None:
            return default
        if not isinstance(value, int) or isinstance(value, bool):
            self.wrong(key, f"must be a whole number from {least} to {most}{_but(value)}.")
            return default
        if not least <= value <= most:
            self.wrong(key, f"must be from {least} to {most}, not {value}.")
            return default
        return value

    def seconds(self, key: str, default: T, *, least: float = 0.1) -> float | T:
        value = self._value(key)
        if value is None:
            return default
        if not isinstance(value, int | float) or isinstance(value, bool):
            self.wrong(key, f"must be a number of seconds{_but(value)}.")
            return default
        if not math.isfinite(value) or value < least:
            self.wrong(key, f"must be at least {least:g} seconds, not {value:g}.")
            return default
        return float(value)

    def boolean(self, key: str, default: bool) -> bool:
        value = self._value(key)
        if value is None:
            return default
        if not isinstance(value, bool):
            self.wrong(key, f"must be true or false{_but(value)}.")
            return default
        return value

    def choice(self, key: str, default: T, form: Any) -> Any | T:
        """One of the words of a Literal."""
        value = self._value(key)
        return default if value is None else self._chosen((key,), value, default, form)

    def choices(self, key: str, default: T, form: Any) -> tuple[Any, ...] | T:
        found = self.texts(key, None, what=_either(get_args(form), "and"))
        if found is None:
            return default
        chosen = [self._chosen((key, number), one, None, form) for number, one in enumerate(found)]
        return tuple(dict.fromkeys(one for one in chosen if one is not None)) or default

    def moment(self, key: str) -> float | None:
        """A date or a date with a time, as seconds since 1970."""
        value = self._value(key)
        if value is None:
            return None
        if isinstance(value, datetime):
            return (value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp()
        if isinstance(value, date):
            return datetime(value.year, value.month, value.day, tzinfo=UTC).timestamp()
        self.wrong(key, "must be a date, without quotes: 2027-01-31, or 2027-01-31T12:00:00Z.")
        return None

    # Tables in it

    def table(self, key: str) -> Table:
        value = self._value(key)
        if value is not None and not isinstance(value, dict):
            self.wrong(key, f"must be a table: [{key}] in a line of its own{_but(value)}.")
        is_table = isinstance(value, dict)
        return Table(value if is_table else {}, (*self.path, key), self.problems)

    def tables(self, key: str) -> list[Table]:
        value = self._value(key)
        if value is None:
            return []
        if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
            self.wrong(key, f"must be tables: [[{key}]] in a line of its own before each.")
            return []
        path = (*self.path, key)
        return [Table(one, (*path, number), self.problems) for number, one in enumerate(value)]

    def pairs(self, key: str) -> list[tuple[str, Any]]:
        """A table whose keys are not known before."""
        value = self._value(key)
        if value is None:
            return []
        if not isinstance(value, dict):
            self.wrong(key, f'must be a table: {key} = {{ "name" = "value" }}.')
            return []
        return list(value.items())

    def finish(self, instead: Mapping[str, str] | None = None) -> None:
        """Nothing more will be asked for: every other key is a mistake. ``instead`` says of some
        what to write in their place."""
        for key in self._values:
            if key in self._asked:
                continue
            special = (instead or {}).get(key)
            if special is not None:
                self.wrong(key, special)
                continue
            near = get_close_matches(key, self._asked, 1)
            meant = f" Did you mean {near[0]}?" if near else ""
            self.wrong(key, f"is not known.{meant} Known are: {', '.join(sorted(self._asked))}.")

    def _value(self, key: str) -> Any:
        self._asked.append(key)
        return self._values.get(key)

    def _chosen(self, place: Path, value: object, default: T, form: Any) -> Any | T:
        allowed = get_args(form)
        if value in allowed:
            return value
        meant = ""
        if isinstance(value, str):
            near = get_close_matches(value, allowed, 1)
            meant = f" Did you mean {near[0]!r}?" if near else ""
        says = f"must be {_either(allowed, 'or')}{_but(value)}.{meant}"
        self.problems.add((*self.path, *place), says)
        return default


def _either(words: Sequence[str], join: str) -> str:
    quoted = [f'"{word}"' for word in words]
    return f" {join} ".join([", ".join(quoted[:-1]), quoted[-1]] if quoted[:-1] else quoted)


def _but(value: object) -> str:
    """What it is instead. Never the text itself: somebody may have put a key there."""
    match value:
        case bool():
            return f", not {str(value).lower()}"
        case int() | float():
            return f", not {value}"
        case str():
            return ", not an empty text" if not value else ", not this text"
        case list():
            return ", not this list"
        case dict():
            return ", not a table"
        case _:
            return ", not a date"
