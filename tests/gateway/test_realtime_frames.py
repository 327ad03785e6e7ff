"""What is read of a realtime frame, and what never is."""

from __future__ import annotations

import json

import pytest

from lockstitch.gateway.deciding import realtime_frames as frames

AUDIO = "UklGRiQAAABXQVZF" * 4096


@pytest.fixture
def unread(monkeypatch):
    """Nothing may be decoded."""

    def decode(payload):
        raise AssertionError(f"decoded: {payload[:60]!r}")

    monkeypatch.setattr(frames, "_client", decode)
    monkeypatch.setattr(frames, "_server", decode)


@pytest.mark.parametrize(
    "event",
    [
        {"type": "input_audio_buffer.append", "audio": AUDIO},
        {"audio": AUDIO, "type": "input_audio_buffer.append"},  # as LiveKit writes it
        {"event_id": "e", "type": "response.create"},
    ],
)
def test_a_client_that_speaks_is_not_decoded(unread, event):
    assert frames.from_client(json.dumps(event).encode()) is None


@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")])
@pytest.mark.parametrize(
    "type", ["response.output_audio.delta", "response.output_text.delta", "session.updated"]
)
def test_a_model_that_speaks_is_not_decoded(unread, type, separators):
    event = {"type": type, "event_id": "e", "item_id": "i", "delta": AUDIO}
    assert frames.from_upstream(json.dumps(event, separators=separators).encode()) is None


@pytest.mark.parametrize(
    "payload",
    [
        b'{"type":"conversation.item.delete","item_id":"i"}',
        b'{"item_id":"i","type":"conversation.item.delete"}',
        b' {\n"item_id" : "i" , "type" : "conversation.item.delete" }',
        rb'{"type":"conversation\u002eitem.delete","item_id":"i"}',
        b'{"type":"x","type":"conversation.item.delete","item_id":"i"}',
    ],
)
def test_a_delete_is_known_however_it_is_written(payload):
    frame = frames.from_client(payload)
    assert frame is not None
    assert (frame.type, frame.item_id) == (frames.DELETE, "i")


@pytest.mark.parametrize(
    "payload",
    [
        b'{"type":"conversation.item.deleted","item_id":"i"}',
        b'{"item_id":"i","type":"conversation.item.deleted"}',
        rb'{"type":"conversation.item.\u0064eleted","item_id":"i"}',
    ],
)
def test_an_event_is_known_however_it_is_written(payload):
    frame = frames.from_upstream(payload)
    assert frame is not None
    assert (frame.type, frame.item_id) == (frames.DELETED, "i")


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'"conversation.item.delete"',
        b'{"type":"conversation.item.delete","item_id":7}',
        b'{"type":"conversation.item.delete","item_id":"\xff"}',
        b'{"type":"conversation.item.added","item":[]}',
        b'{"type":"conversation.item.added","item":"\\ud800"}',
        b'{"type":"conversation.item.added","x":' + b"[" * 5000,
    ],
)
def test_of_what_is_no_such_event_nothing_is_read(payload):
    assert frames.from_client(payload) is None
    assert frames.from_upstream(payload) is None


def test_an_error_has_the_form_of_the_providers():
    realtime = pytest.importorskip("openai.types.realtime")
    said = frames.error_for("mine", "own", code="c", message="No.")
    event = realtime.RealtimeErrorEvent.model_validate_json(said)
    assert event.model_dump() == {
        "type": "error",
        "event_id": "own",
        "error": {
            "type": "invalid_request_error",
            "code": "c",
            "message": "No.",
            "param": None,
            "event_id": "mine",
        },
    }
