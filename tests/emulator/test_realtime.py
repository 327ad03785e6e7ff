"""The rules of a Realtime session, without a socket: its settings, frames, items and audio."""

import base64
from typing import Any

import pytest
from hypothesis import given as given_any
from hypothesis import strategies as st

from lockstitch.emulator.model.replies import reply
from lockstitch.emulator.realtime import audio as realtime_audio
from lockstitch.emulator.realtime import items as realtime_items
from lockstitch.emulator.realtime.shapes import CLIENT_EVENTS
from tests.emulator.realtime_events import (
    AUDIO,
    check,
    create,
    error_of,
    function_call,
    function_call_output,
    ids_of,
    names,
    only,
    received,
    rest,
    session_of,
    started,
    user,
    with_items,
)

# The session


def test_the_session_is_told_first_and_alone():
    (event,) = session_of().opening()
    check(event)
    assert event["type"] == "session.created"
    assert event["session"]["model"] == "gpt-realtime"
    assert event["session"]["expires_at"] == 1_800_000_000


def test_an_update_changes_only_what_it_names():
    session = session_of(instructions="Be brief.")
    tools = [{"type": "function", "name": "look", "parameters": {"type": "object"}}]
    given = {"type": "realtime", "tools": tools, "audio": {"output": {"voice": "cedar"}}}
    (event,) = received(session, {"type": "session.update", "session": given})
    now = event["session"]
    assert now["instructions"] == "Be brief."
    assert now["output_modalities"] == ["text"]
    assert now["tools"] == tools
    assert now["audio"]["output"]["voice"] == "cedar"
    assert now["audio"]["output"]["format"] == {"type": "audio/pcm", "rate": 24_000}
    assert now["audio"]["input"]["turn_detection"]["type"] == "server_vad"


def test_null_clears_what_can_be_cleared_and_nothing_else():
    session = session_of(instructions="Be brief.")
    given = {
        "type": "realtime",
        "instructions": None,
        "audio": {"input": {"turn_detection": None}, "output": None},
    }
    (event,) = received(session, {"type": "session.update", "session": given})
    assert event["session"]["instructions"] == "Be brief."
    assert event["session"]["audio"]["input"]["turn_detection"] is None
    assert event["session"]["audio"]["output"]["voice"]


def test_turn_detection_has_its_defaults_when_only_its_type_is_said():
    given = {
        "type": "realtime",
        "audio": {"input": {"turn_detection": {"type": "semantic_vad", "eagerness": None}}},
    }
    (event,) = received(session_of(), {"type": "session.update", "session": given})
    detection = event["session"]["audio"]["input"]["turn_detection"]
    assert detection == {
        "type": "semantic_vad",
        "eagerness": "auto",
        "create_response": True,
        "interrupt_response": True,
    }


@pytest.mark.parametrize(
    ("given", "code", "param"),
    [
        ({}, "missing_required_parameter", "session.type"),
        ({"type": "transcription"}, "invalid_value", "session.type"),
        ({"type": "realtime", "modalities": ["text"]}, "unknown_parameter", "session.modalities"),
        ({"type": "realtime", "tools": 1}, "invalid_type", "session.tools"),
        (
            {"type": "realtime", "output_modalities": ["text", "audio"]},
            "invalid_value",
            "session.output_modalities",
        ),
        (
            {"type": "realtime", "tools": [{"type": "function", "name": "a", "strict": True}]},
            "unknown_parameter",
            "session.tools[0].strict",
        ),
        ({"type": "realtime", "model": "another"}, "invalid_value", "session.model"),
        (
            {"type": "realtime", "max_output_tokens": 0},
            "invalid_value",
            "session.max_output_tokens",
        ),
    ],
)
def test_an_update_that_is_refused_changes_nothing(given: Any, code: str, param: str):
    session = session_of()
    before = session.settings.body
    frame = {"type": "session.update", "session": given, "event_id": "mine"}
    error = error_of(session.receive(frame))
    assert (error["code"], error["param"], error["event_id"]) == (code, param, "mine")
    assert session.settings.body == before


def test_the_voice_is_fixed_once_it_was_heard():
    session = session_of(output_modalities=["audio"])
    rest(session, started(session, "Hello."))
    same = {"type": "realtime", "audio": {"output": {"voice": "alloy"}}}
    received(session, {"type": "session.update", "session": same})
    other = {"type": "realtime", "audio": {"output": {"voice": "cedar"}}}
    error = error_of(session.receive({"type": "session.update", "session": other}))
    assert error["code"] == "cannot_update_voice"


# Frames


@pytest.mark.parametrize(
    ("frame", "code", "event_id"),
    [
        (None, None, None),
        ([], None, None),
        ({}, "missing_required_parameter", None),
        ({"type": 1, "event_id": "mine"}, "invalid_type", "mine"),
        ({"type": "session.delete", "event_id": "mine"}, "invalid_value", "mine"),
        ({"type": "response.cancel", "event_id": 1}, "invalid_type", None),
        ({"type": "response.cancel", "more": 1}, "unknown_parameter", None),
        ({"type": "conversation.item.create"}, "missing_required_parameter", None),
        ({"type": "conversation.item.create", "item": []}, "invalid_type", None),
        ({"type": "response.create", "response": {"input": [1]}}, "invalid_type", None),
    ],
)
def test_a_malformed_frame_is_answered_with_its_event_id(frame: Any, code: Any, event_id: Any):
    error = error_of(session_of().receive(frame))
    assert (error["type"], error["code"]) == ("invalid_request_error", code)
    assert error["event_id"] == event_id


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2**40) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
WORDS = """
message user assistant system function_call function_call_output item_reference mcp_call root none
realtime input_text input_audio input_image audio/pcm server_vad function mcp a
"""
NAMES = """
type role content id call_id output name arguments text audio image_url transcript input tools
tool_choice turn_detection format metadata output_modalities conversation voice
"""
FIELDS = """
item session response item_id previous_item_id audio event_id content_index audio_end_ms response_id
"""
NEARLY = st.recursive(
    st.sampled_from(WORDS.split()) | JSON,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(NAMES.split()), inner, max_size=5)
    ),
    max_leaves=12,
)
FRAMES = st.builds(
    lambda name, fields: {"type": name, **fields},
    st.sampled_from(sorted(CLIENT_EVENTS)),
    st.dictionaries(st.sampled_from(FIELDS.split()), NEARLY),
)


@given_any(st.lists(JSON | FRAMES, max_size=6))
def test_no_frame_is_an_exception(frames: list[Any]):
    session = with_items("a")
    for frame in frames:
        outcome = session.receive(frame)
        for event in outcome.events:
            check(event)
        for speaking in outcome.started:
            speaking.answer(reply("Well."))
            rest(session, speaking)
        quiet = isinstance(frame, dict) and frame.get("type") == "input_audio_buffer.append"
        assert outcome.events or outcome.started or quiet


# Items


def test_an_item_is_added_and_done_after_the_last_one():
    session = with_items("a")
    added, done = received(session, create(user("hello")))
    assert names([added, done]) == ["conversation.item.added", "conversation.item.done"]
    assert added["previous_item_id"] == done["previous_item_id"] == "a"
    drawn = added["item"]["id"]
    assert drawn.startswith("item_")
    assert len(drawn) <= 32
    assert ids_of(session) == ["a", drawn]


@pytest.mark.parametrize(
    ("previous", "announced", "order"),
    [
        ("root", None, ["new", "a", "b"]),
        ("a", "a", ["a", "new", "b"]),
        ("b", "b", ["a", "b", "new"]),
        ("", "b", ["a", "b", "new"]),
        (None, "b", ["a", "b", "new"]),
    ],
)
def test_an_item_goes_where_the_client_wants_it(previous: Any, announced: Any, order: list[str]):
    session = with_items("a", "b")
    added, _ = received(session, create(user("new", id="new"), previous_item_id=previous))
    assert added["previous_item_id"] == announced
    assert ids_of(session) == order


def test_an_item_after_an_unknown_one_is_refused_and_not_added():
    session = with_items("a", "b")
    received(session, {"type": "conversation.item.delete", "item_id": "b"})
    for unknown in ("never", "b"):
        frame = create(user("new"), previous_item_id=unknown, event_id="mine")
        error = error_of(session.receive(frame))
        assert error["code"] == "item_create_invalid_previous_item_id"
        assert error["event_id"] == "mine"
    assert ids_of(session) == ["a"]


def test_an_id_that_is_taken_is_refused_and_is_free_again_after_a_delete():
    session = with_items("a", "b")
    error = error_of(session.receive(create(user("again", id="a"))))
    assert error["code"] == "item_create_duplicate_item_id"
    received(session, {"type": "conversation.item.delete", "item_id": "a"})
    received(session, create(user("again", id="a")))
    assert ids_of(session) == ["b", "a"]


@pytest.mark.parametrize(
    ("given", "code", "param"),
    [
        (user("x", id="i" * 33), "string_above_max_length", "item.id"),
        (function_call("c" * 33), "string_above_max_length", "item.call_id"),
        (function_call_output("c" * 33), "string_above_max_length", "item.call_id"),
        (
            {"type": "function_call_output", "output": "x"},
            "missing_required_parameter",
            "item.call_id",
        ),
        ({"type": "item_reference", "id": "a"}, "invalid_value", "item.type"),
        ({"type": "message", "role": "tool", "content": []}, "invalid_value", "item.role"),
        (
            {
                "type": "message",
                "role": "assistant",
                "content": [{"type": "output_audio", "audio": ""}],
            },
            "invalid_value",
            "item.content[0].type",
        ),
        (
            {
                "type": "message",
                "role": "system",
                "content": [{"type": "input_audio", "audio": ""}],
            },
            "invalid_value",
            "item.content[0].type",
        ),
        (
            {
                "type": "message",
                "role": "user",
                "content": [{"type": "input_image", "image_url": "https://example.com/a.png"}],
            },
            "invalid_value",
            "item.content[0].image_url",
        ),
        (
            {
                "type": "message",
                "role": "user",
                "content": [{"type": "input_audio", "audio": "not base64!"}],
            },
            "invalid_value",
            "item.content[0].audio",
        ),
    ],
)
def test_an_item_of_the_wrong_shape_is_refused(given: Any, code: str, param: str):
    session = with_items("a")
    error = error_of(session.receive(create(given)))
    assert (error["code"], error["param"]) == (code, param)
    assert ids_of(session) == ["a"]


def test_a_history_can_be_restored():
    session = session_of()
    history = [
        {"type": "message", "role": "system", "content": [{"type": "input_text", "text": "s"}]},
        user("u"),
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "a"}]},
        function_call(),
        function_call_output(),
        {
            "type": "message",
            "role": "user",
            "content": [{"type": "input_image", "image_url": "data:image/png;base64,AA=="}],
        },
    ]
    for given in history:
        received(session, create(given))
    assert [kept["type"] for kept in session.items()] == [given["type"] for given in history]


def test_a_call_without_a_call_id_is_given_one():
    session = session_of()
    added, _ = received(session, create({"type": "function_call", "name": "a", "arguments": "{}"}))
    received(session, create(function_call_output(added["item"]["call_id"])))


def test_an_output_needs_its_call_in_the_conversation():
    session = session_of()
    unknown = create(function_call_output("call_X"), event_id="mine")
    error = error_of(session.receive(unknown))
    assert error["code"] == "invalid_tool_call_id"
    assert error["message"] == "Tool call ID 'call_X' not found in conversation."
    assert error["event_id"] == "mine"
    received(session, create(function_call("call_X", id="fc")))
    received(session, create(function_call_output("call_X")))
    received(session, {"type": "conversation.item.delete", "item_id": "fc"})
    assert error_of(session.receive(unknown))["code"] == "invalid_tool_call_id"


@pytest.mark.parametrize("verb", ["delete", "retrieve", "truncate"])
def test_an_unknown_item_cannot_be_touched(verb: str):
    frame = {"type": f"conversation.item.{verb}", "item_id": "never", "event_id": "mine"}
    if verb == "truncate":
        frame |= {"content_index": 0, "audio_end_ms": 0}
    error = error_of(session_of().receive(frame))
    assert (error["code"], error["event_id"]) == (f"item_{verb}_invalid_item_id", "mine")


def test_an_item_is_retrieved_with_its_audio():
    session = session_of(output_modalities=["audio"])
    content = [{"type": "input_audio", "audio": AUDIO, "transcript": "hi"}]
    heard = {"type": "message", "role": "user", "content": content, "id": "heard"}
    added, _ = received(session, create(heard))
    assert added["item"]["content"] == [{"type": "input_audio", "transcript": "hi"}]
    (event,) = received(session, {"type": "conversation.item.retrieve", "item_id": "heard"})
    assert event["item"]["content"] == content
    rest(session, started(session, "One two."))
    said = ids_of(session)[-1]
    (event,) = received(session, {"type": "conversation.item.retrieve", "item_id": said})
    (part,) = event["item"]["content"]
    assert part["transcript"] == "One two."
    assert len(base64.b64decode(part["audio"])) == 2 * 20 * 48


def test_only_audio_that_was_said_can_be_truncated_and_loses_its_words():
    session = session_of(output_modalities=["audio"])
    received(session, create(user("hello", id="asked")))
    rest(session, started(session, "One two three."))
    said = ids_of(session)[-1]

    def truncate(id: str, end: int) -> dict[str, Any]:
        frame = {"type": "conversation.item.truncate", "item_id": id, "content_index": 0}
        return frame | {"audio_end_ms": end}

    assert error_of(session.receive(truncate("asked", 0)))["code"] == "invalid_value"
    error = error_of(session.receive(truncate(said, 61)))
    assert (error["code"], error["param"]) == ("invalid_value", "audio_end_ms")
    (event,) = received(session, truncate(said, 40))
    assert event["audio_end_ms"] == 40
    assert session.items()[-1]["content"] == [{"type": "output_audio"}]
    assert error_of(session.receive(truncate(said, 41)))["code"] == "invalid_value"


def test_a_full_conversation_takes_nothing_more(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(realtime_items, "MOST_REALTIME_ITEMS", 2)
    session = with_items("a", "b")
    full = "conversation_item_limit_reached"
    assert error_of(session.receive(create(user("c"))))["code"] == full
    assert error_of(session.receive({"type": "response.create"}))["code"] == full
    assert session.speech("hello").events[0]["error"]["code"] == full
    received(session, {"type": "conversation.item.delete", "item_id": "a"})
    received(session, create(user("c")))


def test_a_forgotten_tombstone_sends_a_late_item_to_the_end(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(realtime_items, "MOST_REALTIME_TOMBSTONES", 1)
    session = with_items("a", "b")
    speaking = started(session, "late")
    received(session, create(user("c", id="c")))
    for gone in ("b", "a"):
        received(session, {"type": "conversation.item.delete", "item_id": gone})
    added = only(rest(session, speaking), "conversation.item.added")
    assert added["previous_item_id"] == "b"
    assert ids_of(session) == ["c", added["item"]["id"]]


# The input audio buffer


def test_a_commit_makes_an_item_of_what_was_appended():
    session = session_of(audio={"input": {"transcription": {"model": "whisper-1"}}})
    assert received(session, {"type": "input_audio_buffer.append", "audio": AUDIO}) == []
    events = received(session, {"type": "input_audio_buffer.commit"})
    assert names(events) == [
        "input_audio_buffer.committed",
        "conversation.item.added",
        "conversation.item.done",
        "conversation.item.input_audio_transcription.delta",
        "conversation.item.input_audio_transcription.completed",
    ]
    assert events[1]["item"]["content"] == [{"type": "input_audio", "transcript": None}]
    assert events[0]["item_id"] == events[1]["item"]["id"]
    assert events[-1]["usage"] == {"type": "duration", "seconds": 0.2}
    assert session.items()[0]["content"][0]["transcript"] == events[-1]["transcript"]


def test_a_commit_of_nothing_is_refused():
    session = session_of()
    commit = {"type": "input_audio_buffer.commit", "event_id": "mine"}
    error = error_of(session.receive(commit))
    assert (error["code"], error["event_id"]) == ("input_audio_buffer_commit_empty", "mine")
    received(session, {"type": "input_audio_buffer.append", "audio": AUDIO})
    received(session, {"type": "input_audio_buffer.clear"})
    assert error_of(session.receive(commit))["code"] == "input_audio_buffer_commit_empty"
    assert session.items() == []


def test_a_long_silence_is_forgotten_while_turns_are_detected(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(realtime_audio, "LARGEST_REALTIME_SILENCE_BYTES", 48 * 300)
    monkeypatch.setattr(realtime_audio, "LARGEST_REALTIME_BUFFER_BYTES", 48 * 500)
    append = {"type": "input_audio_buffer.append", "audio": AUDIO}
    listening = session_of()
    for _ in range(9):
        received(listening, append)
    waiting = session_of(audio={"input": {"turn_detection": None}})
    for _ in range(2):
        received(waiting, append)
    assert error_of(waiting.receive(append))["code"] == "input_audio_buffer_full"


def test_audio_that_is_no_base64_is_refused():
    frame = {"type": "input_audio_buffer.append", "audio": "!"}
    assert error_of(session_of().receive(frame))["param"] == "audio"
