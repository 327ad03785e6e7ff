"""How the Realtime API says no: an `error` event, with the code and the words of the real one.

Codes and texts are those seen in public logs of the service where there are any. What it says of
a badly shaped event is in `refusals`, as for every other API."""

from lockstitch.emulator.refusals import Refused


def no_such_item(doing: str, verb: str, id: str) -> Refused:
    """`doing` and `verb` are two forms of one word: deleting and delete."""
    return Refused(
        "realtime-unknown-item",
        f"Error {doing} item: the item with id '{id}' does not exist.",
        code=f"item_{verb}_invalid_item_id",
    )


def unknown_previous_item(id: str) -> Refused:
    return Refused(
        "realtime-unknown-previous-item",
        f"Error adding item: the previous item with id '{id}' does not exist.",
        code="item_create_invalid_previous_item_id",
    )


def item_exists(id: str) -> Refused:
    return Refused(
        "realtime-duplicate-item",
        f"Error adding item: an item with id '{id}' already exists.",
        code="item_create_duplicate_item_id",
    )


def unknown_call(call_id: str) -> Refused:
    return Refused(
        "output-without-call",
        f"Tool call ID '{call_id}' not found in conversation.",
        code="invalid_tool_call_id",
    )


def unknown_reference(id: str, param: str) -> Refused:
    return Refused(
        "realtime-unknown-item",
        f"Item with id '{id}' not found in this session.",
        param=param,
        code="item_reference_invalid_item_id",
    )


def conversation_full(most: int) -> Refused:
    return Refused(
        "realtime-too-many-items",
        f"The conversation already has {most} items. Delete some before adding another.",
        code="conversation_item_limit_reached",
    )


def not_truncatable() -> Refused:
    return Refused(
        "realtime-not-truncatable",
        "Only model output audio messages can be truncated.",
        code="invalid_value",
    )


def audio_already_shorter(has: int, wanted: int) -> Refused:
    return Refused(
        "realtime-audio-shorter",
        f"Audio content of {has}ms is already shorter than {wanted}ms.",
        param="audio_end_ms",
        code="invalid_value",
    )


def nothing_to_commit(needs: int, has: float) -> Refused:
    return Refused(
        "realtime-empty-commit",
        f"Error committing input audio buffer: buffer too small. Expected at least {needs}ms of "
        f"audio, but buffer only has {has:.2f}ms of audio.",
        code="input_audio_buffer_commit_empty",
    )


def buffer_full(most: int) -> Refused:
    return Refused(
        "realtime-buffer-full",
        f"The input audio buffer takes at most {most} bytes of audio. Commit or clear it first.",
        param="audio",
        code="input_audio_buffer_full",
    )


def not_audio(param: str) -> Refused:
    return Refused(
        "wrong-value",
        f"Invalid '{param}': expected base64-encoded audio bytes.",
        param=param,
        code="invalid_value",
    )


def not_an_image(param: str) -> Refused:
    return Refused(
        "wrong-value",
        f"Invalid '{param}': expected a data URI of a PNG or JPEG image, in base64.",
        param=param,
        code="invalid_value",
    )


def wrong_modalities(param: str, given: list[str]) -> Refused:
    return Refused(
        "wrong-value",
        f"Invalid modalities: {given}. Supported combinations are: ['text'] and ['audio'].",
        param=param,
        code="invalid_value",
    )


def response_active(id: str) -> Refused:
    return Refused(
        "realtime-response-active",
        f"Conversation already has an active response in progress: {id}. Wait until the response "
        "is finished before creating a new one.",
        code="conversation_already_has_active_response",
    )


def too_many_responses(most: int) -> Refused:
    return Refused(
        "realtime-too-many-responses",
        f"This session already has {most} responses in progress.",
        code="too_many_active_responses",
    )


def nothing_to_cancel() -> Refused:
    return Refused(
        "realtime-nothing-to-cancel",
        "Cancellation failed: no active response found",
        code="response_cancel_not_active",
    )


def voice_fixed() -> Refused:
    return Refused(
        "realtime-voice-fixed",
        "Cannot update a conversation's voice if assistant audio is present.",
        param="session.audio.output.voice",
        code="cannot_update_voice",
    )


def model_fixed(model: str) -> Refused:
    return Refused(
        "realtime-model-fixed",
        f"Cannot update the model of a session: it is '{model}'.",
        param="session.model",
        code="invalid_value",
    )


def session_expired(minutes: float) -> Refused:
    return Refused(
        "realtime-session-expired",
        f"Your session hit the maximum duration of {minutes:g} minutes.",
        code="session_expired",
    )
