"""The body of a response: the request's own settings said back, and the provider's defaults."""

from typing import Any, Final

# Said back as the client sent them; what they are when it did not.
_ECHOED: Final[dict[str, Any]] = {
    "background": False,
    "instructions": None,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "model": "gpt-5.5",
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "prompt": None,
    "prompt_cache_key": None,
    "safety_identifier": None,
    "temperature": 1.0,
    "tool_choice": "auto",
    "top_logprobs": 0,
    "top_p": 1.0,
    "truncation": "disabled",
    "user": None,
}
_NOT_ASKED_FOR = ("background", "prompt", "prompt_cache_key", "safety_identifier", "user")


def opening_body(request: dict[str, Any], id: str, now: float, conversation: str | None) -> Any:
    """The response as it is when it begins."""
    body: dict[str, Any] = {
        "id": id,
        "object": "response",
        "created_at": int(now),
        "status": "queued" if request.get("background") else "in_progress",
        "completed_at": None,
        "error": None,
        "incomplete_details": None,
        "output": [],
        "usage": None,
        "service_tier": "default",
        "metadata": request.get("metadata") or {},
        "tools": [_tool(tool) for tool in request.get("tools") or []],
        "text": {"format": {"type": "text"}} | (request.get("text") or {}),
        "reasoning": {"effort": None, "summary": None} | (request.get("reasoning") or {}),
    }
    for name, default in _ECHOED.items():
        value = request.get(name)
        body[name] = default if value is None else value
    for name in _NOT_ASKED_FOR:
        if request.get(name) is None:
            del body[name]
    if conversation is not None:
        body["conversation"] = {"id": conversation}
    return body


def _tool(tool: dict[str, Any]) -> dict[str, Any]:
    if tool.get("type") != "function":
        return tool
    return {"parameters": None, "strict": True} | tool
