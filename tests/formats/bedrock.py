"""Messages of the Bedrock Converse API."""

from __future__ import annotations

from tests.formats.sample import Sample, json_lines

_ASKED = {"role": "user", "content": [{"text": "Read a.py and b.py."}]}

SAMPLES = (
    Sample(
        "bedrock",
        [
            _ASKED,
            {
                "role": "assistant",
                "content": [
                    {
                        "reasoningContent": {
                            "reasoningText": {"text": "Two files.", "signature": "c2ln"}
                        }
                    },
                    {"text": "I read them."},
                    {
                        "toolUse": {
                            "toolUseId": "tooluse_1",
                            "name": "read_file",
                            "input": {"path": "a.py"},
                        }
                    },
                    {
                        "toolUse": {
                            "toolUseId": "tooluse_2",
                            "name": "read_file",
                            "input": {"path": "b.py"},
                        }
                    },
                ],
            },
            {
                "role": "user",
                "content": [
                    {
                        "toolResult": {
                            "toolUseId": "tooluse_1",
                            "content": [{"json": {"lines": 3}}],
                            "status": "success",
                        }
                    },
                    {"cachePoint": {"type": "default"}},
                ],
            },
        ],
    ),
    Sample(
        "bedrock",
        [
            _ASKED,
            {
                "role": "assistant",
                "content": [
                    {"toolUse": {"toolUseId": "tooluse_1", "name": "read_file", "input": {}}}
                ],
            },
            {"role": "user", "content": [{"text": "And?"}]},
        ],
        json_lines,
    ),
    Sample(
        "bedrock",
        [
            {
                "role": "user",
                "content": [
                    {
                        "toolResult": {
                            "toolUseId": "tooluse_1",
                            "content": [{"text": "def a(): ..."}],
                            "status": "error",
                        }
                    }
                ],
            },
            {"role": "assistant", "content": [{"text": "It defines a."}]},
        ],
    ),
    Sample(
        "bedrock",
        {
            "modelId": "anthropic.claude-sonnet-4",
            "system": [{"text": "Be brief."}],
            "messages": [
                _ASKED,
                {
                    "role": "assistant",
                    "content": [
                        {
                            "toolUse": {
                                "toolUseId": "tooluse_1",
                                "name": "nova_grounding",
                                "input": {"query": "x"},
                                "type": "server_tool_use",
                            }
                        }
                    ],
                },
                _ASKED,
            ],
        },
        is_list=False,
    ),
)
