"""The rules of Chat Completions: is the request right, and what does it ask?

Pure. The shapes are in `shapes`; here is what holds between messages, above all that every
call is answered at once, and what a reply is chosen by."""

from typing import Any

from lockstitch.emulator.chat import refusals as chat_refusals
from lockstitch.emulator.chat.shapes import MESSAGE_SHAPES, REQUEST, ROLES
from lockstitch.emulator.kinds import OBJECT, check_kind, check_shape, tag_of
from lockstitch.emulator.metadata import check_metadata
from lockstitch.emulator.model.replies import Asked, Offered
from lockstitch.emulator.refusals import (
    missing_parameter,
    out_of_range,
    unknown_parameter,
    unsupported_parameter,
)

Message = dict[str, Any]

# Deprecated since tools came; a client that still uses them is told, not half understood.
LEGACY_PARAMETERS = ("functions", "function_call")
_LEGACY = "is not supported with this model. Use 'tools' instead"


def check_request(body: dict[str, Any]) -> None:
    """Refuse a malformed body of POST /v1/chat/completions, and one with a broken pair."""
    for name in body:
        if name not in REQUEST.fields:
            raise unknown_parameter(name)
    for name in ("model", "messages"):
        if body.get(name) is None:
            raise missing_parameter(name)
    check_shape(REQUEST, body, "")
    for name in LEGACY_PARAMETERS:
        if body.get(name) is not None:
            raise unsupported_parameter(name, _LEGACY)
    _check_between_parameters(body)
    _check_messages(body["messages"])
    _check_pairs(body["messages"])


def _check_between_parameters(body: dict[str, Any]) -> None:
    """What one parameter allows of another."""
    if body.get("metadata") is not None:
        check_metadata(body["metadata"])
    if body.get("stream_options") is not None and not body.get("stream"):
        raise chat_refusals.only_with_stream()
    if body.get("max_tokens") is not None and body.get("max_completion_tokens") is not None:
        raise unsupported_parameter(
            "max_tokens", "cannot be set at the same time as 'max_completion_tokens'"
        )
    tools = body.get("tools")
    if tools == []:
        raise chat_refusals.empty_array("tools")
    if tools is None:
        for name in ("tool_choice", "parallel_tool_calls"):
            if body.get(name) not in (None, "none"):
                raise chat_refusals.only_with_tools(name)
        return
    names = [tool[tool["type"]]["name"] for tool in tools]
    for index, name in enumerate(names):
        if name in names[:index]:
            said = f"another tool is named '{name}'"
            raise out_of_range(f"tools[{index}].{tools[index]['type']}.name", said)
    for name in _named_in(body.get("tool_choice")):
        if name not in names:
            raise chat_refusals.unknown_choice(name)


def _named_in(choice: Any) -> list[str]:
    """The names of the tools a choice speaks of."""
    if not isinstance(choice, dict):
        return []
    kind = choice.get("type")
    if kind == "allowed_tools":
        allowed = choice["allowed_tools"]["tools"]
        return [name for tool in allowed for name in _named_in(tool)]
    named = choice.get(kind) if isinstance(kind, str) else None
    return [str(named["name"])] if isinstance(named, dict) and "name" in named else []


def _check_messages(messages: list[Any]) -> None:
    if not messages:
        raise chat_refusals.empty_array("messages")
    for index, message in enumerate(messages):
        path = f"messages[{index}]"
        check_kind(OBJECT, message, path)
        role = tag_of(message, "role", ROLES, path)
        if role == "function":
            raise chat_refusals.function_role(index)
        if role != "assistant" and message.get("content", "") is None:
            raise chat_refusals.no_content(index)
        check_shape(MESSAGE_SHAPES[role], message, path)
        if role == "assistant":
            _check_assistant(message, index)


def _check_assistant(message: Message, index: int) -> None:
    if message.get("function_call") is not None:
        raise unsupported_parameter(f"messages[{index}].function_call", _LEGACY)
    if message.get("tool_calls") == []:
        raise chat_refusals.empty_array(f"messages[{index}].tool_calls")
    said = ("content", "tool_calls", "refusal", "audio")
    if all(message.get(name) is None for name in said):
        raise chat_refusals.no_content(index)


def _check_pairs(messages: list[Message]) -> None:
    """Each call is answered once, before anyone but a tool speaks."""
    waiting: list[str] = []
    for index, message in enumerate(messages):
        if message["role"] == "tool":
            if message["tool_call_id"] not in waiting:
                raise chat_refusals.output_without_call(index)
            waiting.remove(message["tool_call_id"])
            continue
        if waiting:
            raise chat_refusals.calls_without_output(waiting, index)
        waiting = [call["id"] for call in message.get("tool_calls") or ()]
    if waiting:
        raise chat_refusals.calls_without_output(waiting, len(messages) - 1)


# What is asked


def asked(body: dict[str, Any]) -> Asked:
    """What a reply to this request, which is right, is chosen by."""
    messages: list[Message] = body["messages"]
    last = messages[-1]
    answered = last["role"] == "tool"
    choice = body.get("tool_choice")
    return Asked(
        model=body["model"],
        user=_last_text(messages, "user"),
        output=text_of(last["content"]) if answered else None,
        tool=_name_of(messages, last["tool_call_id"]) if answered else "",
        tools=_offered(body.get("tools") or [], choice),
        choice=_choice(choice),
        parallel=body.get("parallel_tool_calls") is not False,
        instructions="\n\n".join(
            text_of(message["content"])
            for message in messages
            if message["role"] in {"system", "developer"}
        ),
        length=len(messages),
        dialect="chat",
    )


def text_of(content: Any) -> str:
    """The text in a content: itself, or that of its parts."""
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content)
    return content or ""


def _last_text(messages: list[Message], role: str) -> str:
    for message in reversed(messages):
        if message["role"] == role:
            return text_of(message["content"])
    return ""


def _name_of(messages: list[Message], id: str) -> str:
    """The tool of the last call with this id."""
    for message in reversed(messages):
        for call in message.get("tool_calls") or ():
            if call["id"] == id:
                return str(call[call["type"]]["name"])
    return ""


def _offered(tools: list[dict[str, Any]], choice: Any) -> tuple[Offered, ...]:
    allowed = None
    if isinstance(choice, dict) and choice["type"] == "allowed_tools":
        allowed = _named_in(choice)
    offered = []
    for tool in tools:
        said = tool[tool["type"]]
        if allowed is None or said["name"] in allowed:
            offered.append(
                Offered(
                    type=tool["type"],
                    name=said["name"],
                    parameters=said.get("parameters") or {},
                    said=said,
                )
            )
    return tuple(offered)


def _choice(choice: Any) -> str:
    if isinstance(choice, dict):
        if choice["type"] == "allowed_tools":
            return str(choice["allowed_tools"]["mode"])
        return str(choice[choice["type"]]["name"])
    return str(choice or "auto")
