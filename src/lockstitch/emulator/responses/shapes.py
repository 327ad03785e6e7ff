"""Whether what a client sends has the right shape: the parameters of a create, and its items.

Everything here is pure and looks at one body alone: what it refers to (an anchor, a call) is
checked where the state is. The tables of items are in `item_shapes`."""

from dataclasses import replace
from typing import Any

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
    check_kind,
    check_shape,
    object_of,
    one_of,
    said,
    shaped,
    string_or_array_of,
    tag_of,
    tagged,
)
from lockstitch.emulator.metadata import check_metadata
from lockstitch.emulator.refusals import (
    anchor_malformed,
    missing_parameter,
    out_of_range,
    two_anchors,
    unknown_parameter,
    unsupported_parameter,
    wrong_type,
    wrong_value,
)
from lockstitch.emulator.responses.item_shapes import (
    ITEM_SHAPES,
    ITEM_TYPES,
    MESSAGE_SHAPES,
    REFERENCE_SHAPE,
)
from lockstitch.emulator.responses.part_shapes import REASONING_EFFORT, TEXT_FORMATS

_SUMMARY = one_of("auto", "concise", "detailed")
_REASONING = Shape(
    None,
    {
        "context": one_of("auto", "current_turn", "all_turns"),
        "effort": REASONING_EFFORT,
        "generate_summary": _SUMMARY,
        "mode": STRING,
        "summary": _SUMMARY,
    },
)
_TEXT = Shape(
    None,
    {
        "format": tagged({**TEXT_FORMATS, "json_object": Shape()}),
        "verbosity": one_of("low", "medium", "high"),
    },
)
_MODERATION_MODE = shaped(Shape({"mode": one_of("score", "block")}))
_MODERATION = Shape(
    {"model": STRING},
    {"policy": shaped(Shape(None, {"input": _MODERATION_MODE, "output": _MODERATION_MODE}))},
)
_PROMPT_CACHE_OPTIONS = Shape(
    None,
    {
        "comparison_response_id": STRING,
        "mode": one_of("implicit", "explicit"),
        "prewarm": BOOLEAN,
        "ttl": one_of("30m", "12h"),
    },
)
_INCLUDABLE = one_of(
    "file_search_call.results",
    "web_search_call.results",
    "web_search_call.action.sources",
    "message.input_image.image_url",
    "computer_call_output.output.image_url",
    "code_interpreter_call.outputs",
    "reasoning.encrypted_content",
    "message.output_text.logprobs",
)
_CONVERSATION = Kind(
    "one of a string or object", frozenset({str, dict}), shape=Shape({"id": STRING})
)
_TOOL_CHOICE = Kind(
    "one of a string or object",
    frozenset({str, dict}),
    values=("none", "auto", "required"),
    # The fields of every form at once: which of them go together is not checked.
    shape=Shape(
        {"type": STRING},
        {
            "mode": one_of("auto", "required"),
            "name": STRING,
            "server_label": STRING,
            "tools": OBJECTS,
        },
    ),
)

# Every parameter of a create over HTTP. None is required by itself: see `_check_required`.
# A null is the same as an absence. `input`, `metadata`, `previous_response_id` and `tools` have
# rules of their own below and are here for their names.
CREATE_PARAMETERS: dict[str, Kind] = {
    "access_programs": shaped(
        Shape(None, {"cyber": one_of("standard", "daybreak_blue", "daybreak_red")})
    ),
    "background": BOOLEAN,
    "context_management": array_of(
        shaped(Shape({"type": one_of("compaction")}, {"compact_threshold": INTEGER}))
    ),
    "conversation": _CONVERSATION,
    "image": shaped(
        Shape(None, {"context_compression": one_of("auto", "enabled", "disabled")}),
    ),
    "include": replace(STRINGS, each=_INCLUDABLE),
    "input": string_or_array_of(ANYTHING),
    "instructions": STRING,
    "max_output_tokens": replace(INTEGER, lowest=1),
    "max_tool_calls": replace(INTEGER, lowest=1),
    "metadata": OBJECT,
    "model": STRING,
    "moderation": shaped(_MODERATION),
    "parallel_tool_calls": BOOLEAN,
    "previous_response_id": STRING,
    "prompt": shaped(Shape({"id": STRING}, {"variables": OBJECT, "version": STRING})),
    "prompt_cache_key": STRING,
    "prompt_cache_options": shaped(_PROMPT_CACHE_OPTIONS),
    "prompt_cache_retention": one_of("in_memory", "24h"),
    "reasoning": shaped(_REASONING),
    "safety_identifier": STRING,
    "service_tier": one_of("auto", "default", "flex", "scale", "priority", "fast", "ultrafast"),
    "store": BOOLEAN,
    "stream": BOOLEAN,
    "stream_options": shaped(Shape(None, {"include_obfuscation": BOOLEAN})),
    "temperature": replace(DECIMAL, lowest=0, highest=2),
    "text": shaped(_TEXT),
    "tool_choice": _TOOL_CHOICE,
    "tools": OBJECTS,
    "top_logprobs": replace(INTEGER, lowest=0, highest=20),
    "top_p": replace(DECIMAL, lowest=0, highest=1),
    "truncation": one_of("auto", "disabled"),
    "user": STRING,
}

# Parameters that real clients send beyond the official types: Codex CLI says who it is.
ALSO_TAKEN_PARAMETERS: dict[str, Kind] = {"client_metadata": object_of(STRING)}

# What a `response.create` frame has and a request over HTTP has not. A frame may say `stream`,
# which means nothing there: Codex CLI does.
WEBSOCKET_PARAMETERS: dict[str, Kind] = {
    "generate": BOOLEAN,
    "stream_id": ANYTHING,
    "type": one_of("response.create"),
}

_OVER_HTTP = Shape(None, CREATE_PARAMETERS | ALSO_TAKEN_PARAMETERS)
_OVER_WEBSOCKET = Shape(None, CREATE_PARAMETERS | ALSO_TAKEN_PARAMETERS | WEBSOCKET_PARAMETERS)


def check_create(body: dict[str, Any], *, websocket: bool = False) -> None:
    """Refuse a malformed body of POST /v1/responses, or a malformed `response.create` frame."""
    shape = _OVER_WEBSOCKET if websocket else _OVER_HTTP
    for name in body:
        if name not in shape.fields:
            raise unknown_parameter(name)
    _check_anchors(body)
    check_shape(shape, body, "")
    _check_background(body, websocket=websocket)
    if body.get("metadata") is not None:
        check_metadata(body["metadata"])
    if body.get("tools") is not None:
        _check_tools(body["tools"], "tools")
    _check_required(body, websocket=websocket)
    if isinstance(body.get("input"), list):
        check_items(body["input"])


# The parameters of the two requests beside a create, as the official types list them.
_OF_COMPACT = (
    "model",
    "image",
    "input",
    "instructions",
    "previous_response_id",
    "prompt_cache_key",
    "prompt_cache_options",
    "prompt_cache_retention",
    "service_tier",
)
_OF_COUNT = (
    "conversation",
    "input",
    "instructions",
    "model",
    "parallel_tool_calls",
    "previous_response_id",
    "reasoning",
    "text",
    "tool_choice",
    "tools",
    "truncation",
)
_COMPACT = Shape({"model": STRING}, {name: CREATE_PARAMETERS[name] for name in _OF_COMPACT})
_COUNT = Shape(
    None, {name: CREATE_PARAMETERS[name] for name in _OF_COUNT} | {"personality": STRING}
)


def check_compact(body: dict[str, Any]) -> None:
    """Refuse a malformed body of POST /v1/responses/compact."""
    _check_beside(body, _COMPACT)


def check_count(body: dict[str, Any]) -> None:
    """Refuse a malformed body of POST /v1/responses/input_tokens."""
    _check_beside(body, _COUNT)


def _check_beside(body: dict[str, Any], shape: Shape) -> None:
    _check_anchors(body)
    check_shape(shape, body, "")
    if isinstance(body.get("input"), list):
        check_items(body["input"])


def check_items(items: Any, param: str = "input") -> None:
    """Refuse an array of items when one of them has not the shape of its type."""
    if not isinstance(items, list):
        raise wrong_type(param, OBJECTS.expected, said(items))
    for index, item in enumerate(items):
        path = f"{param}[{index}]"
        if not isinstance(item, dict):
            raise wrong_type(path, OBJECT.expected, said(item))
        check_shape(_shape_of(item, path), item, path)
        _check_joined(item, path)


def _check_joined(item: dict[str, Any], path: str) -> None:
    """The one output that names its call in either of two fields."""
    if item.get("type") != "local_shell_call_output":
        return
    if item.get("call_id") is None and item.get("id") is None:
        raise missing_parameter(f"{path}.call_id")


def item_type(item: dict[str, Any]) -> str | None:
    """An item's type, said or understood: a role alone makes a message, an id alone a reference."""
    said_type = item.get("type")
    if isinstance(said_type, str):
        return said_type
    if "role" in item:
        return "message"
    return "item_reference" if item.keys() - {"type"} == {"id"} else None


def _shape_of(item: dict[str, Any], path: str) -> Shape:
    if item.get("type") is not None:
        tag_of(item, "type", ITEM_TYPES, path)
    named = item_type(item)
    if named is None:
        raise missing_parameter(f"{path}.type")
    if named == "message":
        return MESSAGE_SHAPES[tag_of(item, "role", tuple(MESSAGE_SHAPES), path)]
    return REFERENCE_SHAPE if named == "item_reference" else ITEM_SHAPES[named]


def _check_anchors(body: dict[str, Any]) -> None:
    anchor = body.get("previous_response_id")
    if anchor is None:
        return
    if not isinstance(anchor, str) or not anchor.startswith("resp_"):
        raise anchor_malformed()
    if body.get("conversation") is not None:
        raise two_anchors()


def _check_background(body: dict[str, Any], *, websocket: bool) -> None:
    background = body.get("background")
    if websocket and background is not None:
        raise unsupported_parameter("background", "is not supported over WebSocket")
    if background and body.get("store") is False:
        raise unsupported_parameter("background", "cannot be true when 'store' is false")


def _check_tools(tools: list[Any], param: str, *, grouped: bool = False) -> None:
    names = set()
    for index, tool in enumerate(tools):
        path = f"{param}[{index}]"
        check_kind(OBJECT, tool, path)
        _check_string_field(tool, "type", path)
        if grouped and tool["type"] not in {"function", "custom"}:
            raise wrong_value(f"{path}.type", tool["type"], "'function' and 'custom'")
        if tool["type"] == "namespace":
            _check_namespace(tool, path)
        if tool["type"] != "function":
            continue
        _check_string_field(tool, "name", path)
        if tool["name"] in names:
            raise out_of_range(f"{path}.name", f"another function is named '{tool['name']}'")
        names.add(tool["name"])


def _check_namespace(tool: dict[str, Any], path: str) -> None:
    """A group of functions and custom tools; the names are its own."""
    _check_string_field(tool, "name", path)
    if "tools" not in tool:
        raise missing_parameter(f"{path}.tools")
    check_kind(OBJECTS, tool["tools"], f"{path}.tools")
    _check_tools(tool["tools"], f"{path}.tools", grouped=True)


def _check_string_field(value: dict[str, Any], name: str, path: str) -> None:
    if name not in value:
        raise missing_parameter(f"{path}.{name}")
    check_kind(STRING, value[name], f"{path}.{name}")


def _check_required(body: dict[str, Any], *, websocket: bool) -> None:
    def given(*names: str) -> bool:
        return any(body.get(name) is not None for name in names)

    if not websocket and not given("model", "prompt"):
        raise missing_parameter("model")
    if not given("input", "prompt", "previous_response_id", "conversation"):
        raise missing_parameter("input")
