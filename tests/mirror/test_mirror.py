"""The door: events once, snapshots of its own, plans committed once."""

from __future__ import annotations

import pytest

from lockstitch.mirror import ForeignSnapshot, Mirror, StalePlan, Standing
from tests.mirror.building import added, chain, deleted, heard, ids, session_with
from tests.mirror.provider import Ids, call, message, output


def test_an_event_that_comes_twice_counts_once():
    events = [*chain("a", "b"), deleted("a"), deleted("a")]
    mirror = heard(*events)
    assert ids(mirror) == ["b"]
    event = added(message("c", "c"), "b", event_id="event_1")
    mirror.apply(event)
    mirror.apply(deleted("c"))
    assert not mirror.apply(event)
    assert ids(mirror) == ["b"]


def test_a_snapshot_read_late_shows_what_was_there_when_it_was_taken():
    mirror = heard(*chain("a", "b"))
    base = mirror.snapshot()
    mirror.apply(deleted("a"))
    mirror.apply(added(message("c", "c"), "b"))
    assert [item["id"] for item in base.items] == ["a", "b"]


def test_a_snapshot_of_another_mirror_is_refused():
    with pytest.raises(ForeignSnapshot):
        Mirror().plan([], base=Mirror().snapshot(), new_id=Ids())


def test_a_plan_is_committed_once():
    session = session_with("a")
    plan = session.mirror.plan([], base=session.mirror.snapshot(), new_id=Ids())
    session.mirror.commit(plan)
    with pytest.raises(StalePlan):
        session.mirror.commit(plan)


def test_an_item_that_was_replaced_tells_all_its_ids():
    session = session_with("a", "b")
    assert not session.mirror.has_names(["a", "b"])
    session.sync([message("a", "else"), message("b", "b")])
    first, second = session.ids()
    assert session.mirror.has_names(["b", first])
    assert session.mirror.names(first) == session.mirror.names("a") == ("a", first)
    assert session.mirror.names(second) == ()


def test_the_edits_that_have_not_ended_are_told_in_their_order():
    session = session_with("a", "b")
    mirror = session.mirror
    target = [message("n", "n"), call("f", "c1"), output("o", "c1")]
    plan = mirror.plan(target, base=mirror.snapshot(), new_id=session.new_id)
    mirror.commit(plan)
    assert mirror.open_edits() == list(plan.edits)
    session.send()
    session.hear(1)
    assert len(mirror.open_edits()) < len(plan.edits)
    assert mirror.open_edits() == [
        edit for edit in plan.edits if mirror.standing(edit.event_id) is not Standing.ACKNOWLEDGED
    ]
    session.drain()
    assert mirror.open_edits() == []


def test_a_deletion_answers_the_delete_of_that_item_or_the_oldest():
    session = session_with("a", "b", "c")
    mirror = session.mirror
    assert mirror.deleting("a") is mirror.deleting(None) is None
    target = [message("c", "c")]
    mirror.commit(mirror.plan(target, base=mirror.snapshot(), new_id=session.new_id))
    list(mirror.due(at=0))
    assert [mirror.deleting(one) for one in ("a", "b", "c", None)] == ["a", "b", None, "a"]


def test_another_version_follows_every_event_and_every_plan():
    session = session_with("a")
    mirror = session.mirror
    version = mirror.version
    assert mirror.snapshot().version == version
    mirror.commit(mirror.plan([], base=mirror.snapshot(), new_id=session.new_id))
    assert mirror.version > version
