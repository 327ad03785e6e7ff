"""What a tool is, how it is made of a function, and what providers are told of it."""

from __future__ import annotations

import functools
from typing import Annotated

import jsonschema
import pytest

from lockstitch.runner.context import CallContext
from lockstitch.runner.effects import Effect
from lockstitch.runner.schemas import BadArguments, NotATool
from lockstitch.runner.tools import Kind, Tool, by_name, tool


def get_weather(city: Annotated[str, "With its country."], days: int = 3) -> str:
    """Tell the weather
    of a city.

    For people only.

    Args:
        days: Up to nine.
    """
    return f"{city}: {days} days of rain"


async def book(flight: str, context: CallContext) -> str:
    return f"{flight} {context.key}"


PARAMETERS = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "description": "With its country."},
        "days": {"type": "integer", "description": "Up to nine.", "default": 3},
    },
    "required": ["city"],
    "additionalProperties": False,
}


# --- making --------------------------------------------------------------------------------------


def test_a_plain_function_is_a_tool_by_itself():
    made = Tool.of(get_weather)
    assert made.name == "get_weather"
    assert made.description == "Tell the weather of a city."
    assert made.parameters == PARAMETERS
    assert made.function is get_weather
    assert (made.effect, made.kind, made.timeout) == (Effect.ONCE, Kind.FUNCTION, None)
    assert not made.strict
    assert not made.external


def test_a_tool_is_a_tool_already():
    made = Tool.of(get_weather)
    assert Tool.of(made) is made


def test_a_decorated_function_can_still_be_called():
    decorated = tool(get_weather)
    assert decorated("Bern", days=1) == "Bern: 1 days of rain"


def test_what_is_declared_wins_over_what_is_read():
    made = tool(
        name="weather",
        description="Tell.",
        effect="read",
        timeout=5,
        needs_approval=True,
    )(get_weather)
    assert (made.name, made.description) == ("weather", "Tell.")
    assert (made.effect, made.timeout, made.needs_approval) == (Effect.READ, 5, True)
    assert made.parameters == PARAMETERS


def test_partials_methods_and_objects_are_named_and_described_by_what_they_are():
    class Clock:
        """Tell the time."""

        def read(self, zone: str) -> str:
            """Read it."""
            return zone

        def __call__(self, zone: str) -> str:
            return zone

    named = [Tool.of(each) for each in (functools.partial(get_weather, days=1), Clock().read)]
    assert [made.name for made in named] == ["get_weather", "read"]
    assert [made.description for made in named] == ["Tell the weather of a city.", "Read it."]
    clock = Tool.of(Clock())
    assert (clock.name, clock.description) == ("Clock", "Tell the time.")


def test_a_function_without_a_docstring_has_an_empty_description():
    assert Tool.of(book).description == ""
    assert Tool.of(functools.partial(book)).description == ""


def test_a_tool_shows_what_it_is():
    assert repr(Tool.of(book)) == "<Tool book, once>"
    outside = Tool.answered_outside("ask", "Ask.", {"type": "object"})
    assert repr(outside) == "<Tool ask, once, external>"


def test_every_tool_has_a_name_of_its_own():
    assert list(by_name([get_weather, tool(book)])) == ["get_weather", "book"]
    with pytest.raises(NotATool, match="Two tools are named book"):
        by_name([book, get_weather, book])


# --- what is no tool -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["", "a b", "a.b", "é", "x" * 65, "a\n"])
def test_a_name_that_providers_refuse_is_refused(name):
    with pytest.raises(NotATool, match=r"is no name for a tool.*Pass tool\(name=…\)"):
        tool(name=name)(get_weather)


def test_a_name_of_64_characters_is_a_name():
    assert len(tool(name="a-Z_9" + "x" * 59)(get_weather).name) == 64


def test_a_lambda_needs_a_name():
    with pytest.raises(NotATool, match="'<lambda>' is no name"):
        Tool.of(lambda: "x")
    assert tool(name="x")(lambda: "x").name == "x"


@pytest.mark.parametrize("seconds", [0, -1, float("inf"), float("nan")])
def test_a_time_limit_is_more_than_nothing(seconds):
    with pytest.raises(NotATool, match="get_weather: a time limit of"):
        tool(timeout=seconds)(get_weather)


def test_what_yields_is_no_tool():
    def several():
        yield 1

    async def several_async():
        yield 1

    for function in (several, several_async):
        with pytest.raises(NotATool, match=f"{function.__name__} yields"):
            Tool.of(function)


@pytest.mark.parametrize("thing", [7, "get_weather", None])
def test_what_cannot_be_called_is_no_tool(thing):
    with pytest.raises(NotATool, match="is no function"):
        Tool.of(thing)


def test_a_tool_cannot_be_made_twice():
    with pytest.raises(NotATool, match="<Tool book, once> is no function"):
        tool(effect="read")(Tool.of(book))


def test_an_effect_or_a_kind_that_does_not_exist_is_refused():
    with pytest.raises(NotATool, match="Choose one of: 'read', 'idempotent', 'once'"):
        tool(effect="twice")(book)
    with pytest.raises(NotATool, match="There is no kind 'raw'"):
        tool(kind="raw")(book)


def test_only_custom_tools_have_a_format():
    with pytest.raises(NotATool, match="get_weather: only custom tools have a format"):
        tool(format={"type": "text"})(get_weather)


def test_only_external_tools_have_no_function():
    signature = Tool.of(get_weather).signature
    with pytest.raises(NotATool, match="x: a tool has a function, unless it is external"):
        Tool(name="x", signature=signature)
    with pytest.raises(NotATool, match="x: a tool has a function, unless it is external"):
        Tool(name="x", signature=signature, kind=Kind.EXTERNAL, function=get_weather)


# --- kinds ---------------------------------------------------------------------------------------


@tool(kind="custom", format={"type": "grammar", "syntax": "regex", "definition": "a+"})
def patch(context: CallContext, text: str) -> str:
    """Apply a patch."""
    return text


def test_a_custom_tool_takes_its_text_as_it_came():
    assert patch.read("{not json") == {"text": "{not json"}
    assert patch.read(b"") == {"text": ""}
    assert patch.read(b"\xff") == {"text": "\\xff"}
    assert patch.signature.context == ("context",)
    with pytest.raises(BadArguments, match="patch takes one raw text"):
        patch.read({"text": "a"})


def test_a_custom_tool_has_one_parameter_and_it_is_a_text():
    def two(a: str, b: str): ...
    def none(context: CallContext): ...
    def number(a: int): ...

    for function in (two, none, number):
        with pytest.raises(NotATool, match=f"{function.__name__} is a custom tool, which takes"):
            tool(kind="custom")(function)

    def noted(a: Annotated[str, "the text"]): ...

    assert tool(kind=Kind.CUSTOM)(noted).read("x") == {"a": "x"}


def test_a_stub_can_stand_for_a_tool_that_is_answered_outside():
    @tool(kind="external")
    def ask_a_person(question: str) -> str:
        """Ask a person."""
        raise AssertionError("run")

    assert ask_a_person.external
    assert ask_a_person.function is None
    assert ask_a_person.for_responses()["parameters"]["required"] == ["question"]
    with pytest.raises(NotATool, match="ask_a_person is answered from outside"):
        ask_a_person("why?")


def test_a_schema_can_be_given_in_place_of_a_signature():
    schema = {"type": "object", "properties": {"path": {"type": "string"}}}

    @tool(name="fs-read", description="Read a file.", parameters=schema)
    def forward(context: CallContext, more=None, **arguments):
        return arguments

    assert forward.parameters == schema
    assert forward.read('{"path":"a"}') == {"path": "a"}
    assert forward.signature.context == ("context",)


# --- approval ------------------------------------------------------------------------------------


def test_approval_is_asked_for_always_never_or_by_the_arguments():
    assert not Tool.of(get_weather).asks_first('{"city":"Bern"}')
    assert tool(needs_approval=True)(get_weather).asks_first("")
    asked = tool(needs_approval=lambda arguments: arguments.get("days", 3) > 5)(get_weather)
    assert asked.asks_first('{"city":"Bern","days":6}')
    assert not asked.asks_first('{"city":"Bern"}')


def test_nobody_is_asked_about_a_call_that_cannot_run():
    asked = tool(needs_approval=lambda arguments: True)(get_weather)
    assert not asked.asks_first("{}")


def test_if_it_cannot_be_decided_somebody_is_asked():
    asked = tool(needs_approval=lambda arguments: arguments["nothing"])(get_weather)
    assert asked.asks_first('{"city":"Bern"}')


def test_who_decides_about_approval_must_not_wait():
    async def later(arguments):
        return True

    with pytest.raises(NotATool, match="get_weather: needs_approval is async"):
        tool(needs_approval=later)(get_weather)


# --- what providers are told ---------------------------------------------------------------------

WEATHER = {"name": "get_weather", "description": "Tell the weather of a city."}


def test_a_function_as_each_provider_has_it():
    made = Tool.of(get_weather)
    assert made.for_responses() == {
        "type": "function",
        **WEATHER,
        "parameters": PARAMETERS,
        "strict": False,
    }
    assert made.for_chat() == {
        "type": "function",
        "function": {**WEATHER, "parameters": PARAMETERS},
    }
    assert made.for_messages() == {**WEATHER, "input_schema": PARAMETERS}


def test_a_custom_tool_as_each_provider_has_it():
    assert patch.for_responses() == {
        "type": "custom",
        "name": "patch",
        "description": "Apply a patch.",
        "format": {"type": "grammar", "syntax": "regex", "definition": "a+"},
    }
    assert patch.for_chat() == {
        "type": "custom",
        "custom": {
            "name": "patch",
            "description": "Apply a patch.",
            "format": {"type": "grammar", "grammar": {"syntax": "regex", "definition": "a+"}},
        },
    }
    with pytest.raises(NotATool, match="patch is a custom tool, and the Messages API has none"):
        patch.for_messages()


def test_a_custom_tool_without_a_grammar_says_nothing_of_one():
    @tool(kind="custom")
    def run(text: str): ...

    assert "format" not in run.for_responses()
    assert "format" not in run.for_chat()["custom"]
    free = tool(name="free", kind="custom", format={"type": "text"})(run.function)
    assert free.for_chat()["custom"]["format"] == {"type": "text"}


def test_a_strict_tool_says_so_to_everybody():
    made = tool(strict=True)(book)
    assert made.for_responses()["strict"] is True
    assert made.for_chat()["function"]["strict"] is True
    assert made.for_messages()["strict"] is True


def test_a_tool_that_cannot_be_strict_is_refused_with_the_reason():
    with pytest.raises(NotATool, match=r"get_weather cannot be strict: .* left out: days"):
        tool(strict=True)(get_weather)
    with pytest.raises(NotATool, match="run cannot be strict: a raw text has no schema"):
        tool(name="run", kind="custom", strict=True)(patch.function)


def test_what_providers_are_told_is_a_schema():
    for told in (
        Tool.of(get_weather).for_responses()["parameters"],
        tool(strict=True)(book).for_messages()["input_schema"],
    ):
        jsonschema.Draft202012Validator.check_schema(told)
        assert told["type"] == "object"
