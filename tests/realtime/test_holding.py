"""What waits for what."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lockstitch.mirror import Mirror
from lockstitch.mirror.context import MOST_ENDED_RESPONSES_REMEMBERED, MOST_RESPONSES_AT_ONCE
from lockstitch.realtime.holding import WAITS_FOR, Act, Busy, Ear, Floor, act_of, act_of_plan, may
from tests.generated import examples
from tests.mirror.provider import Ids, message

AROUND = {Busy.CALLING, Busy.LISTENING}


def test_every_act_has_its_row_and_none_goes_before_the_context_is_there():
    assert set(WAITS_FOR) == set(Act)
    assert all(Busy.RESTORING in row for row in WAITS_FOR.values())


def test_the_page_shows_the_table():
    page = (Path(__file__).parents[2] / "docs" / "realtime.md").read_text()
    for act, row in WAITS_FOR.items():
        shown = "; ".join(busy.value for busy in Busy if busy in row)
        assert f"| {act.value} | {shown} |" in page


@pytest.mark.parametrize(
    ("act", "goes_while"),
    [
        (Act.EVENT, {Busy.EDITING, Busy.ASKED, Busy.RESPONDING, *AROUND}),
        (Act.EDIT, {Busy.EDITING, Busy.ASKED, Busy.RESPONDING, *AROUND}),
        (Act.EDIT_OF_THE_TAIL, {Busy.EDITING, *AROUND}),
        (Act.RESPOND, AROUND),
        (Act.RESPOND_ASIDE, {Busy.EDITING, Busy.ASKED, Busy.RESPONDING, *AROUND}),
        (Act.RENEW, set()),
        (Act.RENEW_LATE, AROUND),
    ],
)
def test_the_table_says_what_may_go(act, goes_while):
    assert {busy for busy in Busy if may(act, {busy})} == goes_while
    assert may(act, set())


@pytest.mark.parametrize(
    ("event", "act"),
    [
        ({"type": "response.create"}, Act.RESPOND),
        ({"type": "response.create", "response": {"conversation": "auto"}}, Act.RESPOND),
        ({"type": "response.create", "response": {"conversation": "none"}}, Act.RESPOND_ASIDE),
        ({"type": "response.cancel"}, Act.EVENT),
        ({"type": "input_audio_buffer.append"}, Act.EVENT),
    ],
)
def test_an_event_is_what_it_asks_for(event, act):
    assert act_of(event) is act


def there(*ids):
    mirror = Mirror()
    previous = None
    for one in ids:
        event = {"type": "conversation.item.added", "previous_item_id": previous}
        mirror.apply(event | {"item": message(one, one)})
        previous = one
    return mirror


@pytest.mark.parametrize(
    ("ids", "target", "act"),
    [
        ("abc", "bc", Act.EDIT),
        ("abc", "xabc", Act.EDIT),
        ("abc", "axbc", Act.EDIT),
        ("abc", "abcx", Act.EDIT_OF_THE_TAIL),
        ("abc", "ab", Act.EDIT_OF_THE_TAIL),
        ("", "a", Act.EDIT_OF_THE_TAIL),
        ("abc", "abc", Act.EDIT),
    ],
)
def test_an_edit_of_the_last_item_or_behind_it_is_one_of_the_tail(ids, target, act):
    mirror = there(*ids)
    wanted = [mirror.get(one) or message(one, one) for one in target]
    plan = mirror.plan(wanted, base=mirror.snapshot(), new_id=Ids())
    assert act_of_plan(plan, ids[-1] if ids else None) is act


def created(id, conversation="conv"):
    return {"type": "response.created", "response": {"id": id, "conversation_id": conversation}}


def done(id):
    return {"type": "response.done", "response": {"id": id}}


RESPONSES = ("r1", "r2", "aside")
events = st.one_of(
    st.sampled_from(RESPONSES).map(lambda r: created(r, None if r == "aside" else "conv")),
    st.sampled_from(RESPONSES).map(done),
    st.just({"type": "error", "error": {"event_id": "asked"}}),
    st.just({"type": "error", "error": {"event_id": None}}),
    st.just({"type": "error"}),
    st.just({"type": "response.created", "response": None}),
    st.just({}),
)


@given(st.lists(events))
@settings(max_examples=examples(200), deadline=None)
def test_whoever_has_ended_has_the_floor_no_more(heard):
    floor = Floor()
    floor.ask({"event_id": "asked"})
    for event in heard:
        floor.hear(event)
    assert "aside" not in floor.speaking
    for one in RESPONSES:
        floor.hear(done(one))
        floor.hear(created(one))
    assert floor.busy() <= {Busy.ASKED}
    if {"type": "error", "error": {"event_id": "asked"}} in heard:
        assert floor.busy() == set()


def test_a_response_is_remembered_with_what_it_was_asked_for_with():
    floor = Floor()
    request = {"event_id": "e", "response": {"instructions": "Be brief."}}
    floor.ask(request)
    assert floor.busy() == {Busy.ASKED}
    floor.hear(created("r1"))
    assert floor.busy() == {Busy.RESPONDING}
    assert floor.speaking["r1"].request is request


def test_a_request_that_nobody_answers_can_be_given_up():
    floor = Floor()
    request = {"event_id": "e"}
    floor.ask(request)
    floor.give_up({"event_id": "another"})
    assert floor.busy() == {Busy.ASKED}
    floor.give_up(request)
    assert floor.busy() == set()


def test_a_floor_remembers_a_bounded_number_of_responses_whatever_the_server_says():
    floor = Floor()
    for number in range(5_000):
        floor.hear(created(f"unended_{number}"))
        floor.hear(created(f"ended_{number}"))
        floor.hear(done(f"ended_{number}"))
    assert len(floor.speaking) <= MOST_RESPONSES_AT_ONCE
    assert len(floor._ended) <= MOST_ENDED_RESPONSES_REMEMBERED
    assert "unended_4999" in floor.speaking
    assert floor.begun == 10_000


# --- the user ----------------------------------------------------------------------------------


def heard(ear, *kinds, **more):
    for kind in kinds:
        ear.hear({"type": kind, **more})
    return bool(ear.busy())


STARTED, STOPPED = "input_audio_buffer.speech_started", "input_audio_buffer.speech_stopped"
COMMITTED, CLEARED = "input_audio_buffer.committed", "input_audio_buffer.cleared"
WORDS = "conversation.item.input_audio_transcription"


def test_the_user_is_listened_to_from_the_first_sound_to_the_last():
    ear = Ear()
    assert not heard(ear)
    assert heard(ear, STARTED)
    assert not heard(ear, STOPPED)
    assert not heard(ear, STARTED, CLEARED)
    assert not heard(ear, STARTED, COMMITTED, item_id="a")


@pytest.mark.parametrize(
    "ends", [f"{WORDS}.completed", f"{WORDS}.failed", "conversation.item.deleted"]
)
def test_what_was_said_is_heard_once_its_words_are_there_or_will_never_be(ends):
    ear = Ear(transcribes=True)
    assert heard(ear, STARTED, STOPPED, COMMITTED, item_id="a")
    assert heard(ear, ends, item_id="another")
    assert not heard(ear, ends, item_id="a")


def test_who_commits_by_hand_is_speaking_from_the_first_audio_it_sends():
    ear = Ear()
    audio = {"type": "input_audio_buffer.append", "audio": ""}
    ear.sends(audio)
    assert not heard(ear)  # with turn detection, silence is sent, too
    by_hand = {"audio": {"input": {"turn_detection": None}}}
    assert not heard(ear, "session.updated", session=by_hand)
    ear.sends(audio)
    assert heard(ear)
    assert not heard(ear, COMMITTED, item_id="a")


@pytest.mark.parametrize("session", [None, {}, {"audio": 1}, {"audio": {"input": {}}}])
def test_what_a_provider_does_not_say_of_its_configuration_stays(session):
    ear = Ear(transcribes=True)
    ear.hear({"type": "session.updated", "session": session})
    assert ear.transcribes
    ear.hear({"type": "session.updated", "session": {"audio": {"input": {"transcription": None}}}})
    assert not ear.transcribes


@pytest.mark.parametrize(
    ("turns", "contested"),
    [
        ({"type": "server_vad"}, True),
        ({"type": "server_vad", "create_response": True}, True),
        ({"type": "server_vad", "create_response": False}, False),
        (None, False),
    ],
)
def test_a_request_is_contested_if_the_server_is_about_to_answer_the_user_itself(turns, contested):
    floor = Floor()
    floor.hear(
        {"type": "session.created", "session": {"audio": {"input": {"turn_detection": turns}}}}
    )
    for asks, spoken, expected in (
        (True, True, contested),
        (True, False, False),
        (False, True, False),
    ):
        if spoken:
            floor.hear({"type": COMMITTED, "item_id": "a"})
        if asks:
            floor.ask({"event_id": "e"})
        floor.hear(created(f"r{floor.begun}"))
        assert floor.contested is expected
