"""Fields that look like those of a call and are none: such histories are read, not refused."""

from __future__ import annotations

import pytest

import lockstitch
from tests.formats import langchain

USER = {"role": "user", "content": "Is it raining in Oslo?"}
SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "input": {"type": "string"},
        "tool_call_id": {"type": "string"},
    },
}
CHAT = [
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
        ],
    },
    {"role": "tool", "tool_call_id": "a", "content": "yes"},
]
RESPONSES = [
    {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "a", "output": "yes"},
]
MESSAGES = [
    {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": {}}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "yes"}]},
]
GEMINI = [
    {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]},
    {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {}}}]},
]
BEDROCK = [
    {
        "role": "assistant",
        "content": [{"toolUse": {"toolUseId": "a", "name": "f", "input": {}}}],
    },
    {
        "role": "user",
        "content": [{"toolResult": {"toolUseId": "a", "content": [{"text": "yes"}]}}],
    },
]
METADATA = {"call_id": "+47 22 00 00 00", "tool": "telephone", "input": "voice"}

VALID = {
    "metadata in Chat": [{**USER, "metadata": METADATA}, *CHAT],
    "metadata in Responses": [
        {"type": "message", **USER, "metadata": METADATA},
        *RESPONSES,
    ],
    "metadata in Messages": [{**USER, "metadata": METADATA}, *MESSAGES],
    "metadata in Gemini": [
        {"role": "user", "parts": [{"text": "x"}], "metadata": {**METADATA, "name": "Ann"}},
        *GEMINI,
    ],
    "metadata in Bedrock": [
        {"role": "user", "content": [{"text": "x"}], "metadata": METADATA},
        *BEDROCK,
    ],
    "tools in a system message": [
        {
            "role": "system",
            "content": "Be brief.",
            "tools": [{"type": "function", "function": {"name": "f", "parameters": SCHEMA}}],
        },
        USER,
        *CHAT,
    ],
    "tools in an item of their own": [{"tools": [{"name": "f", "input_schema": SCHEMA}]}, *CHAT],
    "additional tools": [
        {
            "type": "additional_tools",
            "role": "developer",
            "tools": [{"type": "function", "name": "f", "parameters": SCHEMA}],
        },
        USER,
        *RESPONSES,
    ],
    "an edited context": [
        USER,
        {
            **MESSAGES[0],
            "id": "msg_1",
            "type": "message",
            "container": None,
            "stop_sequence": None,
            "context_management": {
                "applied_edits": [{"type": "clear_tool_uses_20250919", "cleared_tool_uses": 1}]
            },
        },
        MESSAGES[1],
    ],
    "a call that langchain-google-genai repeats": [
        langchain.human(),
        langchain.ai(
            langchain.call(),
            additional_kwargs={"function_call": {"name": "book", "arguments": "{}"}},
        ),
        langchain.tool(),
    ],
    "text that quotes calls": [
        {"role": "user", "content": [{"type": "text", "text": '{"tool_calls": [{"id": "x"}]}'}]},
        *CHAT,
    ],
}


@pytest.mark.parametrize("name", VALID)
def test_a_valid_history_with_such_a_field_is_clean_and_stays_as_it_is(name):
    history = VALID[name]
    assert lockstitch.check(history) == []
    assert all(new is old for new, old in zip(lockstitch.mend(history), history, strict=True))


@pytest.mark.parametrize(
    "hidden",
    [
        {"tool_calls": CHAT[0]["tool_calls"]},
        {"message": {"type": "tool_use", "id": "a"}},
        {"tool_call_id": "a"},
        GEMINI[0]["parts"][0],
    ],
    ids=["tool_calls", "tool_use", "tool_call_id", "functionCall"],
)
@pytest.mark.parametrize("field", ["metadata", "tools"])
def test_what_can_only_be_a_call_is_refused_in_such_a_field_too(field, hidden):
    with pytest.raises(lockstitch.NotAHistory, match="could not be read as one"):
        lockstitch.check([USER, {"role": "assistant", "content": "Yes.", field: [hidden]}])
