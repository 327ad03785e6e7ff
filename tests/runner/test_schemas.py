"""From type hints: the schema that a model reads, and the arguments that it gives."""

from __future__ import annotations

import base64
import dataclasses
import datetime
import decimal
import enum
import functools
import inspect
import typing
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal, NewType, Optional, TypedDict

import jsonschema
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstitch.runner.context import CallContext
from lockstitch.runner.schemas import BadArguments, NotATool, Signature, signature_of

if typing.TYPE_CHECKING:
    from collections import OrderedDict


class Unit(enum.Enum):
    CELSIUS = "celsius"
    KELVIN = "kelvin"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


@dataclasses.dataclass
class Place:
    city: str
    height: float = 0.0


class Leg(msgspec.Struct):
    start: Place
    seats: list[int] = []


class Tree(msgspec.Struct):
    name: str
    children: list[Tree] = []


class Options(TypedDict, total=False):
    window: bool


class Car(msgspec.Struct, tag="car"):
    doors: int


class Train(msgspec.Struct, tag="train"):
    number: str


UserId = NewType("UserId", int)


def read(function, described=None):
    return signature_of(function, tool=function.__name__, described=described or {})


def function_of(**hints):
    """A function with these type hints, made at run time."""

    def made(**arguments):
        return arguments

    made.__signature__ = inspect.Signature(
        [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=hint)
            for name, hint in hints.items()
        ]
    )
    return made


def refuses(function, *words):
    with pytest.raises(NotATool) as refused:
        read(function)
    for word in (function.__name__, *words):
        assert word in str(refused.value)


# --- the schema ----------------------------------------------------------------------------------


def test_the_schema_is_one_closed_object():
    def weather(city: str, days: int = 3, unit: Literal["C", "F"] | None = None):
        """Tell."""

    assert read(weather, {"city": "The city."}).schema == {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "The city."},
            "days": {"type": "integer", "default": 3},
            "unit": {
                "anyOf": [{"type": "string", "enum": ["C", "F"]}, {"type": "null"}],
                "default": None,
            },
        },
        "required": ["city"],
        "additionalProperties": False,
    }


def test_a_function_without_parameters_takes_an_empty_object():
    def now():
        """Tell."""

    schema = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
    assert read(now).schema == schema


def test_types_that_have_names_are_defined_in_the_schema_itself():
    def plan(leg: Leg, unit: Unit, level: Level):
        """Plan."""

    schema = read(plan).schema
    assert schema["properties"]["leg"] == {"$ref": "#/$defs/Leg"}
    assert set(schema["$defs"]) == {"Leg", "Place", "Unit", "Level"}
    assert schema["$defs"]["Unit"]["enum"] == ["celsius", "kelvin"]
    assert schema["$defs"]["Unit"]["type"] == "string"
    assert schema["$defs"]["Level"]["type"] == "integer"


def test_a_parameter_is_described_by_its_hint_before_its_docstring():
    def plan(
        a: Annotated[int, "by a text"],
        b: Annotated[int, msgspec.Meta(ge=1, description="by Meta")],
        c: Annotated[int, msgspec.Meta(le=9)],
        d: Annotated[Place, "a place"],
        e: Optional[Annotated[int, "inside"]] = None,  # noqa: UP045
        f: int = 0,
    ):
        """Plan."""

    said = dict.fromkeys("abcdef", "by the docstring")
    properties = read(plan, said).schema["properties"]
    assert [properties[name].get("description") for name in "abcdef"] == [
        "by a text",
        "by Meta",
        "by the docstring",
        "a place",
        "inside",
        "by the docstring",
    ]
    assert properties["b"]["minimum"] == 1
    assert properties["c"]["maximum"] == 9


def test_a_default_that_has_no_json_is_left_to_the_function():
    nothing = object()

    def wait(
        seconds: float = float("inf"),
        place: Any = nothing,
        of: list[int] = [1, 2],  # noqa: B006
        home: Place = Place("Bern"),  # noqa: B008
        word: int = "none",
    ):
        """Wait."""

    signature = read(wait)
    properties = signature.schema["properties"]
    assert "default" not in properties["seconds"] | properties["place"] | properties["word"]
    assert properties["of"]["default"] == [1, 2]
    assert properties["home"]["default"] == {"city": "Bern", "height": 0.0}
    assert signature.read("{}") == {}


def test_a_default_of_none_allows_none():
    def weather(city: str = None, place: Annotated[Place, "where"] = None):  # noqa: RUF013
        """Tell."""

    assert read(weather).read('{"city":null,"place":null}') == {"city": None, "place": None}
    assert read(weather).schema["properties"]["place"]["description"] == "where"


def test_the_context_is_no_part_of_the_schema():
    def book(
        context: CallContext,
        flight: str,
        again: CallContext | None = None,
        noted: Annotated[CallContext, "mine"] = None,
    ):
        """Book."""

    signature = read(book)
    assert list(signature.schema["properties"]) == ["flight"]
    assert signature.context == ("context", "again", "noted")
    with pytest.raises(BadArguments, match="unknown field `context`"):
        signature.read('{"flight":"LH1","context":{}}')


def test_a_parameter_that_is_only_named_context_is_a_parameter():
    def search(context: str):
        """Search."""

    assert read(search).read('{"context":"x"}') == {"context": "x"}


def test_hints_behind_a_decorator_are_those_of_the_function():
    def logged(function):
        @functools.wraps(function)
        def wrapper(*arguments, **named):
            return function(*arguments, **named)

        return wrapper

    @logged
    def weather(place: Place):
        """Tell."""

    assert read(weather).read('{"place":{"city":"Bern"}}') == {"place": Place("Bern")}


# --- what cannot be a tool -----------------------------------------------------------------------


def test_parameters_that_a_model_cannot_pass_by_name_are_refused():
    def some(*places: str): ...
    def any_of(**places: str): ...
    def first(place: str, /): ...

    refuses(some, "*places")
    refuses(any_of, "**places")
    refuses(first, "place can be passed by position only")


def test_a_parameter_without_a_type_hint_is_refused():
    def weather(city): ...

    refuses(weather, "city has no type hint")


def test_a_hint_that_cannot_be_resolved_is_refused():
    class Local: ...

    def unknown(a: Missing): ...  # noqa: F821
    def checked_only(a: OrderedDict): ...
    def local(b: Local): ...
    def broken(c: "list["): ...  # noqa: F722

    refuses(unknown, "'Missing' of a", "level of the module")
    refuses(checked_only, "of a", "not only for type checkers")
    refuses(local, "of b")
    refuses(broken, "of c")


@pytest.mark.parametrize(
    "hint",
    [
        object,
        complex,
        type,
        Callable[[], int],
        Iterable[int],
        Place | Leg,
        list[int] | set[int],
        Annotated[str, msgspec.Meta(ge=1)],
        inspect.Signature,
        list[complex],
    ],
    ids=str,
)
def test_a_type_that_has_no_json_is_refused(hint):
    def plan(fine: int, wrong): ...

    plan.__annotations__["wrong"] = hint
    refuses(plan, "parameter wrong cannot be given as JSON")


def test_what_has_no_signature_is_refused():
    with pytest.raises(NotATool, match="The parameters of dict cannot be read"):
        signature_of(dict, tool="dict", described={})


def test_two_types_of_one_name_are_told_apart_or_refused():
    one = dataclasses.make_dataclass("Same", [("a", int)], namespace={"__module__": "one"})
    other = dataclasses.make_dataclass("Same", [("b", int)], namespace={"__module__": "other"})
    made = read(function_of(a=one, b=other))
    assert len(made.schema["$defs"]) == 2
    with pytest.raises(NotATool, match="told apart"):
        read(function_of(a=one, b=dataclasses.make_dataclass(
            "Same", [("b", int)], namespace={"__module__": "one"})))  # fmt: skip


# --- the arguments -------------------------------------------------------------------------------


def weather(city: str, days: int = 3, place: Place | None = None):
    """Tell."""


WEATHER = read(weather)


@pytest.mark.parametrize(
    "arguments",
    ['{"city":"Bern","days":2}', b' {"days":2,"city":"Bern"}\n', {"city": "Bern", "days": 2}],
)
def test_arguments_are_read_from_text_bytes_and_objects(arguments):
    assert WEATHER.read(arguments) == {"city": "Bern", "days": 2}


@pytest.mark.parametrize("nothing", ["", b"", "  ", "{}", {}])
def test_an_empty_text_is_no_arguments(nothing):
    def now():
        """Tell."""

    assert read(now).read(nothing) == {}


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ("", "missing required field `city`"),
        ({"days": 1}, "missing required field `city`"),
        ('{"city":"Bern","town":1}', "unknown field `town`"),
        ('{"city":1}', "Expected `str`, got `int` - at `$.city`"),
        ('{"city":"Bern","days":"2"}', "Expected `int`, got `str` - at `$.days`"),
        ('{"city":"Bern","days":2.5}', "Expected `int`, got `float` - at `$.days`"),
        ('{"city":"Bern","place":{"city":[]}}', "at `$.place.city`"),
        ('{"city":null}', "Expected `str`, got `null` - at `$.city`"),
        ('["Bern"]', "Expected `object`, got `array`"),
        ('{"city":"Bern"', "they are not JSON (Input data was truncated)"),
        ("Bern", "they are not JSON"),
        (b'{"city":"\xff"}', "they are not JSON"),
        ('{"city":"\ud800"}', "they are not JSON"),
        ({1: "Bern"}, "do not fit"),
    ],
)
def test_bad_arguments_tell_the_model_what_is_wrong_and_where(arguments, what):
    with pytest.raises(BadArguments) as wrong:
        WEATHER.read(arguments)
    text = str(wrong.value)
    assert text.startswith("The arguments of weather do not fit: ")
    assert what in text
    assert text.endswith("It was not run. It takes: city, days (optional), place (optional).")


def test_arguments_that_are_nested_too_deeply_are_bad():
    def keep(value: Any):
        """Keep."""

    with pytest.raises(BadArguments, match="nested too deeply"):
        read(keep).read('{"value":' + "[" * 100_000 + "]" * 100_000 + "}")


@dataclasses.dataclass
class Even:
    number: int

    def __post_init__(self):
        if self.number % 2:
            raise ValueError(f"{self.number} is odd")
        if self.number < 0:
            raise LookupError("below zero")


def halve(even: Even):
    """Halve."""


def test_what_the_callers_own_types_refuse_is_told_to_the_model():
    with pytest.raises(BadArguments, match="3 is odd"):
        read(halve).read('{"even":{"number":3}}')
    with pytest.raises(BadArguments, match="LookupError: below zero"):
        read(halve).read('{"even":{"number":-2}}')


def test_a_given_schema_takes_any_object():
    signature = Signature(tool="ask", schema={"type": "object"})
    assert signature.read('{"a":[1]}') == {"a": [1]}
    with pytest.raises(BadArguments, match="Expected `object`, got `int`"):
        signature.read("1")


# --- there and back ------------------------------------------------------------------------------

texts = st.text(st.characters(exclude_categories=["Cs"]))
numbers = st.integers(-(2**63), 2**63)
floats = st.floats(allow_nan=False, allow_infinity=False)
utc = st.just(datetime.UTC)
places = st.builds(Place, texts, floats)
trees = st.recursive(
    st.builds(Tree, texts), lambda inner: st.builds(Tree, texts, st.lists(inner, max_size=3))
)

PLAIN = [
    (str, texts),
    (int, numbers),
    (float, floats),
    (bool, st.booleans()),
    (type(None), st.none()),
    (bytes, st.binary()),
    (Unit, st.sampled_from(Unit)),
    (Level, st.sampled_from(Level)),
    (Literal["a", "b", 3], st.sampled_from(["a", "b", 3])),
    (uuid.UUID, st.uuids()),
    (decimal.Decimal, st.decimals(allow_nan=False, allow_infinity=False)),
    (datetime.datetime, st.datetimes(timezones=utc)),
    (datetime.date, st.dates()),
    (datetime.time, st.times()),
    (datetime.timedelta, st.timedeltas(datetime.timedelta(0), datetime.timedelta(days=10_000))),
    (UserId, numbers),
    (Annotated[int, msgspec.Meta(ge=1, le=9)], st.integers(1, 9)),
    (Place, places),
    (Leg, st.builds(Leg, places, st.lists(numbers))),
    (Tree, trees),
    (Options, st.fixed_dictionaries({}, optional={"window": st.booleans()})),
    (Car | Train, st.builds(Car, numbers) | st.builds(Train, texts)),
    (Mapping[str, int], st.dictionaries(texts, numbers)),
    (Any, st.none() | st.lists(texts) | st.dictionaries(texts, st.booleans())),
]


def grown(inner):
    """Types made of others, each with a strategy for its values."""
    return st.one_of(
        inner.map(lambda one: (list[one[0]], st.lists(one[1], max_size=3))),
        inner.map(lambda one: (Sequence[one[0]], st.lists(one[1], max_size=3))),
        inner.map(lambda one: (dict[str, one[0]], st.dictionaries(texts, one[1], max_size=3))),
        inner.map(lambda one: (typing.Union[one[0], None], st.none() | one[1])),  # noqa: UP007
        st.tuples(inner, inner).map(
            lambda two: (tuple[two[0][0], two[1][0]], st.tuples(two[0][1], two[1][1]))
        ),
    )


typed = st.recursive(st.sampled_from(PLAIN), grown, max_leaves=4)


@given(st.data(), st.dictionaries(st.sampled_from("abcdef"), typed, max_size=4))
def test_every_value_of_the_type_is_in_the_schema_and_is_read_back_as_it_was(data, fields):
    signature = read(function_of(**{name: hint for name, (hint, _) in fields.items()}))
    values = {name: data.draw(strategy, name) for name, (_, strategy) in fields.items()}
    written = msgspec.json.encode(values)
    assert signature.read(written) == values
    assert signature.read(written.decode()) == values
    assert signature.read(msgspec.json.decode(written)) == values
    jsonschema.Draft202012Validator.check_schema(signature.schema)
    jsonschema.validate(msgspec.json.decode(written), signature.schema)


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | floats | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
)


@given(typed, st.dictionaries(st.sampled_from("ab"), anything))
def test_whatever_a_model_gives_is_read_or_refused_in_words(one, arguments):
    hint, _ = one
    signature = read(function_of(a=hint))
    refused, values = "", {}
    try:
        values = signature.read(msgspec.json.encode(arguments))
    except BadArguments as wrong:
        refused = str(wrong)
    assert refused or (list(values) == ["a"] == list(arguments))


@given(st.binary() | st.text())
def test_no_bytes_at_all_break_the_reading(arguments):
    with pytest.raises(BadArguments):
        WEATHER.read(arguments)


def test_bytes_travel_as_base64():
    signature = read(function_of(a=bytes))
    assert signature.read({"a": base64.b64encode(b"x").decode()}) == {"a": b"x"}
