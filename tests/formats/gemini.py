"""Contents of the Gemini API, in camel case and in snake case."""

from __future__ import annotations

from tests.formats.sample import Sample, json_lines

_ASKED = {"role": "user", "parts": [{"text": "What is the weather in Oslo and Bergen?"}]}

SAMPLES = (
    Sample(  # ids, one of two calls has no response
        "gemini",
        [
            _ASKED,
            {
                "role": "model",
                "parts": [
                    {"text": "I look it up.", "thought": True},
                    {
                        "functionCall": {
                            "id": "fc_1",
                            "name": "get_weather",
                            "args": {"city": "Oslo"},
                        },
                        "thoughtSignature": "c2lnbmF0dXJl",
                    },
                    {
                        "functionCall": {
                            "id": "fc_2",
                            "name": "get_weather",
                            "args": {"city": "Bergen"},
                        }
                    },
                ],
            },
            {
                "role": "user",
                "parts": [
                    {
                        "functionResponse": {
                            "id": "fc_1",
                            "name": "get_weather",
                            "response": {"output": "21 degrees"},
                        }
                    }
                ],
            },
        ],
    ),
    Sample(  # names alone, and a model that went on
        "gemini",
        [
            {"parts": [{"text": "Book it."}]},
            {"role": "model", "parts": [{"functionCall": {"name": "book", "args": {}}}]},
            {"role": "user", "parts": [{"text": "Did it work?"}]},
        ],
        json_lines,
    ),
    Sample(  # a response whose call is gone
        "gemini",
        [
            {
                "role": "function",
                "parts": [{"functionResponse": {"name": "book", "response": {"result": "ok"}}}],
            },
            {"role": "model", "parts": [{"text": "It is booked."}]},
        ],
    ),
    Sample(  # what `model_dump()` gives in Python
        "gemini",
        [
            {"role": "user", "parts": [{"text": "Book it.", "function_call": None}]},
            {
                "role": "model",
                "parts": [
                    {
                        "text": None,
                        "thought_signature": None,
                        "function_call": {"id": None, "name": "book", "args": {"n": 1}},
                        "function_response": None,
                    }
                ],
            },
        ],
    ),
    Sample(  # the body of a request
        "gemini",
        {
            "systemInstruction": {"parts": [{"text": "Be brief."}]},
            "contents": [
                _ASKED,
                {
                    "role": "model",
                    "parts": [{"functionCall": {"name": "get_weather", "args": {"city": "Oslo"}}}],
                },
                {"role": "user", "parts": [{"text": "And?"}]},
            ],
        },
        is_list=False,
    ),
    Sample(  # a tool that the server runs
        "gemini",
        [
            _ASKED,
            {
                "role": "model",
                "parts": [
                    {"toolCall": {"id": "t_1", "toolType": "URL_CONTEXT", "args": {"urls": ["x"]}}}
                ],
            },
            _ASKED,
        ],
    ),
)
