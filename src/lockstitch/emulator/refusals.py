"""How the provider says no: every refusal, with the words, type, parameter and code it uses.

`RULES` names each rule once; a refusal carries the name, so the record can say which rule a
request broke. Nothing here decides anything: the rules are checked where their state lives."""

from dataclasses import dataclass, field
from typing import Any

from lockstitch.emulator.limits import (
    LONGEST_REFUSAL_CHARACTERS,
    LONGEST_REFUSAL_PARAM_CHARACTERS,
)

INVALID = "invalid_request_error"
SERVER = "server_error"


# Not frozen: an exception on its way is given its traceback.
@dataclass(slots=True, eq=False)
class Refused(Exception):
    """The provider will not do this; `rule` names the rule that was broken."""

    rule: str
    message: str
    status: int = 400
    type: str = INVALID
    param: str | None = None
    code: str | None = None
    headers: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # Both may hold what a client sent.
        self.message = shortened(self.message, LONGEST_REFUSAL_CHARACTERS)
        if self.param is not None:
            self.param = shortened(self.param, LONGEST_REFUSAL_PARAM_CHARACTERS)

    def error(self) -> dict[str, Any]:
        """The error object, as OpenAI's APIs write it."""
        return {
            "message": self.message,
            "type": self.type,
            "param": self.param,
            "code": self.code,
        }

    def body(self) -> dict[str, Any]:
        return {"error": self.error()}

    def __str__(self) -> str:
        return f"{self.status} {self.rule}: {self.message}"


def shortened(text: str, most: int) -> str:
    """Text of a client as an answer or the record can hold it.

    Cut in the middle beyond `most` characters; a byte that was no UTF-8 (aiohttp hands it on as
    half of a surrogate pair) is spelled out."""
    if len(text) > most:
        text = f"{text[: most // 2]} … {text[len(text) - most // 2 :]}"
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


# Pairs


def call_without_output(words: str, key: str) -> Refused:
    return Refused("call-without-output", f"No tool output found for {words} {key}.", param="input")


def output_without_call(words: str, key: str, key_name: str = "call_id") -> Refused:
    return Refused(
        "output-without-call",
        f"No tool call found for {words} output with {key_name} {key}.",
        param="input",
    )


def duplicate_item(id: str) -> Refused:
    return Refused(
        "duplicate-item",
        f"Duplicate item found with id {id}. Remove duplicate items from your input and try again.",
        param="input",
    )


def reasoning_without_follower(id: str) -> Refused:
    return Refused(
        "reasoning-without-follower",
        f"Item '{id}' of type 'reasoning' was provided without its required following item.",
        param="input",
    )


def item_without_reasoning(id: str, type: str, reasoning: str) -> Refused:
    return Refused(
        "item-without-reasoning",
        f"Item '{id}' of type '{type}' was provided without its required 'reasoning' item: "
        f"'{reasoning}'.",
        param="input",
    )


def unverified_reasoning(id: str) -> Refused:
    return Refused(
        "unverified-reasoning",
        f"The encrypted content for item {id} could not be verified.",
        param="input",
        code="invalid_encrypted_content",
    )


def trigger_not_last() -> Refused:
    return Refused(
        "trigger-not-last",
        "A 'compaction_trigger' item must be the last item of the input.",
        param="input",
    )


def item_not_persisted(id: str) -> Refused:
    return Refused(
        "item-not-persisted",
        f"Item with id '{id}' not found. Items are not persisted when `store` is set to false. "
        "Try again with `store` set to true, or remove this item from your input.",
        status=404,
        param="input",
    )


# Anchors


def anchor_not_found(id: str) -> Refused:
    return Refused(
        "anchor-not-found",
        f"Previous response with id '{id}' not found.",
        param="previous_response_id",
        code="previous_response_not_found",
    )


def anchor_malformed() -> Refused:
    return Refused(
        "anchor-malformed", "Invalid `previous_response_id`.", code="invalid_request_error"
    )


def two_anchors() -> Refused:
    return Refused(
        "two-anchors",
        "Mutually exclusive parameters: 'conversation' and 'previous_response_id'. "
        "Ensure you are only providing one of: 'conversation' or 'previous_response_id'.",
        param="previous_response_id",
        code="mutually_exclusive_parameters",
    )


def conversation_locked() -> Refused:
    return Refused(
        "conversation-locked",
        "Another process is currently operating on this conversation. "
        "Please retry in a few seconds.",
        param="conversation",
        code="conversation_locked",
    )


# Things that are not there


def not_found(what: str, id: str, param: str | None = None) -> Refused:
    return Refused("not-found", f"{what} with id '{id}' not found.", status=404, param=param)


def unknown_path(method: str, path: str) -> Refused:
    return Refused("unknown-path", f"Invalid URL ({method} {path})", status=404)


def wrong_method(method: str, path: str) -> Refused:
    return Refused(
        "wrong-method",
        f"Not allowed to {method} on {path} (HINT: Perhaps you meant to use a different "
        "HTTP method?)",
        status=405,
        code="method_not_supported",
    )


def not_cancellable(id: str) -> Refused:
    return Refused(
        "not-cancellable",
        f"Response with id '{id}' cannot be cancelled: only a background response can.",
    )


# Shapes


def missing_parameter(param: str) -> Refused:
    return Refused(
        "missing-parameter",
        f"Missing required parameter: '{param}'.",
        param=param,
        code="missing_required_parameter",
    )


def unknown_parameter(param: str) -> Refused:
    return Refused(
        "unknown-parameter", f"Unknown parameter: '{param}'.", param=param, code="unknown_parameter"
    )


def unsupported_parameter(param: str, why: str) -> Refused:
    return Refused(
        "unsupported-parameter",
        f"Unsupported parameter: '{param}' {why}.",
        param=param,
        code="unsupported_parameter",
    )


def wrong_type(param: str, expected: str, got: str) -> Refused:
    return Refused(
        "wrong-type",
        f"Invalid type for '{param}': expected {expected}, but got {got} instead.",
        param=param,
        code="invalid_type",
    )


def wrong_value(param: str, value: str, supported: str) -> Refused:
    return Refused(
        "wrong-value",
        f"Invalid value: '{value}'. Supported values are: {supported}.",
        param=param,
        code="invalid_value",
    )


def out_of_range(param: str, said: str) -> Refused:
    return Refused("wrong-value", f"Invalid '{param}': {said}.", param=param, code="invalid_value")


def too_long(param: str, most: int, got: int) -> Refused:
    return Refused(
        "too-long",
        f"Invalid '{param}': string too long. Expected a string with maximum length {most}, "
        f"but got a string with length {got} instead.",
        param=param,
        code="string_above_max_length",
    )


def too_many(param: str, most: int, got: int) -> Refused:
    return Refused(
        "too-many",
        f"Invalid '{param}': array too long. Expected an array with maximum length {most}, "
        f"but got an array with length {got} instead.",
        param=param,
        code="array_above_max_length",
    )


def wrong_prefix(param: str, id: str, prefix: str) -> Refused:
    return Refused(
        "wrong-prefix",
        f"Invalid '{param}': '{id}'. Expected an ID that begins with '{prefix}'.",
        param=param,
        code="invalid_value",
    )


def unreadable_body() -> Refused:
    return Refused(
        "unreadable-body",
        "We could not parse the JSON body of your request. The request body was not valid JSON.",
    )


def nested_too_deep(most: int) -> Refused:
    return Refused(
        "unreadable-body",
        "We could not parse the JSON body of your request. It is nested deeper than "
        f"{most} levels.",
    )


def body_too_large(most: int) -> Refused:
    return Refused(
        "body-too-large",
        f"The request body is larger than the {most} bytes this server takes.",
        status=413,
        code="request_too_large",
    )


def unreadable_request(why: str, status: int = 400) -> Refused:
    """What came is no HTTP, or no HTTP that is understood here."""
    return Refused("unreadable-request", f"We could not read your request: {why}.", status)


def bad_handshake(why: str) -> Refused:
    return Refused("bad-handshake", f"The WebSocket handshake is not right: {why}.")


# Keys and capacity


def no_key() -> Refused:
    return Refused(
        "no-key",
        "You didn't provide an API key. You need to provide your API key in an Authorization "
        "header using Bearer auth (i.e. Authorization: Bearer YOUR_KEY).",
        status=401,
    )


def wrong_key() -> Refused:
    return Refused("wrong-key", "Incorrect API key provided.", status=401, code="invalid_api_key")


def too_many_connections(most: int) -> Refused:
    return Refused(
        "too-many-connections",
        f"This server takes at most {most} connections at once.",
        status=503,
        type=SERVER,
        code="server_overloaded",
    )


def own_fault() -> Refused:
    """The emulator itself went wrong; its log says how."""
    return Refused(
        "emulator-fault",
        "The server had an error while processing your request. Sorry about that!",
        status=500,
        type=SERVER,
    )


# The WebSocket transport


def unreadable_frame() -> Refused:
    return Refused("unreadable-frame", "The WebSocket frame was not a JSON object.")


def wrong_lane_name() -> Refused:
    return Refused(
        "wrong-lane-name",
        "Invalid `stream_id`. Use 1 to 256 letters, digits, '_', '.' or '-'.",
        param="stream_id",
        code="invalid_stream_id",
    )


def too_many_in_flight(most: int) -> Refused:
    return Refused(
        "too-many-in-flight",
        f"This connection already has {most} responses in flight.",
        param="stream_id",
        code="websocket_stream_limit_reached",
    )


def too_many_lanes(most: int) -> Refused:
    return Refused(
        "too-many-lanes",
        f"This connection already uses {most} values of `stream_id`.",
        param="stream_id",
        code="websocket_stream_limit_reached",
    )


def connection_too_old(minutes: float) -> Refused:
    return Refused(
        "connection-too-old",
        f"This WebSocket connection reached its limit of {minutes:g} minutes. Open a new one.",
        code="websocket_connection_limit_reached",
    )
