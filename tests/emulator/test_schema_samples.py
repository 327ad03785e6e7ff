"""Samples for JSON schemas: they fit simple schemas, and no schema does harm."""

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstitch.emulator.model.schema_samples import MOST_VALUES, sample

TREE = {
    "$ref": "#/$defs/Node",
    "$defs": {
        "Node": {
            "type": "object",
            "properties": {
                "children": {"type": "array", "items": {"$ref": "#/$defs/Node"}},
                "next": {"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]},
                "name": {"type": "string"},
            },
            "required": ["children", "next", "name"],
        }
    },
}


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "string"}, "Oslo"),
        ({"type": "string", "format": "date"}, "2026-01-01"),
        ({"type": "string", "minLength": 6}, "Osloxx"),
        ({"type": "string", "maxLength": 2}, "Os"),
        ({"enum": ["c", "f"], "type": "string"}, "c"),
        ({"const": 3}, 3),
        ({"type": "integer"}, 1),
        ({"type": "integer", "minimum": 7}, 7),
        ({"type": "integer", "maximum": -7}, -7),
        ({"type": "integer", "exclusiveMinimum": 2.5, "multipleOf": 2}, 4),
        ({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}, 0.5),
        ({"type": "boolean"}, True),
        ({"type": "null"}, None),
        ({"type": ["null", "integer"]}, 1),
        ({"type": "array", "items": {"type": "boolean"}}, [True]),
        ({"type": "array", "items": {"type": "boolean"}, "minItems": 2}, [True, True]),
        ({"type": "array", "maxItems": 0}, []),
        ({"type": "object", "properties": {"a": {"type": "integer"}}}, {}),
        ({"properties": {"a": {"type": "integer"}}, "required": ["a"]}, {"a": 1}),
        ({"anyOf": [{"type": "null"}, {"type": "integer"}]}, 1),
        ({"allOf": [{"required": ["a"]}, {"required": ["b"]}]}, {"a": "Oslo", "b": "Oslo"}),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"type": "integer"}}}, 1),
        ({"$ref": "#/$defs/a~1b", "$defs": {"a/b": {"type": "integer"}}}, 1),
        ({"$ref": "#/anyOf/1", "anyOf": [{}, {"type": "boolean"}]}, True),
        ({}, "Oslo"),
        (True, "Oslo"),
        (False, None),
    ],
)
def test_a_sample_is_what_one_would_expect(schema, expected):
    found = sample(schema, "Oslo")
    assert (type(found), found) == (type(expected), expected)


def test_a_schema_that_contains_itself_has_a_sample_that_ends_and_fits():
    jsonschema.validate(sample(TREE), TREE)


def test_a_schema_without_end_has_a_sample_with_one():
    endless = {"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]}
    assert isinstance(sample(endless), dict)
    wide = {"type": "object", "required": [str(n) for n in range(MOST_VALUES * 2)]}
    assert len(sample(wide)) <= MOST_VALUES
    bushy = {"type": "array", "items": {"$ref": "#"}, "minItems": 1_000_000}
    assert isinstance(sample(bushy), list)
    assert sample({"$ref": "#"}) is None


def _bounds(type_, draw_from):
    return st.fixed_dictionaries(
        {"type": st.just(type_)},
        optional={"minimum": draw_from(-100, 0), "maximum": draw_from(1, 100)},
    )


LEAVES = st.one_of(
    st.fixed_dictionaries(
        {"type": st.just("string")},
        optional={"minLength": st.integers(0, 5), "maxLength": st.integers(5, 9)},
    ),
    _bounds("integer", st.integers),
    _bounds("number", st.floats),
    st.fixed_dictionaries(
        {"type": st.just("integer"), "multipleOf": st.integers(1, 9)},
        optional={"minimum": st.integers(-100, 100)},
    ),
    st.sampled_from([{"type": "boolean"}, {"type": "null"}, {}]),
    st.fixed_dictionaries({"enum": st.lists(st.integers(), min_size=1, max_size=3)}),
)


def _around(inner):
    properties = st.dictionaries(st.sampled_from("abcd"), inner, max_size=3)
    return st.one_of(
        properties.map(
            lambda known: {"type": "object", "properties": known, "required": list(known)}
        ),
        st.builds(
            lambda items, least: {"type": "array", "items": items, "minItems": least},
            inner,
            st.integers(0, 3),
        ),
        st.builds(lambda option: {"anyOf": [{"type": "null"}, option]}, inner),
    )


@given(st.recursive(LEAVES, _around, max_leaves=8))
def test_a_sample_fits_its_schema(schema):
    jsonschema.validate(sample(schema), schema)


WORDS = st.sampled_from(
    [
        *("type", "properties", "required", "items", "prefixItems", "anyOf", "allOf", "oneOf"),
        *("enum", "const", "$ref", "$defs", "minimum", "maximum", "exclusiveMinimum", "format"),
        *("multipleOf", "minLength", "maxLength", "minItems", "maxItems", "additionalProperties"),
    ]
)
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=4),
    st.sampled_from(
        ["object", "array", "string", "integer", "number", "null", "#", "#/$defs/a", "date", 2**70]
    ),
)
ANYTHING = st.recursive(
    VALUES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.one_of(WORDS, st.sampled_from("ab")), inner, max_size=5),
    ),
    max_leaves=20,
)


@given(ANYTHING)
def test_no_schema_raises_and_the_same_gives_the_same(schema):
    assert repr(sample(schema)) == repr(sample(schema))
