"""Which dialect is this? Histories as they really look."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lockstitch
from lockstitch.core.errors import UnknownDialect
from lockstitch.dialects import DIALECTS, by_name, detect
from lockstitch.dialects.detection import sign
from tests.generated import anything, examples, hostile_items

TEXT = [
    {"role": "system", "content": "be brief"},
    {"role": "user", "content": "hi"},
    {"role": "assistant", "content": "hello"},
]
FUNCTION_CALL = {"type": "function_call", "call_id": "call_a", "name": "t", "arguments": "{}"}

HISTORIES = {
    "responses: a call": ("responses", [*TEXT, FUNCTION_CALL]),
    "responses: input text": (
        "responses",
        [{"role": "user", "content": [{"type": "input_text", "text": "hi"}]}, FUNCTION_CALL],
    ),
    "responses: typed messages": (
        "responses",
        [{"type": "message", "role": "user", "content": "hi"}],
    ),
    "responses: reasoning first": ("responses", [{"type": "reasoning", "id": "rs_1"}]),
    "responses: a reference": ("responses", [{"type": "item_reference", "id": "msg_1"}]),
    "responses: after a compaction": (
        "responses",
        [{"type": "compaction", "encrypted_content": "x"}, *TEXT],
    ),
    "responses: a refusal": (
        "responses",
        [
            {
                "type": "message",
                "role": "assistant",
                "id": "msg_1",
                "status": "completed",
                "content": [{"type": "refusal", "refusal": "I cannot help with that."}],
            },
            FUNCTION_CALL,
        ],
    ),
    "responses: spoken input": (
        "responses",
        [
            {
                "type": "message",
                "role": "user",
                "content": [{"type": "input_audio", "input_audio": {"data": "", "format": "wav"}}],
            },
            FUNCTION_CALL,
        ],
    ),
    "chat: tool calls": (
        "chat",
        [*TEXT, {"role": "assistant", "content": None, "tool_calls": [{"id": "call_a"}]}],
    ),
    "chat: a tool message": ("chat", [{"role": "tool", "tool_call_id": "call_a", "content": "x"}]),
    "chat: a function of old": ("chat", [{"role": "function", "name": "t", "content": "x"}]),
    "chat: an image": (
        "chat",
        [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}],
    ),
    "chat: spoken input": (
        "chat",
        [{"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": ""}}]}],
    ),
    "messages: a tool use": (
        "messages",
        [*TEXT[1:], {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_a"}]}],
    ),
    "messages: a tool result": (
        "messages",
        [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_a"}]}],
    ),
    "messages: text, then a use": (
        "messages",
        [
            {
                "role": "assistant",
                "content": [{"type": "text", "text": "hm"}, {"type": "tool_use", "id": "toolu_a"}],
            }
        ],
    ),
    "messages: thinking": (
        "messages",
        [{"role": "assistant", "content": [{"type": "thinking", "thinking": "…"}]}],
    ),
    "messages: a server's tool": (
        "messages",
        [{"role": "assistant", "content": [{"type": "server_tool_use", "id": "srvtoolu_a"}]}],
    ),
    "messages: a server's result": (
        "messages",
        [{"role": "assistant", "content": [{"type": "web_search_tool_result"}]}],
    ),
    "messages: a tool of an MCP server": (
        "messages",
        [
            *TEXT[1:],
            {"role": "assistant", "content": [{"type": "mcp_tool_use", "id": "mcptoolu_a"}]},
        ],
    ),
    "realtime: items from the server": (
        "realtime",
        [{"object": "realtime.item", "type": "message", "role": "user", "content": []}],
    ),
    "realtime: a call from the server": (
        "realtime",
        [{**FUNCTION_CALL, "object": "realtime.item"}],
    ),
}


def test_a_tool_message_that_holds_nothing_does_not_show_its_dialect():
    empty = {"role": "tool", "content": []}
    call = {"type": "tool-call", "toolCallId": "a", "toolName": "f", "input": {}}
    history = [empty, {"role": "assistant", "content": [call]}]
    assert detect(history).name == "vercel"
    assert detect([{**empty, "tool_call_id": "a"}]).name == "chat"
    assert detect([{"role": "tool", "content": "yes"}]).name == "chat"


@pytest.mark.parametrize(("name", "history"), HISTORIES.values(), ids=HISTORIES)
def test_a_dialect_is_told_from_what_a_history_really_holds(name, history):
    assert detect(history).name == name


def test_realtime_items_without_their_object_are_read_as_items_all_the_same():
    # "object: Optional when creating a new item." Whatever it is called, its calls must be seen.
    spoken = {
        "type": "message",
        "role": "user",
        "content": [{"type": "input_audio", "transcript": "what is the weather?"}],
    }
    assert [f.code for f in lockstitch.check([spoken, FUNCTION_CALL])] == ["LS001"]


def test_an_open_call_is_found_without_being_told_the_dialect():
    for _, history in HISTORIES.values():
        told = detect(history).name
        try:
            expected = lockstitch.check(history, dialect=told)
        except lockstitch.NotAHistory:
            with pytest.raises(lockstitch.NotAHistory):
                lockstitch.check(history)
        else:
            assert lockstitch.check(history) == expected


def test_text_alone_is_whole_in_every_dialect():
    for name in DIALECTS:
        if name != "pydantic-ai":  # its messages have no role
            assert lockstitch.check(TEXT, dialect=name) == []
    assert lockstitch.check(TEXT) == []


@pytest.mark.parametrize("history", [[], TEXT])
def test_text_is_read_in_some_dialect_and_is_clean(history):
    assert detect(history).name in DIALECTS
    assert lockstitch.check(history) == []


@pytest.mark.parametrize("history", [[{}], [{"x": 1}], [{"x": 1}, {"y": "z"}]])
def test_a_list_without_any_known_item_is_refused(history):
    with pytest.raises(lockstitch.NotAHistory, match="no item is a message"):
        lockstitch.check(history)


def test_the_first_item_that_tells_decides():
    chat = {"role": "tool", "tool_call_id": "a", "content": "x"}
    assert detect([*TEXT, chat, FUNCTION_CALL]).name == "chat"
    assert detect([*TEXT, FUNCTION_CALL, chat]).name == "responses"


@pytest.mark.parametrize(
    "wire",
    [
        {},
        {"type": 7},
        {"type": ["function_call"]},
        {"type": {}},
        {"role": []},
        {"role": "user", "content": 7},
        {"role": "user", "content": [None, 7, "x", [], {"type": None}, {"type": []}]},
        {"role": "assistant", "tool_calls": "x"},
        {"object": []},
    ],
)
def test_a_hostile_value_tells_nothing(wire):
    assert sign(wire) is None


@settings(max_examples=examples(200))
@given(st.lists(st.one_of(hostile_items, anything), max_size=6))
def test_detection_takes_anything(history):
    assert detect(history) in DIALECTS.values()


@pytest.mark.parametrize("name", sorted(DIALECTS))
def test_a_dialect_is_found_by_its_name(name):
    assert by_name(name) is DIALECTS[name]


@pytest.mark.parametrize("name", ["", "Responses", "openai", "google"])
def test_a_name_that_is_none_is_answered_with_those_there_are(name):
    with pytest.raises(UnknownDialect, match="responses, chat, messages, realtime"):
        by_name(name)


@pytest.mark.parametrize("named", sorted(DIALECTS))
def test_a_dialect_that_is_given_counts_where_the_items_do_not_tell(named):
    assert detect(TEXT, by_name(named)) is by_name(named)
    assert detect([], by_name(named)) is by_name(named)


@pytest.mark.parametrize("named", sorted(DIALECTS))
@pytest.mark.parametrize(
    ("item", "told"),
    [
        ({"role": "assistant", "tool_calls": []}, "chat"),
        ({"role": "user", "content": [{"type": "tool_result"}]}, "messages"),
        ({"type": "custom_tool_call", "call_id": "c"}, "responses"),
        ({"type": "reasoning", "id": "r"}, "responses"),
        ({"object": "realtime.item", "type": "function_call"}, "realtime"),
    ],
)
def test_a_dialect_that_is_given_does_not_outweigh_an_item_that_tells(named, item, told):
    assert detect([*TEXT, item], by_name(named)).name == told


def test_what_both_write_alike_is_realtime_if_that_is_given():
    assert detect([*TEXT, FUNCTION_CALL]).name == "responses"
    assert detect([*TEXT, FUNCTION_CALL], by_name("realtime")).name == "realtime"
    told = [*TEXT, FUNCTION_CALL, {"type": "reasoning", "id": "r"}]
    assert detect(told, by_name("realtime")).name == "responses"
