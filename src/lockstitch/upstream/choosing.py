"""The client of a provider for an official client that the caller has.

Told by the class. A library is imported only when an object of it is there, so none has to be
installed."""

from __future__ import annotations

import sys
from typing import Any

from lockstitch.core.errors import LockstitchError
from lockstitch.upstream.contract import Upstream


class UnknownClient(LockstitchError):
    """The caller passed something that is no client we know how to use."""


def upstream_for(client: Any, *, websocket: bool = False) -> Upstream:
    """What speaks to a provider through this client: `AsyncOpenAI` (the Responses API, over HTTP or
    a WebSocket) or `AsyncAnthropic`. For Chat Completions take `OpenAIChat(client)` instead."""
    if _is_a(client, "openai", "AsyncOpenAI"):
        return _of_openai(client, websocket=websocket)
    if _is_a(
        client, "anthropic", "AsyncAnthropic", "AsyncAnthropicBedrock", "AsyncAnthropicVertex"
    ):
        if websocket:
            raise UnknownClient("Anthropic's API has no WebSocket. Leave out websocket=True.")
        from lockstitch.upstream.anthropic_messages import AnthropicMessages  # noqa: PLC0415

        return AnthropicMessages(client)
    raise UnknownClient(_what_is_wrong_with(client))


def _of_openai(client: Any, *, websocket: bool) -> Upstream:
    if websocket:
        from lockstitch.upstream.openai_websocket import OpenAIWebSocket  # noqa: PLC0415

        return OpenAIWebSocket(client)
    from lockstitch.upstream.openai_responses import OpenAIResponses  # noqa: PLC0415

    return OpenAIResponses(client)


def _what_is_wrong_with(client: Any) -> str:
    for module, sync, name in (
        ("openai", "OpenAI", "AsyncOpenAI"),
        ("anthropic", "Anthropic", "AsyncAnthropic"),
    ):
        if _is_a(client, module, sync):
            return f"This is a synchronous client ({sync}). Pass {module}.{name} instead."
        if isinstance(client, type) and client.__name__ in {sync, name}:
            return f"This is the class {client.__name__}. Pass a client: {name}()."
    kind = type(client)
    return (
        f"No client of a provider that is known: {kind.__module__}.{kind.__qualname__}. "
        "Pass openai.AsyncOpenAI or anthropic.AsyncAnthropic."
    )


def _is_a(client: Any, module: str, *names: str) -> bool:
    """Is it an instance? Where a library was never imported, nothing is."""
    library = sys.modules.get(module)
    classes = (getattr(library, name, None) for name in names)
    return any(isinstance(kind, type) and isinstance(client, kind) for kind in classes)
