"""Which LiveKit this is built on: the hooks that are overridden, checked when it is imported.

They are not LiveKit's public API. A release that moves one is refused at once, not in a call."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from importlib import metadata
from typing import Any, Final

SUPPORTED: Final = "livekit-agents and livekit-plugins-openai >=1.8.9,<1.9"

INSTALL: Final = "pip install 'lockstitch[livekit]'"

SESSION_HOOKS: Final[Mapping[str, tuple[str, ...]]] = {
    "_create_update_chat_ctx_events": ("self", "chat_ctx"),
    "_create_ws_conn": ("self",),
    "_handle_conversion_item_added": ("self", "event"),
    "_handle_conversion_item_deleted": ("self", "event"),
    "_handle_conversion_item_input_audio_transcription_completed": ("self", "event"),
    "_handle_error": ("self", "event"),
    "_handle_response_done": ("self", "event"),
    "_is_fatal_error": ("self", "error"),
    "_run_ws": ("self", "ws_conn"),
    "_update_session": ("self", "instructions", "chat_ctx", "tools"),
    "emit": ("self", "event", "args"),
    "send_event": ("self", "event"),
    "truncate": ("self", "message_id", "modalities", "audio_end_ms", "audio_transcript"),
    "update_chat_ctx": ("self", "chat_ctx"),
}
"""What is overridden of LiveKit's session, and the parameters it must have."""

CONTEXT_HOOKS: Final[Mapping[str, tuple[str, ...]]] = {
    "delete": ("self", "item_id"),
    "get": ("self", "item_id"),
    "insert": ("self", "previous_item_id", "message"),
    "to_chat_ctx": ("self",),
}
"""The same of the context that it keeps."""


class UnsupportedLiveKit(ImportError):
    """LiveKit is not installed, or is one that this was not built for."""


def check() -> None:
    """Raise `UnsupportedLiveKit` unless LiveKit has every hook that is overridden."""
    try:
        from livekit.agents import Agent  # noqa: PLC0415
        from livekit.agents.llm.remote_chat_context import (  # noqa: PLC0415
            RemoteChatContext,
        )
        from livekit.agents.voice.agent_activity import AgentActivity  # noqa: PLC0415
        from livekit.plugins.openai.realtime import RealtimeSession  # noqa: PLC0415
    except ImportError as error:
        raise UnsupportedLiveKit(
            f"lockstitch.integrations.livekit needs {SUPPORTED}: {error}. Install it: {INSTALL}"
        ) from error
    wrong = [
        *differing(RealtimeSession, SESSION_HOOKS),
        *differing(RemoteChatContext, CONTEXT_HOOKS),
    ]
    if not isinstance(inspect.getattr_static(AgentActivity, "agent", None), property):
        wrong.append("AgentActivity.agent")
    if "_chat_ctx" not in vars(Agent(instructions="")):
        wrong.append("Agent._chat_ctx")
    if wrong:
        raise UnsupportedLiveKit(
            f"lockstitch.integrations.livekit needs {SUPPORTED}, and this is {_installed()}: "
            f"{', '.join(wrong)} is not as it was. Install another: {INSTALL}"
        )


def differing(owner: type[Any], hooks: Mapping[str, tuple[str, ...]]) -> list[str]:
    """The hooks that this class does not have, or has with other parameters."""
    wrong = []
    for name, parameters in hooks.items():
        hook: Callable[..., Any] | None = inspect.getattr_static(owner, name, None)
        if hook is None or tuple(inspect.signature(hook).parameters) != parameters:
            wrong.append(f"{owner.__name__}.{name}")
    return wrong


def _installed() -> str:
    return " with ".join(
        f"{name} {metadata.version(name)}" for name in ("livekit-agents", "livekit-plugins-openai")
    )
