"""What every dialect has in common."""

from __future__ import annotations

import copy
import inspect

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lockstitch.core.items import Item, Part
from lockstitch.core.pairing import Order
from lockstitch.dialects import DIALECTS, Dialect
from lockstitch.dialects.base import text_of, without
from tests.generated import HISTORIES, anything, examples, hostile_items

NAMES = sorted(DIALECTS)


def test_each_dialect_wants_its_outputs_where_its_provider_does():
    assert {name: dialect.order for name, dialect in DIALECTS.items()} == {
        "responses": Order.ANYWHERE,
        "realtime": Order.ANYWHERE,
        "chat": Order.NEXT,
        "messages": Order.NEXT_TURN,
        "gemini": Order.NEXT_TURN,
        "bedrock": Order.NEXT_TURN,
        "pi": Order.NEXT,
        "pydantic-ai": Order.NEXT_TURN,
        "langchain": Order.NEXT,
        "opencode": Order.ANYWHERE,
        "vercel": Order.BEFORE_INPUT,
        "vercel-ui": Order.ANYWHERE,
    }


@pytest.mark.parametrize("name", NAMES)
def test_a_dialect_is_listed_under_its_own_name(name):
    assert DIALECTS[name].name == name


@pytest.mark.parametrize("name", NAMES)
def test_a_dialect_does_everything_that_the_protocol_asks(name):
    asked = {
        method: inspect.signature(function)
        for method, function in vars(Dialect).items()
        if inspect.isfunction(function) and not method.startswith("_")
    }
    assert len(asked) >= 12
    for method, signature in asked.items():
        own = inspect.signature(getattr(type(DIALECTS[name]), method))
        assert list(own.parameters) == list(signature.parameters), method


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=examples(100))
@given(wire=st.one_of(hostile_items, st.dictionaries(st.text(max_size=4), anything, max_size=3)))
def test_reading_takes_any_mapping_and_leaves_it_as_it_was(name, wire):
    before = copy.deepcopy(wire)
    items = DIALECTS[name].read(wire)
    assert wire == before
    assert items
    for item in items:
        assert isinstance(item, Item)
        assert (item.family is not None) is (item.part in (Part.CALL, Part.OUTPUT))


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=examples(50))
@given(data=st.data())
def test_calls_of_one_wire_item_have_slots_of_their_own_and_so_have_outputs(name, data):
    for wire in data.draw(HISTORIES[name]):
        items = DIALECTS[name].read(wire)
        for part in (Part.CALL, Part.OUTPUT):
            slots = [item.slot for item in items if item.part is part]
            assert len(slots) == len(set(slots))


@pytest.mark.parametrize("value", ["", None, 0, 7, [], {}, b"x", True])
def test_only_a_text_that_is_not_empty_may_serve_as_an_id(value):
    assert text_of(value) is None
    assert text_of("call_a") == "call_a"


def test_a_copy_without_a_field_leaves_the_original_whole():
    wire = {"id": "x", "type": "message"}
    assert without(wire, "id") == {"type": "message"}
    assert without(wire, "no such field") == wire
    assert wire == {"id": "x", "type": "message"}
