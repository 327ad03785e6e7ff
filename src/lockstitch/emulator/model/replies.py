"""What the emulated model says: a reply is a few drafts of output items.

A draft is an output item of the Responses API, with as little as its author cared to say: ids,
statuses and the rest are filled in when it is spoken. The other dialects translate the drafts
they can say."""

import hashlib
from dataclasses import dataclass, field
from typing import Any

import msgspec

Draft = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """One turn of the model."""

    drafts: tuple[Draft, ...]
    # Seconds before the first event, and between two events.
    delay: float = 0.0
    pace: float = 0.0
    # Faults that strike this reply alone, written as on the command line.
    faults: tuple[str, ...] = ()
    # completed; or incomplete / failed, after all drafts are spoken
    ends: str = "completed"
    # Tokens reported as used, when the count of what was said is not wanted.
    input_tokens: int | None = None
    output_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Offered:
    """A tool the client offers. `type` is the Responses API's word for it."""

    type: str
    name: str
    # The group that a function or custom tool is in, if it is in one.
    namespace: str = ""
    # The JSON schema of a function's arguments.
    parameters: dict[str, Any] = field(default_factory=dict)
    # The rest of what the client said of it (an MCP server's label, say).
    said: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a reply is chosen by: the request, in no dialect's words."""

    model: str
    # The text of the last user message; empty if there is none.
    user: str
    # The text of the last tool output, if nothing but outputs came after the last call.
    output: str | None = None
    # The name of the tool that gave it, if known.
    tool: str = ""
    tools: tuple[Offered, ...] = ()
    # auto, none, required, or the name of a tool
    choice: str = "auto"
    parallel: bool = True
    instructions: str = ""
    # How many items or messages the context has.
    length: int = 0
    # responses, chat, messages or realtime
    dialect: str = "responses"


def text(said: str, *, phase: str | None = None, **fields: Any) -> Draft:
    """A message."""
    draft: Draft = {"type": "message", "content": [{"type": "output_text", "text": said}]}
    return draft | ({"phase": phase} if phase else {}) | fields


def refusal(said: str, **fields: Any) -> Draft:
    """A message that declines."""
    return {"type": "message", "content": [{"type": "refusal", "refusal": said}], **fields}


def reasoning(summary: str = "", *, content: str = "", **fields: Any) -> Draft:
    draft: Draft = {
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": summary}] if summary else [],
    }
    inner = {"content": [{"type": "reasoning_text", "text": content}]} if content else {}
    return draft | inner | fields


def call(name: str, arguments: Any = None, **fields: Any) -> Draft:
    """A function call. Arguments that are no string are written as JSON."""
    return {"type": "function_call", "name": name, "arguments": _written(arguments), **fields}


def custom_call(name: str, input: str, **fields: Any) -> Draft:
    """A call of a custom tool, whose input is raw text."""
    return {"type": "custom_tool_call", "name": name, "input": input, **fields}


def shell_call(*commands: str, **fields: Any) -> Draft:
    """Commands for the client's shell, each a line of its own."""
    action = {"commands": list(commands), "max_output_length": None, "timeout_ms": None}
    return {"type": "shell_call", "action": action, **fields}


def local_shell_call(*command: str, **fields: Any) -> Draft:
    """One command: a program and its arguments."""
    action = {"type": "exec", "command": list(command), "env": {}}
    return {"type": "local_shell_call", "action": action, **fields}


def apply_patch_call(operation: dict[str, Any], **fields: Any) -> Draft:
    """`operation` is the provider's: `{"type": "create_file", "path": …, "diff": …}`."""
    return {"type": "apply_patch_call", "operation": operation, **fields}


def computer_call(*actions: dict[str, Any], **fields: Any) -> Draft:
    """One action, as the preview of the tool sends it, or several at once."""
    said: Draft = {"action": actions[0]} if len(actions) == 1 else {"actions": list(actions)}
    return {"type": "computer_call", **said, "pending_safety_checks": [], **fields}


def tool_search_call(arguments: Any, *, execution: str = "client", **fields: Any) -> Draft:
    """A search for tools; here the arguments are no string."""
    search: Draft = {"type": "tool_search_call", "arguments": arguments, "execution": execution}
    return search | fields


def program(code: str, **fields: Any) -> Draft:
    """A program of the model. The client must send its fingerprint back as it is."""
    mark = hashlib.blake2b(code.encode("utf-8", "replace"), digest_size=16).hexdigest()
    return {"type": "program", "code": code, "fingerprint": mark, **fields}


def approval_request(server: str, name: str, arguments: Any = None, **fields: Any) -> Draft:
    """A question to the user: may this tool of an MCP server be called?"""
    return {
        "type": "mcp_approval_request",
        "server_label": server,
        "name": name,
        "arguments": _written(arguments),
        **fields,
    }


def item(type: str, **fields: Any) -> Draft:
    """Any other output item, in the provider's own words."""
    return {"type": type, **fields}


def reply(*drafts: Draft | str, **settings: Any) -> Reply:
    """A reply of these drafts; a string is a message."""
    said = tuple(text(draft) if isinstance(draft, str) else draft for draft in drafts)
    return Reply(drafts=said, **settings)


def json_text(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _written(arguments: Any) -> str:
    if isinstance(arguments, str):
        return arguments
    return json_text({} if arguments is None else arguments)
