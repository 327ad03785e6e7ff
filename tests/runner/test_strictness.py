"""Schemas that a provider can enforce."""

from __future__ import annotations

import copy

import pytest

from lockstitch.runner.strictness import strict_schema, why_not_strict

TEXT = {"type": "string"}


def an_object(properties, required=None, **more):
    wanted = list(properties) if required is None else required
    return {"type": "object", "properties": properties, "required": wanted, **more}


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        (an_object({"a": TEXT}, []), "$ has parts that may be left out: a"),
        (an_object({"a": {}}), "$.a may be anything"),
        (an_object({"a": {"type": "object"}}), "$.a is an object with names of any kind"),
        (
            an_object({"a": {"type": "array", "prefixItems": [TEXT]}}),
            "$.a needs prefixItems",
        ),
        (
            an_object({"a": {"type": "array", "items": an_object({"b": TEXT}, [])}}),
            "$.a[] has parts that may be left out: b",
        ),
        (
            an_object({"a": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/X"}]}})
            | {"$defs": {"X": an_object({"c": TEXT}, [])}},
            "$.X has parts that may be left out: c",
        ),
    ],
)
def test_what_no_provider_enforces_is_named(schema, why):
    assert why_not_strict(schema) == why


def test_a_strict_schema_is_closed_and_says_nothing_that_is_refused():
    schema = an_object(
        {
            "a": {"$ref": "#/$defs/X", "description": "beside a reference"},
            "b": {"type": "string", "format": "decimal", "description": "kept"},
            "c": {"type": "string", "format": "uuid"},
            "d": {"type": "array", "items": TEXT, "uniqueItems": True},
            "e": {"type": "string", "contentEncoding": "base64"},
        }
    ) | {"$defs": {"X": an_object({"x": TEXT})}}
    before = copy.deepcopy(schema)
    assert why_not_strict(schema) is None
    assert strict_schema(schema) == an_object(
        {
            "a": {"$ref": "#/$defs/X"},
            "b": {"type": "string", "description": "kept"},
            "c": {"type": "string", "format": "uuid"},
            "d": {"type": "array", "items": TEXT},
            "e": {"type": "string"},
        },
        additionalProperties=False,
    ) | {"$defs": {"X": an_object({"x": TEXT}, additionalProperties=False)}}
    assert schema == before


def test_a_property_may_be_named_like_a_keyword():
    schema = an_object({"items": TEXT, "$ref": TEXT, "properties": TEXT, "format": TEXT})
    assert why_not_strict(schema) is None
    assert strict_schema(schema)["properties"] == schema["properties"]
