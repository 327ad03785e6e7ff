"""The door: events once, snapshots of its own, plans committed once."""

from __future__ import annotations

import pytest

from lockstitch.mirror import ForeignSnapshot, Mirror, StalePlan
from tests.mirror.building import added, chain, deleted, heard, ids, session_with
from tests.mirror.provider import Ids, message


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
