"""Hypothesis strategies for values of the right shape, drawn from the emulator's own tables."""

from typing import Any

from hypothesis import strategies as st

from lockstitch.emulator.kinds import Kind, Shape
from lockstitch.emulator.responses.item_shapes import ITEM_SHAPES, MESSAGE_SHAPES

TEXTS = st.text(max_size=6)
NUMBERS = st.integers(-9, 9)
# The inside of tools is not the emulator's to check.
TOOLS = st.lists(
    st.sampled_from(
        [
            {"type": "function", "name": "weather", "parameters": {}, "strict": True},
            {"type": "custom", "name": "patch"},
            {"type": "local_shell"},
        ]
    ),
    max_size=2,
)
FLAT: dict[type, st.SearchStrategy[Any]] = {
    str: TEXTS,
    int: NUMBERS,
    float: st.sampled_from([0.5, -1.0]),
    bool: st.booleans(),
    type(None): st.none(),
}


def values_of(kind: Kind, field: str = "") -> st.SearchStrategy[Any]:
    if field == "tools" and kind.each is None:
        return TOOLS
    return st.one_of([_of_type(kind, type_) for type_ in sorted(kind.types, key=str)])


def objects_of(shape: Shape) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {name: values_of(kind, name) for name, kind in shape.needs.items()},
        optional={
            name: st.none() | values_of(kind, name) for name, kind in sorted(shape.may.items())
        },
    )


def messages(role: str) -> st.SearchStrategy[dict[str, Any]]:
    return objects_of(MESSAGE_SHAPES[role]).map(lambda message: {**message, "role": role})


def items_of(type_: str) -> st.SearchStrategy[dict[str, Any]]:
    made = objects_of(ITEM_SHAPES[type_])
    if type_ == "local_shell_call_output":
        # It names its call in one of two fields, and none is needed by itself.
        return made.filter(lambda item: item.get("call_id") or item.get("id"))
    return made


def _of_type(kind: Kind, type_: type) -> st.SearchStrategy[Any]:
    if type_ is str:
        return _strings(kind)
    if type_ is list:
        return st.lists(values_of(kind.each), max_size=2) if kind.each else st.just([])
    if type_ is dict:
        return _dicts(kind)
    return FLAT[type_]


def _strings(kind: Kind) -> st.SearchStrategy[str]:
    if kind.values:
        return st.sampled_from(kind.values)
    if kind.prefix:
        return TEXTS.map(lambda text: f"{kind.prefix}_{text}")
    return st.text(min_size=1, max_size=6) if kind.longest else TEXTS


def _dicts(kind: Kind) -> st.SearchStrategy[dict[str, Any]]:
    if kind.shape is not None:
        return objects_of(kind.shape)
    if kind.shapes is not None:
        return st.one_of([objects_of(shape) for shape in kind.shapes.values()])
    return st.dictionaries(TEXTS, values_of(kind.each) if kind.each else TEXTS, max_size=2)
