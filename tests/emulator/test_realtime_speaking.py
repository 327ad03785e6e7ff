"""Realtime responses, without a socket: how they are said, and how they end."""

from typing import Any

import pytest

from lockstitch.emulator.errors import BadScript
from lockstitch.emulator.model.replies import call, item, refusal, reply
from lockstitch.emulator.realtime.endings import failed, incomplete
from tests.emulator.realtime_events import (
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
    until,
    user,
    with_items,
)

# Responses


def test_a_message_is_said_in_order():
    session = with_items("asked")
    speaking = started(session, "Hello there.")
    events = rest(session, speaking)
    assert names(events) == [
        "response.created",
        "response.output_item.added",
        "conversation.item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "conversation.item.done",
        "response.done",
        "rate_limits.updated",
    ]
    added = events[2]
    assert added["previous_item_id"] == "asked"
    assert added["item"]["status"] == "in_progress"
    assert added["item"]["content"] == []
    done = events[-2]["response"]
    assert done["status"] == "completed"
    assert done["output"] == [session.items()[-1]] == [events[-3]["item"]]
    assert done["output"][0]["content"] == [{"type": "output_text", "text": "Hello there."}]
    assert done["usage"]["total_tokens"] > 0
    assert session.active is None


def test_audio_is_said_with_its_transcript():
    session = session_of(output_modalities=["audio"])
    events = rest(session, started(session, "Hello there."))
    assert names(events)[3:-4] == [
        "response.content_part.added",
        "response.output_audio_transcript.delta",
        "response.output_audio.delta",
        "response.output_audio_transcript.delta",
        "response.output_audio.delta",
        "response.output_audio.done",
        "response.output_audio_transcript.done",
        "response.content_part.done",
    ]
    assert events[3]["part"] == {"type": "audio", "transcript": ""}
    assert only(events, "response.output_audio_transcript.done")["transcript"] == "Hello there."
    assert events[-2]["response"]["output"][0]["content"] == [
        {"type": "output_audio", "transcript": "Hello there."}
    ]


def test_a_call_is_in_the_conversation_before_it_is_done():
    session = with_items("asked")
    speaking = started(session, "Looking.", call("get_weather", {"city": "Athens"}))
    events = rest(session, speaking)
    order = names(events)
    added = [event for event in events if event["type"] == "conversation.item.added"]
    call_added = added[1]
    message_id = added[0]["item"]["id"]
    assert call_added["previous_item_id"] == message_id
    assert call_added["item"]["arguments"] == ""
    done = [event for event in events if event["type"] == "response.output_item.done"][1]
    assert events.index(call_added) < events.index(done)
    assert done["item"]["arguments"] == '{"city":"Athens"}'
    assert order.count("response.function_call_arguments.delta") == 2
    said = only(events, "response.function_call_arguments.done")
    assert (said["name"], said["arguments"]) == ("get_weather", '{"city":"Athens"}')
    received(session, create(function_call_output(done["item"]["call_id"])))


def test_a_refusal_is_said_as_a_message():
    session = session_of()
    events = rest(session, started(session, refusal("No.")))
    assert only(events, "response.output_text.done")["text"] == "No."


def test_a_response_is_answered_although_a_call_has_no_output():
    session = session_of()
    received(session, create(function_call()))
    events = rest(session, started(session, "Well."))
    assert events[-2]["response"]["status"] == "completed"


def test_there_is_one_active_response_in_the_conversation():
    session = session_of()
    speaking = started(session, "Hello.")
    error = error_of(session.receive({"type": "response.create", "event_id": "mine"}))
    assert error["code"] == "conversation_already_has_active_response"
    assert speaking.id in error["message"]
    assert error["event_id"] == "mine"
    rest(session, speaking)
    rest(session, started(session, "Again."))


def test_an_out_of_band_response_runs_beside_it_and_leaves_nothing_behind():
    session = with_items("a")
    speaking = started(session, "Hello.")
    until(session, speaking, "response.created")
    aside = started(session, "Aside.", conversation="none", metadata={"topic": "aside"})
    events = rest(session, aside)
    assert "conversation.item.added" not in names(events)
    body = events[-2]["response"]
    assert body["conversation_id"] is None
    assert body["metadata"] == {"topic": "aside"}
    assert session.active is speaking
    said = only(rest(session, speaking), "conversation.item.added")["item"]["id"]
    assert ids_of(session) == ["a", said]


def test_the_number_of_responses_in_flight_is_limited():
    session = session_of()
    aside = {"type": "response.create", "response": {"conversation": "none"}}
    codes = [session.receive(aside).broke for _ in range(17)]
    assert codes == [None] * 16 + ["realtime-too-many-responses"]


def test_a_response_brings_its_own_settings():
    session = session_of(instructions="Session.")
    tools = [{"type": "function", "name": "look", "parameters": {"type": "object"}}]
    speaking = started(
        session,
        "Hello.",
        instructions="Response.",
        tools=tools,
        tool_choice={"type": "function", "name": "look"},
        output_modalities=["audio"],
        max_output_tokens=100,
        metadata={"a": "b"},
    )
    asked = speaking.asked
    assert asked.instructions == "Response."
    assert [tool.name for tool in asked.tools] == ["look"]
    assert (asked.choice, asked.dialect, asked.model) == ("look", "realtime", "gpt-realtime")
    created = until(session, speaking, "response.created")[0]["response"]
    assert created["output_modalities"] == ["audio"]
    assert created["max_output_tokens"] == 100
    assert created["metadata"] == {"a": "b"}
    assert session.settings.body["instructions"] == "Session."


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"conversation": "other"}, "invalid_value"),
        ({"modalities": ["text"]}, "unknown_parameter"),
        ({"metadata": {"k": 1}}, "invalid_type"),
        ({"metadata": {str(key): "" for key in range(17)}}, "array_above_max_length"),
        ({"metadata": {"k": "v" * 513}}, "string_above_max_length"),
        ({"metadata": {"k" * 65: "v"}}, "string_above_max_length"),
        ({"input": [{"type": "item_reference", "id": "no"}]}, "item_reference_invalid_item_id"),
        ({"input": [function_call_output()]}, "invalid_tool_call_id"),
    ],
)
def test_a_response_that_is_refused_does_not_start(given: Any, code: str):
    session = session_of()
    error = error_of(session.receive({"type": "response.create", "response": given}))
    assert error["code"] == code
    assert session.active is None


def test_the_model_is_asked_about_the_conversation():
    session = session_of()
    received(session, create(user("What is the weather?")))
    received(session, create(function_call()))
    received(session, create(function_call_output(output="rainy")))
    asked = started(session).asked
    assert asked.user == "What is the weather?"
    assert (asked.output, asked.tool) == ("rainy", "get_weather")
    assert asked.length == 3


def test_the_model_is_asked_about_the_input_that_a_response_brings():
    session = with_items("a", "b")
    given = [{"type": "item_reference", "id": "a"}, user("mine")]
    asked = started(session, conversation="none", input=given).asked
    assert (asked.user, asked.length) == ("mine", 2)
    assert started(session, conversation="none", input=[]).asked.length == 0
    assert started(session, conversation="none").asked.user == "b"


@pytest.mark.parametrize("draft", [item("web_search_call"), call("a", call_id="c" * 33)])
def test_what_realtime_cannot_say_is_an_error_of_the_script(draft: Any):
    session = session_of()
    (speaking,) = session.receive({"type": "response.create"}).started
    with pytest.raises(BadScript):
        speaking.answer(reply(draft))
    speaking.end(failed())
    assert names(rest(session, speaking))[:2] == ["response.created", "response.done"]


# Endings


@pytest.mark.parametrize("named", [False, True])
def test_a_cancel_closes_what_was_said_and_no_more(named: bool):
    session = session_of()
    speaking = started(session, "One two three.", call("never"))
    until(session, speaking, "response.output_text.delta", 2)
    frame = {"type": "response.cancel"} | ({"response_id": speaking.id} if named else {})
    events = received(session, frame)
    assert names(events) == [
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "conversation.item.done",
        "response.done",
        "rate_limits.updated",
    ]
    body = events[-2]["response"]
    assert body["status"] == "cancelled"
    assert body["status_details"] == {"type": "cancelled", "reason": "client_cancelled"}
    (cut,) = body["output"]
    assert cut["status"] == "incomplete"
    assert cut["content"] == [{"type": "output_text", "text": "One two "}]
    assert session.items() == [cut]
    assert session.active is None
    assert rest(session, speaking) == []


def test_a_cancel_of_nothing_is_refused():
    session = session_of()
    for frame in (
        {"type": "response.cancel", "event_id": "mine"},
        {"type": "response.cancel", "event_id": "mine", "response_id": "resp_x"},
    ):
        error = error_of(session.receive(frame))
        assert (error["code"], error["event_id"]) == ("response_cancel_not_active", "mine")


def test_an_out_of_band_response_is_cancelled_by_its_id_alone():
    session = session_of()
    aside = started(session, "Aside.", conversation="none")
    assert session.receive({"type": "response.cancel"}).broke
    events = received(session, {"type": "response.cancel", "response_id": aside.id})
    assert names(events)[:2] == ["response.created", "response.done"]


WHOLE = names(
    rest(
        (whole := session_of(output_modalities=["audio"])),
        started(whole, "Hello there.", call("look", {"at": "this"})),
    )
)


@pytest.mark.parametrize("after", range(len(WHOLE) - 1))
@pytest.mark.parametrize("ending", ["cancel", "fail", "incomplete"])
def test_a_response_that_ends_after_any_event_is_closed_whole(after: int, ending: str):
    session = session_of(output_modalities=["audio"])
    speaking = started(session, "Hello there.", call("look", {"at": "this"}))
    events = []
    for _ in range(after):
        event = speaking.upcoming()
        assert event is not None
        session.told(speaking, event)
        events.append(event)
    if speaking.ended:
        return
    if ending == "cancel":
        events += received(session, {"type": "response.cancel"})
    else:
        # The event that a fault strikes was made, and is never told.
        speaking.upcoming()
        speaking.end(failed() if ending == "fail" else incomplete())
        events += rest(session, speaking)
    for event in events:
        check(event)
    order = names(events)
    assert order[0] == "response.created"
    assert order[-2:] == ["response.done", "rate_limits.updated"]
    for opened, closed in (
        ("response.created", "response.done"),
        ("response.output_item.added", "response.output_item.done"),
        ("response.content_part.added", "response.content_part.done"),
        ("conversation.item.added", "conversation.item.done"),
        ("response.content_part.added", "response.output_audio.done"),
        ("response.content_part.added", "response.output_audio_transcript.done"),
    ):
        assert order.count(opened) == order.count(closed)
    assert [kept["id"] for kept in events[-2]["response"]["output"]] == [
        event["item"]["id"] for event in events if event["type"] == "response.output_item.added"
    ]
    assert all(kept["status"] != "in_progress" for kept in session.items())
    assert session.active is None


@pytest.mark.parametrize("ends", ["incomplete", "failed"])
def test_a_reply_can_end_badly_after_all_was_said(ends: str):
    session = session_of()
    (speaking,) = session.receive({"type": "response.create"}).started
    speaking.answer(reply("All of it.", ends=ends))
    body = rest(session, speaking)[-2]["response"]
    assert body["status"] == ends
    assert body["output"][0]["status"] == "completed"
