"""What a tool gives back, as a model is told it."""

from __future__ import annotations

import dataclasses
import uuid

import pydantic
import pytest

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


PARTS = [
    {"type": "input_text", "text": "seen:"},
    {"type": "input_image", "image_url": "data:image/png;base64,AA=="},
]


def test_content_parts_pass_as_content():
    assert run(returning(PARTS)) == Result(text="seen:", content=PARTS)
    assert run(returning(PARTS[1])) == Result(text="", content=PARTS[1:])


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
