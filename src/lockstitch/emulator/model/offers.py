"""The tools that a client offers, as the model sees them."""

from collections.abc import Iterator
from typing import Any

from lockstitch.emulator.model.replies import Offered


def offered(tools: Any) -> Iterator[Offered]:
    """Whatever of it can be called. It never fails: what is no tool is passed over."""
    for tool in _objects(tools):
        if tool.get("type") == "namespace":
            named = tool.get("name")
            space = named if isinstance(named, str) else ""
            yield from (_offered(inner, space) for inner in _objects(tool.get("tools")))
        else:
            yield _offered(tool)


def _objects(values: Any) -> Iterator[dict[str, Any]]:
    if isinstance(values, list | tuple):
        yield from (value for value in values if isinstance(value, dict))


def _offered(tool: dict[str, Any], namespace: str = "") -> Offered:
    kind = str(tool.get("type") or "")
    name = tool.get("name") or tool.get("server_label") or kind
    parameters = tool.get("parameters")
    return Offered(
        type=kind,
        name=str(name),
        namespace=namespace,
        parameters=parameters if isinstance(parameters, dict) else {},
        said=tool,
    )
