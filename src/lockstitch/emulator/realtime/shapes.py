"""Whether a Realtime client event has the right shape: every event, item and setting, as tables.

What the official client's types say (SDK 3.49). Everything here looks at one event alone: what it
refers to is checked in `realtime`, where the session's state is."""

from dataclasses import replace
from typing import Any

from lockstitch.emulator.kinds import (
    ANYTHING,
    BOOLEAN,
    DECIMAL,
    INTEGER,
    OBJECT,
    OBJECTS,
    STRING,
    STRINGS,
    Kind,
    Shape,
    array_of,
    check_shape,
    object_of,
    one_of,
    shaped,
    tag_of,
    tagged,
    with_tag,
)
from lockstitch.emulator.limits import (
    LONGEST_METADATA_KEY_CHARACTERS,
    LONGEST_METADATA_VALUE_CHARACTERS,
    LONGEST_REALTIME_CALL_ID_CHARACTERS,
    LONGEST_REALTIME_ITEM_ID_CHARACTERS,
    MOST_METADATA_PAIRS,
)
from lockstitch.emulator.realtime import refusals as realtime_refusals
from lockstitch.emulator.refusals import too_long, too_many

# Items

_ID = replace(STRING, longest=LONGEST_REALTIME_ITEM_ID_CHARACTERS)
_CALL_ID = replace(STRING, longest=LONGEST_REALTIME_CALL_ID_CHARACTERS)
# What every item may say of itself; a status has no effect on the conversation.
_COMMON = {
    "id": _ID,
    "object": one_of("realtime.item"),
    "status": one_of("completed", "incomplete", "in_progress"),
}
_INPUT_TEXT = Shape({"text": STRING})
_USER_PARTS = tagged(
    {
        "input_text": _INPUT_TEXT,
        "input_audio": Shape({"audio": STRING}, {"transcript": STRING}),
        "input_image": Shape({"image_url": STRING}, {"detail": one_of("auto", "low", "high")}),
    }
)


def _message(parts: Kind) -> Shape:
    needs = {"type": one_of("message"), "role": STRING, "content": array_of(parts)}
    return Shape(needs, _COMMON)


# By role. A client cannot create an assistant's audio, only its text.
_MESSAGES = {
    "system": _message(tagged({"input_text": _INPUT_TEXT})),
    "user": _message(_USER_PARTS),
    "assistant": _message(tagged({"output_text": Shape({"text": STRING})})),
}
_MCP_ITEM = {"id": _ID, "name": STRING, "arguments": STRING, "server_label": STRING}
_ITEMS = {
    tag: with_tag(tag, shape)
    for tag, shape in {
        "message": Shape(),
        "function_call": Shape(
            {"name": STRING, "arguments": STRING}, {**_COMMON, "call_id": _CALL_ID}
        ),
        "function_call_output": Shape({"call_id": _CALL_ID, "output": STRING}, _COMMON),
        "mcp_approval_response": Shape(
            {"id": _ID, "approval_request_id": STRING, "approve": BOOLEAN}, {"reason": STRING}
        ),
        "mcp_list_tools": Shape({"server_label": STRING, "tools": OBJECTS}, {"id": _ID}),
        "mcp_call": Shape(
            _MCP_ITEM, {"approval_request_id": STRING, "error": OBJECT, "output": STRING}
        ),
        "mcp_approval_request": Shape(_MCP_ITEM),
    }.items()
}
_REFERENCE = with_tag("item_reference", Shape({"id": STRING}))
ITEM_TYPES = tuple(_ITEMS)
_IMAGES = ("data:image/png;base64,", "data:image/jpeg;base64,")

# Settings of a session and of a response

_FORMAT = tagged(
    {
        "audio/pcm": Shape(None, {"rate": replace(INTEGER, lowest=24_000, highest=24_000)}),
        "audio/pcmu": Shape(),
        "audio/pcma": Shape(),
    }
)
_VOICE = Kind("one of a string or object", frozenset({str, dict}), shape=Shape({"id": STRING}))
_WHO_ANSWERS = {"create_response": BOOLEAN, "interrupt_response": BOOLEAN}
_TURN_DETECTION = tagged(
    {
        "server_vad": Shape(
            None,
            {
                **_WHO_ANSWERS,
                "idle_timeout_ms": INTEGER,
                "prefix_padding_ms": INTEGER,
                "silence_duration_ms": INTEGER,
                "threshold": replace(DECIMAL, lowest=0, highest=1),
            },
        ),
        "semantic_vad": Shape(
            None, {**_WHO_ANSWERS, "eagerness": one_of("low", "medium", "high", "auto")}
        ),
    }
)
_TRANSCRIPTION = Shape(
    None,
    {
        "delay": one_of("minimal", "low", "medium", "high", "xhigh"),
        "keywords": STRINGS,
        "language": STRING,
        "languages": STRINGS,
        "model": STRING,
        "prompt": STRING,
    },
)
_NOISE_REDUCTION = Shape(None, {"type": one_of("near_field", "far_field"), "strength": DECIMAL})
_AUDIO_INPUT = Shape(
    None,
    {
        "format": _FORMAT,
        "noise_reduction": shaped(_NOISE_REDUCTION),
        "transcription": shaped(_TRANSCRIPTION),
        "turn_detection": _TURN_DETECTION,
    },
)
_SPEED = replace(DECIMAL, lowest=0.25, highest=1.5)
_RESPONSE_AUDIO = shaped(Shape(None, {"format": _FORMAT, "voice": _VOICE}))
_SESSION_AUDIO = shaped(Shape(None, {"format": _FORMAT, "voice": _VOICE, "speed": _SPEED}))
_TOOL = tagged(
    {
        "function": Shape({"name": STRING}, {"description": STRING, "parameters": OBJECT}),
        "mcp": Shape(
            {"server_label": STRING},
            {
                "allowed_callers": STRINGS,
                "allowed_tools": ANYTHING,
                "authorization": STRING,
                "connector_id": STRING,
                "defer_loading": BOOLEAN,
                "headers": object_of(STRING),
                "require_approval": ANYTHING,
                "server_description": STRING,
                "server_url": STRING,
                "tunnel_id": STRING,
            },
        ),
    }
)
_CHOICES = {
    "function": Shape({"name": STRING}),
    "mcp": Shape({"server_label": STRING}, {"name": STRING}),
}
_TOOL_CHOICE = Kind(
    "one of a string or object",
    frozenset({str, dict}),
    values=("none", "auto", "required"),
    shapes={tag: with_tag(tag, shape) for tag, shape in _CHOICES.items()},
)
_MOST_TOKENS = Kind(
    "one of an integer or 'inf'", frozenset({str, int}), values=("inf",), lowest=1, highest=4096
)
_TRACING = Kind(
    "one of 'auto' or an object",
    frozenset({str, dict}),
    values=("auto",),
    shape=Shape(None, {"group_id": STRING, "metadata": OBJECT, "workflow_name": STRING}),
)
_RETENTION = Shape(
    {"retention_ratio": replace(DECIMAL, lowest=0, highest=1)},
    {"token_limits": shaped(Shape(None, {"post_instructions": INTEGER}))},
)
_TRUNCATION = Kind(
    "one of a string or object",
    frozenset({str, dict}),
    values=("auto", "disabled"),
    shapes={"retention_ratio": with_tag("retention_ratio", _RETENTION)},
)
# What a session and a response of it are both told.
_BOTH = {
    "instructions": STRING,
    "max_output_tokens": _MOST_TOKENS,
    "output_modalities": array_of(one_of("text", "audio")),
    "parallel_tool_calls": BOOLEAN,
    "prompt": shaped(Shape({"id": STRING}, {"variables": OBJECT, "version": STRING})),
    "reasoning": shaped(
        Shape(None, {"effort": one_of("minimal", "low", "medium", "high", "xhigh")})
    ),
    "tool_choice": _TOOL_CHOICE,
    "tools": array_of(_TOOL),
}
_SESSION = Shape(
    {"type": one_of("realtime")},
    {
        **_BOTH,
        "audio": shaped(Shape(None, {"input": shaped(_AUDIO_INPUT), "output": _SESSION_AUDIO})),
        "include": array_of(one_of("item.input_audio_transcription.logprobs")),
        "model": STRING,
        "tracing": _TRACING,
        "truncation": _TRUNCATION,
    },
)
_RESPONSE = Shape(
    None,
    {
        **_BOTH,
        "audio": shaped(Shape(None, {"output": _RESPONSE_AUDIO})),
        "conversation": one_of("auto", "none"),
        "input": array_of(OBJECT),
        "metadata": object_of(STRING),
    },
)

# Events


def _event(needs: dict[str, Kind] | None = None, may: dict[str, Kind] | None = None) -> Shape:
    return Shape({"type": STRING, **(needs or {})}, {"event_id": STRING, **(may or {})})


_ITEM_ID = {"item_id": STRING}
_COUNT = replace(INTEGER, lowest=0)
CLIENT_EVENTS = {
    "session.update": _event({"session": OBJECT}),
    "input_audio_buffer.append": _event({"audio": STRING}),
    "input_audio_buffer.commit": _event(),
    "input_audio_buffer.clear": _event(),
    "conversation.item.create": _event({"item": OBJECT}, {"previous_item_id": STRING}),
    "conversation.item.retrieve": _event(_ITEM_ID),
    "conversation.item.truncate": _event(
        {**_ITEM_ID, "content_index": _COUNT, "audio_end_ms": _COUNT}
    ),
    "conversation.item.delete": _event(_ITEM_ID),
    "response.create": _event(None, {"response": OBJECT}),
    "response.cancel": _event(None, {"response_id": STRING}),
}
_EVENT_TYPES = tuple(CLIENT_EVENTS)


def check_event(frame: dict[str, Any]) -> str:
    """The type of a client event whose outermost fields are right."""
    name = tag_of(frame, "type", _EVENT_TYPES, "")
    check_shape(CLIENT_EVENTS[name], frame, "")
    return name


def check_session(session: dict[str, Any]) -> None:
    tag_of(session, "type", ("realtime",), "session")
    check_shape(_SESSION, session, "session")
    _check_modalities(session, "session")


def check_response(response: dict[str, Any]) -> None:
    check_shape(_RESPONSE, response, "response")
    _check_modalities(response, "response")
    _check_metadata(response.get("metadata") or {})
    for index, item in enumerate(response.get("input") or ()):
        check_item(item, f"response.input[{index}]", references=True)


def check_item(item: dict[str, Any], path: str, *, references: bool = False) -> None:
    """One item, or (in the input of a response) a reference to one."""
    if references and item.get("type") == "item_reference":
        check_shape(_REFERENCE, item, path)
        return
    tag = tag_of(item, "type", ITEM_TYPES, path)
    if tag != "message":
        check_shape(_ITEMS[tag], item, path)
        return
    role = tag_of(item, "role", tuple(_MESSAGES), path)
    check_shape(_MESSAGES[role], item, path)
    for index, part in enumerate(item["content"]):
        if part["type"] == "input_image" and not part["image_url"].startswith(_IMAGES):
            raise realtime_refusals.not_an_image(f"{path}.content[{index}].image_url")


def _check_modalities(given: dict[str, Any], path: str) -> None:
    modalities = given.get("output_modalities")
    if modalities is not None and len(modalities) != 1:
        raise realtime_refusals.wrong_modalities(f"{path}.output_modalities", modalities)


def _check_metadata(metadata: dict[str, str]) -> None:
    param = "response.metadata"
    if len(metadata) > MOST_METADATA_PAIRS:
        raise too_many(param, MOST_METADATA_PAIRS, len(metadata))
    for key, value in metadata.items():
        if len(key) > LONGEST_METADATA_KEY_CHARACTERS:
            raise too_long(param, LONGEST_METADATA_KEY_CHARACTERS, len(key))
        if len(value) > LONGEST_METADATA_VALUE_CHARACTERS:
            raise too_long(f"{param}.{key}", LONGEST_METADATA_VALUE_CHARACTERS, len(value))
