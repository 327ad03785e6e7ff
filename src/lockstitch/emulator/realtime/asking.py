"""What the model of a Realtime session is asked, read from the context of one response."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from lockstitch.emulator.model.offers import offered
from lockstitch.emulator.model.replies import Asked
from lockstitch.emulator.realtime.items import Item, is_call


@dataclass(frozen=True, slots=True)
class Heard:
    """An item of the context, with what the model hears in its audio."""

    item: Item
    words: str = ""


def asked_of(context: Sequence[Heard], settings: dict[str, Any]) -> Asked:
    """`settings` are the session's, with those of the response itself laid over them."""
    output, tool = _last_output(context)
    return Asked(
        model=settings["model"],
        user=_last_user(context),
        output=output,
        tool=tool,
        tools=tuple(offered(settings["tools"])),
        choice=_choice(settings["tool_choice"]),
        parallel=settings.get("parallel_tool_calls") is not False,
        instructions=settings["instructions"],
        length=len(context),
        dialect="realtime",
    )


def _choice(choice: str | dict[str, Any]) -> str:
    if isinstance(choice, str):
        return choice
    return str(choice.get("name") or choice["server_label"])


def _last_user(context: Sequence[Heard]) -> str:
    for heard in reversed(context):
        if heard.item["type"] == "message" and heard.item["role"] == "user":
            return " ".join(_texts(heard))
    return ""


def _texts(heard: Heard) -> Iterator[str]:
    for part in heard.item["content"]:
        if part["type"] == "input_text":
            yield part["text"]
        elif part["type"] == "input_audio":
            words = heard.words or part.get("transcript")
            if words:
                yield words


def _last_output(context: Sequence[Heard]) -> tuple[str | None, str]:
    """The last output and its tool's name, if nothing but outputs came after the last call."""
    last = context[-1].item if context else None
    if last is None or last["type"] != "function_call_output":
        return None, ""
    for heard in reversed(context):
        if is_call(heard.item, last["call_id"]):
            return last["output"], heard.item["name"]
    return last["output"], ""
