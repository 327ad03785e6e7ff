"""Schemas that a provider can enforce while the model writes (``strict``): a subset of JSON schema.

The rules are OpenAI's: every property is required, no object is open, and there are keywords that
do not exist. What only informs is left out; what would change the meaning is refused."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any

Schema = dict[str, Any]

_NAMED = ("properties", "$defs", "patternProperties")
_SINGLE = ("items", "additionalProperties", "not")
_SEVERAL = ("anyOf", "oneOf", "allOf", "prefixItems")

_ONLY_INFORM = ("contentEncoding", "discriminator", "uniqueItems")
"""Arguments are checked when they are read, so a model that ignores these is told."""
_NOT_ENFORCED = ("allOf", "not", "oneOf", "patternProperties", "prefixItems")
_FORMATS = frozenset(
    ("date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid")
)
_SAYS_WHAT_IT_IS = frozenset(("$ref", "anyOf", "enum", "const", "type"))


def subschemas(schema: Mapping[str, Any], where: str = "$") -> Iterator[tuple[str, Schema]]:
    """A schema and every schema in it, with where each stands."""
    assert isinstance(schema, dict)
    yield where, schema
    for keyword in _NAMED:
        for name, inner in schema.get(keyword, {}).items():
            yield from subschemas(inner, f"{where}.{name}")
    for keyword in _SINGLE:
        if isinstance(inner := schema.get(keyword), dict):
            yield from subschemas(inner, f"{where}[]")
    for keyword in _SEVERAL:
        for inner in schema.get(keyword, ()):
            yield from subschemas(inner, where)


def why_not_strict(schema: Schema) -> str | None:
    """What of a schema no provider enforces, for people; None if there is no such thing."""
    for where, inner in subschemas(schema):
        if not _SAYS_WHAT_IT_IS & inner.keys():
            return f"{where} may be anything"
        for keyword in _NOT_ENFORCED:
            if keyword in inner:
                return f"{where} needs {keyword}"
        properties = inner.get("properties")
        if properties is None and inner.get("type") == "object":
            return f"{where} is an object with names of any kind"
        left_out = sorted(set(properties or ()) - set(inner.get("required", ())))
        if left_out:
            return f"{where} has parts that may be left out: {', '.join(left_out)}"
    return None


def strict_schema(schema: Schema) -> Schema:
    """The same schema, as providers want it. Ask `why_not_strict` first."""
    made = copy.deepcopy(schema)
    for _, inner in list(subschemas(made)):
        for keyword in _ONLY_INFORM:
            inner.pop(keyword, None)
        if inner.get("format") not in _FORMATS:
            inner.pop("format", None)
        if "$ref" in inner:
            # "$ref cannot have keywords": a text beside a reference is refused.
            reference = inner["$ref"]
            inner.clear()
            inner["$ref"] = reference
        if "properties" in inner:
            inner["additionalProperties"] = False
    return made
