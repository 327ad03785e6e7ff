"""What goes into the body of a request beside its items, in each dialect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lockstitch.core.facts import Mode
from lockstitch.runner.tools import Tool

LONGEST_ANSWER_TOKENS = 8192
"""Anthropic wants a limit; the caller's settings win."""


def request_settings(
    dialect: str,
    mode: Mode,
    tools: Sequence[Tool],
    instructions: str | None,
    settings: Mapping[str, Any],
) -> dict[str, Any]:
    """The body of every request, without model, items and anchor; the caller's settings win."""
    body: dict[str, Any] = {}
    if dialect == "responses":
        if tools:
            body["tools"] = [tool.for_responses() for tool in tools]
        if instructions:
            body["instructions"] = instructions
        if mode is Mode.FULL:
            # Nothing is kept at the provider, so reasoning must travel with its content.
            body.update(store=False, include=["reasoning.encrypted_content"])
    elif dialect == "chat":
        if tools:
            body["tools"] = [tool.for_chat() for tool in tools]
    elif dialect == "messages":
        body["max_tokens"] = LONGEST_ANSWER_TOKENS
        if tools:
            body["tools"] = [tool.for_messages() for tool in tools]
        if instructions:
            body["system"] = instructions
    return {**body, **settings}


def leading_items(dialect: str, instructions: str | None) -> list[Mapping[str, Any]]:
    """Items before the conversation: where instructions are a message."""
    if dialect == "chat" and instructions:
        return [{"role": "system", "content": instructions}]
    return []
