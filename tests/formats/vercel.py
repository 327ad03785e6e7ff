"""Histories of the Vercel AI SDK: model messages and UI messages."""

from __future__ import annotations

from typing import Any

from tests.formats.sample import Sample, document, json_lines

# --- model messages ----------------------------------------------------------------------------

USER: dict[str, Any] = {"role": "user", "content": "Book it."}
NEXT: dict[str, Any] = {"role": "user", "content": [{"type": "text", "text": "Did it work?"}]}
TEXT: dict[str, Any] = {"type": "text", "text": "I book."}


def call(key: Any = "call_1", **more: Any) -> dict[str, Any]:
    part = {"type": "tool-call", "toolCallId": key, "toolName": "book", "input": {"flight": "SK 8"}}
    return {**part, **more}


def result(key: Any = "call_1", text: str = "booked", **more: Any) -> dict[str, Any]:
    part = {"type": "tool-result", "toolCallId": key, "toolName": "book"}
    return {**part, "output": {"type": "text", "value": text}, **more}


def request(key: str = "approval_1", about: str = "call_1") -> dict[str, Any]:
    return {"type": "tool-approval-request", "approvalId": key, "toolCallId": about}


def response(key: Any = "approval_1", *, approved: bool = True, **more: Any) -> dict[str, Any]:
    part = {"type": "tool-approval-response", "approvalId": key, "approved": approved}
    return {**part, **more}


def assistant(*parts: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(parts)}


def tool(*parts: Any) -> dict[str, Any]:
    return {"role": "tool", "content": list(parts)}


# --- UI messages -------------------------------------------------------------------------------

STEP: dict[str, Any] = {"type": "step-start"}
SAID: dict[str, Any] = {"type": "text", "text": "I book.", "state": "done"}


def asked(text: str = "Book it.") -> dict[str, Any]:
    return {"id": "msg_1", "role": "user", "parts": [{"type": "text", "text": text}]}


def answer(*parts: Any, **more: Any) -> dict[str, Any]:
    return {"id": "msg_2", "role": "assistant", "parts": list(parts), **more}


def part(state: str, key: Any = "call_1", **more: Any) -> dict[str, Any]:
    ending = {
        "output-available": {"output": {"seat": "4A"}},
        "output-error": {"errorText": "no seats"},
        "output-denied": {"approval": {"id": "approval_1", "approved": False}},
        "approval-requested": {"approval": {"id": "approval_1"}},
        "approval-responded": {"approval": {"id": "approval_1", "approved": True}},
    }.get(state, {})
    head = {"type": "tool-book", "toolCallId": key, "state": state, "input": {"flight": "SK 8"}}
    return {**head, **ending, **more}


SAMPLES = (
    Sample(
        "vercel",
        [
            {"role": "system", "content": "Be brief."},
            USER,
            assistant(
                {"type": "reasoning", "text": "Hm.", "providerOptions": {"openai": {"id": "rs"}}},
                TEXT,
                call(providerOptions={"openai": {"itemId": "fc_1"}}),
                call("call_2", toolName="pay"),
            ),
            tool(result("call_2", providerOptions={"anthropic": {"cacheControl": {}}})),
            {**NEXT, "providerOptions": {"anthropic": {}}},
        ],
    ),
    Sample("vercel", [USER, tool(result())], json_lines),
    Sample("vercel", [USER, assistant(call(), request())]),
    Sample(
        "vercel",
        [USER, assistant({"type": "tool-call", "toolCallId": "c", "toolName": "t", "args": {}})],
        json_lines,
    ),
    Sample("vercel-ui", [asked(), answer(STEP, SAID, part("input-available"), metadata={"n": 1})]),
    Sample(
        "vercel-ui",
        [
            asked(),
            answer(
                STEP,
                {"type": "reasoning", "text": "Hm.", "state": "done"},
                part("output-available", callProviderMetadata={"openai": {"itemId": "fc_1"}}),
                STEP,
                {
                    "type": "dynamic-tool",
                    "toolName": "pay",
                    "toolCallId": "call_2",
                    "state": "approval-requested",
                    "input": {},
                    "approval": {"id": "approval_2"},
                },
            ),
            asked("Did it work?"),
        ],
        json_lines,
    ),
    Sample(
        "vercel-ui",
        {"id": "chat_1", "messages": [asked(), answer(part("input-streaming", rawInput='{"fl'))]},
        document,
        is_list=False,
    ),
)
