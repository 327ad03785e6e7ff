"""YAML and JSON into plain data, strictly: no tags, no aliases, no key twice, nothing guessed.

A YAML value without quotes is what JSON would call it, and text otherwise: `no`, `12:30` and
`2026-01-01` are text. Errors say the line."""

import json
import re
from collections.abc import Callable
from typing import Any, NoReturn

import yaml

from lockstitch.emulator.errors import BadScript
from lockstitch.emulator.limits import LARGEST_SCRIPT_BYTES
from lockstitch.emulator.model.plain_values import MOST_NESTING_LEVELS, shown

# The same events, some ten times faster, where PyYAML was built with libyaml.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_WORDS = {
    "": None,
    "~": None,
    **dict.fromkeys(("null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
# Far more digits than a number that can be sent has.
_LONGEST_NUMBER_CHARACTERS = 400


def read_bytes(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            data = file.read(LARGEST_SCRIPT_BYTES + 1)
    except FileNotFoundError:
        raise BadScript(f"{path}: there is no such file. Check the path.") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise BadScript(f"{path}: it cannot be read: {reason}.") from None
    if len(data) > LARGEST_SCRIPT_BYTES:
        most = LARGEST_SCRIPT_BYTES // (1024 * 1024)
        raise BadScript(f"{path}: it is larger than {most} MB. Split it, or write it in Python.")
    return data


def read_json(data: bytes) -> Any:
    try:
        return json.loads(
            _decoded(data), object_pairs_hook=_unique, parse_constant=_not_json, parse_int=_whole
        )
    except json.JSONDecodeError as error:
        raise BadScript(f"line {error.lineno}, column {error.colno}: {error.msg}") from None
    except RecursionError:
        raise _too_deep("") from None


def read_yaml(data: bytes) -> Any:
    """The one document in `data`; None if there is none."""
    text = _decoded(data)
    building = _Building()
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            building.take(event)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        said = " ".join(part for part in (error.context, error.problem) if part)
        raise BadScript(f"{_line(mark)}this is not YAML: {said}") from None
    # Characters YAML has no place for; and the slips of its scanner at escapes and directives.
    except (yaml.YAMLError, ValueError, LookupError, OverflowError) as error:
        said = str(error).partition("\n")[0]
        raise BadScript(f"this is not YAML: {said}") from None
    return building.document


def _decoded(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise BadScript(f"line {line}: it is not UTF-8. Save the file as UTF-8.") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise BadScript(f"the key {shown(key)} is there twice")
        found[key] = value
    return found


def _not_json(constant: str) -> NoReturn:
    raise BadScript(f"{constant} is not JSON")


def _whole(digits: str) -> int:
    if len(digits) > _LONGEST_NUMBER_CHARACTERS:
        raise BadScript(f"the number {digits[:20]}… is too large: write it in quotes")
    return int(digits)


def _too_deep(line: str) -> BadScript:
    return BadScript(f"{line}it is nested deeper than {MOST_NESTING_LEVELS} levels")


def _line(mark: Any) -> str:
    return f"line {mark.line + 1}, column {mark.column + 1}: " if mark is not None else ""


class _Building:
    """Puts a document together from the events of the YAML parser, without recursion."""

    def __init__(self) -> None:
        self.document: Any = None
        self._documents = 0
        # Each open list or mapping as the function that puts a value into it.
        self._open: list[Callable[[Any, Any], None]] = [self._put_document]

    def take(self, event: Any) -> None:
        match event:
            case yaml.DocumentStartEvent():
                self._documents += 1
                if self._documents > 1:
                    raise BadScript(f"{_line(event.start_mark)}a script is one YAML document")
            case yaml.AliasEvent():
                raise BadScript(
                    f"{_line(event.start_mark)}aliases (*{event.anchor}) are not taken: "
                    "write the value out"
                )
            case yaml.NodeEvent():
                self._take_node(event)
            case yaml.CollectionEndEvent():
                self._open.pop()
            case _:
                pass

    def _take_node(self, event: Any) -> None:
        if event.tag is not None:
            raise BadScript(f"{_line(event.start_mark)}tags ({event.tag}) are not taken")
        put = self._open[-1]
        if isinstance(event, yaml.ScalarEvent):
            put(event, event.value)
            return
        if len(self._open) > MOST_NESTING_LEVELS:
            raise _too_deep(_line(event.start_mark))
        if isinstance(event, yaml.MappingStartEvent):
            mapping: dict[str, Any] = {}
            put(event, mapping)
            self._open.append(_Entries(mapping))
        else:
            values: list[Any] = []
            put(event, values)
            self._open.append(lambda inner, value: values.append(_resolved(inner, value)))

    def _put_document(self, event: Any, value: Any) -> None:
        self.document = _resolved(event, value)


class _Entries:
    """Takes keys and values in turns."""

    __slots__ = ("_key", "_mapping")

    def __init__(self, mapping: dict[str, Any]) -> None:
        self._mapping = mapping
        self._key: str | None = None

    def __call__(self, event: Any, value: Any) -> None:
        if self._key is not None:
            self._mapping[self._key] = _resolved(event, value)
            self._key = None
            return
        # A key is text as it stands: JSON has no others.
        if not isinstance(event, yaml.ScalarEvent):
            raise BadScript(f"{_line(event.start_mark)}a key must be text")
        if value in self._mapping:
            raise BadScript(f"{_line(event.start_mark)}the key {shown(value)} is there twice")
        self._key = value


def _resolved(event: Any, value: Any) -> Any:
    if not isinstance(event, yaml.ScalarEvent) or not event.implicit[0]:
        return value
    if value in _WORDS:
        return _WORDS[value]
    number = _NUMBER.fullmatch(value)
    if number is None:
        return value
    if number[1] or number[2]:
        return float(value)
    if len(value) > _LONGEST_NUMBER_CHARACTERS:
        raise BadScript(f"{_line(event.start_mark)}the number is too large: write it in quotes")
    return int(value)
