"""What a session is told of itself: the caller's configuration, with the tools of the session.

A configuration is changed by updates that name a part of it; a new line is told all of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from lockstitch.runner.schemas import NotATool
from lockstitch.runner.tools import Kind, Tool

Body = dict[str, Any]

MERGED: Final = frozenset({"audio", "input", "output"})
"""Settings inside of which an update changes only what it names."""


class Configuration:
    """The body of `session.update`, as it is in force."""

    def __init__(self, given: Mapping[str, Any] | None, tools: Iterable[Tool]) -> None:
        self._tools = [_declared(tool) for tool in tools]
        self.body: Body | None = None
        """None where there is nothing to say."""
        if given is not None or self._tools:
            self.body = self.update({"tools": [], **(given or {})} if self._tools else given or {})

    def __repr__(self) -> str:
        return f"<Configuration of {', '.join(self.body or ['nothing'])}>"

    def update(self, given: Mapping[str, Any]) -> Body:
        """What is sent for an update: tools of the session are always among its tools."""
        body = {"type": "realtime", **given}
        if "tools" in given:
            body["tools"] = [*self._tools, *given["tools"]]
        return body

    def take(self, update: Body) -> None:
        """An update is in force."""
        self.body = _merged(self.body or {}, update)

    @property
    def functions(self) -> frozenset[str]:
        """The names of all functions that are declared."""
        tools = (self.body or {}).get("tools") or ()
        return frozenset(str(tool.get("name")) for tool in tools if tool.get("type") == "function")

    @property
    def transcribes(self) -> bool:
        """Will the words of what the user says come later?"""
        heard = ((self.body or {}).get("audio") or {}).get("input") or {}
        return bool(heard.get("transcription"))


def _merged(now: Mapping[str, Any], update: Mapping[str, Any]) -> Body:
    body = dict(now)
    for name, value in update.items():
        inside = (
            name in MERGED and isinstance(value, Mapping) and isinstance(now.get(name), Mapping)
        )
        body[name] = _merged(now[name], value) if inside else value
    return body


def _declared(tool: Tool) -> Body:
    if tool.kind is Kind.CUSTOM:
        raise NotATool(
            f"{tool.name} is a custom tool, and realtime has none. Make it a function with one"
            " parameter of type str."
        )
    # Realtime does not know `strict`; arguments are checked here in any case.
    return {name: value for name, value in tool.for_responses().items() if name != "strict"}
