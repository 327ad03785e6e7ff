"""Broken histories of Anthropic's Messages: what the guard repairs, the provider accepts."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from lockstitch.emulator.messages.rules import check_create
from lockstitch.emulator.messages.signing import Signer
from lockstitch.emulator.refusals import Refused
from lockstitch.gateway.deciding.guard import Guarding, guarded

MODEL = "claude-sonnet-5"
SIGNER = Signer(0)
TEXT = {"type": "text", "text": "Hm."}


def user(*blocks: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks) or "go"}


def assistant(*blocks: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks) or "Well."}


def use(key: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": key, "name": "look", "input": {}}


def result(key: str) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": key, "content": "done"}


def rejection(messages: list[Any]) -> str | None:
    """What the provider says against this history."""
    try:
        check_create({"model": MODEL, "max_tokens": 64, "messages": messages}, SIGNER)
    except Refused as refused:
        return refused.message
    return None


@st.composite
def histories(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Messages in any order of roles. A call id is used once; results are anywhere, for any id."""
    keys = [f"t{n}" for n in range(5)]
    unused = iter(keys)
    messages = [user()]
    for role in draw(st.lists(st.sampled_from(["user", "assistant"]), max_size=7)):
        blocks = []
        for _ in range(draw(st.integers(0, 3))):
            key = draw(st.sampled_from(keys))
            if draw(st.booleans()):
                blocks.append(TEXT)
            elif role == "user" or draw(st.integers(0, 9)) == 0:
                blocks.append(result(key))
            elif (fresh := next(unused, None)) is not None:
                blocks.append(use(fresh))
        messages.append(user(*blocks) if role == "user" else assistant(*blocks))
    return [*messages, user()]


@settings(max_examples=300)
@given(histories())
def test_a_history_that_the_guard_lets_pass_or_repairs_is_accepted(messages):
    found = guarded(messages, mode=Guarding.MEND, dialect="messages")
    assert rejection(messages if found.items is None else list(found.items)) is None


@settings(max_examples=300)
@given(histories())
def test_a_history_that_the_provider_accepts_is_not_touched(messages):
    if rejection(messages) is None:
        assert not guarded(messages, mode=Guarding.MEND, dialect="messages").findings
