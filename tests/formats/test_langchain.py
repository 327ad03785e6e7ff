"""LangChain messages: what is broken is found, and langchain-core takes what was repaired."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.load import dumpd, load
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    ChatMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
    convert_to_openai_messages,
    message_chunk_to_message,
    messages_from_dict,
    messages_to_dict,
    trim_messages,
)
from langgraph.prebuilt.chat_agent_executor import _validate_chat_history

import lockstitch
from lockstitch import Evidence, NotAHistory, Outcome
from lockstitch.dialects import DIALECTS
from lockstitch.dialects.detection import detect
from tests.formats.langchain import ai, block, call, constructed, human, in_data, raw, tool
from tests.generated import HISTORIES, anything, examples
from tests.timing import least_seconds

SHAPES = {
    "flat": (lambda message: message, lambda wire: messages_from_dict([in_data(wire)])[0]),
    "data": (in_data, lambda wire: messages_from_dict([wire])[0]),
    "constructed": (constructed, lambda wire: load(wire, allowed_objects="messages")),
}
"""How a message is written, and how LangChain reads it back."""


def codes(items):
    return [finding.code for finding in lockstitch.check(items)]


def invalid(text, key="call_1"):
    return {
        "name": "book",
        "args": text,
        "id": key,
        "error": None,
        "type": "invalid_tool_call",
    }


def accepted(messages):
    """Is every call of these LangChain messages answered where a provider wants it?"""
    _validate_chat_history(messages)
    sent = convert_to_openai_messages(messages)
    return lockstitch.check(sent, dialect="chat") == []


BROKEN: dict[str, tuple[str, list[dict[str, Any]]]] = {
    "an open call": ("LS001", [human(), ai(call()), human("And?")]),
    "one of two open": ("LS010", [human(), ai(call(), call("call_2")), tool(), human("And?")]),
    "a result without a call": ("LS002", [human(), tool("call_9"), ai(text="Done.")]),
    "a result without an id": ("LS002", [human(), tool(""), ai(text="Done.")]),
    "a result whose id is null": ("LS002", [human(), tool(None), ai(text="Done.")]),
    "a result before its call": ("LS003", [human(), tool(), ai(call()), human("And?")]),
    "two results": ("LS004", [human(), ai(call()), tool(), tool(text="again"), human("And?")]),
    "an id used twice": ("LS005", [human(), ai(call(), call()), tool(), tool(text="b")]),
    "a result after a message": ("LS009", [human(), ai(call()), human("And?"), tool()]),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", BROKEN)
def test_each_kind_of_broken_history_is_found_and_repaired_in_its_own_shape(name, shape):
    code, flat = BROKEN[name]
    write, read = SHAPES[shape]
    history = [write(message) for message in flat]
    before = copy.deepcopy(history)
    assert code in codes(history)
    mended = lockstitch.mend(history)
    assert history == before
    assert lockstitch.check(mended) == []
    again = lockstitch.mend(mended)
    assert list(again) == list(mended)
    assert not again.changed
    keys = {frozenset(write(tool()))}
    assert {frozenset(wire) for wire in mended if shape != "flat"} <= keys
    if name != "a result whose id is null":
        assert accepted([read(wire) for wire in mended])
    untouched = [wire for wire in mended if any(wire is one for one in history)]
    assert len(untouched) >= 2


@pytest.mark.parametrize(
    "name", [name for name, (code, _) in BROKEN.items() if code in ("LS001", "LS010", "LS009")]
)
def test_langchain_turns_a_broken_history_into_one_that_a_provider_refuses(name):
    messages = messages_from_dict([in_data(one) for one in BROKEN[name][1]])
    assert lockstitch.check(convert_to_openai_messages(messages), dialect="chat") != []


@pytest.mark.parametrize("name", [name for name in BROKEN if name != "a result whose id is null"])
def test_message_objects_come_back_as_message_objects(name):
    code, flat = BROKEN[name]
    messages = messages_from_dict([in_data(copy.deepcopy(one)) for one in flat])
    assert code in codes(messages)
    mended = lockstitch.mend(messages)
    assert {type(one) for one in mended} <= {HumanMessage, AIMessage, ToolMessage}
    assert accepted(list(mended))
    assert sum(any(one is other for other in messages) for one in mended) >= 2
    trimmed = trim_messages(list(mended), max_tokens=100, token_counter=len, start_on="human")
    assert accepted(trimmed)


def test_a_synthetic_result_says_that_it_is_one_and_that_the_call_failed():
    mended = lockstitch.mend([HumanMessage("go"), AIMessage("", tool_calls=[call()])])
    assert isinstance(mended[2], ToolMessage)
    assert (mended[2].status, mended[2].name, mended[2].tool_call_id) == ("error", "book", "call_1")
    assert mended[2].content.startswith("[lockstitch] Outcome unknown.")


def test_evidence_of_a_call_that_finished_well_makes_a_result_without_the_error_status():
    known = {"call_1": Evidence(Outcome.FINISHED, "finished", "booked")}
    mended = lockstitch.mend([ai(call()), human("?")], evidence=known)
    assert mended[1]["status"] == "success"
    assert "booked" in mended[1]["content"]


# --- objects -----------------------------------------------------------------------------------


class Mine(AIMessage):
    """A user's own class."""

    cost: float = 1.5


def test_a_changed_message_keeps_its_class_and_what_the_item_does_not_show():
    artifact = object()
    twice = Mine("", tool_calls=[call(), call()], cost=2.5, id="a1")
    one = ToolMessage("x", tool_call_id="call_1", artifact=artifact)
    two = ToolMessage("y", tool_call_id="call_1", artifact=artifact)
    mended = lockstitch.mend([HumanMessage("go"), twice, one, two])
    changed = mended[1]
    assert type(changed) is Mine
    assert (changed.cost, changed.id) == (2.5, "a1")
    assert [made["id"] for made in changed.tool_calls] == ["call_1", "call_1_ls2"]
    assert [made["id"] for made in twice.tool_calls] == ["call_1", "call_1"]
    assert mended[2] is one
    assert mended[3].tool_call_id == "call_1_ls2"
    assert mended[3].artifact is artifact


def test_a_chunk_that_is_cut_off_is_found_although_langchain_completes_its_arguments():
    chunk = AIMessageChunk(
        "",
        tool_call_chunks=[
            {"name": "book", "args": '{"flight": "SK 8', "id": "call_1", "index": 0},
            {"name": "book", "args": '{"flight": "SK 803"}', "id": "call_2", "index": 1},
        ],
    )
    assert chunk.tool_calls[0]["args"] == {"flight": "SK 8"}
    history = [HumanMessage("go"), chunk, HumanMessage("?")]
    assert codes(history) == ["LS001", "LS014"] or codes(history) == ["LS014", "LS001"]
    mended = lockstitch.mend(history)
    left = mended[1]
    assert type(left) is AIMessageChunk
    assert [one["id"] for one in left.tool_calls] == ["call_2"]
    assert [one["id"] for one in left.tool_call_chunks] == ["call_2"]
    assert [one["id"] for one in type(left)(**left.model_dump()).tool_calls] == ["call_2"]
    plain = [message_chunk_to_message(one) for one in mended]
    assert accepted(plain)


def test_a_streamed_anthropic_block_shows_that_its_call_was_cut_off():
    streamed = {**block(), "input": {}, "partial_json": '{"flight": "SK', "index": 0}
    history = [human(), ai(call(flight="SK"), text=[streamed]), human("?")]
    assert codes(history) == ["LS014"]
    mended = lockstitch.mend(history)
    assert [one["type"] for one in mended] == ["human", "human"]


def test_trimming_objects_keeps_system_messages_and_pairs():
    history = [
        SystemMessage("Be brief."),
        HumanMessage("a"),
        AIMessage("", tool_calls=[call()]),
        ToolMessage("x", tool_call_id="call_1", artifact=object()),
        HumanMessage("b"),
    ]
    trimmed = lockstitch.trim(history, max_items=3, keep_leading=True)
    assert trimmed == [history[0], history[4]]
    assert lockstitch.trim(history, max_bytes=100_000) == history


def test_a_role_of_the_users_own_is_a_message_like_another():
    history = [ChatMessage("hm", role="critic"), AIMessage("", tool_calls=[call()])]
    assert codes(history) == ["LS001"]
    assert detect([history[0].model_dump()]).name == "langchain"


# --- the places where a message has a call -----------------------------------------------------


def test_blocks_and_raw_calls_follow_a_call_that_gets_another_id():
    history = [
        human(),
        ai(
            call(),
            call(),
            text=[{"type": "text", "text": "I book."}, block(), block()],
            additional_kwargs={
                "tool_calls": [raw(), raw()],
                "__openai_function_call_ids__": {"call_1": "fc_1"},
            },
        ),
        tool(),
        tool(text="b"),
    ]
    changed = lockstitch.mend(history)[1]
    assert [one["id"] for one in changed["tool_calls"]] == ["call_1", "call_1_ls2"]
    assert [one.get("id") for one in changed["content"]] == [None, "call_1", "call_1_ls2"]
    kwargs = changed["additional_kwargs"]
    assert [one["id"] for one in kwargs["tool_calls"]] == ["call_1", "call_1_ls2"]
    assert kwargs["__openai_function_call_ids__"] == {"call_1": "fc_1"}
    message = messages_from_dict([in_data(changed)])[0]
    assert len(convert_to_openai_messages([message])[0]["tool_calls"]) == 2


def test_blocks_and_raw_calls_go_with_a_call_that_was_cut_off():
    history = [
        human(),
        ai(
            call("call_2"),
            text=[{"type": "text", "text": "I book."}, block("call_1"), block("call_2")],
            invalid_tool_calls=[invalid('{"flight": "SK')],
            additional_kwargs={
                "tool_calls": [raw("call_1", '{"flight": "SK'), raw("call_2")],
                "signatures": {"call_1": "s1", "call_2": "s2"},
            },
        ),
        tool("call_2"),
    ]
    assert codes(history) == ["LS014"]
    mended = lockstitch.mend(history)
    left = mended[1]
    assert left["invalid_tool_calls"] == []
    assert [one.get("id") for one in left["content"]] == [None, "call_2"]
    assert [one["id"] for one in left["additional_kwargs"]["tool_calls"]] == ["call_2"]
    assert left["additional_kwargs"]["signatures"] == {"call_2": "s2"}
    assert mended.removed == [invalid('{"flight": "SK')]
    assert accepted(messages_from_dict([in_data(one) for one in mended]))


def test_calls_that_blocks_repeat_cost_no_more_each():
    def seconds(count):
        keys = [f"call_{n}" for n in range(count)]
        blocks = [{"type": "tool_use", "id": key, "name": "book", "input": {}} for key in keys]
        message = ai(*(call(key) for key in keys), text=blocks)
        return least_seconds(lambda: lockstitch.check([human(), message]))

    assert seconds(4_000) < 30 * seconds(400)


def test_a_repetition_without_an_id_goes_with_the_call_that_it_repeats():
    # langchain-google-genai: `additional_kwargs["function_call"]` is the last call of a message.
    repeated = {"function_call": {"name": "book", "arguments": '{"n": '}, "audio": "x"}
    cut_off = ai(text="I book.", invalid_tool_calls=[invalid('{"n": ')], additional_kwargs=repeated)
    mended = lockstitch.mend([human(), cut_off, human()])
    assert mended[1]["additional_kwargs"] == {"audio": "x"}
    assert mended[1]["invalid_tool_calls"] == []
    with pytest.raises(NotAHistory, match="`function_call`"):
        lockstitch.check([human(), ai(additional_kwargs=repeated)])


def test_an_invalid_call_that_is_not_cut_off_wants_a_result_like_another():
    # langchain-openai sends it as a call, with the text as it is.
    history = [human(), ai(invalid_tool_calls=[invalid('{"flight": SK 802}')]), human("?")]
    assert codes(history) == ["LS001"]
    assert codes([history[0], history[1], tool(), history[2]]) == []


def test_a_call_that_is_only_in_a_block_is_a_call():
    history = [human(), ai(text=[block()]), human("?")]
    message = messages_from_dict([in_data(history[1])])[0]
    assert message.tool_calls == []
    assert convert_to_openai_messages([message])[0]["tool_calls"][0]["id"] == "call_1"
    assert codes(history) == ["LS001"]
    mended = lockstitch.mend(history)
    sent = convert_to_openai_messages(messages_from_dict([in_data(one) for one in mended]))
    assert lockstitch.check(sent, dialect="chat") == []


def test_a_call_that_is_only_as_the_provider_wrote_it_is_a_call():
    history = [human(), ai(additional_kwargs={"tool_calls": [raw()]}), human("?")]
    message = messages_from_dict([in_data(copy.deepcopy(history[1]))])[0]
    assert [one["id"] for one in message.tool_calls] == ["call_1"]
    assert codes(history) == ["LS001"]
    assert accepted(messages_from_dict([in_data(one) for one in lockstitch.mend(history)]))


@pytest.mark.parametrize(
    "made",
    [
        {"type": "tool_call", "id": "call_1", "name": "book", "args": {}},
        {"type": "function_call", "call_id": "call_1", "name": "book", "arguments": "{}"},
        {"type": "custom_tool_call", "call_id": "call_1", "name": "book", "input": "x {"},
        {"type": "invalid_tool_call", "id": "call_1", "name": "book", "args": "}"},
        {"type": "tool_call_chunk", "id": "call_1", "name": "book", "args": "{}", "index": 0},
    ],
    ids=lambda made: made["type"],
)
def test_every_block_that_is_a_call_repeats_a_call_or_is_one(made):
    assert codes([human(), ai(call(), text=[made]), tool()]) == []
    assert codes([human(), ai(text=[made]), human("?")]) == ["LS001"]
    assert codes([human(), ai(text=[made]), tool()]) == []
    with pytest.raises(NotAHistory, match="without an id"):
        lockstitch.check([human(), ai(text=[{**made, "id": None, "call_id": None}]), human("?")])


def test_results_of_server_tools_are_blocks_of_the_message_itself():
    server = {"type": "server_tool_call", "id": "srv_1", "name": "web_search", "args": {}}
    result = {"type": "server_tool_result", "tool_call_id": "srv_1", "status": "success"}
    assert codes([human(), ai(text=[server, result]), human("?")]) == []
    assert codes([human(), ai(text=[server])]) == []  # the server may still run it
    history = [
        human(),
        ai(call(), text=[server, {"type": "text", "text": "x"}]),
        tool(),
        human("?"),
    ]
    assert codes(history) == ["LS001"]
    mended = lockstitch.mend(history)
    kinds = [one["type"] for one in mended[1]["content"]]
    assert kinds == ["server_tool_call", "server_tool_result", "text"]
    assert messages_from_dict([in_data(mended[1])])[0].content == mended[1]["content"]


def test_a_result_in_a_block_of_a_human_message_is_a_result():
    answer = {"type": "tool_result", "tool_use_id": "call_1", "content": "booked"}
    assert codes([human(), ai(call()), human([answer])]) == []
    history = [human(), ai(call()), human("wait"), human([answer, {"type": "text", "text": "?"}])]
    mended = lockstitch.mend(history)
    assert lockstitch.check(mended) == []
    assert (mended[2]["type"], mended[2]["content"]) == ("tool", "booked")
    assert mended[4]["content"] == [{"type": "text", "text": "?"}]
    sent = convert_to_openai_messages(messages_from_dict([in_data(one) for one in mended]))
    assert lockstitch.check(sent, dialect="chat") == []


# --- what is refused ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "message",
    [
        RemoveMessage(id="x").model_dump(),
        {"type": "function", "name": "book", "content": "x"},
        ai(additional_kwargs={"function_call": {"name": "book", "arguments": "{}"}}),
        ai(call(None)),
        ai({"name": "book", "args": {}}),
        ai("call"),
        ai(invalid_tool_calls=[invalid("{", None)]),
        ai(additional_kwargs={"tool_calls": {"id": "x"}}),
        {**ai(), "tool_calls": {"id": "call_1"}},
        {**ai(), "calls": [call()]},
        {**in_data(ai()), "more": [call()]},
        human([block()]),
        ai(text=[{"type": "non_standard", "value": {"type": "computer_call", "call_id": "c"}}]),
        ai(additional_kwargs={"tool_outputs": [{"type": "computer_call", "call_id": "c"}]}),
    ],
    ids=str,
)
def test_what_looks_like_a_call_and_is_not_understood_is_refused(message):
    with pytest.raises(NotAHistory, match="Item 1"):
        lockstitch.check([human(), message, human("?")])


def test_what_a_provider_did_itself_is_no_call():
    done = {"type": "mcp_call", "id": "mcp_1", "name": "x", "arguments": "{}", "output": "y"}
    reasoning = {"type": "reasoning", "reasoning": "hm"}
    history = [human(), ai(text=[done, reasoning], additional_kwargs={"tool_outputs": [done]})]
    assert codes([*history, human("?")]) == []


# --- properties --------------------------------------------------------------------------------


@settings(max_examples=examples(150), deadline=None)
@given(HISTORIES["langchain"])
def test_langchain_reads_whatever_was_repaired(history):
    mended = lockstitch.mend(history, dialect="langchain")
    for wire in mended:
        body = wire.get("data", wire.get("kwargs", wire))
        (message,) = messages_from_dict([{"type": body["type"], "data": copy.deepcopy(body)}])
        if isinstance(message, AIMessage):
            made = [one["id"] for one in (*message.tool_calls, *message.invalid_tool_calls)]
            read = [item for item in DIALECTS["langchain"].read(wire) if item.family is not None]
            assert set(made) <= {item.key for item in read}
    json.dumps(list(mended))


_FIELDS = st.sampled_from(
    [
        "type",
        "content",
        "tool_calls",
        "invalid_tool_calls",
        "tool_call_chunks",
        "additional_kwargs",
        "tool_call_id",
        "data",
        "kwargs",
        "id",
        "lc",
        "role",
        "name",
    ]
)
_TAGS = st.sampled_from(
    ["ai", "tool", "human", "constructor", "AIMessageChunk", "tool_use", "tool_result", "chat"]
)
_inner = st.dictionaries(_FIELDS, st.one_of(anything, _TAGS), max_size=5)
hostile = st.dictionaries(
    _FIELDS,
    st.one_of(anything, _TAGS, _inner, st.lists(_inner, max_size=3)),
    max_size=7,
)


@settings(max_examples=examples(400), deadline=None)
@given(st.lists(hostile, max_size=5), st.sampled_from([None, "langchain"]))
def test_no_message_makes_it_raise_anything_of_its_own(items, dialect):
    for wire in items:
        DIALECTS["langchain"].read(wire)
        DIALECTS["langchain"].claims(wire)
    try:
        mended = lockstitch.mend(items, dialect=dialect)
    except lockstitch.LockstitchError:
        return
    assert lockstitch.check(mended, dialect=dialect) == [] or not mended


def test_dumped_messages_of_langchain_itself_are_read_in_every_shape():
    history = [
        SystemMessage("s"),
        HumanMessage("go"),
        AIMessage("", tool_calls=[call()], usage_metadata=None),
        ToolMessage("x", tool_call_id="call_1"),
        AIMessage("done"),
    ]
    shapes = (
        [one.model_dump() for one in history],
        messages_to_dict(history),
        [dumpd(one) for one in history],
        history,
    )
    for wires in shapes:
        assert codes(wires) == []
        assert codes([*wires[:3], *wires[4:]]) == ["LS001"]
        assert codes([*wires[:2], *wires[3:]]) == ["LS002"]


def test_a_text_with_a_role_may_be_among_langchain_messages():
    history = [{"role": "system", "content": "s"}, human(), ai(call()), tool()]
    assert codes(history) == []
    with pytest.raises(NotAHistory, match="Item 1"):
        lockstitch.check([human(), {"role": "tool", "tool_call_id": "x", "content": "y"}, ai()])
