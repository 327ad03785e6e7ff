"""Message histories of Pydantic AI, as `ModelMessagesTypeAdapter` writes them."""

from __future__ import annotations

from typing import Any

from tests.formats.sample import Sample, json_lines

TIME = "2026-03-01T12:00:00Z"


def request(*parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "parts": list(parts),
        "timestamp": TIME,
        "instructions": "Be brief.",
        "kind": "request",
        "run_id": "run_1",
        "conversation_id": "conv_1",
        "metadata": None,
        "state": "complete",
        **more,
    }


def response(*parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "parts": list(parts),
        "usage": {"input_tokens": 50, "output_tokens": 9, "details": {}},
        "model_name": "gpt-5.5",
        "timestamp": TIME,
        "kind": "response",
        "provider_name": "openai",
        "provider_url": "https://api.openai.com/v1",
        "provider_details": {"finish_reason": "tool_calls"},
        "provider_response_id": "resp_1",
        "finish_reason": "tool_call",
        "run_id": "run_1",
        "metadata": None,
        "state": "complete",
        **more,
    }


def prompt(content: Any = "Book it.") -> dict[str, Any]:
    return {"content": content, "timestamp": TIME, "part_kind": "user-prompt"}


def text(content: str = "Done.") -> dict[str, Any]:
    return {
        "content": content,
        "id": "msg_1",
        "provider_name": "openai",
        "provider_details": None,
        "part_kind": "text",
    }


def thinking(content: str = "I should book.", **more: Any) -> dict[str, Any]:
    return {
        "content": content,
        "id": None,
        "signature": "c2ln",
        "provider_name": "openai",
        "part_kind": "thinking",
        **more,
    }


def call(key: Any = "call_1", args: Any = '{"flight":"SK 802"}', **more: Any) -> dict[str, Any]:
    return {
        "tool_name": "book",
        "args": args,
        "tool_call_id": key,
        "tool_kind": None,
        "id": "fc_1",
        "provider_name": "openai",
        "provider_details": None,
        "part_kind": "tool-call",
        **more,
    }


def returned(key: Any = "call_1", content: Any = "booked", **more: Any) -> dict[str, Any]:
    return {
        "tool_name": "book",
        "content": content,
        "tool_call_id": key,
        "tool_kind": None,
        "metadata": None,
        "timestamp": TIME,
        "outcome": "success",
        "retry": None,
        "part_kind": "tool-return",
        **more,
    }


def retry(key: Any = "call_1", name: str | None = "book", **more: Any) -> dict[str, Any]:
    return {
        "content": [{"type": "missing", "loc": ["flight"], "msg": "Field required", "input": {}}],
        "tool_name": name,
        "tool_call_id": key,
        "timestamp": TIME,
        "part_kind": "retry-prompt",
        **more,
    }


def native_call(key: Any = "srvtoolu_1", **more: Any) -> dict[str, Any]:
    return {
        "tool_name": "web_search",
        "args": {"query": "flights"},
        "tool_call_id": key,
        "provider_name": "anthropic",
        "part_kind": "builtin-tool-call",
        **more,
    }


def native_return(key: Any = "srvtoolu_1", **more: Any) -> dict[str, Any]:
    page = {"type": "web_search_result", "title": "t", "url": "https://example.org/"}
    return {
        "tool_name": "web_search",
        "content": [{**page, "encrypted_content": "e", "page_age": None}],
        "tool_call_id": key,
        "metadata": None,
        "timestamp": TIME,
        "outcome": "success",
        "provider_name": "anthropic",
        "part_kind": "builtin-tool-return",
        **more,
    }


SYSTEM = {
    "content": "You book flights.",
    "timestamp": TIME,
    "dynamic_ref": None,
    "part_kind": "system-prompt",
}

OPEN = [request(SYSTEM, prompt()), response(thinking(), call()), request(prompt("And?"))]
ORPHAN = [request(prompt()), request(returned(), prompt()), response(text())]
SOME_OPEN = [
    request(prompt([{"url": "https://example.org/a.png", "kind": "image-url"}, "Book these."])),
    response(text("I try."), call(), call("call_2"), native_call(), native_return()),
    request(returned()),
    response(text()),
]
UNASKED_RETRY = [request(prompt()), request(retry()), response(text())]
SECOND_RETURN = [request(prompt()), response(call()), request(retry(), returned())]
UNASKED_NATIVE_RETURN = [request(prompt()), response(native_return(), text())]
MISPLACED = [request(prompt()), response(call()), request(prompt("And?"), returned())]
CUT_OFF = [request(prompt()), response(call(args='{"flight": "SK'), state="interrupted")]

SAMPLES = (
    Sample("pydantic-ai", OPEN),
    Sample("pydantic-ai", OPEN, json_lines),
    Sample("pydantic-ai", ORPHAN),
    Sample("pydantic-ai", SOME_OPEN),
    Sample("pydantic-ai", UNASKED_RETRY),
    Sample("pydantic-ai", UNASKED_NATIVE_RETURN),
    Sample("pydantic-ai", CUT_OFF),
)
