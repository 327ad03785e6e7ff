"""What the model is asked, read from a Responses context: who spoke last, and what is offered."""

from typing import Any

from lockstitch.emulator.model.offers import offered
from lockstitch.emulator.model.replies import Asked, json_text
from lockstitch.emulator.responses.context import Context, Item
from lockstitch.emulator.responses.pairs import CALLS, OUTPUTS, key_of


def asked_of(request: dict[str, Any], context: Context) -> Asked:
    output, tool = _last_output(context)
    return Asked(
        model=str(request.get("model") or ""),
        user=_last_user(context),
        output=output,
        tool=tool,
        tools=tuple(offered(request.get("tools") or [])),
        choice=_choice(request.get("tool_choice")),
        parallel=request.get("parallel_tool_calls") is not False,
        instructions=str(request.get("instructions") or ""),
        length=len(context),
    )


def _choice(choice: Any) -> str:
    if isinstance(choice, dict):
        return str(choice.get("name") or choice.get("mode") or choice.get("type") or "auto")
    return choice if isinstance(choice, str) else "auto"


def _last_user(context: Context) -> str:
    for item in context.backwards():
        if item["type"] == "message" and item.get("role") == "user":
            return text_of(item.get("content"))
    return ""


def _last_output(context: Context) -> tuple[str | None, str]:
    last = next(context.backwards(), None)
    if last is None or last["type"] not in OUTPUTS:
        return None, ""
    return said_by(last), _tool_name(context, last)


def said_by(output: Item) -> str:
    """The text of an output, whatever its family calls it."""
    for field in ("output", "result", "tools", "approve"):
        if field in output:
            value = output[field]
            return value if isinstance(value, str) else text_of(value)
    return str(output.get("status") or "")


def _tool_name(context: Context, output: Item) -> str:
    family = OUTPUTS[output["type"]]
    key = key_of(output, family.key)
    for item in context.backwards():
        if item["type"] in family.answers and key_of(item, CALLS[item["type"]].key) == key:
            return str(item.get("name") or item["type"])
    return ""


def text_of(content: Any) -> str:
    """The text in a message's content; other values as JSON."""
    if isinstance(content, str):
        return content
    if isinstance(content, list) and all(isinstance(part, dict) for part in content):
        texts = [part["text"] for part in content if isinstance(part.get("text"), str)]
        if texts or not content:
            return "\n".join(texts)
    return json_text(content)
