"""A client that edits, and a user who speaks, while a Realtime response is in flight."""

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from lockstitch.emulator.model.replies import call, reply
from lockstitch.emulator.realtime.shapes import CLIENT_EVENTS
from tests.emulator.realtime_events import (
    AUDIO,
    Mirror,
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
    turn_detection,
    until,
    user,
    with_items,
)

# Edits while a response is in flight


def test_a_predecessor_deleted_in_flight_is_still_named():
    """The founding case: a call is deleted while a response that follows it is in flight."""
    session = session_of(audio=turn_detection())
    first = session.speech("What is the weather?")
    (asking,) = first.started
    asking.answer(reply(call("get_weather", {"city": "Athens"})))
    called = only(rest(session, asking), "conversation.item.added")["item"]
    # The user speaks again while the tool runs; the server answers that too.
    user_said = only(session.speech("Are you there?").events, "conversation.item.added")
    assert user_said["previous_item_id"] == called["id"]
    (answering,) = [session.active]
    assert answering is not None
    answering.answer(reply("One moment."))
    until(session, answering, "response.created")
    # The application summarises: it has not seen the call, nor what was said after it.
    for gone in (called["id"], user_said["item"]["id"]):
        received(session, {"type": "conversation.item.delete", "item_id": gone})
    summary = create(user("A summary.", id="summary"), previous_item_id="root")
    received(session, summary)
    late = only(rest(session, answering), "conversation.item.added")
    assert late["previous_item_id"] == user_said["item"]["id"]
    assert late["previous_item_id"] not in ids_of(session)
    assert ids_of(session)[0] == "summary"
    assert ids_of(session)[-1] == late["item"]["id"]
    # The output of the deleted call has nowhere to go.
    orphan = create(function_call_output(called["call_id"]))
    assert error_of(session.receive(orphan))["code"] == "invalid_tool_call_id"


def test_an_item_appended_in_flight_comes_after_the_response_that_started_before_it():
    session = with_items("a")
    speaking = started(session, "Hello.")
    until(session, speaking, "response.created")
    received(session, create(user("b", id="b")))
    said = only(rest(session, speaking), "conversation.item.added")
    assert said["previous_item_id"] == "a"
    assert ids_of(session) == ["a", said["item"]["id"], "b"]


def test_a_predecessor_that_was_created_again_is_followed_where_it_is_now():
    session = with_items("a", "b")
    speaking = started(session, "Hello.")
    received(session, {"type": "conversation.item.delete", "item_id": "b"})
    received(session, create(user("b", id="b"), previous_item_id="root"))
    said = only(rest(session, speaking), "conversation.item.added")["item"]["id"]
    assert ids_of(session) == ["b", said, "a"]


def test_an_item_deleted_while_it_is_said_is_done_in_the_response_alone():
    session = session_of()
    speaking = started(session, "One two.", "Three.")
    first = until(session, speaking, "conversation.item.added")[-1]["item"]["id"]
    received(session, {"type": "conversation.item.delete", "item_id": first})
    # Not even under an id that the client gives to something else.
    received(session, create(user("mine", id=first)))
    events = rest(session, speaking)
    done = [event["item"]["id"] for event in events if event["type"] == "conversation.item.done"]
    assert first not in done
    assert names(events).count("response.output_item.done") == 2
    second = only(events, "conversation.item.added")
    assert second["previous_item_id"] == first
    assert ids_of(session) == [first, second["item"]["id"]]
    assert session.items()[0]["role"] == "user"


# The user's speech


def test_speech_is_heard_committed_transcribed_and_answered():
    session = session_of(
        audio={"input": {"transcription": {"model": "whisper-1"}}},
    )
    outcome = session.speech("Hello you")
    for event in outcome.events:
        check(event)
    assert names(outcome.events) == [
        "input_audio_buffer.speech_started",
        "input_audio_buffer.speech_stopped",
        "input_audio_buffer.committed",
        "conversation.item.added",
        "conversation.item.done",
        "conversation.item.input_audio_transcription.delta",
        "conversation.item.input_audio_transcription.completed",
    ]
    assert len({event.get("item_id", "") for event in outcome.events} - {""}) == 1
    assert outcome.events[-1]["transcript"] == "Hello you"
    (speaking,) = outcome.started
    assert speaking.asked.user == "Hello you"
    again = session.speech("And", responds=False)
    assert again.events[0]["audio_start_ms"] == outcome.events[1]["audio_end_ms"]
    assert again.started == []


def test_the_model_hears_what_nobody_transcribes():
    outcome = session_of().speech("Hello you")
    assert "conversation.item.input_audio_transcription.completed" not in names(outcome.events)
    assert outcome.started[0].asked.user == "Hello you"


def test_speech_interrupts_the_active_response():
    session = session_of()
    speaking = started(session, "One two three.")
    until(session, speaking, "response.output_text.delta")
    outcome = session.speech("Stop")
    order = names(outcome.events)
    assert order[0] == "input_audio_buffer.speech_started"
    done = only(outcome.events, "response.done")["response"]
    assert (done["id"], done["status"]) == (speaking.id, "cancelled")
    assert done["status_details"]["reason"] == "turn_detected"
    assert order.index("response.done") < order.index("input_audio_buffer.speech_stopped")
    assert len(outcome.started) == 1


def test_speech_does_not_interrupt_when_that_is_off_and_may_then_not_be_answered():
    session = session_of(audio=turn_detection(interrupt_response=False))
    speaking = started(session, "One two three.")
    outcome = session.speech("Hello")
    assert outcome.events[-1]["error"]["code"] == "conversation_already_has_active_response"
    assert outcome.started == []
    assert session.active is speaking


def test_speech_is_not_answered_when_that_is_off():
    session = session_of(audio=turn_detection(create_response=False))
    outcome = session.speech("Hello")
    assert "conversation.item.done" in names(outcome.events)
    assert outcome.started == []


def test_speech_waits_for_a_commit_without_turn_detection():
    session = session_of(audio={"input": {"turn_detection": None}})
    assert session.speech("Hello you").events == []
    events = received(session, {"type": "input_audio_buffer.commit"})
    assert names(events)[0] == "input_audio_buffer.committed"
    assert started(session).asked.user == "Hello you"


# Everything at once

IDS = [f"item_{number}" for number in range(6)]
CALLS = [f"call_{number}" for number in range(3)]


class Edits(RuleBasedStateMachine):
    """A client that edits at random, while responses are in flight and the user speaks."""

    def __init__(self) -> None:
        super().__init__()
        self.session = session_of()
        self.mirror = Mirror()
        self.speaking: list[Any] = []

    def hear(self, events: list[dict[str, Any]]) -> None:
        for event in events:
            check(event)
            self.mirror.hear(event)

    def send(self, frame: dict[str, Any]) -> None:
        frame = frame | {"event_id": "mine"}
        outcome = self.session.receive(frame)
        self.hear(outcome.events)
        self.take(outcome.started)
        if outcome.broke:
            assert outcome.events[0]["error"]["event_id"] == "mine"
        else:
            assert outcome.events or outcome.started or "append" in frame["type"]

    def take(self, started: list[Any]) -> None:
        for speaking in started:
            speaking.answer(reply("One two.", call("look", call_id=CALLS[0])))
            self.speaking.append(speaking)

    @rule(
        id=st.sampled_from(IDS),
        previous=st.sampled_from([None, "root", *IDS]),
        kind=st.sampled_from([user("u"), function_call(CALLS[1]), function_call_output(CALLS[0])]),
    )
    def create(self, id: str, previous: str | None, kind: dict[str, Any]) -> None:
        self.send(create(kind | {"id": id}, previous_item_id=previous))

    @rule(data=st.data(), verb=st.sampled_from(["delete", "delete", "retrieve", "truncate"]))
    def touch(self, data: st.DataObject, verb: str) -> None:
        named = data.draw(st.sampled_from([*IDS, *ids_of(self.session)]))
        more = {"content_index": 0, "audio_end_ms": 10} if verb == "truncate" else {}
        self.send({"type": f"conversation.item.{verb}", "item_id": named, **more})

    @rule(aside=st.booleans())
    def respond(self, aside: bool) -> None:
        settings = {"conversation": "none" if aside else "auto"}
        self.send({"type": "response.create", "response": settings})

    @rule(number=st.integers(min_value=0, max_value=3), steps=st.integers(1, 6))
    def advance(self, number: int, steps: int) -> None:
        for speaking in self.speaking[number : number + 1]:
            for _ in range(steps):
                event = speaking.upcoming()
                if event is None:
                    self.speaking.remove(speaking)
                    return
                self.session.told(speaking, event)
                self.hear([event])

    @rule()
    def cancel(self) -> None:
        self.send({"type": "response.cancel"})

    @rule(responds=st.booleans())
    def speak(self, responds: bool) -> None:
        outcome = self.session.speech("Hello", responds=responds)
        self.hear(outcome.events)
        self.take(outcome.started)

    @rule(frame=st.fixed_dictionaries({"type": st.sampled_from(list(CLIENT_EVENTS))}))
    def send_too_little(self, frame: dict[str, Any]) -> None:
        self.send(frame)

    @rule()
    def append(self) -> None:
        self.send({"type": "input_audio_buffer.append", "audio": AUDIO})

    @invariant()
    def the_client_can_follow_the_order(self) -> None:
        assert self.mirror.ids() == ids_of(self.session)

    @invariant()
    def the_list_is_whole_in_both_directions(self) -> None:
        items = self.session.conversation.items
        backwards = [place.id for place in items.backwards()]
        assert backwards[::-1] == ids_of(self.session)
        assert len(items) == len(backwards) == len(set(backwards))

    @invariant()
    def at_most_one_response_is_active(self) -> None:
        unfinished = [one for one in self.speaking if one.in_conversation and not one.ended]
        assert unfinished == ([self.session.active] if self.session.active else [])


Edits.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestEdits = Edits.TestCase
