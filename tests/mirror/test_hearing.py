"""The event sequences of a realtime provider, and what a mirror makes of each."""

from __future__ import annotations

import pytest

from lockstitch.mirror import Kept, Mirror, Standing, Unplaceable, Why, WhyNot
from lockstitch.mirror.context import MOST_RESPONSES_AT_ONCE
from tests.mirror.building import (
    added,
    chain,
    deleted,
    heard,
    ids,
    in_flight,
    kinds,
    session_with,
)
from tests.mirror.provider import Ids, call, message, output, speech


def test_azure_says_created():
    mirror = heard(added(message("a", "a"), type="conversation.item.created"))
    assert ids(mirror) == ["a"]


def test_only_added_brings_a_deleted_id_back():
    mirror = heard(*chain("a", "b"), deleted("b"))
    mirror.apply(added(message("b", "late"), "a", type="conversation.item.done"))
    assert ids(mirror) == ["a"]
    mirror.apply(added(message("b", "again"), "a"))
    assert ids(mirror) == ["a", "b"]


def test_an_older_word_about_an_item_takes_nothing_back():
    done = call("f", "c1", '{"x": 1}')
    mirror = heard(added(call("f", "c1", "", "in_progress")))
    mirror.apply(added(done, type="conversation.item.done"))
    mirror.apply(added(call("f", "c1", "", "in_progress")))
    assert mirror.items == [done]


def test_xai_never_says_what_an_item_follows_nor_what_was_deleted():
    mirror = Mirror(links=False)
    for name in "abc":
        mirror.apply(added(message(name, name)))
    assert ids(mirror) == ["a", "b", "c"]
    base = mirror.snapshot()
    plan = mirror.plan(
        [message("b", "b"), message("c", "c"), message("n", "n")], base=base, new_id=Ids()
    )
    assert kinds(plan) == [("Create", "n"), ("Delete", "a")]
    assert plan.edits[0].previous_item_id is None
    mirror.commit(plan)
    assert len(list(mirror.due(at=0))) == 2
    mirror.apply(deleted(""))
    mirror.apply(added(message("n", "n")))
    assert ids(mirror) == ["b", "c", "n"]
    assert mirror.idle


def test_an_item_of_a_response_out_of_band_never_enters():
    item = message("a", "a", "assistant")
    mirror = heard(
        {"type": "response.created", "response": {"id": "r"}},
        {"type": "response.output_item.added", "response_id": "r", "item": item},
        {"type": "response.done", "response": {"id": "r", "output": [item]}},
    )
    assert mirror.items == []
    assert not mirror.responding


def test_truncation_takes_the_words_that_nobody_heard():
    item = message("a", "", "assistant")
    item["content"] = [{"type": "output_audio", "transcript": "all of it"}]
    mirror = heard(added(item))
    mirror.apply({"type": "conversation.item.truncated", "item_id": "a", "content_index": 0})
    mirror.apply(added(item, type="conversation.item.done"))
    assert mirror.items[0]["content"] == [{"type": "output_audio"}]


# --- where an item is ----------------------------------------------------------------------------


def test_a_client_may_name_the_root_or_an_item_or_leave_it_to_the_provider():
    session = session_with("a")
    for name, previous in (("head", "root"), ("tail", None), ("behind", "a")):
        event = {"type": "conversation.item.create", "event_id": name, "item": message(name, name)}
        session.provider.receive(event | ({"previous_item_id": previous} if previous else {}))
    session.drain()
    assert session.ids() == ["head", "a", "behind", "tail"]


def test_an_unknown_predecessor_is_refused_and_the_item_is_not_there():
    session = session_with("a", "b")
    plan = session.mirror.plan(
        [message("a", "a"), message("b", "b"), message("n", "n")],
        base=session.mirror.snapshot(),
        new_id=session.new_id,
    )
    session.mirror.commit(plan)
    session.provider.deletes("b")  # by somebody else, and not heard of so far
    session.drain()
    assert session.mirror.standing(plan.edits[0].event_id) is Standing.REJECTED
    assert session.ids() == ["a"]
    session.sync([message("a", "a"), message("n", "n")])
    assert session.ids() == ["a", "n"]


def test_the_place_of_a_response_is_fixed_when_it_starts_whatever_is_deleted_meanwhile():
    session = session_with("a", "b")
    session.provider.starts("r")
    session.sync([message("a", "a")])
    assert session.ids() == ["a"]
    session.provider.announces(message("x", "x", "assistant"))
    assert session.provider.outbox[-1]["previous_item_id"] == "b"
    session.drain()
    assert session.ids() == ["a", "x"]


def test_an_item_may_be_added_before_it_says_anything():
    session = session_with("a")
    said = call("f", "c1", '{"x": 1}')
    session.provider.starts("r")
    session.provider.announces(said)
    session.drain()
    assert session.mirror.get("f") == said | {"status": "in_progress", "arguments": ""}
    session.provider.finishes(said)
    session.drain()
    assert session.mirror.get("f") == said


def test_a_call_is_there_before_anybody_runs_its_tool():
    session = session_with("a")
    session.provider.starts("r")
    session.provider.announces(call("f", "c1"))
    session.provider.finishes(call("f", "c1"))
    while session.provider.outbox[0]["type"] != "response.output_item.done":
        session.hear()
    assert session.mirror.get("f") is not None
    session.drain()
    assert session.ids() == ["a", "f"]


@pytest.mark.parametrize("first", ["conversation.item.added", "response.output_item.added"])
def test_an_item_of_a_response_is_told_by_both_in_any_order(first):
    item = message("x", "", "assistant") | {"status": "in_progress", "content": []}
    events = [
        added(item, "a"),
        {"type": "response.output_item.added", "response_id": "r", "item": item},
    ]
    events.sort(key=lambda event: event["type"] != first)
    mirror = heard(*chain("a"), {"type": "response.created", "response": {"id": "r"}}, *events)
    assert ids(mirror) == ["a", "x"]
    plan = mirror.plan([], base=mirror.snapshot(), new_id=Ids())
    assert Kept("x", Why.UNFINISHED) in plan.kept
    mirror.apply({"type": "response.done", "response": {"id": "r", "output": [item]}})
    assert not mirror.plan([], base=mirror.snapshot(), new_id=Ids()).kept


# --- responses -----------------------------------------------------------------------------------


def test_a_response_goes_on_from_its_start_to_its_end_told_in_any_order():
    mirror = Mirror()
    began, done = (
        {"type": f"response.{what}", "response": {"id": "r"}} for what in ("created", "done")
    )
    mirror.apply(began)
    assert mirror.responding
    mirror.apply(done)
    assert not mirror.responding
    mirror.apply(began)
    assert not mirror.responding


def test_responses_whose_ends_were_missed_do_not_pile_up():
    mirror = Mirror()
    item = message("x", "x", "assistant")
    mirror.apply({"type": "response.created", "response": {"id": "r0"}})
    mirror.apply({"type": "response.output_item.added", "response_id": "r0", "item": item})
    mirror.apply(added(item))
    for number in range(1, MOST_RESPONSES_AT_ONCE + 1):
        mirror.apply({"type": "response.created", "response": {"id": f"r{number}"}})
    # The oldest counts as over, and so its item as finished.
    assert kinds(mirror.plan([], base=mirror.snapshot(), new_id=Ids())) == [("Delete", "x")]


# --- speech --------------------------------------------------------------------------------------


def test_what_the_user_said_is_kept_until_its_words_have_come():
    session = session_with()
    session.provider.hears(speech("a"))
    session.drain()
    plan = session.mirror.plan([], base=session.mirror.snapshot(), new_id=Ids())
    assert plan.kept == (Kept("a", Why.UNFINISHED),)
    session.mirror.apply(
        {
            "type": "conversation.item.input_audio_transcription.delta",
            "item_id": "a",
            "content_index": 0,
            "delta": "hel",
        }
    )
    assert session.mirror.get("a") == speech("a")
    session.provider.transcribes("a", "hello")
    session.drain()
    assert session.mirror.get("a") == speech("a", "hello")
    assert kinds(session.sync([])) == [("Delete", "a")]


def test_speech_that_cannot_be_told_in_words_is_heard_too():
    session = session_with()
    session.provider.hears(speech("a"))
    session.provider.transcribes("a", None)
    session.drain()
    assert kinds(session.sync([])) == [("Delete", "a")]


def test_a_truncated_item_stays_so_when_its_response_ends():
    session = session_with("a")
    said = speech("x", "all of it", "assistant")
    session.provider.starts("r")
    session.provider.announces(said)
    session.provider.finishes(said)
    session.provider.truncates("x")
    session.provider.ends()
    session.drain()
    assert session.mirror.get("x")["content"] == [{"type": "output_audio"}]
    assert session.ids() == ["a", "x"]


def test_a_retrieved_item_is_there_as_it_is_and_without_its_audio():
    session = session_with("a")
    item = speech("x", "spoken", "assistant")
    item["content"][0]["audio"] = "AAAA"
    session.mirror.apply({"type": "conversation.item.retrieved", "item": item})
    assert session.mirror.get("x") == speech("x", "spoken", "assistant")
    assert ids(session.mirror) == ["a", "x"]


# --- refusals ------------------------------------------------------------------------------------


def test_the_event_id_tells_which_of_two_edits_of_one_item_was_refused():
    session = session_with("a")
    mirror = session.mirror
    delete = mirror.plan([], base=mirror.snapshot(), new_id=session.new_id)
    mirror.commit(delete)
    list(mirror.due(at=0))
    mirror.expire(sent_before=1)
    retrieve = mirror.plan([], base=mirror.snapshot(), new_id=session.new_id)
    mirror.commit(retrieve)
    list(mirror.due(at=1))
    (one,), (other,) = delete.edits, retrieve.edits
    assert one.item_id == other.item_id == "a"
    refused = {"code": "server_busy", "event_id": other.event_id}
    mirror.apply({"type": "error", "error": refused})
    assert mirror.standing(one.event_id) is Standing.IN_DOUBT
    assert mirror.standing(other.event_id) is Standing.REJECTED
    assert ids(mirror) == ["a"]


def test_an_output_for_a_call_that_vanished_on_the_way_is_refused_and_not_there():
    session = in_flight()
    mirror = session.mirror
    plan = mirror.plan(
        [*mirror.items, output("o", "c1")], base=mirror.snapshot(), new_id=session.new_id
    )
    mirror.commit(plan)
    (edit,) = mirror.due(at=0)
    session.provider.deletes("f")
    refused = {"code": "invalid_tool_call_id", "event_id": edit.event_id}
    session.provider.tell("error", error=refused)
    session.drain()
    assert session.ids() == ["a", "b"]
    again = session.sync([*mirror.items, output("o", "c1")])
    assert again.unplaceable == (Unplaceable("o", "c1", WhyNot.NO_CALL),)


def test_an_id_that_is_taken_is_asked_about():
    session = session_with("a")
    mirror = session.mirror
    mirror.commit(
        mirror.plan(
            [message("a", "a"), message("n", "n")],
            base=mirror.snapshot(),
            new_id=session.new_id,
        )
    )
    (edit,) = mirror.due(at=0)
    taken = {"code": "item_create_duplicate_item_id", "event_id": edit.event_id}
    mirror.apply({"type": "error", "error": taken})
    assert mirror.standing(edit.event_id) is Standing.IN_DOUBT
    mirror.commit(mirror.plan(mirror.items, base=mirror.snapshot(), new_id=session.new_id))
    (asked,) = mirror.due(at=0)
    assert asked.client_event()["type"] == "conversation.item.retrieve"
    mirror.apply({"type": "conversation.item.retrieved", "item": message("n", "n")})
    assert ids(mirror) == ["a", "n"]
    assert mirror.idle


@pytest.mark.parametrize(
    "event",
    [
        {"type": "session.created", "session": {}},
        {"type": "rate_limits.updated"},
        {"type": "conversation.item.added", "item": None},
        {"type": "conversation.item.added", "item": {"type": "message"}},
        {"type": "conversation.item.done"},
        {"type": "conversation.item.deleted", "item_id": ""},
        {"type": "conversation.item.truncated", "item_id": "a", "content_index": None},
        {"type": "conversation.item.retrieved", "item": 7},
        {"type": "response.created", "response": None},
        {"type": "response.output_item.added", "item": None},
        {"type": "response.done", "response": {}},
        {"type": "error", "error": None},
        {"type": "error", "error": {"event_id": "never sent"}},
        {},
    ],
)
def test_an_event_that_says_nothing_of_use_changes_nothing(event):
    mirror = heard(*chain("a"))
    mirror.apply(event)
    assert mirror.items == [message("a", "a")]
    assert mirror.idle
    assert not mirror.responding
