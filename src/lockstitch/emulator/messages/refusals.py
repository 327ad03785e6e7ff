"""How Anthropic's API says no: the words, and the error types that its statuses have.

The rules keep the names they have elsewhere, so that a record counts a broken pair as one in
whatever dialect it was broken."""

from collections.abc import Iterable
from typing import Any, Final

from lockstitch.emulator.refusals import INVALID, Refused

# The error type of each status.
TYPES: Final = {
    400: INVALID,
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    409: "conflict_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}
# What this API says where another door would say it in OpenAI's words.
_WORDS: Final = {
    "no-key": "x-api-key header is required",
    "wrong-key": "invalid x-api-key",
    "unreadable-body": "The request body is not valid JSON.",
    "emulator-fault": "Internal server error",
}


def error(refused: Refused) -> dict[str, str]:
    return {
        "type": error_type(refused.status),
        "message": _WORDS.get(refused.rule, refused.message),
    }


def error_type(status: int) -> str:
    return TYPES.get(status, "api_error" if status >= 500 else INVALID)


def body(refused: Refused, request_id: str) -> dict[str, Any]:
    return {"type": "error", "error": error(refused), "request_id": request_id}


# Pairs


def calls_without_output(at: str, ids: Iterable[str]) -> Refused:
    return Refused(
        "call-without-output",
        f"{at}: `tool_use` ids were found without `tool_result` blocks immediately after: "
        f"{', '.join(ids)}. Each `tool_use` block must have a corresponding `tool_result` block "
        "in the next message.",
    )


def output_without_call(at: str, id: str) -> Refused:
    return Refused(
        "output-without-call",
        f"{at}: unexpected `tool_use_id` found in `tool_result` blocks: {id}. Each `tool_result` "
        "block must have a corresponding `tool_use` block in the previous message.",
    )


def second_output(at: str, id: str) -> Refused:
    return Refused(
        "duplicate-output",
        f"{at}: each tool_use must have a single result. Found multiple `tool_result` blocks with "
        f"id: {id}",
    )


def duplicate_call(at: str) -> Refused:
    return Refused("duplicate-item", f"{at}: `tool_use` ids must be unique")


def server_call_without_output(at: str, name: str, id: str, result: str) -> Refused:
    return Refused(
        "call-without-output",
        f"{at}: `{name}` tool use with id `{id}` was found without a corresponding `{result}` "
        "block",
    )


def server_output_without_call(at: str, type: str, id: str) -> Refused:
    return Refused(
        "output-without-call",
        f"{at}: unexpected `tool_use_id` found in `{type}` blocks: {id}. Each `{type}` block must "
        "have a corresponding `server_tool_use` block before it.",
    )


def wrong_role(at: str, type: str, role: str) -> Refused:
    return Refused("wrong-value", f"{at}: `{type}` blocks can only be in `{role}` messages")


# Thinking


def unverified_thinking(at: str, field: str, type: str) -> Refused:
    return Refused("unverified-reasoning", f"{at}: Invalid `{field}` in `{type}` block")


def no_thinking_first(at: str, found: str) -> Refused:
    return Refused(
        "item-without-reasoning",
        f"{at}.type: Expected `thinking` or `redacted_thinking`, but found `{found}`. When "
        "`thinking` is enabled, a final `assistant` message must start with a thinking block "
        "(preceeding the lastmost set of `tool_use` and `tool_result` blocks). We recommend you "
        "include thinking blocks from previous turns. To avoid this requirement, disable "
        "`thinking`. Please consult our documentation at "
        "https://docs.claude.com/en/docs/build-with-claude/extended-thinking",
    )


def thinking_last(at: str) -> Refused:
    return Refused(
        "reasoning-without-follower",
        f"{at}: The final block in an assistant message cannot be `thinking`.",
    )


# Messages


def role_system() -> Refused:
    return Refused(
        "wrong-value",
        'messages: Unexpected role "system". The Messages API accepts a top-level `system` '
        'parameter, not "system" as an input message role.',
    )


def first_not_user() -> Refused:
    return Refused("wrong-value", 'messages: first message must use the "user" role')


def last_not_user() -> Refused:
    return Refused(
        "wrong-value",
        "This model does not support assistant message prefill. The conversation must end with a "
        "user message.",
    )


def invalid(rule: str, at: str, said: str) -> Refused:
    """Any other refusal: what is wrong, and where."""
    return Refused(rule, f"{at}: {said}")
