"""Chat Completions: outputs follow the message that made the calls, before any other."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openai.types.chat import ChatCompletionToolMessageParam
from pydantic import TypeAdapter

import lockstitch
from lockstitch.core import families
from lockstitch.core.items import LONGEST_NOTE_CHARACTERS, Part, Place
from lockstitch.core.outcomes import Outcome, Settlement
from lockstitch.dialects.chat import Chat
from tests.generated import HISTORIES, examples

CHAT = Chat()
USER = {"role": "user", "content": "hi"}
SAID = {"role": "assistant", "content": "hm"}


def made(*keys, **more):
    calls = [
        {"id": key, "type": "function", "function": {"name": f"tool_{key}", "arguments": "{}"}}
        for key in keys
    ]
    return {"role": "assistant", "content": None, "tool_calls": calls, **more}


def tool(key, text="ok", **more):
    return {"role": "tool", "tool_call_id": key, "content": text, **more}


def codes(history):
    return [(f.code, f.place.at) for f in lockstitch.check(history, dialect="chat")]


# --- reading -----------------------------------------------------------------------------------


def test_each_tool_call_of_a_message_is_a_call_in_a_slot_of_its_own():
    items = CHAT.read(made("a", "b"))
    assert [(i.part, i.key, i.name, i.slot) for i in items] == [
        (Part.CALL, "a", "tool_a", 0),
        (Part.CALL, "b", "tool_b", 1),
    ]
    assert {item.family for item in items} == {families.CHAT_TOOL}


def test_a_tool_message_is_an_output():
    (item,) = CHAT.read(tool("a", "aborted", name="t"))
    assert (item.part, item.key, item.name, item.note) == (Part.OUTPUT, "a", "t", "aborted")


def test_a_custom_tool_call_is_a_call_with_its_name():
    call = {"id": "a", "type": "custom", "custom": {"name": "grep", "input": "x"}}
    (item,) = CHAT.read({"role": "assistant", "tool_calls": [call]})
    assert (item.key, item.name) == ("a", "grep")


@pytest.mark.parametrize(
    ("wire", "part"),
    [
        (USER, Part.INPUT),
        ({"role": "system", "content": "x"}, Part.INPUT),
        ({"role": "developer", "content": "x"}, Part.INPUT),
        (SAID, Part.MODEL),
        (made(), Part.MODEL),
        ({"role": "assistant", "tool_calls": None}, Part.MODEL),
        ({"role": "tool", "content": "x"}, Part.OUTPUT),
        ({"content": "x"}, Part.OTHER),
        ({"role": 7}, Part.OTHER),
    ],
)
def test_every_other_message_is_read_for_the_part_it_plays(wire, part):
    assert [item.part for item in CHAT.read(wire)] == [part]


@pytest.mark.parametrize("call", [None, 7, "a", [], {}, {"id": None}, {"id": ""}, {"id": 7}])
def test_a_tool_call_without_an_id_is_unread_and_keeps_its_slot(call):
    wire = {"role": "assistant", "tool_calls": [call, *made("b")["tool_calls"]]}
    broken, item = CHAT.read(wire)
    assert (item.key, item.slot) == ("b", 1)
    assert (broken.part, broken.slot) == (Part.OTHER, 0)
    assert broken.unread == "a tool call without an id"


def test_only_a_short_text_is_carried_as_a_note():
    assert CHAT.read(tool("a", "x" * (LONGEST_NOTE_CHARACTERS + 1)))[0].note is None
    assert CHAT.read(tool("a", [{"type": "text", "text": "x"}]))[0].note is None


# --- what is wrong -----------------------------------------------------------------------------


def test_a_whole_conversation_is_whole():
    assert (
        codes([USER, made("a", "b"), tool("b"), tool("a"), SAID, USER, made("a"), tool("a")]) == []
    )


@pytest.mark.parametrize(
    ("history", "expected"),
    [
        ([made("a"), USER], [("LS001", 0)]),
        ([made("a", "b"), tool("a"), USER], [("LS010", 0)]),
        ([USER, tool("a")], [("LS002", 1)]),
        ([tool("a"), made("a")], [("LS003", 0)]),
        ([made("a"), tool("a"), tool("a")], [("LS004", 2)]),
        ([made("a", "a"), tool("a"), tool("a")], [("LS005", 0)]),
        ([made("a"), USER, tool("a")], [("LS009", 2)]),
        ([made("a"), SAID, tool("a")], [("LS009", 2)]),
        ([made("a"), made("b"), tool("a"), tool("b")], [("LS009", 2)]),
    ],
)
def test_what_the_provider_would_refuse_is_found(history, expected):
    assert codes(history) == expected


# --- writing -----------------------------------------------------------------------------------


@pytest.mark.parametrize("outcome", Outcome)
def test_a_synthetic_output_is_a_message_that_openai_takes(outcome):
    wire = CHAT.output(families.CHAT_TOOL, "a", Settlement(outcome, "the text"))
    assert set(wire) == {"role", "tool_call_id", "content"}
    TypeAdapter(ChatCompletionToolMessageParam).validate_python(wire, strict=True)


def test_a_settled_call_is_answered_directly_behind_its_message():
    mended = lockstitch.mend([USER, made("a", "b"), tool("b"), USER])
    assert [wire.get("tool_call_id") for wire in mended] == [None, None, "a", "b", None]


def test_a_late_output_is_moved_directly_behind_its_message():
    late = tool("a", "late")
    history = [made("a"), USER, SAID, late]
    mended = lockstitch.mend(history)
    assert list(mended) == [history[0], late, USER, SAID]


def test_every_late_output_of_one_message_is_moved_behind_it():
    mended = lockstitch.mend([made("a", "b", "c"), tool("b"), USER, tool("c"), tool("a")])
    assert [wire["role"] for wire in mended] == ["assistant", "tool", "tool", "tool", "user"]


def test_a_shared_id_is_replaced_in_its_own_tool_call_and_nowhere_else():
    first, second = lockstitch.mend([made("a", "a"), tool("a", "1"), tool("a", "2")])[0][
        "tool_calls"
    ]
    assert first["id"] == "a"
    assert second["id"] != "a"
    assert second["function"] == {"name": "tool_a", "arguments": "{}"}


def test_the_outputs_of_a_shared_id_follow_it_in_order():
    mended = lockstitch.mend([made("a", "a"), tool("a", "1"), tool("a", "2")])
    ids = [call["id"] for call in mended[0]["tool_calls"]]
    assert [(wire["tool_call_id"], wire["content"]) for wire in mended[1:]] == [
        (ids[0], "1"),
        (ids[1], "2"),
    ]


def test_rekeying_copies_what_it_changes():
    wire = made("a", "b", refusal=None)
    changed = CHAT.rekey(wire, 1, "b", "c")
    assert [call["id"] for call in changed["tool_calls"]] == ["a", "c"]
    assert [call["id"] for call in wire["tool_calls"]] == ["a", "b"]
    assert changed["refusal"] is None
    assert CHAT.rekey(tool("a", x=1), 0, "a", "c") == tool("c", x=1)


def test_rewording_touches_the_content_alone():
    said = Settlement(Outcome.FINISHED, "new")
    assert CHAT.reword(tool("a", "aborted", x=1), 0, said) == tool("a", "new", x=1)


def test_messages_have_no_id_to_strip_and_one_family():
    wire = tool("a", id="x")
    assert CHAT.strip_id(wire, 0) is wire
    assert CHAT.retype(wire, 0, families.CHAT_TOOL) is wire


def test_an_output_is_taken_whole_and_put_as_a_message_of_its_own():
    wire = tool("a")
    assert CHAT.take(wire, {0}) == (None, [wire])
    assert CHAT.put([wire]) == [wire]
    assert CHAT.beside(families.CHAT_TOOL, Place(0)) is False
    with pytest.raises(AssertionError):
        CHAT.put_into(USER, [wire])
    with pytest.raises(AssertionError):
        CHAT.put_beside(USER, 0, wire)


def test_unknown_fields_and_roles_come_through_mending_untouched():
    strange = {"role": "narrator", "content": "meanwhile", "x": {"y": 1}}
    noted = made("a", annotations=[1], audio=None)
    mended = lockstitch.mend([strange, noted], dialect="chat")
    assert mended[0] is strange
    assert mended[1] is noted


# --- a provider that scans in order ------------------------------------------------------------


def refusal(history):
    """Why a provider would refuse these messages; None if it takes them."""
    waiting: list[str] = []
    for at, message in enumerate(history):
        if message["role"] == "tool":
            if message["tool_call_id"] not in waiting:
                return f"message {at} must be a response to a preceding message with tool_calls"
            waiting.remove(message["tool_call_id"])
            continue
        if waiting:
            return f"no response messages: {waiting}"
        waiting = [call["id"] for call in message.get("tool_calls") or ()]
        if len(set(waiting)) < len(waiting):
            return "one id, two calls"
    return f"no response messages: {waiting}" if waiting else None


@settings(max_examples=examples(300))
@given(HISTORIES["chat"])
def test_check_finds_nothing_exactly_where_a_provider_takes_the_messages(history):
    findings = lockstitch.check(history, dialect="chat")
    assert (findings == []) is (refusal(history) is None), (findings, refusal(history))


@settings(max_examples=examples(300))
@given(HISTORIES["chat"], st.sampled_from(["first", "last"]))
def test_a_provider_takes_every_mended_conversation(history, keep):
    mended = lockstitch.mend(history, dialect="chat", policy=lockstitch.Policy(keep=keep))
    assert refusal(mended) is None


@settings(max_examples=examples(300))
@given(HISTORIES["chat"], st.integers(0, 8))
def test_a_provider_takes_every_trimmed_conversation_that_was_whole(history, most):
    whole = lockstitch.mend(history, dialect="chat")
    assert refusal(lockstitch.trim(whole, max_items=most, dialect="chat")) is None
