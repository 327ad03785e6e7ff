"""Checks a value against a table of `kinds`, and refuses it in the words of Anthropic's API.

The same tables as for OpenAI's dialects, but other words and other paths: a member of an array is
`content.1`, and an object that says its type is entered by it: `content.1.tool_use.id`."""

from typing import Any, Final

from lockstitch.emulator.kinds import Kind, Shape
from lockstitch.emulator.messages.refusals import invalid

_SHOULD_BE: Final = {
    str: "a valid string",
    bool: "a valid boolean",
    int: "a valid integer",
    float: "a valid number",
    list: "a valid list",
    dict: "a valid dictionary",
}


def check_shape(shape: Shape, value: dict[str, Any], path: str) -> None:
    for name in shape.needs:
        if name not in value:
            raise invalid("missing-parameter", _inner(path, name), "Field required")
    for name, given in value.items():
        kind = shape.fields.get(name)
        if kind is None:
            said = "Extra inputs are not permitted"
            raise invalid("unknown-parameter", _inner(path, name), said)
        if given is not None or name in shape.needs:
            check_kind(kind, given, _inner(path, name))


def check_kind(kind: Kind, value: Any, path: str) -> None:
    found = type(value)
    if found not in kind.types:
        raise invalid("wrong-type", path, f"Input should be {_should_be(kind)}")
    if found is str and kind.values and value not in kind.values:
        raise invalid("wrong-value", path, f"Input should be {listed(kind.values)}")
    if found is list and kind.each is not None:
        for index, member in enumerate(value):
            check_kind(kind.each, member, f"{path}.{index}")
    elif found is dict:
        _check_object(kind, value, path)
    elif found in {int, float}:
        _check_range(kind, value, path)


def listed(values: tuple[str, ...]) -> str:
    quoted = [f"'{value}'" for value in values]
    return " or ".join([", ".join(quoted[:-1]), quoted[-1]] if len(quoted) > 1 else quoted)


def _check_object(kind: Kind, value: dict[str, Any], path: str) -> None:
    if kind.shape is not None:
        check_shape(kind.shape, value, path)
    elif kind.shapes is not None:
        tag = value.get("type")
        if tag is None:
            said = "Unable to extract tag using discriminator 'type'"
            raise invalid("missing-parameter", path, said)
        if not isinstance(tag, str) or tag not in kind.shapes:
            tags = ", ".join(f"'{known}'" for known in sorted(kind.shapes))
            said = f"does not match any of the expected tags: {tags}"
            raise invalid("wrong-value", path, f"Input tag '{tag}' found using 'type' {said}")
        check_shape(kind.shapes[tag], value, f"{path}.{tag}")


def _check_range(kind: Kind, value: float, path: str) -> None:
    if kind.lowest is not None and value < kind.lowest:
        said = f"Input should be greater than or equal to {kind.lowest:g}"
        raise invalid("wrong-value", path, said)
    if kind.highest is not None and value > kind.highest:
        said = f"Input should be less than or equal to {kind.highest:g}"
        raise invalid("wrong-value", path, said)


def _should_be(kind: Kind) -> str:
    """What a value of the wrong type should have been; of several, the roomiest."""
    wanted = [known for known in _SHOULD_BE if known in kind.types]
    return _SHOULD_BE[wanted[-1]]


def _inner(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
