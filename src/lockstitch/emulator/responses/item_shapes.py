"""The shape of every item a client may send, as literal tables.

Only shapes: whether a call has its output is a question for other modules. What the items hold
inside, and what real clients do beyond the official types, is in `part_shapes`."""

from lockstitch.emulator.kinds import (
    ANYTHING,
    BOOLEAN,
    INTEGER,
    OBJECTS,
    STRING,
    STRINGS,
    Kind,
    Shape,
    array_of,
    one_of,
    shaped,
    string_or_array_of,
    tagged,
    with_tag,
)
from lockstitch.emulator.responses.part_shapes import (
    CALL_ID,
    CALLER,
    CODE_OUTPUT,
    COMPUTER_ACTION,
    ENVIRONMENT,
    EXECUTION,
    FILE_SEARCH_RESULT,
    IMAGE_ERROR,
    INPUT_PART,
    LOCAL_SHELL_ACTION,
    MCP_ERROR,
    MCP_TOOL,
    MESSAGE_INPUT_PART,
    OPERATION,
    OUTPUT_PART,
    REASONING_EFFORT,
    REASONING_TEXT,
    SAFETY_CHECKS,
    SCREENSHOT,
    SHELL_ACTION,
    SHELL_OUTPUT,
    STATUS,
    SUMMARY,
    SVG_USAGE,
    TEXT_FORMATS,
    WEB_SEARCH_ACTION,
    eased,
    id_of,
)

# A message's shape depends on its role; `type` may be left out.
_ROLES = ("user", "assistant", "system", "developer")
_MESSAGE_FIELDS = {
    "phase": one_of("commentary", "final_answer"),
    "status": STATUS,
    "type": one_of("message"),
}


def _message(part: Kind) -> Shape:
    needs = {"content": string_or_array_of(part), "role": one_of(*_ROLES)}
    return eased("message", Shape(needs, _MESSAGE_FIELDS))


MESSAGE_SHAPES = {
    role: _message(OUTPUT_PART if role == "assistant" else MESSAGE_INPUT_PART) for role in _ROLES
}

# A name for what exists, and nothing else; `type` may be left out.
REFERENCE_SHAPE = Shape({"id": STRING}, {"type": one_of("item_reference")})

_TYPED = {
    "function_call": Shape(
        {"arguments": STRING, "call_id": CALL_ID, "name": STRING},
        {
            "id": id_of("function_call"),
            "async": BOOLEAN,
            "caller": CALLER,
            "namespace": STRING,
            "status": STATUS,
        },
    ),
    "function_call_output": Shape(
        {"output": string_or_array_of(INPUT_PART)},
        {
            "id": STRING,
            "call_id": CALL_ID,
            "caller": CALLER,
            "name": STRING,
            "namespace": STRING,
            "status": STATUS,
        },
    ),
    "custom_tool_call": Shape(
        {"call_id": CALL_ID, "input": STRING, "name": STRING},
        {
            "id": id_of("custom_tool_call"),
            "async": BOOLEAN,
            "caller": CALLER,
            "namespace": STRING,
        },
    ),
    "custom_tool_call_output": Shape(
        {"call_id": CALL_ID, "output": string_or_array_of(INPUT_PART)},
        {"id": STRING, "caller": CALLER},
    ),
    "computer_call": Shape(
        {
            "id": id_of("computer_call"),
            "call_id": CALL_ID,
            "pending_safety_checks": SAFETY_CHECKS,
            "status": STATUS,
        },
        {"action": COMPUTER_ACTION, "actions": array_of(COMPUTER_ACTION)},
    ),
    "computer_call_output": Shape(
        {"call_id": CALL_ID, "output": SCREENSHOT},
        {"id": STRING, "acknowledged_safety_checks": SAFETY_CHECKS, "status": STATUS},
    ),
    "shell_call": Shape(
        {"action": SHELL_ACTION, "call_id": CALL_ID},
        {"id": STRING, "caller": CALLER, "environment": ENVIRONMENT, "status": STATUS},
    ),
    "shell_call_output": Shape(
        {"call_id": CALL_ID, "output": array_of(SHELL_OUTPUT)},
        {"id": STRING, "caller": CALLER, "max_output_length": INTEGER, "status": STATUS},
    ),
    "local_shell_call": Shape(
        {"id": STRING, "action": LOCAL_SHELL_ACTION, "call_id": CALL_ID, "status": STATUS}
    ),
    "local_shell_call_output": Shape({"id": STRING, "output": STRING}, {"status": STATUS}),
    "apply_patch_call": Shape(
        {
            "call_id": CALL_ID,
            "operation": OPERATION,
            "status": one_of("in_progress", "completed"),
        },
        {"id": STRING, "caller": CALLER},
    ),
    "apply_patch_call_output": Shape(
        {"call_id": CALL_ID, "status": one_of("completed", "failed")},
        {"id": STRING, "caller": CALLER, "output": STRING},
    ),
    "tool_search_call": Shape(
        {"arguments": ANYTHING},
        {"id": STRING, "call_id": CALL_ID, "execution": EXECUTION, "status": STATUS},
    ),
    "tool_search_output": Shape(
        {"tools": OBJECTS},
        {"id": STRING, "call_id": CALL_ID, "execution": EXECUTION, "status": STATUS},
    ),
    "program": Shape({"id": STRING, "call_id": CALL_ID, "code": STRING, "fingerprint": STRING}),
    "program_output": Shape(
        {
            "id": STRING,
            "call_id": CALL_ID,
            "result": STRING,
            "status": one_of("completed", "incomplete"),
        }
    ),
    "mcp_approval_request": Shape(
        {
            "id": id_of("mcp_approval_request"),
            "arguments": STRING,
            "name": STRING,
            "server_label": STRING,
        }
    ),
    "mcp_approval_response": Shape(
        {"approval_request_id": STRING, "approve": BOOLEAN}, {"id": STRING, "reason": STRING}
    ),
    "mcp_call": Shape(
        {"id": id_of("mcp_call"), "arguments": STRING, "name": STRING, "server_label": STRING},
        {
            "approval_request_id": STRING,
            "error": MCP_ERROR,
            "output": STRING,
            "status": one_of("in_progress", "completed", "incomplete", "calling", "failed"),
        },
    ),
    "mcp_list_tools": Shape(
        {"id": id_of("mcp_list_tools"), "server_label": STRING, "tools": array_of(MCP_TOOL)},
        {"error": STRING},
    ),
    "web_search_call": Shape(
        {
            "id": id_of("web_search_call"),
            "action": WEB_SEARCH_ACTION,
            "status": one_of("in_progress", "searching", "completed", "failed", "incomplete"),
        }
    ),
    "file_search_call": Shape(
        {
            "id": id_of("file_search_call"),
            "queries": STRINGS,
            "status": one_of("in_progress", "searching", "completed", "incomplete", "failed"),
        },
        {"results": array_of(FILE_SEARCH_RESULT)},
    ),
    "code_interpreter_call": Shape(
        {
            "id": id_of("code_interpreter_call"),
            "container_id": STRING,
            "status": one_of("in_progress", "completed", "incomplete", "interpreting", "failed"),
        },
        {"code": STRING, "outputs": array_of(CODE_OUTPUT)},
    ),
    "image_generation_call": Shape(
        {
            "id": id_of("image_generation_call"),
            "status": one_of("in_progress", "completed", "generating", "failed"),
        },
        {
            "result": STRING,
            "action": one_of("generate", "edit", "auto"),
            "background": one_of("transparent", "opaque", "auto"),
            "error": IMAGE_ERROR,
            "output_format": one_of("png", "webp", "jpeg", "gif", "svg"),
            "quality": one_of("low", "medium", "high", "xhigh", "max", "auto"),
            "revised_prompt": STRING,
            "size": STRING,
            "svg_usage": SVG_USAGE,
        },
    ),
    "reasoning": Shape(
        {"id": id_of("reasoning"), "summary": array_of(SUMMARY)},
        {"content": array_of(REASONING_TEXT), "encrypted_content": STRING, "status": STATUS},
    ),
    "compaction": Shape({"encrypted_content": STRING}, {"id": STRING}),
    "compaction_trigger": Shape(None, {"id": STRING}),
    "additional_tools": Shape({"role": one_of("developer"), "tools": OBJECTS}, {"id": STRING}),
    "configuration_update": Shape(
        None,
        {
            "id": STRING,
            "reasoning": shaped(Shape(None, {"effort": REASONING_EFFORT})),
            "text": shaped(Shape({"format": tagged(TEXT_FORMATS)})),
        },
    ),
}

# By `type`: every item but messages and references, which need none.
ITEM_SHAPES = {name: with_tag(name, eased(name, shape)) for name, shape in _TYPED.items()}
ITEM_TYPES = ("message", *ITEM_SHAPES, "item_reference")
