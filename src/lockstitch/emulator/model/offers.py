"""The tools that a client offers, as the model sees them."""

from collections.abc import Iterable
from typing import Any

from lockstitch.emulator.model.replies import Offered


def offered(tools: Iterable[Any]) -> Iterable[Offered]:
    for tool in tools:
        if not isinstance(tool, dict):
            continue
        if tool.get("type") == "namespace":
            yield from offered(tool.get("tools") or [])
            continue
        kind = str(tool.get("type") or "")
        name = tool.get("name") or tool.get("server_label") or kind
        parameters = tool.get("parameters")
        yield Offered(
            type=kind,
            name=str(name),
            parameters=parameters if isinstance(parameters, dict) else {},
            said=tool,
        )
