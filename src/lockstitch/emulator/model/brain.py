"""What the emulated model says when no script tells it: simple, and the same each time.

It calls the offered tools that the user names, tells what an output was, and otherwise repeats
what the user said. It never fails, whatever the client offers."""

import json
import re
from collections.abc import Iterator
from typing import Any

from lockstitch.emulator.model import replies
from lockstitch.emulator.model.calling import (
    CALLS,
    MOST_TOOLS,
    Wanted,
    is_self_contained,
    mcp_tools,
    short,
)
from lockstitch.emulator.model.replies import Asked, Offered, Reply

# The provider, too, makes only a few calls at once.
MOST_CALLS = 16

# Their names are the client's choice; the other types go by their type as well.
_NAMED_TYPES = ("function", "custom")

# Names of tools are made of these; a name is found only as a whole word.
_WORD = re.compile(r"[A-Za-z0-9_-]+")
# Between a name and its arguments: `name {…}`, `name({…})`, "`name` with {…}".
_BETWEEN = re.compile(r"[\s:=(`]{0,16}(?:with[\s:=(`]{1,16})?(?=\{)")


def answer(asked: Asked) -> Reply:
    """The reply of a model that has no script."""
    wanted = _wanted(asked)
    drafts = [CALLS[want.tool.type](want, asked) for want in wanted]
    if drafts and all(is_self_contained(draft) for draft in drafts):
        # The provider ran these itself, and goes on to speak.
        drafts.append(replies.text(f"Done: {', '.join(want.name for want in wanted)}."))
    return replies.reply(*(drafts or [replies.text(_said(asked))]))


def _said(asked: Asked) -> str:
    if asked.output is not None:
        tool = asked.tool or "The tool"
        return f"{tool} returned: {short(asked.output)}" if asked.output else f"{tool} is done."
    return f"You said: {short(asked.user)}" if asked.user.strip() else "You said nothing."


def _wanted(asked: Asked) -> list[Wanted]:
    if asked.choice == "none":
        return []
    forced = asked.choice not in ("auto", "required")
    # Once is enough: a client that always forces a tool would call it for ever.
    if asked.output is not None and not (forced and _was_another(asked)):
        return []
    tools = [tool for tool in asked.tools[:MOST_TOOLS] if tool.type in CALLS]
    if forced:
        tools = [tool for tool in tools if _goes_by(tool, asked.choice)]
    if not tools:
        return []
    named = list(_named(asked.user, _by_name(tools)))
    if not named and asked.choice != "auto":
        named = [Wanted(tools[0], _names(tools[0])[0])]
    return named if asked.parallel else named[:1]


def _was_another(asked: Asked) -> bool:
    """Whether the last output is surely not the forced tool's."""
    known = any(tool.name == asked.tool and tool.type in _NAMED_TYPES for tool in asked.tools)
    return known and asked.tool != asked.choice


def _by_name(tools: list[Offered]) -> dict[str, Offered]:
    by_name: dict[str, Offered] = {}
    for tool in tools:
        for name in _names(tool):
            by_name.setdefault(name, tool)
    return by_name


def _names(tool: Offered) -> list[str]:
    """What a user may call a tool: an MCP server goes by its label and by its tools' names."""
    if tool.type == "mcp":
        label = tool.said.get("server_label")
        names = [*mcp_tools(tool), label if isinstance(label, str) else ""]
    elif tool.type in _NAMED_TYPES:
        names = [tool.name]
    else:
        names = [tool.name, tool.type]
    return [name for name in names if name] or [tool.type]


def _goes_by(tool: Offered, choice: str) -> bool:
    if choice == tool.type:
        return choice not in _NAMED_TYPES or tool.name == choice
    return choice in _names(tool)


def _named(text: str, by_name: dict[str, Offered]) -> Iterator[Wanted]:
    """The tools that the text names, in its order; again only with arguments."""
    seen: set[str] = set()
    wanted = read = 0
    for word in _WORD.finditer(text):
        tool = by_name.get(word[0])
        # A name inside the arguments of another tool is no name.
        if tool is None or word.start() < read:
            continue
        arguments = _arguments_at(text, word.end())
        if not arguments and word[0] in seen:
            continue
        seen.add(word[0])
        read = word.end() if not arguments else text.index(arguments, word.end()) + len(arguments)
        yield Wanted(tool, word[0], arguments)
        wanted += 1
        if wanted == MOST_CALLS:
            return


def _arguments_at(text: str, at: int) -> str:
    """The JSON object that begins here, as it is written; empty if there is none."""
    between = _BETWEEN.match(text, at)
    if between is None:
        return ""
    try:
        _, end = _DECODER.raw_decode(text, between.end())
    except (ValueError, RecursionError):
        return ""
    return text[between.end() : end]


def _not_json(constant: str) -> Any:
    raise ValueError(constant)


_DECODER = json.JSONDecoder(parse_constant=_not_json)
