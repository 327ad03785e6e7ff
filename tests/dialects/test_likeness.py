"""Likeness: when two wire items are the same item."""

from __future__ import annotations

import copy

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from lockstitch.core.errors import NotAnItem
from lockstitch.dialects.likeness import likeness
from tests.generated import HISTORIES, anything, examples, hostile_items
from tests.not_json import NOT_JSON
from tests.turns import call, output, reasoning, said, user

wires = st.sampled_from(sorted(HISTORIES)).flatmap(
    lambda name: HISTORIES[name].filter(bool).flatmap(st.sampled_from)
)
PASSING = ("id", "status", "object", "phase", "created_by", "internal_metadata")
NAMED_BY_ID = (
    "mcp_approval_request",
    "item_reference",
    "local_shell_call",
    "local_shell_call_output",
)

every_passing = st.dictionaries(st.sampled_from(PASSING), anything)


@settings(max_examples=examples(200))
@given(wires | hostile_items, every_passing)
def test_what_one_side_adds_does_not_make_another_item(wire, passing):
    assume(wire.get("type") not in (*NAMED_BY_ID, "reasoning"))
    bare = {name: value for name, value in wire.items() if name not in PASSING}
    assert likeness({**wire, **passing}) == likeness(wire) == likeness(bare)


@settings(max_examples=examples(100))
@given(wires | hostile_items, st.lists(st.sampled_from(["x", "y", "z"]), unique=True))
def test_a_field_that_holds_nothing_is_no_field(wire, names):
    assume(wire.get("type") != "reasoning")
    assert likeness({**wire, **dict.fromkeys(names)}) == likeness(wire)
    assert likeness({**wire, **{name: [] for name in names}}) == likeness(wire)


@settings(max_examples=examples(100))
@given(wires | hostile_items)
def test_the_order_of_fields_is_nothing(wire):
    assert likeness(dict(reversed(wire.items()))) == likeness(wire)


@settings(max_examples=examples(100))
@given(wires | hostile_items)
def test_to_ask_for_a_likeness_changes_nothing(wire):
    before = copy.deepcopy(wire)
    assert likeness(wire) == likeness(wire)
    assert wire == before


@pytest.mark.parametrize("kind", ["input_text", "output_text", "text"])
def test_a_text_is_the_same_in_one_part_and_in_none(kind):
    part = {"type": kind, "text": "hi"}
    dressed = {**part, "annotations": [], "logprobs": [], "cache_control": {"type": "ephemeral"}}
    for content in ([part], [dressed]):
        assert likeness({"role": "user", "content": content}) == likeness(user("hi"))
        assert likeness(output("call_a", content)) == likeness(output("call_a", "hi"))


def test_the_type_of_a_message_may_be_left_out():
    assert likeness({"type": "message", **user("hi")}) == likeness(user("hi"))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (user("hi"), user("ho")),
        (user("hi"), {**user("hi"), "role": "system"}),
        (user("hi"), said("hi")),
        (call("call_a"), call("call_b")),
        (call("call_a"), {**call("call_a"), "arguments": '{"x":1}'}),
        (call("call_a"), output("call_a")),
        (output("call_a", "1"), output("call_a", "2")),
        (output("call_a", "1"), output("call_a", ["1", "2"])),
        (user("hi"), user("hi", name="Ann")),
        (reasoning("rs_1"), reasoning("rs_2")),
        (reasoning("rs_1", "one"), reasoning("rs_1", "two")),
        ({"type": "item_reference", "id": "a"}, {"type": "item_reference", "id": "b"}),
        (
            {"type": "mcp_approval_request", "id": "a", "name": "t"},
            {"type": "mcp_approval_request", "id": "b", "name": "t"},
        ),
        ({"type": "local_shell_call", "id": "a"}, {"type": "local_shell_call", "id": "b"}),
        (
            {"role": "user", "content": [{"type": "input_text", "text": "a"}] * 2},
            {"role": "user", "content": [{"type": "input_text", "text": "a"}]},
        ),
        ({"type": "x", "n": 0}, {"type": "x", "n": False}),
        ({"type": "x", "n": 0}, {"type": "x"}),
        ({"type": "x", "t": ""}, {"type": "x"}),
    ],
)
def test_what_says_something_else_is_another_item(one, other):
    assert likeness(one) != likeness(other)


def test_reasoning_is_told_by_what_it_carries_and_else_by_its_id():
    assert likeness(reasoning("rs_1", "secret")) == likeness(reasoning("rs_9", "secret"))
    assert likeness(reasoning("rs_1", status="completed")) == likeness(reasoning("rs_1"))
    assert likeness({"type": "reasoning", "summary": ["a"]}) != likeness(
        {"type": "reasoning", "summary": ["b"]}
    )


@pytest.mark.parametrize("kind", NOT_JSON)
def test_what_cannot_be_written_as_json_is_like_nothing(kind):
    for wire in (NOT_JSON[kind], {**NOT_JSON[kind], "type": "reasoning", "summary": object()}):
        with pytest.raises(NotAnItem, match="cannot be written as JSON"):
            likeness(wire)


@pytest.mark.parametrize(
    "wire",
    [
        {"type": ["x"], "id": 1},
        {"type": {}, "id": {}},
        {"type": 7, "content": [{"type": [], "text": "x"}]},
        {"content": [{"type": {}, "text": {}}, None, 7, []]},
        {"output": {"a": [None]}},
        {"type": "reasoning", "encrypted_content": 7, "id": []},
        {"type": "reasoning"},
        {},
    ],
)
def test_fields_of_odd_types_are_compared_like_all_others(wire):
    assert likeness(wire) == likeness(copy.deepcopy(wire))
