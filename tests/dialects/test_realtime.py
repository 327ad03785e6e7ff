"""OpenAI Realtime: Responses items of fewer kinds."""

from __future__ import annotations

import pytest
import typing_extensions
from openai.types.realtime import (
    RealtimeConversationItemFunctionCallOutputParam,
    RealtimeMcpApprovalResponseParam,
)
from pydantic import TypeAdapter

import lockstitch
from lockstitch.core import families
from lockstitch.core.items import Part
from lockstitch.core.outcomes import Outcome, Settlement
from lockstitch.dialects.realtime import Realtime

REALTIME = Realtime()
CALL = {"object": "realtime.item", "type": "function_call", "call_id": "call_a", "name": "t"}
OUTPUT = {
    "object": "realtime.item",
    "type": "function_call_output",
    "call_id": "call_a",
    "output": "ok",
}
SAID = {
    "object": "realtime.item",
    "id": "item_1",
    "type": "message",
    "role": "user",
    "content": [{"type": "input_audio", "transcript": "hi"}],
}


def read(wire):
    (item,) = REALTIME.read(wire)
    return item


def codes(*history):
    return [(f.code, f.place.at) for f in lockstitch.check(history, dialect="realtime")]


@pytest.mark.parametrize("family", families.REALTIME_FAMILIES, ids=lambda f: f.name)
def test_functions_and_approvals_are_read_as_in_responses(family):
    wire = {"type": family.call_type, "call_id": "k", "id": "k", "name": "t"}
    assert (read(wire).part, read(wire).family) == (Part.CALL, family)


@pytest.mark.parametrize(
    "family",
    [f for f in families.RESPONSES_FAMILIES if f not in families.REALTIME_FAMILIES],
    ids=lambda f: f.name,
)
def test_a_family_that_realtime_does_not_have_is_not_judged(family):
    for kind in (family.call_type, family.output_type):
        wire = {"type": kind, "call_id": "k", "id": "item_9", "execution": "client"}
        assert read(wire).part is Part.OTHER
        with pytest.raises(lockstitch.NotAHistory, match=f"`{kind}`"):
            codes(wire, SAID)


def test_an_output_without_a_call_id_is_an_orphan_and_no_event():
    # "`function_call_output` item, `call_id` required"
    for named in ({}, {"name": "alarm"}):
        wire = {"type": "function_call_output", "output": "x", **named}
        assert read(wire).part is Part.OUTPUT
        assert codes(SAID, wire) == [("LS002", 1)]


def test_a_whole_conversation_is_whole():
    assert codes(SAID, CALL, OUTPUT) == []
    assert codes(SAID, CALL, {**SAID, "id": "item_2"}, OUTPUT) == []


@pytest.mark.parametrize(
    ("history", "expected"),
    [
        ([SAID, CALL], [("LS001", 1)]),
        ([SAID, OUTPUT], [("LS002", 1)]),
        ([OUTPUT, CALL], [("LS003", 0)]),
        ([CALL, OUTPUT, OUTPUT], [("LS004", 2)]),
        ([SAID, SAID], [("LS008", 1)]),
    ],
)
def test_what_is_wrong_is_found(history, expected):
    assert codes(*history) == expected


@pytest.mark.parametrize("outcome", Outcome)
@pytest.mark.parametrize(
    ("family", "params"),
    [
        (families.FUNCTION, RealtimeConversationItemFunctionCallOutputParam),
        (families.MCP_APPROVAL, RealtimeMcpApprovalResponseParam),
    ],
    ids=["function", "MCP approval"],
)
def test_every_synthetic_output_is_one_that_openai_takes(family, params, outcome):
    wire = REALTIME.output(family, "call_a", Settlement(outcome, "text"))
    assert set(wire) <= set(typing_extensions.get_type_hints(params))
    TypeAdapter(params).validate_python(wire, strict=True)


def test_an_open_call_is_settled_behind_it():
    mended = lockstitch.mend([SAID, CALL, {**SAID, "id": "item_2"}])
    assert mended[2]["call_id"] == "call_a"
    assert mended[2]["type"] == "function_call_output"
    assert lockstitch.check(mended) == []


@pytest.mark.parametrize("length", [8, 27, 28, 32])
def test_a_new_call_id_is_never_longer_than_the_provider_allows(length):
    # The limit for a realtime `call_id` is 32 characters.
    call = {**CALL, "call_id": "c" * length}
    answer = {**OUTPUT, "call_id": "c" * length}
    mended = lockstitch.mend([call, call, call, answer, answer, answer])
    ids = {wire["call_id"] for wire in mended}
    assert len(ids) == 3
    assert all(len(one) <= 32 for one in ids)


def test_two_long_ids_that_begin_alike_are_told_apart_when_both_are_used_twice():
    history = [{**CALL, "call_id": "c" * 30 + end} for end in ("aa", "bb", "aa", "bb")]
    assert lockstitch.check(lockstitch.mend(history)) == []


def test_it_is_a_dialect_of_its_own_name():
    assert REALTIME.name == "realtime"
