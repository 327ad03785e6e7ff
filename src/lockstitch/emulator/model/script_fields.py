"""How one key of a script is read: what it may hold, and what is said when it holds else.

A mechanism with no knowledge of any key: the tables are in `draft_reading` and `turn_reading`."""

import difflib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from lockstitch.emulator.model.plain_values import bad, kind, shown

# Gives the value in the form the emulator uses, or raises BadScript with the place.
Read = Callable[[Any, str], Any]


def fields(
    data: Any, place: str, known: Mapping[str, Read], needs: Iterable[str] = ()
) -> dict[str, Any]:
    """The keys of a mapping, each read; unknown and missing ones are told."""
    given = mapping(data, place)
    check_keys(given, place, known)
    for name in needs:
        if name not in given:
            raise bad(place, f"the key `{name}` is missing")
    return {name: known[name](value, under(place, name)) for name, value in given.items()}


def check_keys(given: dict[str, Any], place: str, known: Iterable[str]) -> None:
    names = list(known)
    for key in given:
        if key not in names:
            close = difflib.get_close_matches(key[:40], names, n=1)
            hint = f" Did you mean `{close[0]}`?" if close else ""
            raise bad(place, f"unknown key {shown(key)}.{hint} Known keys: {', '.join(names)}")


def under(place: str, name: str) -> str:
    return f"{place}.{name}" if place else name


def mapping(value: Any, place: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _wrong(place, "a mapping (key: value)", value)
    return value


def anything(value: Any, place: str) -> Any:
    return value


def text(value: Any, place: str) -> str:
    if isinstance(value, str):
        return value
    hint = ": put it in quotes" if isinstance(value, bool | int | float) else ""
    raise bad(place, f"it must be text, not {kind(value)}{hint}")


def flag(value: Any, place: str) -> bool:
    if not isinstance(value, bool):
        raise _wrong(place, "true or false", value)
    return value


def whole(lowest: int) -> Read:
    def read(value: Any, place: str) -> int:
        if type(value) is not int or value < lowest:
            raise bad(place, f"it must be a whole number from {lowest}, not {shown(value)}")
        return value

    return read


def one_of(*choices: str) -> Read:
    def read(value: Any, place: str) -> str:
        if value not in choices:
            raise bad(place, f"it must be one of {', '.join(choices)}, not {shown(value)}")
        return str(value)

    return read


def list_of(read: Read) -> Read:
    def read_all(value: Any, place: str) -> list[Any]:
        if not isinstance(value, list):
            raise _wrong(place, "a list", value)
        return [read(each, f"{place}[{at}]") for at, each in enumerate(value)]

    return read_all


def one_or_list_of(read: Read) -> Read:
    """A single value may stand without its list; an empty list may not."""

    def read_all(value: Any, place: str) -> list[Any]:
        if not isinstance(value, list):
            return [read(value, place)]
        if not value:
            raise bad(place, "the list is empty")
        return [read(each, f"{place}[{at}]") for at, each in enumerate(value)]

    return read_all


def _wrong(place: str, expected: str, value: Any) -> Exception:
    return bad(place, f"it must be {expected}, not {kind(value)}")
