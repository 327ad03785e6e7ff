"""The shape of a Chat Completions request: its parameters, messages, parts, calls and tools.

Tables alone, as the official client's types have them; where real clients do otherwise, a comment
says so. `kinds` walks them; the rules between messages are in `chat`."""

from dataclasses import replace
from typing import Final

from lockstitch.emulator.kinds import (
    ANYTHING,
    BOOLEAN,
    DECIMAL,
    INTEGER,
    OBJECT,
    OBJECTS,
    STRING,
    STRINGS,
    Kind,
    Shape,
    array_of,
    object_of,
    one_of,
    shaped,
    tagged,
)
from lockstitch.emulator.limits import LONGEST_CALL_ID_CHARACTERS

# Once 40 (public reports until February 2026); live requests with 53 were taken in July 2026
# (vercel/ai 17233), and 64 is the limit of the sister API.
_CALL_ID: Final = replace(STRING, longest=LONGEST_CALL_ID_CHARACTERS)

# Parts of contents

_BREAKPOINT = shaped(Shape({"mode": one_of("explicit")}, {"ttl": one_of("30m", "12h")}))
_CACHED = {"prompt_cache_breakpoint": _BREAKPOINT}
_PARTS: Final = {
    "text": Shape({"text": STRING}, _CACHED),
    "refusal": Shape({"refusal": STRING}),
    "image_url": Shape(
        {
            "image_url": shaped(
                Shape({"url": STRING}, {"detail": one_of("auto", "low", "high", "original")})
            )
        },
        _CACHED,
    ),
    "input_audio": Shape(
        {"input_audio": shaped(Shape({"data": STRING, "format": one_of("wav", "mp3")}))}, _CACHED
    ),
    "file": Shape(
        {"file": shaped(Shape(None, {"file_data": STRING, "file_id": STRING, "filename": STRING}))},
        _CACHED,
    ),
}


def _content(*parts: str) -> Kind:
    return Kind(
        "one of a string or array of objects",
        frozenset({str, list}),
        each=tagged({part: _PARTS[part] for part in parts}),
    )


# Messages

_TOOL_CALL = tagged(
    {
        "function": Shape(
            {"id": _CALL_ID, "function": shaped(Shape({"name": STRING, "arguments": STRING}))}
        ),
        "custom": Shape(
            {"id": _CALL_ID, "custom": shaped(Shape({"name": STRING, "input": STRING}))}
        ),
    }
)
_INSTRUCTION = Shape({"content": _content("text")}, {"name": STRING})

# By role; the role itself is added below. The role `function` is refused in `chat`.
_MESSAGES: Final = {
    "system": _INSTRUCTION,
    "developer": _INSTRUCTION,
    "user": Shape(
        {"content": _content("text", "image_url", "input_audio", "file")}, {"name": STRING}
    ),
    "assistant": Shape(
        None,
        {
            "content": _content("text", "refusal"),
            "audio": shaped(Shape({"id": STRING}, {"data": STRING, "expires_at": INTEGER})),
            "function_call": OBJECT,
            "name": STRING,
            "refusal": STRING,
            "tool_calls": array_of(_TOOL_CALL),
            # In every answer, so clients that send the answer's message back send it too.
            "annotations": OBJECTS,
        },
    ),
    # The official types have no name here; the first examples of the API had one.
    "tool": Shape({"content": _content("text"), "tool_call_id": _CALL_ID}, {"name": STRING}),
}
ROLES: Final = (*_MESSAGES, "function")
MESSAGE_SHAPES: Final = {
    role: Shape(shape.needs | {"role": one_of(role)}, shape.may)
    for role, shape in _MESSAGES.items()
}

# Tools

_NAMED = shaped(Shape({"name": STRING}))
_GRAMMAR = shaped(Shape({"definition": STRING, "syntax": one_of("lark", "regex")}))
TOOL: Final = tagged(
    {
        "function": Shape(
            {
                "function": shaped(
                    Shape(
                        {"name": STRING},
                        {"description": STRING, "parameters": OBJECT, "strict": BOOLEAN},
                    )
                )
            }
        ),
        "custom": Shape(
            {
                "custom": shaped(
                    Shape(
                        {"name": STRING},
                        {
                            "description": STRING,
                            "format": tagged(
                                {"text": Shape(), "grammar": Shape({"grammar": _GRAMMAR})}
                            ),
                        },
                    )
                )
            }
        ),
    }
)
_CHOICES = tagged(
    {
        "function": Shape({"function": _NAMED}),
        "custom": Shape({"custom": _NAMED}),
        "allowed_tools": Shape(
            {"allowed_tools": shaped(Shape({"mode": one_of("auto", "required"), "tools": OBJECTS}))}
        ),
    }
)
_TOOL_CHOICE = replace(
    _CHOICES,
    expected="one of a string or object",
    types=frozenset({str, dict}),
    values=("none", "auto", "required"),
)

# The parameters

_MODERATION_MODE = shaped(Shape({"mode": one_of("score", "block")}))
_APPROXIMATE = dict.fromkeys(("city", "country", "region", "timezone"), STRING)
_RESPONSE_FORMAT = tagged(
    {
        "text": Shape(),
        "json_object": Shape(),
        "json_schema": Shape(
            {
                "json_schema": shaped(
                    Shape(
                        {"name": STRING},
                        {"description": STRING, "schema": OBJECT, "strict": BOOLEAN},
                    )
                )
            }
        ),
    }
)
_STOP = Kind("one of a string or array of strings", frozenset({str, list}), each=STRING)
_VOICE = Kind("one of a string or object", frozenset({str, dict}), shape=Shape({"id": STRING}))
_PENALTY = replace(DECIMAL, lowest=-2, highest=2)

# Every parameter of a create. Which are required is for `chat` to say, in the provider's order.
PARAMETERS: Final[dict[str, Kind]] = {
    "audio": shaped(
        Shape({"format": one_of("wav", "aac", "mp3", "flac", "opus", "pcm16"), "voice": _VOICE})
    ),
    "frequency_penalty": _PENALTY,
    "function_call": ANYTHING,
    "functions": OBJECTS,
    "logit_bias": object_of(INTEGER),
    "logprobs": BOOLEAN,
    "max_completion_tokens": replace(INTEGER, lowest=1),
    "max_tokens": replace(INTEGER, lowest=1),
    "messages": OBJECTS,
    "metadata": OBJECT,
    "modalities": replace(STRINGS, each=one_of("text", "audio")),
    "model": STRING,
    "moderation": shaped(
        Shape(
            {"model": STRING},
            {
                "policy": shaped(
                    Shape(None, {"input": _MODERATION_MODE, "output": _MODERATION_MODE})
                )
            },
        )
    ),
    "n": replace(INTEGER, lowest=1, highest=128),
    "parallel_tool_calls": BOOLEAN,
    "prediction": tagged({"content": Shape({"content": _content("text")})}),
    "presence_penalty": _PENALTY,
    "prompt_cache_key": STRING,
    "prompt_cache_options": shaped(
        Shape(None, {"mode": one_of("implicit", "explicit"), "ttl": one_of("30m")})
    ),
    "prompt_cache_retention": one_of("in_memory", "24h"),
    "reasoning_effort": STRING,
    "response_format": _RESPONSE_FORMAT,
    "safety_identifier": STRING,
    "seed": INTEGER,
    "service_tier": one_of("auto", "default", "flex", "scale", "priority", "fast"),
    "stop": _STOP,
    "store": BOOLEAN,
    "stream": BOOLEAN,
    "stream_options": shaped(
        Shape(None, {"include_obfuscation": BOOLEAN, "include_usage": BOOLEAN})
    ),
    "temperature": replace(DECIMAL, lowest=0, highest=2),
    "tool_choice": _TOOL_CHOICE,
    "tools": array_of(TOOL),
    "top_logprobs": replace(INTEGER, lowest=0, highest=20),
    "top_p": replace(DECIMAL, lowest=0, highest=1),
    "user": STRING,
    "verbosity": one_of("low", "medium", "high"),
    "web_search_options": shaped(
        Shape(
            None,
            {
                "search_context_size": one_of("low", "medium", "high"),
                "user_location": tagged(
                    {"approximate": Shape({"approximate": shaped(Shape(None, _APPROXIMATE))})}
                ),
            },
        )
    ),
}
REQUEST: Final = Shape(None, PARAMETERS)
