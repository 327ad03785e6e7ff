"""How each type of tool is called when nothing says with what: a table.

Which tools are called is decided by `brain`."""

import json
import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lockstitch.emulator.model import replies
from lockstitch.emulator.model.replies import Asked, Draft, Offered
from lockstitch.emulator.model.schema_samples import sample

LONGEST_ECHO_CHARACTERS = 200
LONGEST_WORD_CHARACTERS = 64
MOST_TOOLS = 10_000

_ANY_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Wanted:
    """A tool to call, with the arguments the user wrote behind its name, if any."""

    tool: Offered
    name: str
    arguments: str = ""


def short(text: str) -> str:
    if len(text) <= LONGEST_ECHO_CHARACTERS:
        return text
    return f"{text[:LONGEST_ECHO_CHARACTERS]}…"


def _word(asked: Asked) -> str:
    """A word of the user's that may be what it is about: a name, or the last one."""
    names = {name for tool in asked.tools[:MOST_TOOLS] for name in (tool.name, tool.type)}
    text = asked.user[:LONGEST_ECHO_CHARACTERS]
    words = [word for word in _ANY_WORD.findall(text) if word not in names]
    capital = next((word for word in words[1:] if word[0].isupper()), None)
    chosen = capital or (words[-1] if words else "example")
    return chosen[:LONGEST_WORD_CHARACTERS]


def _arguments(want: Wanted, schema: dict[str, Any], asked: Asked) -> str:
    if want.arguments:
        return want.arguments
    made = sample(schema, _word(asked))
    try:
        return replies.json_text(made) if isinstance(made, dict) else "{}"
    # A schema can hold what JSON cannot: a number too large, half of a character.
    except (TypeError, ValueError, OverflowError, RecursionError):
        return "{}"


def _function(want: Wanted, asked: Asked) -> Draft:
    arguments = _arguments(want, want.tool.parameters, asked)
    return replies.call(want.name, arguments, **_namespace(want.tool))


def _custom(want: Wanted, asked: Asked) -> Draft:
    return replies.custom_call(want.name, asked.user, **_namespace(want.tool))


def _namespace(tool: Offered) -> dict[str, str]:
    return {"namespace": tool.namespace} if tool.namespace else {}


# Clients really run what is sent here, so it is harmless.
def _shell(want: Wanted, asked: Asked) -> Draft:
    return replies.shell_call(f"echo {shlex.quote(_word(asked))}")


def _local_shell(want: Wanted, asked: Asked) -> Draft:
    return replies.local_shell_call("echo", _word(asked))


def _apply_patch(want: Wanted, asked: Asked) -> Draft:
    operation = {"type": "create_file", "path": "example.txt", "diff": f"+{_word(asked)}\n"}
    return replies.apply_patch_call(operation)


def _computer(want: Wanted, asked: Asked) -> Draft:
    return replies.item("computer_call", actions=[{"type": "screenshot"}], pending_safety_checks=[])


def _computer_preview(want: Wanted, asked: Asked) -> Draft:
    return replies.computer_call({"type": "screenshot"})


def _tool_search(want: Wanted, asked: Asked) -> Draft:
    query = {"query": short(asked.user)}
    if want.tool.said.get("execution") == "client":
        return replies.tool_search_call(query)
    # The server's own searches have no call id, and nobody has to answer them.
    return replies.tool_search_call(query, execution="server", call_id=None)


def _web_search(want: Wanted, asked: Asked) -> Draft:
    query = short(asked.user)
    action = {"type": "search", "query": query, "queries": [query]}
    return replies.item("web_search_call", action=action)


def _file_search(want: Wanted, asked: Asked) -> Draft:
    return replies.item("file_search_call", queries=[short(asked.user)], results=None)


def _code_interpreter(want: Wanted, asked: Asked) -> Draft:
    container = want.tool.said.get("container")
    return replies.item(
        "code_interpreter_call",
        code=f"print({json.dumps(_word(asked))})",
        container_id=container if isinstance(container, str) else "cntr_example",
        outputs=[{"type": "logs", "logs": f"{_word(asked)}\n"}],
    )


# A picture of one pixel.
_PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJ"
    "RU5ErkJggg=="
)


def _image_generation(want: Wanted, asked: Asked) -> Draft:
    return replies.item("image_generation_call", result=_PIXEL)


def _mcp(want: Wanted, asked: Asked) -> Draft:
    """A call, or first the question whether it may be made: that is the provider's default."""
    tool = want.tool
    label = tool.said.get("server_label")
    server = label if isinstance(label, str) and label else tool.name
    name = want.name
    if name == label:
        name = next(iter(mcp_tools(tool)), "example")
    if not _goes_unasked(tool.said.get("require_approval"), name):
        return replies.approval_request(server, name, want.arguments or "{}")
    return replies.item(
        "mcp_call",
        server_label=server,
        name=name,
        arguments=want.arguments or "{}",
        output=short(asked.user),
        error=None,
    )


def mcp_tools(tool: Offered) -> list[str]:
    allowed = tool.said.get("allowed_tools")
    names = allowed.get("tool_names") if isinstance(allowed, dict) else allowed
    return _texts(names)


def _goes_unasked(approval: Any, name: str) -> bool:
    if not isinstance(approval, dict):
        return bool(approval == "never")
    never = approval.get("never")
    return isinstance(never, dict) and name in _texts(never.get("tool_names"))


def _texts(values: Any) -> list[str]:
    if not isinstance(values, list):
        return []
    return [value for value in values[:MOST_TOOLS] if isinstance(value, str) and value]


CALLS: dict[str, Callable[[Wanted, Asked], Draft]] = {
    "function": _function,
    "custom": _custom,
    "shell": _shell,
    "local_shell": _local_shell,
    "apply_patch": _apply_patch,
    "computer": _computer,
    "computer_use_preview": _computer_preview,
    "tool_search": _tool_search,
    "mcp": _mcp,
    "web_search": _web_search,
    "web_search_2025_08_26": _web_search,
    "web_search_preview": _web_search,
    "web_search_preview_2025_03_11": _web_search,
    "file_search": _file_search,
    "code_interpreter": _code_interpreter,
    "image_generation": _image_generation,
}
_SELF_CONTAINED = frozenset(
    {
        "mcp_call",
        "web_search_call",
        "file_search_call",
        "code_interpreter_call",
        "image_generation_call",
    }
)


def is_self_contained(draft: Draft) -> bool:
    """Whether the provider runs it itself, so that nobody has to answer it."""
    return draft["type"] in _SELF_CONTAINED or draft.get("execution") == "server"
