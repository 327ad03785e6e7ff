"""A value that fits a JSON schema: small, and the same each time.

Schemas come from clients, so any can be wrong, endless or hostile: what cannot be understood is
passed over, depth and size are bounded, and nothing is raised."""

import math
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

# Deep enough for the schemas of real tools.
MOST_LEVELS = 12
# From here on whatever ends a schema that contains itself is preferred: null, or an empty list.
_ENOUGH_LEVELS = 4
MOST_VALUES = 2_000
MOST_LIST_VALUES = 32
MOST_ALTERNATIVES = 32
LONGEST_TEXT_CHARACTERS = 10_000

_FORMATS = {
    "date": "2026-01-01",
    "date-time": "2026-01-01T00:00:00Z",
    "time": "00:00:00Z",
    "duration": "PT1H",
    "email": "user@example.com",
    "hostname": "example.com",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "uri": "https://example.com/",
    "uuid": "00000000-0000-4000-8000-000000000000",
}

# The places in a list that a reference may name.
_INDEXES = tuple(str(index) for index in range(MOST_ALTERNATIVES))

Schema = dict[str, Any]


def sample(schema: Any, word: str = "example") -> Any:
    """A value for `schema`; texts are `word` where they may be anything."""
    return _Sampler(schema, word).value(schema, 0)


class _Sampler:
    def __init__(self, root: Any, word: str) -> None:
        self._root = root
        self._word = word
        self._left = MOST_VALUES
        self._by_type: dict[str, Callable[[Schema, int], Any]] = {
            "object": self._object,
            "array": self._array,
            "string": self._string,
            "integer": lambda schema, _: _number(schema, whole=True),
            "number": lambda schema, _: _number(schema, whole=False),
            "boolean": lambda *_: True,
            "null": lambda *_: None,
        }

    def value(self, schema: Any, depth: int) -> Any:
        self._left -= 1
        if depth > MOST_LEVELS or self._left < 0 or schema is False:
            return None
        if not isinstance(schema, dict):
            return self._word
        if "const" in schema:
            return schema["const"]
        if _listed(schema, "enum"):
            return schema["enum"][0]
        wider = self._resolved(schema, depth)
        if wider is not None:
            return self.value(wider, depth + 1)
        named = _type_of(schema, depth)
        return self._by_type[named](schema, depth) if named else self._word

    def _resolved(self, schema: Schema, depth: int) -> Any:
        """The schema with its reference, parts or alternative put in; None if it has none."""
        if isinstance(schema.get("$ref"), str):
            rest = {key: value for key, value in schema.items() if key != "$ref"}
            found = self._referenced(schema["$ref"])
            return _merged(found, rest) if isinstance(found, dict) else rest
        if _listed(schema, "allOf"):
            merged = {key: value for key, value in schema.items() if key != "allOf"}
            for part in schema["allOf"][:MOST_ALTERNATIVES]:
                merged = _merged(merged, part if isinstance(part, dict) else {})
            return merged
        for name in ("anyOf", "oneOf"):
            if _listed(schema, name):
                rest = {key: value for key, value in schema.items() if key != name}
                chosen = _chosen(schema[name], depth)
                return _merged(rest, chosen) if isinstance(chosen, dict) else rest
        return None

    def _referenced(self, reference: str) -> Any:
        """What a reference into the same schema names; a reference elsewhere names nothing."""
        if not reference.startswith("#"):
            return None
        found = self._root
        for part in reference[1:].split("/")[1:]:
            key = unquote(part).replace("~1", "/").replace("~0", "~")
            if isinstance(found, dict):
                found = found.get(key)
            elif isinstance(found, list) and key in _INDEXES:
                found = dict(zip(_INDEXES, found, strict=False)).get(key)
            else:
                return None
        return found

    def _object(self, schema: Schema, depth: int) -> dict[str, Any]:
        known = schema.get("properties")
        properties = known if isinstance(known, dict) else {}
        other = schema.get("additionalProperties", True)
        made: dict[str, Any] = {}
        for name in schema["required"] if _listed(schema, "required") else ():
            if self._left < 0:
                break
            if isinstance(name, str):
                made[name] = self.value(properties.get(name, other or True), depth + 1)
        return made

    def _array(self, schema: Schema, depth: int) -> list[Any]:
        first = schema["prefixItems"] if _listed(schema, "prefixItems") else []
        made = [self.value(each, depth + 1) for each in first[:MOST_LIST_VALUES]]
        least = _count(schema.get("minItems"))
        wanted = least if least is not None else int(depth < _ENOUGH_LEVELS)
        most = _count(schema.get("maxItems"))
        wanted = min(wanted, MOST_LIST_VALUES if most is None else most)
        while len(made) < wanted and self._left >= 0:
            made.append(self.value(schema.get("items", True), depth + 1))
        return made

    def _string(self, schema: Schema, depth: int) -> str:
        kind = schema.get("format")
        text = _FORMATS.get(kind, self._word) if isinstance(kind, str) else self._word
        least, most = _count(schema.get("minLength")), _count(schema.get("maxLength"))
        if least is not None:
            text = text.ljust(min(least, LONGEST_TEXT_CHARACTERS), "x")
        return text if most is None else text[:most]


def _listed(schema: Schema, name: str) -> bool:
    """Whether this key has a list with something in it."""
    value = schema.get(name)
    return isinstance(value, list) and bool(value)


def _merged(one: Schema, other: Schema) -> Schema:
    """Both schemas at once, as far as objects go."""
    merged = {**one, **other}
    for name in ("properties", "$defs"):
        if isinstance(one.get(name), dict) and isinstance(other.get(name), dict):
            merged[name] = {**one[name], **other[name]}
    if _listed(one, "required") and _listed(other, "required"):
        merged["required"] = [*one["required"], *other["required"]]
    return merged


def _is_null(schema: Any) -> bool:
    return isinstance(schema, dict) and schema.get("type") == "null"


def _chosen(options: list[Any], depth: int) -> Any:
    """The first alternative that says something; deep down, rather the one that ends it."""
    among = options[:MOST_ALTERNATIVES]
    ends = depth >= _ENOUGH_LEVELS
    return next((option for option in among if _is_null(option) == ends), among[0])


_SIGNS = {
    "object": ("properties", "required", "additionalProperties"),
    "array": ("items", "prefixItems", "minItems"),
    "number": ("minimum", "maximum", "multipleOf", "exclusiveMinimum", "exclusiveMaximum"),
    "string": ("minLength", "maxLength", "pattern", "format"),
}
_TYPES = frozenset({*_SIGNS, "integer", "boolean", "null"})


def _type_of(schema: Schema, depth: int) -> str:
    """The type, said or told by the other keys; empty if there is no telling."""
    said = schema.get("type")
    types = [said] if isinstance(said, str) else said if isinstance(said, list) else []
    known = [one for one in types[:MOST_ALTERNATIVES] if isinstance(one, str) and one in _TYPES]
    if known:
        ends = depth >= _ENOUGH_LEVELS
        return next((one for one in known if (one == "null") == ends), known[0])
    return next((one for one, signs in _SIGNS.items() if schema.keys() & set(signs)), "")


def _count(value: Any) -> int | None:
    number = _finite(value)
    return None if number is None or number < 0 else int(number)


def _finite(value: Any) -> int | float | None:
    """A number one can compute with. Larger ones are no number of a tool's arguments."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if abs(value) < 2**53 else None


_BOUNDS = ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum")
# Below this, a step divides every number one would write down.
_SMALLEST_STEP = 1e-9


def _number(schema: Schema, *, whole: bool) -> int | float:
    """The first of a few likely numbers that fits; 1 if none does."""
    step = _finite(schema.get("multipleOf")) or 0
    edges = [edge for edge in (_finite(schema.get(name)) for name in _BOUNDS) if edge is not None]
    likely: list[int | float] = [1, 0, *edges]
    likely += [edge + away for edge in edges for away in (1, -1)]
    likely += [(one + other) / 2 for one in edges for other in edges]
    if step > _SMALLEST_STEP:
        likely += [(number // step + more) * step for number in likely for more in (0, 1, 2)]
    if whole:
        likely = [rounded(number) for number in likely for rounded in (math.floor, math.ceil)]
    return next((number for number in likely if _fits(number, schema, step)), 1)


def _fits(number: int | float, schema: Schema, step: int | float) -> bool:
    least, most = _finite(schema.get("minimum")), _finite(schema.get("maximum"))
    above, below = (_finite(schema.get(name)) for name in ("exclusiveMinimum", "exclusiveMaximum"))
    return (
        (least is None or number >= least)
        and (most is None or number <= most)
        and (above is None or number > above)
        and (below is None or number < below)
        and (step <= _SMALLEST_STEP or number % step == 0)
    )
