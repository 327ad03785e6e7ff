"""The shapes of what items hold inside: parts of contents, actions, outputs, as literal tables.

What the official client's types say, and in three named tables what real clients do beyond them.
The items themselves are in `item_shapes`."""

from collections.abc import Mapping
from dataclasses import replace

from lockstitch.emulator.ids import PREFIXES
from lockstitch.emulator.kinds import (
    ANYTHING,
    BOOLEAN,
    DECIMAL,
    INTEGER,
    SCALAR,
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

# The types whose prefix is known from the provider's own refusals; for the others an id that
# begins with something else is not known to be refused, so it is not.
WELL_KNOWN_PREFIXES = frozenset(
    {
        "message",
        "reasoning",
        "function_call",
        "custom_tool_call",
        "computer_call",
        "web_search_call",
        "file_search_call",
        "code_interpreter_call",
        "image_generation_call",
        "mcp_call",
        "mcp_list_tools",
        "mcp_approval_request",
    }
)


def id_of(type: str) -> Kind:
    return replace(STRING, prefix=PREFIXES[type]) if type in WELL_KNOWN_PREFIXES else STRING


STATUS = one_of("in_progress", "completed", "incomplete")
CALL_ID = replace(STRING, longest=LONGEST_CALL_ID_CHARACTERS)

# Fields that real clients send beyond the official types, by the type of what carries them.
# The provider lists both custom types with a status, and takes back what it lists; Codex CLI
# gives an id to each message (captured, 0.166) and a status to each custom_tool_call (0.118 too).
# OpenAI's guide to the local shell answers by `call_id`, as do the Agents SDK and the AI SDK.
ALSO_TAKEN: dict[str, dict[str, Kind]] = {
    "message": {"id": id_of("message")},
    "custom_tool_call": {"status": STATUS},
    "custom_tool_call_output": {"status": STATUS},
    "local_shell_call_output": {"call_id": CALL_ID},
}

# Fields that the official types require and real clients leave out. Codex CLI sends output_text
# with its text alone (captured); by its source it sends images with their url alone, in older
# versions reasoning and built-in calls without ids, and a null for an empty `env`. The output of a
# local shell call that has a `call_id` needs no `id`.
LEFT_OUT: dict[str, frozenset[str]] = {
    "output_text": frozenset({"annotations"}),
    "input_image": frozenset({"detail"}),
    "reasoning": frozenset({"id"}),
    "web_search_call": frozenset({"id", "status"}),
    "local_shell_call": frozenset({"id"}),
    "local_shell_call_output": frozenset({"id"}),
    "exec": frozenset({"env"}),
}

# A part that the official types define and use nowhere in a response's input. It is taken, and
# kept as it came, for clients written against providers that hear.
ALSO_TAKEN_PARTS = frozenset({"input_audio"})


def eased(name: str, shape: Shape) -> Shape:
    """The official shape, with what real clients add and leave out."""
    left_out = LEFT_OUT.get(name, frozenset())
    needs = {field: kind for field, kind in shape.needs.items() if field not in left_out}
    spared = {field: shape.needs[field] for field in left_out}
    return Shape(needs, shape.may | spared | ALSO_TAKEN.get(name, {}))


def _tagged(shapes: Mapping[str, Shape]) -> Kind:
    return tagged({name: eased(name, shape) for name, shape in shapes.items()})


# The parts of contents

_BREAKPOINT = shaped(
    Shape({"mode": one_of("explicit")}, {"ttl": one_of("30m", "12h")}),
)
_ANNOTATION = tagged(
    {
        "file_citation": Shape({"file_id": STRING, "filename": STRING, "index": INTEGER}),
        "url_citation": Shape(
            {"end_index": INTEGER, "start_index": INTEGER, "title": STRING, "url": STRING}
        ),
        "container_file_citation": Shape(
            {
                "container_id": STRING,
                "end_index": INTEGER,
                "file_id": STRING,
                "filename": STRING,
                "start_index": INTEGER,
            }
        ),
        "file_path": Shape({"file_id": STRING, "index": INTEGER}),
    }
)
_TOKEN = {
    "token": STRING,
    "bytes": replace(STRINGS, expected="an array of integers", each=INTEGER),
    "logprob": DECIMAL,
}
_LOGPROB = shaped(Shape({**_TOKEN, "top_logprobs": array_of(shaped(Shape(_TOKEN)))}))

_INPUT_PARTS = {
    "input_text": Shape({"text": STRING}, {"prompt_cache_breakpoint": _BREAKPOINT}),
    "input_image": Shape(
        {"detail": one_of("low", "high", "auto", "original")},
        {"file_id": STRING, "image_url": STRING, "prompt_cache_breakpoint": _BREAKPOINT},
    ),
    "input_file": Shape(
        None,
        {
            "detail": one_of("auto", "low", "high"),
            "file_data": STRING,
            "file_id": STRING,
            "file_url": STRING,
            "filename": STRING,
            "prompt_cache_breakpoint": _BREAKPOINT,
        },
    ),
}
_INPUT_AUDIO = Shape(
    {"input_audio": shaped(Shape({"data": STRING, "format": one_of("mp3", "wav")}))}
)
INPUT_PART = _tagged(_INPUT_PARTS)
MESSAGE_INPUT_PART = _tagged({**_INPUT_PARTS, "input_audio": _INPUT_AUDIO})
OUTPUT_PART = _tagged(
    {
        "output_text": Shape(
            {"annotations": array_of(_ANNOTATION), "text": STRING}, {"logprobs": array_of(_LOGPROB)}
        ),
        "refusal": Shape({"refusal": STRING}),
    }
)
SUMMARY = tagged({"summary_text": Shape({"text": STRING})})
REASONING_TEXT = tagged({"reasoning_text": Shape({"text": STRING})})

# What calls hold

CALLER = tagged({"direct": Shape(), "program": Shape({"caller_id": STRING})})
SAFETY_CHECKS = array_of(shaped(Shape({"id": STRING}, {"code": STRING, "message": STRING})))
_POINT = {"x": INTEGER, "y": INTEGER}
_KEYS = {"keys": STRINGS}
COMPUTER_ACTION = tagged(
    {
        "click": Shape(
            {"button": one_of("left", "right", "wheel", "back", "forward"), **_POINT}, _KEYS
        ),
        "double_click": Shape(_POINT, _KEYS),
        "drag": Shape({"path": array_of(shaped(Shape(_POINT)))}, _KEYS),
        "keypress": Shape(_KEYS),
        "move": Shape(_POINT, _KEYS),
        "screenshot": Shape(),
        "scroll": Shape({"scroll_x": INTEGER, "scroll_y": INTEGER, **_POINT}, _KEYS),
        "type": Shape({"text": STRING}),
        "wait": Shape(),
    }
)
SCREENSHOT = tagged({"computer_screenshot": Shape(None, {"file_id": STRING, "image_url": STRING})})
WEB_SEARCH_ACTION = tagged(
    {
        "search": Shape(
            None,
            {
                "queries": STRINGS,
                "query": STRING,
                "sources": array_of(tagged({"url": Shape({"url": STRING})})),
            },
        ),
        "open_page": Shape(None, {"url": STRING}),
        "find_in_page": Shape({"pattern": STRING, "url": STRING}),
    }
)
FILE_SEARCH_RESULT = shaped(
    Shape(
        None,
        {
            "attributes": object_of(SCALAR),
            "file_id": STRING,
            "filename": STRING,
            "score": DECIMAL,
            "text": STRING,
        },
    )
)
CODE_OUTPUT = tagged({"logs": Shape({"logs": STRING}), "image": Shape({"url": STRING})})
IMAGE_ERROR = shaped(
    Shape(
        {"message": STRING, "type": STRING},
        {
            "code": STRING,
            "param": STRING,
            "moderation_details": shaped(
                Shape(
                    {
                        "categories": STRINGS,
                        "moderation_stage": one_of("input", "output", "unknown"),
                    }
                )
            ),
        },
    )
)
SVG_USAGE = shaped(
    Shape(
        {
            "input_tokens": INTEGER,
            "model": STRING,
            "output_tokens": INTEGER,
            "reasoning_tokens": INTEGER,
            "total_tokens": INTEGER,
        }
    )
)
LOCAL_SHELL_ACTION = _tagged(
    {
        "exec": Shape(
            {"command": STRINGS, "env": object_of(STRING)},
            {"timeout_ms": INTEGER, "user": STRING, "working_directory": STRING},
        )
    }
)
SHELL_ACTION = shaped(
    Shape({"commands": STRINGS}, {"max_output_length": INTEGER, "timeout_ms": INTEGER})
)
_SKILL = shaped(Shape({"description": STRING, "name": STRING, "path": STRING}))
ENVIRONMENT = tagged(
    {
        "local": Shape(None, {"skills": array_of(_SKILL)}),
        "container_reference": Shape({"container_id": STRING}),
    }
)
_OUTCOME = tagged({"timeout": Shape(), "exit": Shape({"exit_code": INTEGER})})
SHELL_OUTPUT = shaped(Shape({"outcome": _OUTCOME, "stderr": STRING, "stdout": STRING}))
_PATCH = Shape({"diff": STRING, "path": STRING})
OPERATION = tagged(
    {"create_file": _PATCH, "delete_file": Shape({"path": STRING}), "update_file": _PATCH}
)
MCP_TOOL = shaped(
    Shape(
        {"input_schema": ANYTHING, "name": STRING}, {"annotations": ANYTHING, "description": STRING}
    )
)
_MCP_FAILURE = Shape({"code": INTEGER, "message": STRING})
MCP_ERROR = tagged(
    {
        "mcp_protocol_error": _MCP_FAILURE,
        "mcp_tool_execution_error": Shape({"content": ANYTHING}),
        "http_error": _MCP_FAILURE,
    }
)
REASONING_EFFORT = one_of("none", "minimal", "low", "medium", "high", "xhigh", "max")
TEXT_FORMATS = {
    "text": Shape(),
    "json_schema": Shape(
        {"name": STRING, "schema": object_of(ANYTHING)},
        {"description": STRING, "strict": BOOLEAN},
    ),
}
EXECUTION = one_of("server", "client")
