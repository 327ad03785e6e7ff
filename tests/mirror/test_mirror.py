"""The event sequences of a realtime provider, and what a mirror makes of them."""

from __future__ import annotations

import pytest

from lockstitch.mirror import (
    Delete,
    ForeignSnapshot,
    Kept,
    Mirror,
    NotATarget,
    Retrieve,
    StalePlan,
    Standing,
    Unplaceable,
    Why,
    WhyNot,
    summarised,
)
from tests.mirror.provider import Ids, Session, call, message, output


def added(item, previous=None, type="conversation.item.added", **fields):
    return {"type": type, "item": item, "previous_item_id": previous, **fields}


def deleted(id):
    return {"type": "conversation.item.deleted", "item_id": id}


def ids(mirror):
    return [item["id"] for item in mirror.items]


def heard(*events, **options):
    mirror = Mirror(**options)
    for event in events:
        mirror.apply(event)
    return mirror


def chain(*names):
    return [
        added(message(name, name), previous)
        for name, previous in zip(names, (None, *names), strict=False)
    ]


def session_with(*names):
    session = Session()
    for name in names:
        session.provider.hears(message(name, name))
    session.drain()
    return session


def kinds(plan):
    return [(type(edit).__name__, edit.item_id) for edit in plan.edits]


# --- events --------------------------------------------------------------------------------------


def test_items_stand_in_the_order_of_their_links():
    mirror = heard(*chain("a", "b"), added(message("c", "c"), "a"), added(message("d", "d")))
    assert ids(mirror) == ["d", "a", "c", "b"]


def test_azure_says_created():
    mirror = heard(added(message("a", "a"), type="conversation.item.created"))
    assert ids(mirror) == ["a"]


def test_an_event_that_comes_twice_counts_once():
    events = [*chain("a", "b"), deleted("a"), deleted("a")]
    mirror = heard(*events)
    assert ids(mirror) == ["b"]
    event = added(message("c", "c"), "b", event_id="event_1")
    mirror.apply(event)
    mirror.apply(deleted("c"))
    assert not mirror.apply(event)
    assert ids(mirror) == ["b"]


def test_an_item_whose_predecessor_was_deleted_stands_behind_the_nearest_that_lives():
    mirror = heard(*chain("a", "b", "c"), deleted("b"), added(message("x", "x"), "b"))
    assert ids(mirror) == ["a", "x", "c"]
    assert mirror.surviving("b") == "a"


def test_items_behind_several_tombstones_keep_their_order():
    mirror = heard(*chain("a", "b", "c"), deleted("b"), deleted("c"))
    mirror.apply(added(message("x", "x"), "b"))
    mirror.apply(added(message("y", "y"), "c"))
    assert ids(mirror) == ["a", "x", "y"]


def test_an_item_whose_predecessor_was_never_seen_stands_last_until_it_comes():
    mirror = heard(*chain("a", "z"), added(message("x", "x"), "p"), added(message("y", "y"), "x"))
    mirror.apply(added(message("w", "w"), "z"))
    assert set(ids(mirror)) == {"a", "z", "x", "y", "w"}
    mirror.apply(added(message("p", "p"), "a"))
    assert ids(mirror) == ["a", "p", "x", "y", "z", "w"]


def test_a_deletion_of_what_was_never_seen_leaves_a_tombstone():
    mirror = heard(*chain("a"), deleted("p"), added(message("x", "x"), "p"))
    assert ids(mirror) == ["a", "x"]


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


# --- snapshots -----------------------------------------------------------------------------------


def test_a_snapshot_read_late_shows_what_was_there_when_it_was_taken():
    mirror = heard(*chain("a", "b"))
    base = mirror.snapshot()
    mirror.apply(deleted("a"))
    mirror.apply(added(message("c", "c"), "b"))
    assert [item["id"] for item in base.items] == ["a", "b"]


def test_a_snapshot_of_another_mirror_is_refused():
    with pytest.raises(ForeignSnapshot):
        Mirror().plan([], base=Mirror().snapshot(), new_id=Ids())


# --- plans ---------------------------------------------------------------------------------------


def test_what_the_caller_saw_and_left_out_is_deleted_and_what_came_since_stays():
    session = session_with("a", "b")
    base = session.mirror.snapshot()
    session.provider.hears(message("c", "c"))
    session.drain()
    plan = session.sync([message("b", "b")], base)
    assert kinds(plan) == [("Delete", "a")]
    assert session.ids() == ["b", "c"]


def test_what_is_as_it_should_be_needs_no_edit():
    session = session_with("a", "b")
    target = [{"id": name, "role": "user", "content": name} for name in "ab"]
    assert not session.mirror.plan(target, base=session.mirror.snapshot(), new_id=Ids()).edits


def test_what_the_caller_appends_goes_behind_what_came_since():
    session = session_with("a")
    base = session.mirror.snapshot()
    session.provider.hears(message("b", "b"))
    session.drain()
    session.sync([message("a", "a"), message("n", "n")], base)
    assert session.ids() == ["a", "b", "n"]


def test_new_items_are_where_the_target_has_them():
    session = session_with("b", "d")
    session.sync([message(name, name) for name in ("a0", "a1", "b", "c0", "c1", "d", "e0", "e1")])
    assert session.ids() == ["a0", "a1", "b", "c0", "c1", "d", "e0", "e1"]


@pytest.mark.parametrize("refused", [1, 2, 3])
def test_a_create_that_is_refused_does_not_break_the_rest(refused):
    session = session_with("a", "z")
    target = [message(name, name) for name in ("a", "n1", "n2", "n3", "z")]
    plan = session.mirror.plan(target, base=session.mirror.snapshot(), new_id=Ids())
    session.mirror.commit(plan)
    for number, edit in enumerate(session.mirror.due(at=0), 1):
        session.provider.refuse_next = int(number == refused)
        session.provider.receive(edit.client_event())
    session.drain()
    assert len(session.ids()) == 4
    session.new_id.prefix = "later"
    session.sync(target)
    assert session.ids() == ["a", "n1", "n2", "n3", "z"]


def test_a_changed_item_is_replaced_in_place_under_a_new_id():
    session = session_with("a", "b", "c")
    target = [message("a", "a"), message("b", "changed"), message("c", "c")]
    plan = session.sync(target)
    assert kinds(plan) == [("Create", "new_item_1"), ("Delete", "b")]
    assert session.ids() == ["a", "new_item_1", "c"]
    assert session.mirror.get("b")["content"][0]["text"] == "changed"
    # The caller may go on with the id that it knows.
    assert not session.sync(target).edits


def test_nothing_is_deleted_before_what_takes_its_place_is_there():
    session = session_with("a", "b")
    session.provider.refuse_next = 1
    session.sync([message("a", "a"), message("b", "changed")])
    assert session.ids() == ["a", "b"]
    session.sync([message("a", "a"), message("b", "changed")])
    assert session.ids()[0] == "a"
    assert session.mirror.items[1]["content"][0]["text"] == "changed"


def test_what_the_provider_changed_since_is_not_undone():
    session = session_with()
    item = message("a", "")
    item["content"] = [{"type": "input_audio", "transcript": None}]
    mirror = session.mirror
    mirror.apply(added(item))
    base = mirror.snapshot()
    done = "conversation.item.input_audio_transcription.completed"
    mirror.apply({"type": done, "item_id": "a", "content_index": 0, "transcript": "hello"})
    assert not mirror.plan(base.items, base=base, new_id=Ids()).edits
    # Nor is it deleted by somebody who never saw its words.
    plan = mirror.plan([], base=base, new_id=Ids())
    assert not plan.edits
    assert plan.kept == (Kept("a", Why.UNFINISHED),)
    assert kinds(mirror.plan([], base=mirror.snapshot(), new_id=Ids())) == [("Delete", "a")]


def test_a_move_is_a_copy_and_then_a_delete():
    session = session_with("a", "b", "c")
    session.sync([message("c", "c"), message("a", "a"), message("b", "b")])
    assert [item["content"][0]["text"] for item in session.mirror.items] == ["c", "a", "b"]
    assert len(session.provider.deleted) == 1


def test_speech_is_not_moved():
    item = message("b", "")
    item["content"] = [{"type": "input_audio", "transcript": "hello"}]
    mirror = heard(*chain("a"), added(item, "a"), added(message("c", "c"), "b"))
    target = [mirror.items[1], mirror.items[0], mirror.items[2]]
    plan = mirror.plan(target, base=mirror.snapshot(), new_id=Ids())
    assert "b" not in {edit.item_id for edit in plan.edits}


def test_a_pair_moves_whole():
    session = session_with("a")
    session.sync([message("a", "a"), call("f", "c1"), output("o", "c1"), message("z", "z")])
    assert session.ids() == ["a", "f", "o", "z"]
    items = {item["id"]: item for item in session.mirror.items}
    session.sync([items["z"], items["f"], items["o"], items["a"]])
    types = [item["type"] for item in session.mirror.items]
    at = types.index("function_call")
    assert types[at + 1] == "function_call_output"
    assert len(types) == 4
    assert session.mirror.items == session.provider.items


# --- calls and outputs ---------------------------------------------------------------------------


def in_flight():
    session = session_with("a")
    session.provider.hears(call("f", "c1"))
    session.provider.hears(message("b", "b"))
    session.drain()
    return session


def test_a_call_in_flight_is_kept():
    session = in_flight()
    plan = session.sync([message("b", "b")])
    assert plan.kept == (Kept("f", Why.IN_FLIGHT),)
    assert session.ids() == ["f", "b"]


def test_an_output_goes_right_behind_its_call():
    session = in_flight()
    session.sync([*session.mirror.items, output("o", "c1")])
    assert session.ids() == ["a", "f", "o", "b"]


def test_a_pair_is_deleted_whole_or_not_at_all():
    session = in_flight()
    session.sync([*session.mirror.items, output("o", "c1")])
    keeping_half = [item for item in session.mirror.items if item["id"] != "f"]
    assert session.sync(keeping_half).kept == (Kept("f", Why.HALF),)
    assert session.ids() == ["a", "f", "o", "b"]
    plan = session.sync([message("b", "b")])
    assert [edit.item_id for edit in plan.edits] == ["a", "f", "o"]
    assert session.ids() == ["b"]


def test_a_pair_of_which_the_call_cannot_be_deleted_stays_whole():
    session = in_flight()
    session.sync([*session.mirror.items, output("o", "c1")])
    target = [item for item in session.mirror.items if item["id"] not in {"f", "o"}]
    session.provider.refuse_next = 1
    session.sync(target)
    assert session.ids() == ["a", "f", "o", "b"]


def test_an_output_for_a_call_that_is_gone_is_reported_and_not_sent():
    session = session_with("a")
    plan = session.sync([message("a", "a"), output("o", "c1")])
    assert not plan.edits
    assert plan.unplaceable == (Unplaceable("o", "c1", WhyNot.NO_CALL),)


def test_a_second_output_is_reported_and_not_sent():
    session = in_flight()
    session.sync([*session.mirror.items, output("o", "c1")])
    plan = session.sync([*session.mirror.items, output("o2", "c1")])
    assert plan.unplaceable == (Unplaceable("o2", "c1", WhyNot.ANSWERED),)


def test_an_output_takes_the_place_of_one_that_the_caller_gave_up():
    session = in_flight()
    session.sync([*session.mirror.items, output("o", "c1")])
    target = [item for item in session.mirror.items if item["id"] != "o"]
    session.sync([*target, output("o2", "c1", "other")])
    assert session.ids() == ["a", "f", "o2", "b"]


def test_an_output_is_sent_once_its_call_is_acknowledged():
    session = session_with()
    plan = session.mirror.plan(
        [call("f", "c1"), output("o", "c1")], base=session.mirror.snapshot(), new_id=Ids()
    )
    session.mirror.commit(plan)
    assert [edit.item_id for edit in session.send()] == ["f"]
    session.hear(2)
    assert [edit.item_id for edit in session.send()] == ["o"]


def test_an_output_whose_call_is_refused_is_dropped():
    session = session_with()
    session.provider.refuse_next = 1
    plan = session.sync([call("f", "c1"), output("o", "c1")])
    assert [session.mirror.standing(edit.event_id) for edit in plan.edits] == [
        Standing.REJECTED,
        Standing.DROPPED,
    ]
    assert session.ids() == []


# --- what becomes of edits -----------------------------------------------------------------------


def doubtful(lost=True):
    """A create that reached the provider or did not, and no answer."""
    session = session_with("a")
    target = [message("a", "a"), message("n", "n"), message("m", "m")]
    plan = session.mirror.plan(target[:2], base=session.mirror.snapshot(), new_id=session.new_id)
    session.mirror.commit(plan)
    if lost:
        list(session.mirror.due(at=0))
    else:
        session.send()
    session.provider.outbox.clear()
    assert [edit.item_id for edit in session.mirror.expire(sent_before=5)] == ["n"]
    return session, target


@pytest.mark.parametrize("lost", [True, False])
def test_a_create_in_doubt_is_asked_about_and_not_repeated(lost):
    session, target = doubtful(lost)
    plan = session.sync(target)
    assert [type(edit) for edit in plan.edits] == [Retrieve]
    assert plan.waiting == ("n", "m")
    session.sync(target)
    assert session.ids() == ["a", "n", "m"]
    assert session.provider.created.count("n") == 1


def test_an_answer_that_comes_late_resolves_the_doubt():
    session = session_with("a")
    plan = session.mirror.plan([], base=session.mirror.snapshot(), new_id=Ids())
    session.mirror.commit(plan)
    session.send()
    session.mirror.expire(sent_before=5)
    assert session.mirror.standing(plan.edits[0].event_id) is Standing.IN_DOUBT
    session.drain()
    assert session.mirror.standing(plan.edits[0].event_id) is Standing.ACKNOWLEDGED
    assert session.mirror.idle


def test_a_delete_of_what_is_gone_is_done():
    session = session_with("a")
    session.mirror.commit(session.mirror.plan([], base=session.mirror.snapshot(), new_id=Ids()))
    session.provider.places.clear()
    session.drain()
    assert session.ids() == []
    assert session.mirror.idle


def test_what_is_on_its_way_is_not_created_again():
    session = session_with("a")
    target = [message("a", "a"), message("n", "n")]
    base = session.mirror.snapshot()
    session.mirror.commit(session.mirror.plan(target, base=base, new_id=session.new_id))
    more = [*target, message("m", "m")]
    plan = session.mirror.plan(more, base=base, new_id=session.new_id)
    assert [edit.item_id for edit in plan.edits] == ["m"]
    assert plan.edits[0].previous_item_id == "n"
    session.mirror.commit(plan)
    session.drain()
    assert session.ids() == ["a", "n", "m"]


def test_a_plan_is_committed_once():
    session = session_with("a")
    plan = session.mirror.plan([], base=session.mirror.snapshot(), new_id=Ids())
    session.mirror.commit(plan)
    with pytest.raises(StalePlan):
        session.mirror.commit(plan)


def test_what_somebody_deleted_since_is_not_brought_back_by_an_old_snapshot():
    session = session_with("a", "b")
    base = session.mirror.snapshot()
    session.sync([message("b", "b")])
    plan = session.sync(list(base.items), base)
    assert plan.gone == ("a",)
    assert session.ids() == ["b"]
    session.sync([message("a", "a"), message("b", "b")])
    assert [item["content"][0]["text"] for item in session.mirror.items] == ["a", "b"]
    assert session.ids()[0] != "a"  # an id is never used twice


@pytest.mark.parametrize(
    "target", [[{"role": "user"}], [message("a", "a"), message("a", "b")]], ids=["no id", "twice"]
)
def test_a_target_that_cannot_be_meant_is_refused(target):
    with pytest.raises(NotATarget):
        Session().sync(target)


# --- changes by name -----------------------------------------------------------------------------


def test_a_caller_may_name_what_changed():
    session = session_with("a", "b", "c")
    mirror = session.mirror
    plan = mirror.plan_changes(
        base=mirror.snapshot(),
        new_id=session.new_id,
        added=[message("n", "n"), message("m", "m")],
        inserted={"root": [message("s", "s")]},
        changed=[message("b", "changed")],
        removed=["a"],
    )
    mirror.commit(plan)
    session.drain()
    assert [item["content"][0]["text"] for item in mirror.items] == ["s", "changed", "c", "n", "m"]
    assert mirror.items == session.provider.items


def test_changes_go_behind_changes_that_are_on_their_way():
    session = session_with("a")
    for name in "nm":
        plan = session.mirror.plan_changes(
            base=session.mirror.snapshot(), new_id=session.new_id, added=[message(name, name)]
        )
        session.mirror.commit(plan)
    session.drain()
    assert session.ids() == ["a", "n", "m"]


# --- summaries -----------------------------------------------------------------------------------


def test_a_summary_stands_for_the_oldest_half():
    session = session_with("a", "b", "c", "d")
    base = session.mirror.snapshot()
    session.sync(summarised(base.items, message("s", "in short"), fraction=0.5), base)
    assert session.ids() == ["s", "c", "d"]


def test_nothing_is_lost_when_the_summary_is_refused():
    session = session_with("a", "b", "c", "d")
    base = session.mirror.snapshot()
    session.provider.refuse_next = 1
    session.sync(summarised(base.items, message("s", "in short"), fraction=0.5), base)
    assert session.ids() == ["a", "b", "c", "d"]


def test_a_summary_tears_no_pair():
    items = [message("a", "a"), call("f", "c1"), message("b", "b"), output("o", "c1")]
    items += [call("g", "c2"), message("z", "z")]
    target = summarised(items, message("s", "s"), count=3)
    assert [item["id"] for item in target] == ["s", "f", "o", "g", "z"]
    target = summarised(items, message("s", "s"), count=5)
    assert [item["id"] for item in target] == ["s", "g", "z"]
    target = summarised(items, message("s", "s"), count=1, leading=1)
    assert target == items


# --- the founding case ---------------------------------------------------------------------------


def test_a_summary_while_a_call_is_in_flight_step_by_step():
    session = session_with("u1", "u2")
    provider, mirror = session.provider, session.mirror
    own = list(mirror.snapshot().items)
    base = mirror.snapshot()
    # 1. The server answers with a call. The application's own context does not have it yet.
    provider.starts("r1")
    provider.announces(call("FC", "c1"))
    provider.finishes(call("FC", "c1"))
    provider.ends()
    session.drain()
    # 2. The user speaks again; another response starts, whose predecessor is fixed now.
    provider.starts("r2")
    assert provider.response["previous"] == "FC"
    # 3. The application summarises its own context, which has no FC, and syncs.
    target = summarised(own, message("S", "in short"), fraction=0.5)
    for seen in (base, mirror.snapshot()):
        plan = mirror.plan(target, base=seen, new_id=Ids("dry"))
        assert "FC" not in {edit.item_id for edit in plan.edits}
    session.sync(target, base)
    assert session.ids() == ["S", "u2", "FC"]
    # 4. and 5. The tool has run; its output is appended, to a context that has no FC.
    base = mirror.snapshot()
    plan = session.sync([*target, output("O", "c1")], base)
    assert not plan.unplaceable
    assert session.ids() == ["S", "u2", "FC", "O"]
    # 6. The response of step 2 arrives, behind FC.
    provider.announces(message("A", "answer", "assistant"))
    provider.finishes(message("A", "answer", "assistant"))
    provider.ends()
    session.drain()
    assert session.ids() == ["S", "u2", "FC", "A", "O"]
    # And nothing is created again.
    assert not session.sync(mirror.items).edits
    assert provider.created == ["S", "O"]


def test_a_response_behind_a_call_that_was_deleted_after_all_is_not_lost():
    session = in_flight()
    session.provider.starts("r")
    session.provider.response["previous"] = "b"
    session.provider.receive(
        {"type": "conversation.item.delete", "event_id": "else", "item_id": "b"}
    )
    session.drain()
    session.provider.announces(message("A", "x", "assistant"))
    session.drain()
    assert session.ids() == ["a", "f", "A"]
    plan = session.mirror.plan([], base=session.mirror.snapshot(), new_id=Ids())
    assert {kept.item_id for kept in plan.kept} == {"f", "A"}
    assert [type(edit) for edit in plan.edits] == [Delete]


def test_a_snapshot_from_between_names_an_item_and_its_copy_and_means_the_copy():
    session = session_with("a", "b")
    mirror = session.mirror
    target = [message("a", "changed"), message("b", "b")]
    mirror.commit(mirror.plan(target, base=mirror.snapshot(), new_id=session.new_id))
    session.send()
    session.hear(2)
    between = mirror.snapshot()
    assert [item["id"] for item in between.items] == ["a", "new_item_1", "b"]
    assert not mirror.plan(between.items, base=between, new_id=session.new_id).edits
    session.drain()
    assert session.ids() == ["new_item_1", "b"]
