"""The shape of a Messages request: its parameters, messages, content blocks and tools.

Tables alone, as the official client's types have them; `kinds` walks them. The rules
between blocks and between messages are in `messages`."""

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
    one_of,
    shaped,
    tagged,
)

_CACHE: Final = {
    "cache_control": shaped(Shape({"type": one_of("ephemeral")}, {"ttl": one_of("5m", "1h")}))
}


def _text_or(each: Kind) -> Kind:
    return Kind("a string or a list", frozenset({str, list}), each=each)


# Content blocks

_TEXT = Shape({"text": STRING}, {**_CACHE, "citations": OBJECTS})
_SOURCE = Kind("an object", frozenset({dict}))
_GIVEN: Final = {
    "text": _TEXT,
    "image": Shape({"source": _SOURCE}, {**_CACHE, "transformations": OBJECT}),
    "document": Shape(
        {"source": _SOURCE}, {**_CACHE, "citations": OBJECT, "context": STRING, "title": STRING}
    ),
    "search_result": Shape(
        {"content": array_of(tagged({"text": _TEXT})), "source": STRING, "title": STRING},
        {**_CACHE, "citations": OBJECT},
    ),
}
_RESULT_PARTS: Final = {
    **_GIVEN,
    "tool_reference": Shape({"tool_name": STRING}, _CACHE),
    "browser_state": Shape({"tabs": OBJECTS}, {**_CACHE, "state_changes": OBJECTS}),
}
_SERVER_RESULT = Shape({"content": ANYTHING, "tool_use_id": STRING}, {**_CACHE, "caller": OBJECT})

# The tools that the provider runs, and the block that answers each.
SERVER_RESULTS: Final = {
    "web_search": "web_search_tool_result",
    "web_fetch": "web_fetch_tool_result",
    "code_execution": "code_execution_tool_result",
    "bash_code_execution": "bash_code_execution_tool_result",
    "text_editor_code_execution": "text_editor_code_execution_tool_result",
    "tool_search_tool_regex": "tool_search_tool_result",
    "tool_search_tool_bm25": "tool_search_tool_result",
}
BLOCKS: Final = {
    **_GIVEN,
    "thinking": Shape({"thinking": STRING, "signature": STRING}),
    "redacted_thinking": Shape({"data": STRING}),
    "tool_use": Shape(
        {"id": STRING, "input": OBJECT, "name": STRING},
        {**_CACHE, "caller": OBJECT, "toolset_name": STRING},
    ),
    "tool_result": Shape(
        {"tool_use_id": STRING},
        {
            **_CACHE,
            "content": _text_or(tagged(_RESULT_PARTS)),
            "is_error": BOOLEAN,
            "toolset_name": STRING,
        },
    ),
    "server_tool_use": Shape(
        {"id": STRING, "input": OBJECT, "name": one_of(*SERVER_RESULTS)},
        {**_CACHE, "caller": OBJECT},
    ),
    **dict.fromkeys(SERVER_RESULTS.values(), _SERVER_RESULT),
    "container_upload": Shape({"file_id": STRING}, _CACHE),
}
# The blocks that only one of the two may send.
ONLY_FROM: Final = {
    "tool_result": "user",
    **dict.fromkeys(
        ("tool_use", "thinking", "redacted_thinking", "server_tool_use", *SERVER_RESULTS.values()),
        "assistant",
    ),
}

ROLES: Final = ("user", "assistant")
MESSAGE: Final = Shape({"content": _text_or(tagged(BLOCKS)), "role": one_of(*ROLES)})

# Tools. What the provider's own tools are told beside their type is not looked into.

CUSTOM_TOOL: Final = Shape(
    {"name": STRING, "input_schema": OBJECT},
    {
        **_CACHE,
        "allowed_callers": STRINGS,
        "defer_loading": BOOLEAN,
        "description": STRING,
        "eager_input_streaming": BOOLEAN,
        "input_examples": OBJECTS,
        "strict": BOOLEAN,
        "type": one_of("custom"),
    },
)
PROVIDED_TOOLS: Final = frozenset(
    {
        "bash_20250124",
        "browser_toolset_20260801",
        "code_execution_20250522",
        "code_execution_20250825",
        "code_execution_20260120",
        "code_execution_20260521",
        "computer_toolset_20260801",
        "memory_20250818",
        "text_editor_20250124",
        "text_editor_20250429",
        "text_editor_20250728",
        "tool_search_tool_bm25",
        "tool_search_tool_bm25_20251119",
        "tool_search_tool_regex",
        "tool_search_tool_regex_20251119",
        "web_fetch_20250910",
        "web_fetch_20260209",
        "web_fetch_20260309",
        "web_fetch_20260318",
        "web_search_20250305",
        "web_search_20260209",
        "web_search_20260318",
    }
)

# The parameters

_ALONE = {"disable_parallel_tool_use": BOOLEAN}
_SHOWN = {"display": one_of("summarized", "omitted")}
LEAST_THINKING_TOKENS: Final = 1024

# What a count and a create both take.
_COUNTED: Final[dict[str, Kind]] = {
    **_CACHE,
    "output_config": shaped(
        Shape(None, {"effort": one_of("low", "medium", "high", "xhigh", "max"), "format": OBJECT})
    ),
    "speed": one_of("standard", "fast"),
    "system": _text_or(tagged({"text": _TEXT})),
    "thinking": tagged(
        {
            "enabled": Shape(
                {"budget_tokens": replace(INTEGER, lowest=LEAST_THINKING_TOKENS)}, _SHOWN
            ),
            "disabled": Shape(),
            "between_tools": Shape(),
            "adaptive": Shape(None, _SHOWN),
        }
    ),
    "tool_choice": tagged(
        {
            "auto": Shape(None, _ALONE),
            "any": Shape(None, _ALONE),
            "tool": Shape({"name": STRING}, _ALONE),
            "none": Shape(),
        }
    ),
    "tools": OBJECTS,
}
_NEEDED: Final = {"messages": array_of(shaped(MESSAGE)), "model": STRING}
COUNT: Final = Shape(_NEEDED, _COUNTED)
CREATE: Final = Shape(
    {"max_tokens": replace(INTEGER, lowest=1), **_NEEDED},
    {
        **_COUNTED,
        "container": Kind("a string or an object", frozenset({str, dict})),
        "diagnostics": shaped(Shape(None, {"previous_message_id": STRING})),
        "inference_geo": STRING,
        "metadata": shaped(Shape(None, {"user_id": STRING})),
        "service_tier": one_of("auto", "standard_only"),
        "stop_sequences": STRINGS,
        "stream": BOOLEAN,
    },
)

# The versions of the API. The last took sampling away: at `2026-10-21` these are unknown.
VERSION: Final = "2026-10-21"
OLDER_VERSIONS: Final = frozenset({"2023-01-01", "2023-06-01"})
OLDER_CREATE: Final = Shape(
    CREATE.needs,
    {
        **CREATE.may,
        "temperature": replace(DECIMAL, lowest=0, highest=1),
        "top_k": replace(INTEGER, lowest=0),
        "top_p": replace(DECIMAL, lowest=0, highest=1),
    },
)
