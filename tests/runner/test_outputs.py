"""What a tool gives back, as a model is told it."""

from __future__ import annotations

import dataclasses
import datetime
import json
import math
import types
import uuid

import msgspec
import pydantic
import pytest
from openai.types.responses import ResponseInputImage, ResponseInputText

from lockstitch.core.outcomes import MARK, Outcome
from lockstitch.runner.calling import Result
from lockstitch.runner.outputs import LONGEST_OUTPUT_CHARACTERS, shortened
from tests.runner.called import raising, returning, run

ADDRESS = uuid.UUID(int=7)


@dataclasses.dataclass
class Flight:
    number: str
    address: uuid.UUID


class Booking(pydantic.BaseModel):
    seat: str


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("as it is", "as it is"),
        ("", ""),
        (None, "null"),
        (True, "true"),
        (7, "7"),
        ({"a": [1, 2.5]}, '{"a":[1,2.5]}'),
        ({"type": ["string", "null"]}, '{"type":["string","null"]}'),
        (Flight("LH1", ADDRESS), f'{{"number":"LH1","address":"{ADDRESS}"}}'),
        ([Booking(seat="1A")], '[{"seat":"1A"}]'),
        ([], "[]"),
        ([{"type": "text", "text": "x"}], '[{"type":"text","text":"x"}]'),
        ([{"type": "input_text"}], '[{"type":"input_text"}]'),
        ("caf\udce9", "caf\\udce9"),
    ],
)
def test_a_text_stays_as_it_is_and_a_value_becomes_json(value, text):
    assert run(returning(value)) == Result(text=text)


class Reading(pydantic.BaseModel):
    celsius: float


class Celsius(float):
    """As NumPy has floats of its own."""


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (math.nan, "NaN"),
        (math.inf, "Infinity"),
        (-math.inf, "-Infinity"),
        (Celsius("nan"), "NaN"),
        (Celsius(7.5), "7.5"),
        ({"a": [1, math.nan, None]}, '{"a":[1,"NaN",null]}'),
        ((-math.inf, 1.5), '["-Infinity",1.5]'),
        (Reading(celsius=math.nan), '{"celsius":"NaN"}'),
        (types.MappingProxyType({"a": 1}), '{"a":1}'),
        ([msgspec.Raw(b'{"a":1}')], '[{"a":1}]'),
        (datetime.date(2026, 1, 2), '"2026-01-02"'),
    ],
)
def test_a_number_that_is_none_is_not_told_as_null(value, text):
    assert run(returning(value)) == Result(text=text)


PARTS = [
    {"type": "input_text", "text": "seen:"},
    {"type": "input_image", "image_url": "data:image/png;base64,AA=="},
]


def test_content_parts_pass_as_content():
    assert run(returning(PARTS)) == Result(text="seen:", content=PARTS)
    assert run(returning(PARTS[1])) == Result(text="", content=PARTS[1:])


MODELS = [
    ResponseInputText(type="input_text", text="seen:"),
    ResponseInputImage(type="input_image", detail="auto", image_url="data:image/png;base64,AA=="),
]


def test_content_parts_that_are_models_of_the_client_pass_as_content():
    image = {**PARTS[1], "detail": "auto"}
    assert run(returning(MODELS)) == Result(text="seen:", content=[PARTS[0], image])
    assert run(returning(MODELS[1])) == Result(text="", content=[image])
    assert run(returning(tuple(PARTS))).content == PARTS


@pytest.mark.parametrize(
    "value",
    [
        ["seen:", PARTS[1]],
        [PARTS[0], {"type": "input_image"}],
        [PARTS[0], {"type": "input_image", "image_url": ""}],
        [PARTS[0], {"type": "input_audio", "data": "AA=="}],
        [PARTS[0], {"type": ["input_text"], "text": "x"}],
        [PARTS[0], None],
    ],
)
def test_a_list_that_the_api_would_not_take_is_json(value):
    result = run(returning(value))
    assert result.content is None
    assert json.loads(result.text) == value


BLOCKS = [
    {"type": "text", "text": "seen:"},
    {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}},
    {"type": "document", "source": {"type": "text", "data": "x"}, "title": "x"},
    {
        "type": "search_result",
        "source": "https://example.com",
        "title": "x",
        "content": [{"type": "text", "text": "x"}],
    },
]


@pytest.mark.parametrize(
    ("dialect", "parts", "is_content"),
    [
        ("messages", BLOCKS, True),
        ("chat", BLOCKS[:1], True),
        ("responses", BLOCKS, False),
        ("chat", BLOCKS, False),
        ("realtime", BLOCKS[:1], False),
        ("messages", PARTS, False),
        ("chat", PARTS, False),
        ("realtime", PARTS, False),
        # Records of the tool's own.
        ("messages", [{"type": "document", "source": "the archive"}], False),
        ("messages", [{"type": "image", "source": {"id": 7}}], False),
        ("messages", [{"type": "text", "text": "x", "id": 7}], False),
        # Anthropic's API takes no text block without a word.
        ("messages", [{"type": "text", "text": " \n"}], False),
        ("chat", [{"type": "text", "text": "x", "id": 7}], False),
    ],
)
def test_each_api_gets_the_content_that_it_takes_and_json_otherwise(dialect, parts, is_content):
    result = run(returning(parts), dialect=dialect)
    if is_content:
        assert result.content == parts
        assert result.text == parts[0]["text"]
    else:
        assert result.content is None
        assert json.loads(result.text) == parts


@pytest.mark.parametrize("dialect", ["chat", "messages", "realtime"])
def test_parts_that_are_only_text_are_one_text_where_the_api_has_other_parts(dialect):
    parts = [{"type": "input_text", "text": "one"}, {"type": "input_text", "text": "two"}]
    assert run(returning(parts), dialect=dialect) == Result(text="one\ntwo")


def test_content_is_a_copy_that_the_tool_cannot_change_later():
    parts = [{"type": "input_text", "text": "first"}]
    result = run(returning(parts))
    parts[0]["text"] = "second"
    assert result.content == [{"type": "input_text", "text": "first"}]


HOLDS_ITSELF: list[object] = []
HOLDS_ITSELF.append(HOLDS_ITSELF)


@pytest.mark.parametrize(
    ("value", "what"),
    [
        (b"raw", "bytes, which is not text"),
        (bytearray(b"raw"), "bytearray, which is not text"),
        (object(), "object"),
        (HOLDS_ITSELF, "nested too deeply"),
        ([{"type": "input_text", "text": "x", "more": object()}], "list"),
        (["\ud800"], "list"),
    ],
)
def test_what_has_no_json_is_a_failure_that_says_the_tool_did_run(value, what):
    result = run(returning(value))
    assert result.failed
    assert result.outcome is Outcome.FINISHED
    assert "It ran to its end" in result.text
    assert what in result.text


def test_a_long_text_says_in_its_middle_what_was_left_out():
    result = run(returning("a" * LONGEST_OUTPUT_CHARACTERS + "b" * LONGEST_OUTPUT_CHARACTERS))
    assert len(result.text) <= LONGEST_OUTPUT_CHARACTERS
    head, tail = result.text.split("\n" + MARK)
    said, tail = tail.split("\n")
    assert set(head) == {"a"}
    assert set(tail) == {"b"}
    left_out = 2 * LONGEST_OUTPUT_CHARACTERS - len(head) - len(tail)
    assert said == f" {left_out} characters are left out here."


def test_a_text_that_just_fits_is_not_touched():
    text = "a" * LONGEST_OUTPUT_CHARACTERS
    assert shortened(text) == text
    assert MARK in shortened(text + "a")


def test_long_texts_in_content_and_in_errors_are_shortened_too():
    long = "a" * (LONGEST_OUTPUT_CHARACTERS + 1)
    content = run(returning([{"type": "input_text", "text": long}])).content
    assert content is not None
    assert len(content[0]["text"]) <= LONGEST_OUTPUT_CHARACTERS
    for fail in raising(ValueError(long)):
        assert len(run(fail).text) <= LONGEST_OUTPUT_CHARACTERS
