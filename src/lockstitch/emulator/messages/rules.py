"""The rules of Anthropic's Messages: is the request right, and what does it ask?

Pure. The shapes are in `shapes`. Each `tool_use` has its `tool_result` in the turn right
after, before anything else in it. A turn is one message, or several of the same role; the API's
reference says so: "Consecutive `user` or `assistant` turns in your request will be combined into a
single turn." """

import re
from typing import Any, Final, NamedTuple

from lockstitch.emulator.kinds import OBJECT, STRING, Shape
from lockstitch.emulator.messages import refusals
from lockstitch.emulator.messages.kinds import check_kind, check_shape
from lockstitch.emulator.messages.refusals import invalid
from lockstitch.emulator.messages.shapes import (
    COUNT,
    CREATE,
    CUSTOM_TOOL,
    OLDER_CREATE,
    OLDER_VERSIONS,
    ONLY_FROM,
    PROVIDED_TOOLS,
    SERVER_RESULTS,
    VERSION,
)
from lockstitch.emulator.messages.signing import Signer
from lockstitch.emulator.model.replies import Asked, Offered

Block = dict[str, Any]
Message = dict[str, Any]

_ID_PATTERNS: Final = {
    "tool_use": ("id", "^[a-zA-Z0-9_-]+$"),
    "tool_result": ("tool_use_id", "^[a-zA-Z0-9_-]+$"),
    "server_tool_use": ("id", "^srvtoolu_[a-zA-Z0-9_]+$"),
}
_TOOL_NAME: Final = "^[a-zA-Z0-9_-]{1,128}$"
_THOUGHTS: Final = frozenset({"thinking", "redacted_thinking"})


def check_create(body: dict[str, Any], signer: Signer, *, version: str = VERSION) -> None:
    """Refuse a malformed body of POST /v1/messages, a broken pair, a thought of another's."""
    older = version in OLDER_VERSIONS
    _check(body, signer, OLDER_CREATE if older else CREATE, older=older)
    thinking = body.get("thinking") or {}
    if thinking.get("budget_tokens", 0) >= body["max_tokens"]:
        said = "`max_tokens` must be greater than `thinking.budget_tokens`."
        raise invalid("wrong-value", "max_tokens", said)
    last = body["messages"][-1]
    if last["role"] != "user":
        blocks = blocks_of(last)
        if blocks and blocks[-1]["type"] in _THOUGHTS:
            raise refusals.thinking_last(f"messages.{len(body['messages']) - 1}")
        raise refusals.last_not_user()


def check_count(body: dict[str, Any], signer: Signer, *, version: str = VERSION) -> None:
    """Refuse a malformed body of POST /v1/messages/count_tokens."""
    _check(body, signer, COUNT, older=version in OLDER_VERSIONS)


def _check(body: dict[str, Any], signer: Signer, shape: Shape, *, older: bool) -> None:
    _check_roles(body.get("messages"))
    check_shape(shape, body, "")
    messages: list[Message] = body["messages"]
    if not messages:
        raise invalid("wrong-value", "messages", "at least one message is required")
    if messages[0]["role"] != "user":
        raise refusals.first_not_user()
    _check_tools(body)
    for index, message in enumerate(messages):
        _check_blocks(message, f"messages.{index}")
        if not older:
            _check_newer(message, f"messages.{index}")
    _check_unique(messages)
    turns = turns_of(messages)
    for index, turn in enumerate(turns):
        _check_pairs(turns, index)
        _check_server_pairs(turn)
    _check_signatures(messages, signer)
    if (body.get("thinking") or {}).get("type") == "enabled":
        _check_thinking_first(turns)


def blocks_of(message: Message) -> list[Block]:
    """A message's content as blocks: a string is one of text."""
    content = message["content"]
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return list(content)


def _check_roles(messages: Any) -> None:
    """The API has words of its own for this, the most frequent mistake."""
    for message in messages if isinstance(messages, list) else ():
        if isinstance(message, dict) and message.get("role") == "system":
            raise refusals.role_system()


def _check_tools(body: dict[str, Any]) -> None:
    tools = body.get("tools") or []
    choice = body.get("tool_choice")
    for index, tool in enumerate(tools):
        check_kind(OBJECT, tool, f"tools.{index}")
        _check_tool(tool, f"tools.{index}")
    names = [tool.get("name") for tool in tools if tool.get("name") is not None]
    if len(set(names)) < len(names):
        raise invalid("wrong-value", "tools", "Tool names must be unique.")
    if choice is None:
        return
    if not tools:
        said = "tool_choice may only be specified while providing tools."
        raise invalid("wrong-value", "tool_choice", said)
    if choice["type"] == "tool" and choice["name"] not in names:
        said = f"Tool '{choice['name']}' not found in provided tools"
        raise invalid("wrong-value", "tool_choice", said)
    thinking = (body.get("thinking") or {}).get("type")
    if thinking == "enabled" and choice["type"] in {"any", "tool"}:
        said = "Thinking may not be enabled when tool_choice forces tool use."
        raise invalid("wrong-value", "tool_choice", said)


def _check_tool(tool: dict[str, Any], path: str) -> None:
    named = tool.get("type") or "custom"
    check_kind(STRING, named, f"{path}.type")
    if named in PROVIDED_TOOLS:
        if "name" in tool:
            check_kind(STRING, tool["name"], f"{path}.{named}.name")
        return
    if named != "custom":
        tags = ", ".join(f"'{known}'" for known in sorted(PROVIDED_TOOLS | {"custom"}))
        said = f"Input tag '{named}' found using 'type' does not match any of the expected tags"
        raise invalid("wrong-value", path, f"{said}: {tags}")
    check_shape(CUSTOM_TOOL, tool, f"{path}.custom")
    _check_pattern(_TOOL_NAME, tool["name"], f"{path}.custom.name")


def _check_pattern(pattern: str, value: str, path: str) -> None:
    if re.fullmatch(pattern.strip("^$"), value) is None:
        raise invalid("wrong-value", path, f"String should match pattern '{pattern}'")


def _check_blocks(message: Message, path: str) -> None:
    """What holds for each block by itself."""
    if message["content"] == "" and message["role"] == "user":
        raise invalid("wrong-value", path, "user messages must have non-empty content")
    for index, block in enumerate(blocks_of(message)):
        named = block["type"]
        at = f"{path}.content.{index}"
        if ONLY_FROM.get(named, message["role"]) != message["role"]:
            raise refusals.wrong_role(at, named, ONLY_FROM[named])
        if named in _ID_PATTERNS:
            field, pattern = _ID_PATTERNS[named]
            _check_pattern(pattern, block[field], f"{at}.{named}.{field}")
        if named == "text" and not block["text"].strip():
            wanted = "contain non-whitespace text" if block["text"] else "be non-empty"
            raise invalid("wrong-value", "messages", f"text content blocks must {wanted}")


def _check_newer(message: Message, path: str) -> None:
    """What version 2026-10-21 no longer takes."""
    for index, block in enumerate(blocks_of(message)):
        at = f"{path}.content.{index}"
        if block["type"] == "document" and message["role"] == "assistant":
            raise refusals.wrong_role(at, "document", "user")
        if block["type"] == "text" and block.get("citations") and message["role"] == "user":
            said = "`citations` can only be in `assistant` messages"
            raise invalid("wrong-value", f"{at}.text.citations", said)


def _check_unique(messages: list[Message]) -> None:
    seen: set[str] = set()
    for index, message in enumerate(messages):
        for place, block in enumerate(blocks_of(message)):
            if block["type"] in {"tool_use", "server_tool_use"}:
                if block["id"] in seen:
                    raise refusals.duplicate_call(f"messages.{index}.content.{place}")
                seen.add(block["id"])


class Placed(NamedTuple):
    """A block and where it is in the request."""

    block: Block
    message: int
    place: int

    @property
    def path(self) -> str:
        return f"messages.{self.message}.content.{self.place}"


class Turn(NamedTuple):
    """Consecutive messages of one role, which the API combines before it checks the pairs."""

    role: str
    blocks: list[Placed]

    def calls(self) -> list[Placed]:
        return [one for one in self.blocks if one.block["type"] == "tool_use"]

    def leading_answers(self) -> set[str]:
        """The calls answered before anything else is said: text between a call and its result is
        refused."""
        answers = set()
        for one in self.blocks:
            if one.block["type"] != "tool_result":
                break
            answers.add(one.block["tool_use_id"])
        return answers


def turns_of(messages: list[Message]) -> list[Turn]:
    """The messages, with consecutive ones of the same role combined into a single turn."""
    turns: list[Turn] = []
    for index, message in enumerate(messages):
        if not turns or turns[-1].role != message["role"]:
            turns.append(Turn(message["role"], []))
        blocks = enumerate(blocks_of(message))
        turns[-1].blocks.extend(Placed(block, index, place) for place, block in blocks)
    return turns


def _check_pairs(turns: list[Turn], index: int) -> None:
    """The results in this turn answer the calls right before, and the next one answers its."""
    before = {one.block["id"] for one in turns[index - 1].calls()} if index else set()
    seen = set()
    for one in turns[index].blocks:
        if one.block["type"] != "tool_result":
            continue
        answered = one.block["tool_use_id"]
        if answered not in before:
            raise refusals.output_without_call(one.path, answered)
        if answered in seen:
            raise refusals.second_output(one.path, answered)
        seen.add(answered)
    answers = turns[index + 1].leading_answers() if index + 1 < len(turns) else set()
    missing = [one for one in turns[index].calls() if one.block["id"] not in answers]
    if missing:
        ids = [one.block["id"] for one in missing]
        raise refusals.calls_without_output(f"messages.{missing[0].message}", ids)


def _check_server_pairs(turn: Turn) -> None:
    """What the provider's own tools were asked and answered stands in one turn."""
    waiting: dict[str, Placed] = {}
    for one in turn.blocks:
        block = one.block
        if block["type"] == "server_tool_use":
            waiting[block["id"]] = one
        elif block["type"] in SERVER_RESULTS.values():
            call = waiting.pop(block["tool_use_id"], None)
            if call is None or SERVER_RESULTS.get(call.block["name"]) != block["type"]:
                raise refusals.server_output_without_call(
                    one.path, block["type"], block["tool_use_id"]
                )
    for one in waiting.values():
        name = one.block["name"]
        raise refusals.server_call_without_output(
            f"messages.{one.message}", name, one.block["id"], SERVER_RESULTS[name]
        )


def _check_signatures(messages: list[Message], signer: Signer) -> None:
    for index, message in enumerate(messages):
        for place, block in enumerate(blocks_of(message)):
            at = f"messages.{index}.content.{place}"
            if block["type"] == "redacted_thinking":
                # This provider redacts nothing, so it is another's.
                raise refusals.unverified_thinking(at, "data", "redacted_thinking")
            if block["type"] == "thinking" and not signer.signed(
                block["thinking"], block["signature"]
            ):
                raise refusals.unverified_thinking(at, "signature", "thinking")


def _check_thinking_first(turns: list[Turn]) -> None:
    """While tools are being called, the thought that led to the calls comes with them."""
    if not turns[-1].leading_answers():
        return
    first = turns[-2].blocks[0]
    if first.block["type"] not in _THOUGHTS:
        raise refusals.no_thinking_first(first.path, first.block["type"])


# What is asked


def asked(body: dict[str, Any]) -> Asked:
    """What a reply to this request, which is right, is chosen by."""
    messages: list[Message] = body["messages"]
    output, tool = _last_output(messages)
    choice = body.get("tool_choice") or {"type": "auto"}
    return Asked(
        model=body["model"],
        user=_last_user(messages),
        output=output,
        tool=tool,
        tools=tuple(_offered(tool) for tool in body.get("tools") or ()),
        choice=choice["name"] if choice["type"] == "tool" else _CHOICES[choice["type"]],
        parallel=not choice.get("disable_parallel_tool_use"),
        instructions=text_of(body.get("system")),
        length=len(messages),
        dialect="messages",
    )


_CHOICES: Final = {"auto": "auto", "any": "required", "none": "none"}


def text_of(content: Any) -> str:
    """The text in a content: itself, or that of its blocks."""
    if isinstance(content, list):
        return "\n".join(part["text"] for part in content if part["type"] == "text")
    return content or ""


def _last_user(messages: list[Message]) -> str:
    """The last thing the user said; results are not said by the user."""
    for message in reversed(messages):
        if message["role"] == "user":
            said = text_of(message["content"])
            if said:
                return said
    return ""


def _last_output(messages: list[Message]) -> tuple[str | None, str]:
    """The last result, if nothing was said after it, and the tool that gave it."""
    turns = turns_of(messages)
    last = turns[-1].blocks[-1].block if turns[-1].blocks else None
    if last is None or last["type"] != "tool_result":
        return None, ""
    names = {one.block["id"]: one.block["name"] for one in turns[-2].calls()}
    return text_of(last.get("content")), names[last["tool_use_id"]]


def _offered(tool: dict[str, Any]) -> Offered:
    named = tool.get("type") or "custom"
    return Offered(
        # The Responses API's word for a tool with a schema; its `custom` is another thing.
        type="function" if named == "custom" else named,
        name=tool.get("name") or named,
        parameters=tool.get("input_schema") or {},
        said=tool,
    )
