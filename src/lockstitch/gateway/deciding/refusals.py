"""How the gateway says no: in the form, and as far as there are any in the words, of the provider.

A `Refusal` is data; it becomes a body, a frame of a WebSocket or an event of a stream, whichever
the client listens to. A stream that cannot go on ends with `response_failed`. Whether to refuse
is decided elsewhere (`guard`, `retrying`, the door)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from lockstitch.core import families, rules
from lockstitch.core.errors import LockstitchError
from lockstitch.core.findings import Finding
from lockstitch.gateway.deciding.asked import Api, NotARequest
from lockstitch.gateway.events import ERROR, FAILED, as_sse, fields_of
from lockstitch.gateway.lines import LineFailure

INVALID: Final = "invalid_request_error"

MOST_NAMED: Final = 100
"""Calls that one message names. A history can be broken in thousands of places."""

_ANTHROPIC_TYPES: Final = {
    400: INVALID,
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    529: "overloaded_error",
}
"""The Messages API tells errors apart by their type alone."""


NOT_AGAIN: Final = ("x-should-retry", "false")
"""The clients of OpenAI and Anthropic send again whatever has a status from 500 on, unless they are
told not to."""


class Refusal(Struct, frozen=True, kw_only=True):
    """One no."""

    status: int
    message: str
    type: str = INVALID
    param: str | None = None
    code: str | None = None
    retry_after: float | None = None
    """Seconds."""
    again: bool = True
    """May a client send it again by itself?"""

    def error(self, api: Api = Api.RESPONSES) -> dict[str, Any]:
        if api is Api.MESSAGES:
            kind = _ANTHROPIC_TYPES.get(self.status, INVALID if self.status < 500 else "api_error")
            return {"type": kind, "message": self.message}
        return {
            "message": self.message,
            "type": self.type,
            "param": self.param,
            "code": self.code,
        }

    def body(self, api: Api = Api.RESPONSES) -> bytes:
        """The body of an HTTP answer."""
        error = self.error(api)
        if api is Api.MESSAGES:
            return msgspec.json.encode({"type": "error", "error": error})
        return msgspec.json.encode({"error": error})

    def headers(self) -> list[tuple[str, str]]:
        found = [("content-type", "application/json")]
        if self.retry_after is not None:
            found.append(("retry-after", str(math.ceil(self.retry_after))))
        if not self.again:
            found.append(NOT_AGAIN)
        return found

    def frame(self, stream_id: str | None = None) -> bytes:
        """An error frame of a WebSocket; the lane, where the client named one."""
        frame: dict[str, Any] = {"type": "error", "status": self.status}
        if stream_id is not None:
            frame["stream_id"] = stream_id
        frame["error"] = self.error()
        if self.retry_after is not None:
            frame["headers"] = {"retry-after": str(math.ceil(self.retry_after))}
        return msgspec.json.encode(frame)

    def event(self, api: Api) -> bytes:
        """An event of a stream that has begun and has no other way to end. Chat streams name no
        events, and end without `[DONE]` after an error."""
        if api is Api.CHAT:
            return b"data: %b\n\n" % self.body(api)
        if api is Api.MESSAGES:
            return as_sse(ERROR, self.body(api))
        flat: dict[str, Any] = {"type": ERROR, "code": self.code or self.type}
        flat |= {"message": self.message, "param": self.param, "sequence_number": 0}
        return as_sse(ERROR, msgspec.json.encode(flat))


class RequestRefused(LockstitchError):
    """A request ends here, with a no."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal


# --- what was asked for cannot be had ----------------------------------------------------------


def not_a_request(error: NotARequest) -> Refusal:
    return Refusal(status=400, message=str(error), param=error.param, code=error.code)


def unreadable(why: str) -> Refusal:
    return Refusal(status=400, message=f"The request cannot be read: {why}.")


def response_not_found(response: str) -> Refusal:
    return Refusal(status=404, message=f"Response with id '{response}' not found.")


def conversation_not_found(conversation: str) -> Refusal:
    return Refusal(
        status=404,
        message=f"Conversation with id '{conversation}' not found.",
        code="conversation_not_found",
    )


def previous_response_not_found(response: str) -> Refusal:
    return Refusal(
        status=400,
        message=f"Previous response with id '{response}' not found.",
        param="previous_response_id",
        code="previous_response_not_found",
    )


def item_not_found(item: str, at: int) -> Refusal:
    return Refusal(status=400, message=f"Item with id '{item}' not found.", param=f"input[{at}].id")


def two_anchors() -> Refusal:
    """In the provider's words."""
    both = "'conversation' and 'previous_response_id'"
    return Refusal(
        status=400,
        message=f"Mutually exclusive parameters: {both}. Ensure you are only providing one of: "
        f"{both.replace(' and ', ' or ')}.",
        param="previous_response_id",
        code="mutually_exclusive_parameters",
    )


def no_background(upstream: str) -> Refusal:
    return Refusal(
        status=400,
        message="Background responses are not available, because the upstream "
        f"{upstream!r} does not store responses. Leave out `background`, or stream the response.",
        param="background",
    )


def cannot_continue(error: Exception) -> Refusal:
    """A replay that could not be made: it cannot travel, or is not whole."""
    return Refusal(status=400, message=str(error), param="previous_response_id")


def bad_key() -> Refusal:
    """Nothing of the key is repeated: answers end up in logs."""
    return Refusal(
        status=401,
        message="Incorrect API key provided. Use a key of this gateway: lockstitch key NAME.",
        code="invalid_api_key",
    )


def from_a_page() -> Refusal:
    return Refusal(
        status=403,
        message="This gateway has no keys, so it rejects requests from web pages of other "
        "machines. Make a key for them: lockstitch key NAME.",
        code="forbidden_origin",
    )


def no_such_model(model: str | None, *, keyed: bool = True) -> Refusal:
    """``keyed``: where there are keys, others may have it."""
    named = f"The model '{model}'" if model else "A request without a model"
    whose = "that this key may use" if keyed else "of this gateway"
    return Refusal(
        status=404,
        message=f"{named} is served by no upstream {whose}.",
        param="model",
        code="model_not_found",
    )


_OPENAI: Final = ("openai", "https://api.openai.com/v1", "OPENAI_API_KEY")
_PROVIDERS: Final = {
    Api.RESPONSES: ("Responses", *_OPENAI),
    Api.CHAT: ("Chat Completions", *_OPENAI),
    Api.MESSAGES: (
        "Anthropic Messages",
        "anthropic",
        "https://api.anthropic.com/v1",
        "ANTHROPIC_API_KEY",
    ),
}
"""Each API, and an upstream that has it: its name, its URL and the variable with its key."""


def no_such_api(api: Api) -> Refusal:
    """No upstream has this API."""
    title, name, url, key = _PROVIDERS[api]
    return Refusal(
        status=404,
        message=f"No upstream of this gateway has the {title} API. To add one, put an [[upstreams]]"
        " table into its configuration file (lockstitch serve --config FILE):"
        f' name = "{name}", url = "{url}", key_env = "{key}". If neither a configuration file nor'
        f" --upstream names an upstream, it is enough to set {key} before you start"
        " `lockstitch serve`.",
        code="api_not_found",
    )


def too_many_requests(retry_after: float, what: str = "requests") -> Refusal:
    return Refusal(
        status=429,
        message=f"Rate limit reached for this key: too many {what}. "
        f"Please try again in {math.ceil(retry_after)}s.",
        type="requests",
        code="rate_limit_exceeded",
        retry_after=retry_after,
    )


def too_large(most_bytes: int) -> Refusal:
    return Refusal(
        status=413,
        message=f"The request is larger than this gateway accepts ({most_bytes} bytes). "
        "Send less, or continue with previous_response_id.",
        code="request_too_large",
    )


# --- something is not there --------------------------------------------------------------------


def unreachable(upstream: str, failure: LineFailure, *, again: bool = True) -> Refusal:
    """Only the name that the configuration gives: addresses and keys are nobody's business.
    ``again``: a second time does no harm, whether the upstream has the request or not."""
    what = "cannot be reached"
    if failure.timed_out:
        what = "did not answer in time"
    elif failure.sent:
        what = "was lost before the end of its answer"
    elif failure.unreached is not None:
        what += f": {failure.unreached}"
    then = "Try again."
    if failure.sent and not again:
        then = "It may have the request: send it again only if that does no harm."
    return Refusal(
        status=504 if failure.timed_out else 502,
        message=f"The upstream {upstream!r} {what}. {then}",
        type="server_error",
        code="upstream_timeout" if failure.timed_out else "upstream_unreachable",
        again=again or not failure.sent,
    )


def no_stream(upstream: str) -> Refusal:
    """It has answered, and not with what was asked for."""
    return Refusal(
        status=502,
        message=f"The upstream {upstream!r} answered with something that is neither a stream of "
        "events nor a response. Check that its url is that of its API.",
        type="server_error",
        code="upstream_no_stream",
        again=False,
    )


def journal_unavailable(retry_after: float = 1.0, *, asked: bool = False) -> Refusal:
    """Before anything was sent. ``asked``: an upstream has done what was asked for, and doing it
    once more changes nothing."""
    what = (
        "so the upstream's answer was not recorded. Sending the request again does no harm."
        if asked
        else "so the request was not sent. Try again."
    )
    return Refusal(
        status=503,
        message=f"The journal cannot be written, {what}",
        type="server_error",
        code="journal_unavailable",
        retry_after=retry_after,
    )


def not_written_yet(response: str) -> Refusal:
    """It is heard here, and the journal does not have it."""
    return Refusal(
        status=503,
        message=f"The journal does not have response '{response}' yet: it is still being received. "
        "Try again.",
        type="server_error",
        code="journal_unavailable",
        retry_after=1.0,
    )


def answer_not_kept() -> Refusal:
    """The upstream has the request, and nobody has its answer: a second one is another response,
    and tools that the provider calls itself may be called twice. Only the client knows whether
    that does harm."""
    return Refusal(
        status=500,
        message="The upstream received this request, but its answer cannot be stored, because the "
        "journal cannot be written. The request may have taken effect: send it again only if that "
        "does no harm.",
        type="server_error",
        code="journal_unavailable",
        again=False,
    )


def draining(retry_after: float = 1.0) -> Refusal:
    return Refusal(
        status=503,
        message="This gateway is shutting down; the request was not sent. Try again.",
        type="server_error",
        code="draining",
        retry_after=retry_after,
    )


# --- a history that is not whole ---------------------------------------------------------------


def not_whole(findings: Sequence[Finding], api: Api = Api.RESPONSES) -> Refusal:
    """What a provider would say to this history, for every call."""
    sentences = list(_SAID[api.dialect](findings[:MOST_NAMED]))
    if len(findings) > MOST_NAMED:
        sentences.append(f"There are {len(findings) - MOST_NAMED} more like these.")
    codes = ", ".join(dict.fromkeys(finding.code for finding in findings))
    sentences.append(f"Lockstitch did not send this request ({codes}).")
    param = api.items_field
    if api is Api.CHAT:
        param = f"messages.[{findings[0].place.at}].role"
    return Refusal(status=400, message=" ".join(sentences), param=param)


_OPEN: Final = rules.OPEN_CALL | {rules.HALF_PAIR_LEFT}

_WORDS: Final = {
    families.FUNCTION: "function call",
    families.CUSTOM: "custom tool call",
    families.COMPUTER: "computer call",
    families.SHELL: "shell call",
    families.LOCAL_SHELL: "local shell call",
    families.APPLY_PATCH: "apply patch call",
    families.TOOL_SEARCH: "tool search call",
    families.PROGRAM: "program",
    families.MCP_APPROVAL: "MCP approval request",
}


def _responses_words(findings: Iterable[Finding]) -> Iterable[str]:
    for finding in findings:
        if finding.rule in _OPEN and finding.family is not None:
            words = _WORDS.get(finding.family, "function call")
            yield f"No tool output found for {words} {finding.key}."
        elif finding.rule in (rules.ORPHAN_OUTPUT, rules.OUTPUT_BEFORE_CALL):
            words = (
                _WORDS.get(finding.family, "function call") if finding.family else "function call"
            )
            yield f"No tool call found for {words} output with call_id {finding.key}."
        elif finding.rule is rules.DUPLICATE_ITEM_ID:
            yield (
                f"Duplicate item found with id {finding.key}. Remove duplicate items from your "
                "input and try again."
            )
        elif finding.rule is rules.REASONING_PARTED:
            yield (
                f"Item '{finding.key}' of type 'reasoning' was provided without its required "
                "following item."
            )
        else:
            yield _own_words(finding)


def _chat_words(findings: Iterable[Finding]) -> Iterable[str]:
    findings = list(findings)
    unanswered = [str(finding.key) for finding in findings if finding.rule in _OPEN]
    if unanswered:
        yield (
            "An assistant message with 'tool_calls' must be followed by tool messages responding "
            "to each 'tool_call_id'. The following tool_call_ids did not have response messages: "
            f"{', '.join(unanswered)}."
        )
    for finding in findings:
        if finding.rule is rules.ORPHAN_OUTPUT:
            yield (
                "messages with role 'tool' must be a response to a preceeding message with "
                f"'tool_calls' ({finding.key})."
            )
        elif finding.rule not in _OPEN:
            yield _own_words(finding)


def _messages_words(findings: Iterable[Finding]) -> Iterable[str]:
    findings = list(findings)
    unanswered = [str(finding.key) for finding in findings if finding.rule in _OPEN]
    if unanswered:
        yield (
            "`tool_use` ids were found without `tool_result` blocks immediately after: "
            f"{', '.join(unanswered)}. Each `tool_use` block must have a corresponding "
            "`tool_result` block in the next message."
        )
    for finding in findings:
        if finding.rule is rules.ORPHAN_OUTPUT:
            yield f"unexpected `tool_use_id` found in `tool_result` blocks: {finding.key}."
        elif finding.rule is rules.SECOND_OUTPUT:
            yield (
                "each tool_use must have a single result. Found multiple `tool_result` blocks "
                f"with id: {finding.key}."
            )
        elif finding.rule not in _OPEN:
            yield _own_words(finding)


def _own_words(finding: Finding) -> str:
    """No wording of a provider is known."""
    sentence = finding.say(
        lambda place: f"item {place.at}" if place.at >= 0 else "the earlier history"
    )
    return f"{sentence[:1].upper()}{sentence[1:]}."


_SAID: Final[dict[str, Callable[[Iterable[Finding]], Iterable[str]]]] = {
    "responses": _responses_words,
    "chat": _chat_words,
    "messages": _messages_words,
}


# --- a stream that cannot go on ----------------------------------------------------------------


class Failing(Struct, frozen=True, kw_only=True):
    """What is known of a response that ends here."""

    sequence_number: int
    """One more than the last that the client saw; 0 if it saw none."""
    id: str
    model: str | None = None
    created_at: int = 0
    """Seconds since 1970."""
    response: bytes | None = None
    """The response as its last event had it; what it says of itself stays."""
    output: Sequence[bytes] = ()
    """The items that are kept of it."""
    code: str = "server_error"
    message: str = ""

    def frame(self) -> bytes:
        """The event as JSON: a frame of a WebSocket."""
        event = {
            "type": FAILED,
            "sequence_number": self.sequence_number,
            "response": self._failed(),
        }
        return msgspec.json.encode(event)

    def _failed(self) -> dict[str, Any]:
        known: dict[str, Any] = {
            "id": self.id,
            "object": "response",
            "created_at": self.created_at,
            "model": self.model or "",
        }
        if self.response is not None:
            known |= fields_of(self.response)
        known = {**_NEEDED, **known, "status": "failed"}
        known["error"] = {"code": self.code, "message": self.message}
        known["output"] = [Raw(item) for item in self.output]
        return known


_NEEDED: Final[dict[str, Any]] = {
    "id": None,
    "object": "response",
    "created_at": 0,
    "status": "failed",
    "error": None,
    "incomplete_details": None,
    "instructions": None,
    "metadata": {},
    "model": None,
    "output": [],
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
    "usage": None,
}
"""What clients expect a response to have, in the order in which a provider writes it."""
