"""The rules of Anthropic's Messages: is the request right, and what does it ask?

Pure. The shapes are in `shapes`. Each `tool_use` has its `tool_result` in the message
right after, before anything else in it; the API itself joins messages of one role, but public
reports disagree on results spread over several, so they are refused here."""

import re
from typing import Any, Final

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
    for index, message in enumerate(messages):
        _check_pairs(messages, index)
        _check_server_pairs(message, f"messages.{index}")
    _check_signatures(messages, signer)
    if (body.get("thinking") or {}).get("type") == "enabled":
        _check_thinking_first(messages)


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


def _check_pairs(messages: list[Message], index: int) -> None:
    """The results in this message answer the calls right before, and the next one answers its."""
    before = _calls(messages[index - 1]) if index else []
    seen = set()
    for place, block in enumerate(blocks_of(messages[index])):
        if block["type"] != "tool_result":
            continue
        answered = block["tool_use_id"]
        at = f"messages.{index}.content.{place}"
        if answered not in before:
            raise refusals.output_without_call(at, answered)
        if answered in seen:
            raise refusals.second_output(at, answered)
        seen.add(answered)
    answers = _leading_answers(messages[index + 1]) if index + 1 < len(messages) else set()
    missing = [call for call in _calls(messages[index]) if call not in answers]
    if missing:
        raise refusals.calls_without_output(f"messages.{index}", missing)


def _calls(message: Message) -> list[str]:
    return [block["id"] for block in blocks_of(message) if block["type"] == "tool_use"]


def _leading_answers(message: Message) -> set[str]:
    """The results that come before anything else: text between a call and its result is refused."""
    answers = set()
    for block in blocks_of(message):
        if block["type"] != "tool_result":
            break
        answers.add(block["tool_use_id"])
    return answers


def _check_server_pairs(message: Message, path: str) -> None:
    """What the provider's own tools were asked and answered stands in one message."""
    waiting: dict[str, str] = {}
    for index, block in enumerate(blocks_of(message)):
        if block["type"] == "server_tool_use":
            waiting[block["id"]] = block["name"]
        elif block["type"] in SERVER_RESULTS.values():
            asked = waiting.pop(block["tool_use_id"], "")
            if SERVER_RESULTS.get(asked) != block["type"]:
                at = f"{path}.content.{index}"
                raise refusals.server_output_without_call(at, block["type"], block["tool_use_id"])
    for call, name in waiting.items():
        raise refusals.server_call_without_output(path, name, call, SERVER_RESULTS[name])


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


def _check_thinking_first(messages: list[Message]) -> None:
    """While tools are being called, the thought that led to the calls comes with them."""
    if not _leading_answers(messages[-1]):
        return
    index = len(messages) - 2
    first = blocks_of(messages[index])[0]["type"]
    if first not in _THOUGHTS:
        raise refusals.no_thinking_first(f"messages.{index}.content.0", first)


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
    last = blocks_of(messages[-1])
    if not last or last[-1]["type"] != "tool_result":
        return None, ""
    names = {
        block["id"]: block["name"]
        for block in blocks_of(messages[-2])
        if block["type"] == "tool_use"
    }
    return text_of(last[-1].get("content")), names[last[-1]["tool_use_id"]]


def _offered(tool: dict[str, Any]) -> Offered:
    named = tool.get("type") or "custom"
    return Offered(
        # The Responses API's word for a tool with a schema; its `custom` is another thing.
        type="function" if named == "custom" else named,
        name=tool.get("name") or named,
        parameters=tool.get("input_schema") or {},
        said=tool,
    )
