"""What a session is told of itself: the caller's configuration, with the tools of the session."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from lockstitch.runner.schemas import NotATool
from lockstitch.runner.tools import Kind, Tool


def configuration(given: Mapping[str, Any] | None, tools: Iterable[Tool]) -> dict[str, Any] | None:
    """The body of `session.update`; None where there is nothing to say."""
    declared = [_declared(tool) for tool in tools]
    if given is None and not declared:
        return None
    body = {"type": "realtime", **(given or {})}
    if declared:
        body["tools"] = [*declared, *body.get("tools", ())]
    return body


def functions_of(given: Mapping[str, Any] | None) -> frozenset[str]:
    """The names of the functions that a configuration declares."""
    tools = (given or {}).get("tools") or ()
    return frozenset(str(tool.get("name")) for tool in tools if tool.get("type") == "function")


def _declared(tool: Tool) -> dict[str, Any]:
    if tool.kind is Kind.CUSTOM:
        raise NotATool(
            f"{tool.name} is a custom tool, and realtime has none. Make it a function with one"
            " parameter of type str."
        )
    # Realtime does not know `strict`; arguments are checked here in any case.
    return {name: value for name, value in tool.for_responses().items() if name != "strict"}


def transcribes(given: Mapping[str, Any] | None) -> bool:
    """Will the words of what the user says come later?"""
    heard = ((given or {}).get("audio") or {}).get("input") or {}
    return bool(heard.get("transcription"))
