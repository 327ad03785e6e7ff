"""Which items call and which answer, and by what the two are joined: all nine families.

Everything that makes an item a call or an output, in the eyes of the provider, is in these two
tables. A type that is in neither is neither."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class CallType:
    """A type of item that must be answered. `words` is what errors call it."""

    words: str
    key: str = "call_id"


@dataclass(frozen=True, slots=True)
class OutputType:
    """A type of item that answers calls of these types."""

    answers: tuple[str, ...]
    words: str
    key: str = "call_id"


CALLS: Final = {
    "function_call": CallType("function call"),
    "custom_tool_call": CallType("custom tool call"),
    "computer_call": CallType("computer call"),
    "shell_call": CallType("shell call"),
    "local_shell_call": CallType("local shell call"),
    "apply_patch_call": CallType("apply patch call"),
    "tool_search_call": CallType("tool search call"),
    "program": CallType("program"),
    "mcp_approval_request": CallType("MCP approval request", key="id"),
}

OUTPUTS: Final = {
    # Codex answers a local shell call with a function call's output.
    "function_call_output": OutputType(("function_call", "local_shell_call"), "function call"),
    "custom_tool_call_output": OutputType(("custom_tool_call",), "custom tool call"),
    "computer_call_output": OutputType(("computer_call",), "computer call"),
    "shell_call_output": OutputType(("shell_call",), "shell call"),
    # Kept without its `call_id`, as the official types have it: its own `id` is the call's.
    "local_shell_call_output": OutputType(("local_shell_call",), "local shell call", key="id"),
    "apply_patch_call_output": OutputType(("apply_patch_call",), "apply patch call"),
    "tool_search_output": OutputType(("tool_search_call",), "tool search call"),
    "program_output": OutputType(("program",), "program"),
    "mcp_approval_response": OutputType(
        ("mcp_approval_request",), "MCP approval request", key="approval_request_id"
    ),
}

# Items of these types carry an id that is not their own.
BORROWED_IDS: Final = frozenset({"local_shell_call_output", "item_reference"})


def key_of(item: Mapping[str, Any], key: str) -> str | None:
    value = item.get(key)
    return value if isinstance(value, str) and value else None


def calls_for_answer(item: Mapping[str, Any]) -> bool:
    """Whether somebody other than the provider has to answer this call.

    A tool search that the server runs may stand alone, and a call that broke off half-way
    (`incomplete`) was never made."""
    if item["type"] == "tool_search_call":
        return item.get("execution") != "server" and item.get("call_id") is not None
    return item.get("status") != "incomplete"


def stands_alone(item: Mapping[str, Any]) -> bool:
    """Whether this output needs no call: an event from outside, or the server's own search."""
    if item["type"] == "function_call_output":
        return item.get("call_id") is None
    if item["type"] == "tool_search_output":
        return item.get("execution") == "server" or item.get("call_id") is None
    return False
