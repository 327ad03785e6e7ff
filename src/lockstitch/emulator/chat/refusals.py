"""How Chat Completions says no, where its words are its own; the rest is in `refusals`."""

from collections.abc import Iterable

from lockstitch.emulator.refusals import Refused


def calls_without_output(ids: Iterable[str], at: int) -> Refused:
    """`at` is the message that stands where a tool message should."""
    return Refused(
        "call-without-output",
        "An assistant message with 'tool_calls' must be followed by tool messages responding to "
        "each 'tool_call_id'. The following tool_call_ids did not have response messages: "
        f"{', '.join(ids)}",
        param=f"messages.[{at}].role",
    )


def output_without_call(at: int) -> Refused:
    return Refused(
        "output-without-call",
        # The provider's own spelling.
        "Invalid parameter: messages with role 'tool' must be a response to a preceeding message "
        "with 'tool_calls'.",
        param=f"messages.[{at}].role",
    )


def no_content(at: int) -> Refused:
    return Refused(
        "wrong-type",
        "Invalid value for 'content': expected a string, got null.",
        param=f"messages.[{at}].content",
    )


def empty_array(param: str) -> Refused:
    return Refused(
        "wrong-value",
        f"Invalid '{param}': empty array. Expected an array with minimum length 1, but got an "
        "empty array instead.",
        param=param,
        code="empty_array",
    )


def only_with_tools(param: str) -> Refused:
    return Refused(
        "wrong-value",
        f"Invalid value for '{param}': '{param}' is only allowed when 'tools' are specified.",
        param=param,
    )


def only_with_stream() -> Refused:
    return Refused(
        "wrong-value",
        "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
        param="stream_options",
    )


def unknown_choice(name: str) -> Refused:
    return Refused(
        "wrong-value", f"Tool choice '{name}' not found in 'tools' parameter.", param="tool_choice"
    )


def function_role(at: int) -> Refused:
    """The emulator takes no legacy functions, and says so at once."""
    return Refused(
        "unsupported-parameter",
        "Unsupported value: 'function'. Messages with role 'function' are not supported with this "
        "model. Use 'tool' instead.",
        param=f"messages[{at}].role",
        code="unsupported_value",
    )
