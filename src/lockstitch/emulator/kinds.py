"""The kinds of JSON value a field may hold, and the one walk that checks a value against them.

A mechanism with no knowledge of any field: the tables are in the `shapes` of each API."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from lockstitch.emulator.refusals import (
    missing_parameter,
    out_of_range,
    too_long,
    unknown_parameter,
    wrong_prefix,
    wrong_type,
    wrong_value,
)

_SAID = {
    str: "a string",
    bool: "a boolean",
    int: "an integer",
    float: "a decimal",
    list: "an array",
    dict: "an object",
    type(None): "null",
}


def said(value: Any) -> str:
    """A value's JSON type in the provider's words."""
    return _SAID[type(value)]


def listed(values: tuple[str, ...], word: str) -> str:
    """`'a', 'b', and 'c'`, with the provider's commas."""
    quoted = [f"'{value}'" for value in values]
    if len(quoted) < 3:
        return f" {word} ".join(quoted)
    return f"{', '.join(quoted[:-1])}, {word} {quoted[-1]}"


@dataclass(frozen=True, slots=True)
class Kind:
    """What one field may hold; a limit that is not set is not checked."""

    expected: str
    types: frozenset[type]
    values: tuple[str, ...] = ()
    longest: int = 0
    prefix: str = ""
    lowest: float | None = None
    highest: float | None = None
    # Of an array's members, or of the values of an object with names of the client's choice.
    each: "Kind | None" = None
    shape: "Shape | None" = None
    # An object whose `type` says which shape it has.
    shapes: "Mapping[str, Shape] | None" = None
    # Nothing to check beyond the JSON type: the common case, and the fast one.
    flat: bool = field(init=False)

    def __post_init__(self) -> None:
        limits = (self.values, self.longest, self.prefix, self.each, self.shape, self.shapes)
        ranged = self.lowest is not None or self.highest is not None
        object.__setattr__(self, "flat", not ranged and not any(limits))


class Shape:
    """The fields of an object: those it needs, and those it may have (or have as null)."""

    __slots__ = ("fields", "may", "needs")

    def __init__(
        self,
        needs: Mapping[str, Kind] | None = None,
        may: Mapping[str, Kind] | None = None,
    ) -> None:
        self.needs = dict(needs or {})
        self.may = dict(may or {})
        self.fields = self.needs | self.may

    def __repr__(self) -> str:
        return f"<Shape needs {', '.join(self.needs) or 'nothing'}>"


def _kind(expected: str, *types: type) -> Kind:
    return Kind(expected, frozenset(types))


STRING = _kind("a string", str)
BOOLEAN = _kind("a boolean", bool)
INTEGER = _kind("an integer", int)
DECIMAL = _kind("a decimal", float, int)
OBJECT = _kind("an object", dict)
OBJECTS = _kind("an array of objects", list)
SCALAR = _kind("one of a string, decimal, or boolean", str, float, int, bool)
ANYTHING = _kind("a value", *_SAID)
STRINGS = replace(_kind("an array of strings", list), each=STRING)


def one_of(*values: str) -> Kind:
    return Kind(f"one of {listed(values, 'or')}", frozenset({str}), values=values)


def shaped(shape: Shape) -> Kind:
    return replace(OBJECT, shape=shape)


def tagged(shapes: Mapping[str, Shape]) -> Kind:
    """An object that says by its `type` which of the shapes it has."""
    return replace(OBJECT, shapes={tag: with_tag(tag, shape) for tag, shape in shapes.items()})


def with_tag(tag: str, shape: Shape) -> Shape:
    return Shape(shape.needs | {"type": one_of(tag)}, shape.may)


def array_of(each: Kind) -> Kind:
    return replace(OBJECTS, each=each)


def string_or_array_of(each: Kind) -> Kind:
    expected = "one of a string or array of objects"
    return Kind(expected, frozenset({str, list}), each=each)


def object_of(each: Kind) -> Kind:
    """An object whose names the client chooses."""
    return replace(OBJECT, each=each)


def check_shape(shape: Shape, value: dict[str, Any], path: str) -> None:
    fields = shape.fields
    for name, given in value.items():
        kind = fields.get(name)
        if kind is None:
            raise unknown_parameter(inner(path, name))
        if kind.flat and type(given) in kind.types:
            continue
        if given is None and name in shape.may:
            continue
        check_kind(kind, given, inner(path, name))
    for name in shape.needs:
        if name not in value:
            raise missing_parameter(inner(path, name))


def check_kind(kind: Kind, value: Any, path: str) -> None:
    found = type(value)
    if found not in kind.types:
        raise wrong_type(path, kind.expected, said(value))
    if kind.flat:
        return
    if found is str:
        _check_string(kind, value, path)
    elif found is list:
        _check_members(kind, value, path)
    elif found is dict:
        _check_object(kind, value, path)
    elif found is not bool:
        _check_number(kind, value, path)


def inner(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def check_value(values: tuple[str, ...], value: str, path: str) -> None:
    if value not in values:
        raise wrong_value(path, value, listed(values, "and"))


def tag_of(value: dict[str, Any], name: str, values: tuple[str, ...], path: str) -> str:
    """The field that says what the rest of the object is, once it is known to be right."""
    if name not in value:
        raise missing_parameter(inner(path, name))
    tag = value[name]
    if not isinstance(tag, str):
        raise wrong_type(inner(path, name), STRING.expected, said(tag))
    check_value(values, tag, inner(path, name))
    return tag


def _check_string(kind: Kind, value: str, path: str) -> None:
    if kind.values:
        check_value(kind.values, value, path)
    if kind.longest:
        if len(value) > kind.longest:
            raise too_long(path, kind.longest, len(value))
        if not value:
            words = "empty string. Expected a string with minimum length 1, but got an empty string"
            raise out_of_range(path, f"{words} instead")
    if kind.prefix and not value.startswith(kind.prefix):
        raise wrong_prefix(path, value, kind.prefix)


def _check_members(kind: Kind, members: list[Any], path: str) -> None:
    if kind.each is None:
        return
    for index, member in enumerate(members):
        check_kind(kind.each, member, f"{path}[{index}]")


def _check_object(kind: Kind, value: dict[str, Any], path: str) -> None:
    if kind.shape is not None:
        check_shape(kind.shape, value, path)
    elif kind.shapes is not None:
        tag = tag_of(value, "type", tuple(kind.shapes), path)
        check_shape(kind.shapes[tag], value, path)
    elif kind.each is not None:
        for name, member in value.items():
            check_kind(kind.each, member, inner(path, name))


def _check_number(kind: Kind, value: float, path: str) -> None:
    word = "integer" if float not in kind.types else "decimal"
    if kind.lowest is not None and value < kind.lowest:
        words = f"{word} below minimum value. Expected a value >= {kind.lowest:g}"
        raise out_of_range(path, f"{words}, but got {value:g} instead")
    if kind.highest is not None and value > kind.highest:
        words = f"{word} above maximum value. Expected a value <= {kind.highest:g}"
        raise out_of_range(path, f"{words}, but got {value:g} instead")
