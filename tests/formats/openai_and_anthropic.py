"""Lists of items and messages of the OpenAI and Anthropic APIs."""

from __future__ import annotations

from tests.formats.sample import Sample, json_lines

SAMPLES = (
    Sample(
        "chat",
        [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": "Book it."}]},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "id": "call_1",
                        "type": "function",
                        "function": {"name": "book", "arguments": '{"flight": "SK 802"}'},
                    }
                ],
            },
            {"role": "user", "content": "Did it work?"},
        ],
    ),
    Sample(
        "chat",
        [
            {"role": "user", "content": "Book it."},
            {"role": "tool", "tool_call_id": "call_1", "content": "booked"},
        ],
        json_lines,
    ),
    Sample(
        "responses",
        [
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]},
            {"type": "reasoning", "id": "rs_1", "summary": []},
            {
                "type": "function_call",
                "id": "fc_1",
                "call_id": "call_1",
                "name": "book",
                "arguments": "{}",
                "status": "completed",
            },
            {"role": "user", "content": "Did it work?"},
        ],
    ),
    Sample(
        "responses",
        [
            {"role": "user", "content": "go"},
            {"type": "custom_tool_call_output", "call_id": "call_1", "output": "done"},
        ],
        json_lines,
    ),
    Sample(
        "responses",
        [
            {"role": "user", "content": "go"},
            {
                "type": "mcp_approval_request",
                "id": "mcpr_1",
                "name": "pay",
                "arguments": "{}",
                "server_label": "bank",
            },
        ],
    ),
    Sample(
        "messages",
        [
            {"role": "user", "content": "Read it."},
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "I read."},
                    {
                        "type": "tool_use",
                        "id": "toolu_1",
                        "name": "read_file",
                        "input": {"path": "a.py"},
                    },
                ],
            },
            {"role": "user", "content": [{"type": "text", "text": "And?"}]},
        ],
    ),
    Sample(
        "messages",
        [
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "toolu_1",
                        "content": [{"type": "text", "text": "def a(): ..."}],
                        "is_error": False,
                    }
                ],
            },
            {"role": "assistant", "content": [{"type": "text", "text": "It defines a."}]},
        ],
    ),
    Sample(
        "realtime",
        [
            {
                "object": "realtime.item",
                "id": "item_1",
                "type": "message",
                "role": "user",
                "content": [{"type": "input_audio", "transcript": "go"}],
            },
            {
                "object": "realtime.item",
                "id": "item_2",
                "type": "function_call",
                "call_id": "call_1",
                "name": "book",
                "arguments": "{}",
            },
        ],
    ),
)
