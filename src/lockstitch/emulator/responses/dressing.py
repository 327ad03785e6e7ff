"""The form in which the provider keeps and lists an item: with an id, a status, whole parts.

It takes items whose shape is already right, and returns new ones; what lies inside and needs no
change is shared with the item it came from, so neither may be changed in place."""

from collections.abc import Callable
from typing import Any

from lockstitch.emulator.ids import Ids
from lockstitch.emulator.responses.item_shapes import ITEM_SHAPES, MESSAGE_SHAPES
from lockstitch.emulator.responses.shapes import item_type

_COMPLETED = {"status": "completed"}

# What the kept form has and the sent one may leave out, with its value then.
DEFAULTS: dict[str, dict[str, Any]] = {
    "message": _COMPLETED,
    "reasoning": _COMPLETED,
    "function_call": _COMPLETED,
    "function_call_output": _COMPLETED,
    "custom_tool_call": _COMPLETED,
    "custom_tool_call_output": _COMPLETED,
    "computer_call": _COMPLETED,
    "computer_call_output": _COMPLETED,
    "shell_call": {**_COMPLETED, "environment": None},
    "shell_call_output": {**_COMPLETED, "max_output_length": None},
    "local_shell_call": _COMPLETED,
    "local_shell_call_output": _COMPLETED,
    "apply_patch_call": _COMPLETED,
    "apply_patch_call_output": _COMPLETED,
    "tool_search_call": {**_COMPLETED, "call_id": None},
    "tool_search_output": {**_COMPLETED, "call_id": None},
    "program_output": _COMPLETED,
    "mcp_call": _COMPLETED,
    "web_search_call": _COMPLETED,
    "file_search_call": _COMPLETED,
    "code_interpreter_call": {**_COMPLETED, "code": None, "outputs": None},
    "image_generation_call": {**_COMPLETED, "result": None},
}

# What the sent form may have and the kept one has not, by role or type.
NOT_KEPT = {role: frozenset({"phase"}) for role in ("user", "system", "developer")} | {
    # The official types list it by the id of its call.
    "local_shell_call_output": frozenset({"call_id"})
}

# The official types of conversations know no status on these two; those of responses require it.
NO_STATUS_IN_CONVERSATIONS = frozenset({"custom_tool_call", "custom_tool_call_output"})


def dressed(item: dict[str, Any], ids: Ids) -> dict[str, Any]:
    """The item as the provider keeps it. A reference comes back as it is: it names another item."""
    named = item_type(item) or ""
    if named == "item_reference":
        return {"type": named, "id": item["id"]}
    own = item.get("id")
    if named == "local_shell_call_output":
        own = item.get("call_id") or own
    kept = {"id": own or ids.item(named), "type": named}
    kept |= _kept_fields(item, named)
    for name, value in DEFAULTS.get(named, {}).items():
        kept.setdefault(name, value)
    dress = _INSIDE.get(named)
    return kept if dress is None else kept | dress(kept)


def in_conversation(item: dict[str, Any]) -> dict[str, Any]:
    """A dressed item as the Conversations endpoints show it."""
    if item["type"] not in NO_STATUS_IN_CONVERSATIONS:
        return item
    return {name: value for name, value in item.items() if name != "status"}


def _kept_fields(item: dict[str, Any], named: str) -> dict[str, Any]:
    """A null is an absence, but where a field is needed and may hold one; a type without a table
    (a script may send any) keeps everything."""
    role = item.get("role", "")
    shape = MESSAGE_SHAPES.get(role) if named == "message" else ITEM_SHAPES.get(named)
    not_kept = NOT_KEPT.get(role or named, frozenset()) | {"id", "type"}
    return {
        name: value
        for name, value in item.items()
        if name not in not_kept
        and (shape is None or name in shape.needs or (value is not None and name in shape.fields))
    }


def _message(item: dict[str, Any]) -> dict[str, Any]:
    content = item["content"]
    if isinstance(content, str):
        kind = "output_text" if item["role"] == "assistant" else "input_text"
        content = [{"type": kind, "text": content}]
    return {"content": [_part(part) for part in content]}


def _output(item: dict[str, Any]) -> dict[str, Any]:
    output = item["output"]
    return {"output": output if isinstance(output, str) else [_part(part) for part in output]}


def _part(part: dict[str, Any]) -> dict[str, Any]:
    if part["type"] == "output_text":
        annotations, logprobs = part.get("annotations"), part.get("logprobs")
        return {**part, "annotations": annotations or [], "logprobs": logprobs or []}
    if part["type"] == "input_image":
        return {**part, "detail": part.get("detail") or "auto"}
    return part


def _local_shell_call(item: dict[str, Any]) -> dict[str, Any]:
    action = item["action"]
    return {"action": {**action, "env": action.get("env") or {}}}


def _shell_call(item: dict[str, Any]) -> dict[str, Any]:
    """The kept environment has its kind and its container; the skills are not repeated."""
    environment = item["environment"]
    if environment is None:
        return {}
    return {"environment": {n: value for n, value in environment.items() if n != "skills"}}


def _tool_search(item: dict[str, Any]) -> dict[str, Any]:
    """The client's searches have a call id, the server's have none."""
    return {"execution": item.get("execution") or ("client" if item["call_id"] else "server")}


_INSIDE: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "message": _message,
    "function_call_output": _output,
    "custom_tool_call_output": _output,
    "local_shell_call": _local_shell_call,
    "shell_call": _shell_call,
    "tool_search_call": _tool_search,
    "tool_search_output": _tool_search,
}
