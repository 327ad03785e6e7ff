"""Files of coding agents, voice agents and recorded requests."""

from __future__ import annotations

from tests.formats.sample import Sample, json_lines
from tests.sessions.rollouts import call, header, output, user

_LINE = {"sessionId": "s", "version": "2.0.1", "cwd": "/project", "isSidechain": False}

SAMPLES = (
    Sample(
        "codex",
        [header(), user(), call("call_1"), output("call_1"), call("call_2"), user("and?")],
        json_lines,
        is_list=False,
    ),
    Sample("codex", [header(), user(), output("call_1")], json_lines, is_list=False),
    Sample(
        "claude-code",
        [
            {
                **_LINE,
                "type": "user",
                "uuid": "u1",
                "parentUuid": None,
                "message": {"role": "user", "content": "Read it."},
            },
            {
                **_LINE,
                "type": "assistant",
                "uuid": "u2",
                "parentUuid": "u1",
                "message": {
                    "id": "msg_1",
                    "role": "assistant",
                    "content": [
                        {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {"p": "a"}}
                    ],
                },
            },
            {
                **_LINE,
                "type": "user",
                "uuid": "u3",
                "parentUuid": "u2",
                "message": {"role": "user", "content": "And?"},
            },
        ],
        json_lines,
        is_list=False,
    ),
    Sample(
        "livekit",
        {
            "items": [
                {
                    "id": "item_1",
                    "type": "message",
                    "role": "user",
                    "content": ["go"],
                    "interrupted": False,
                },
                {
                    "id": "item_2",
                    "type": "function_call",
                    "call_id": "call_1",
                    "name": "book",
                    "arguments": "{}",
                },
                {
                    "id": "item_3",
                    "type": "message",
                    "role": "user",
                    "content": ["and?"],
                    "interrupted": False,
                },
            ]
        },
        is_list=False,
    ),
    Sample(
        "requests",
        [
            {"custom_id": "0", "body": {"messages": [{"role": "user", "content": "Hello."}]}},
            {
                "custom_id": "1",
                "body": {
                    "model": "gpt-5.5",
                    "messages": [
                        {"role": "user", "content": "Book it."},
                        {
                            "role": "assistant",
                            "tool_calls": [
                                {
                                    "id": "call_1",
                                    "type": "function",
                                    "function": {"name": "book", "arguments": "{}"},
                                }
                            ],
                        },
                        {"role": "user", "content": "And?"},
                    ],
                },
            },
        ],
        json_lines,
        is_list=False,
    ),
)
