"""From a draft to an output item: fills in what its author did not say.

One row for each type of output item: the fields it must have, and what they are by default.
A field that the draft gives is kept as it is."""

from collections.abc import Callable, Iterable
from typing import Any, Final

from lockstitch.emulator.ids import Ids
from lockstitch.emulator.model.replies import Draft, json_text
from lockstitch.emulator.responses.minting import Mint

Item = dict[str, Any]

ENCRYPTED_REASONING = "reasoning.encrypted_content"


def _text_of_arguments(item: Item) -> None:
    """Arguments are a string of JSON; a draft may give the value."""
    if not isinstance(item.get("arguments"), str):
        item["arguments"] = json_text(item.get("arguments") or {})


def _whole_message(item: Item) -> None:
    if isinstance(item["content"], str):
        item["content"] = [{"type": "output_text", "text": item["content"]}]
    for part in item["content"]:
        if part.get("type") == "output_text":
            part.setdefault("annotations", [])
            part.setdefault("logprobs", [])


def _acted(item: Item) -> None:
    """One action, or several at once."""
    if "actions" not in item:
        item.setdefault("action", {"type": "screenshot"})


def _mcp_call(item: Item) -> None:
    _text_of_arguments(item)
    item.setdefault("status", "failed" if item.get("error") else "completed")


def _searched_by(item: Item) -> None:
    """Only the client's own searches have a call id."""
    if item["execution"] == "server":
        item["call_id"] = None


_COMPLETED: Final = {"status": "completed"}

# What each type must have; ids come from `_KEYED`.
DEFAULTS: Final[dict[str, dict[str, Any]]] = {
    "message": {"role": "assistant", "content": [], **_COMPLETED},
    "reasoning": {"summary": []},
    "function_call": {"name": "tool", "arguments": "{}", **_COMPLETED},
    "custom_tool_call": {"name": "tool", "input": ""},
    "computer_call": {"pending_safety_checks": [], **_COMPLETED},
    "shell_call": {"action": {"commands": []}, **_COMPLETED},
    "local_shell_call": {"action": {"type": "exec", "command": [], "env": {}}, **_COMPLETED},
    "apply_patch_call": {"operation": {"type": "delete_file", "path": "a.txt"}, **_COMPLETED},
    "tool_search_call": {"arguments": {}, "execution": "client", **_COMPLETED},
    "tool_search_output": {"execution": "server", "call_id": None, "tools": [], **_COMPLETED},
    "program": {"code": "", "fingerprint": "fp_0"},
    "program_output": {"result": "", **_COMPLETED},
    "mcp_approval_request": {"name": "tool", "arguments": "{}", "server_label": "server"},
    "mcp_call": {"name": "tool", "arguments": "{}", "server_label": "server"},
    "mcp_list_tools": {"server_label": "server", "tools": []},
    "web_search_call": {"action": {"type": "search", "query": ""}, **_COMPLETED},
    "file_search_call": {"queries": [], **_COMPLETED},
    "code_interpreter_call": {"code": "", "container_id": "cntr_0", "outputs": [], **_COMPLETED},
    "image_generation_call": {"result": "", **_COMPLETED},
    "compaction": {"encrypted_content": ""},
}

_KEYED: Final = frozenset(
    {
        "function_call",
        "custom_tool_call",
        "computer_call",
        "shell_call",
        "local_shell_call",
        "apply_patch_call",
        "tool_search_call",
        "program",
        "program_output",
    }
)

_TOUCHES: Final[dict[str, Callable[[Item], None]]] = {
    "message": _whole_message,
    "function_call": _text_of_arguments,
    "computer_call": _acted,
    "mcp_call": _mcp_call,
    "mcp_approval_request": _text_of_arguments,
    "tool_search_call": _searched_by,
}


def with_free_ids(drafts: Iterable[Draft], taken: Callable[[str], bool]) -> list[Draft]:
    """The drafts, without ids that are taken: no provider gives an id twice."""
    given: set[str] = set()
    free = []
    for draft in drafts:
        own = draft.get("id")
        if own and (own in given or taken(own)):
            free.append({name: value for name, value in draft.items() if name != "id"})
        else:
            given.add(own or "")
            free.append(draft)
    return free


def finished(draft: Draft, ids: Ids, mint: Mint, *, encrypted: bool) -> Item:
    """The whole item. `encrypted`: the client asked for reasoning it can send back."""
    kind = draft["type"]
    item: Item = {"id": draft.get("id") or ids.item(kind), "type": kind}
    if kind in _KEYED:
        item["call_id"] = draft["call_id"] if "call_id" in draft else ids.call()
    for name, default in DEFAULTS.get(kind, {}).items():
        item[name] = _copy(draft.get(name, default))
    item |= {name: _copy(value) for name, value in draft.items() if name not in item}
    touch = _TOUCHES.get(kind)
    if touch is not None:
        touch(item)
    if kind in {"reasoning", "compaction"}:
        _seal(item, draft, mint, encrypted=encrypted or kind == "compaction")
    return item


def _seal(item: Item, draft: Draft, mint: Mint, *, encrypted: bool) -> None:
    given = draft.get("encrypted_content")
    if isinstance(given, str) and given:
        mint.accept(given)
    elif encrypted:
        item["encrypted_content"] = mint.sealed(f"{item['id']}:{json_text(item.get('summary'))}")
    else:
        item.pop("encrypted_content", None)


def begun(item: Item) -> Item:
    """The item as it is announced: in progress, and empty of what will be streamed."""
    empty = _EMPTIED.get(item["type"], {})
    emptied = item | {name: value for name, value in empty.items() if name in item}
    if "status" in item and item["type"] not in _COME_WHOLE:
        emptied["status"] = "in_progress"
    return emptied


_EMPTIED: Final[dict[str, dict[str, Any]]] = {
    "message": {"content": []},
    "reasoning": {"summary": [], "content": []},
    "function_call": {"arguments": ""},
    "custom_tool_call": {"input": ""},
    "mcp_call": {"arguments": "", "output": None, "error": None},
    "shell_call": {"action": {"commands": []}},
    "code_interpreter_call": {"code": ""},
    "image_generation_call": {"result": None},
}

# They know no status but that of their end.
_COME_WHOLE: Final = frozenset({"program_output"})


def _copy(value: Any) -> Any:
    """A draft is used again and again: what is taken from it must not be shared."""
    if isinstance(value, dict):
        return {name: _copy(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_copy(inner) for inner in value]
    return value
