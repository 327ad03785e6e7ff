"""Where items stand: by their links, whatever was deleted and whatever comes too early."""

from __future__ import annotations

import pytest

from lockstitch.mirror import chain as chains
from tests.mirror.building import added, chain, deleted, heard, ids
from tests.mirror.provider import Ids, call, message


def test_items_stand_in_the_order_of_their_links():
    mirror = heard(*chain("a", "b"), added(message("c", "c"), "a"), added(message("d", "d")))
    assert ids(mirror) == ["d", "a", "c", "b"]


@pytest.mark.parametrize("looked", [True, False], ids=["looked at before", "not"])
def test_what_the_items_say_is_in_their_order_whatever_happens(looked):
    mirror = heard(*chain("a", "b"))
    for event in (
        added(message("c", "c"), "b"),
        added(message("d", "d"), "a"),
        added(message("e", "e")),
        added(message("c", "more"), "b"),
        deleted("a"),
        added(message("f", "f"), "c"),
    ):
        if looked:
            assert mirror.items
        mirror.apply(event)
        order = mirror._context.chain.order()
        assert mirror.items == [record.wire for record in order]
    assert [item["content"][0]["text"] for item in mirror.items] == ["e", "d", "b", "more", "f"]


def test_an_item_whose_predecessor_was_deleted_stands_behind_the_nearest_that_lives():
    mirror = heard(*chain("a", "b", "c"), deleted("b"), added(message("x", "x"), "b"))
    assert ids(mirror) == ["a", "x", "c"]
    assert mirror.surviving("b") == "a"


def test_what_stands_before_an_item_or_its_tombstone_is_the_nearest_that_lives():
    mirror = heard(*chain("a", "b", "c", "d"), deleted("b"), deleted("d"))
    assert [mirror.before(name) for name in "abcd"] == [None, "a", "a", "c"]
    assert mirror.before("never seen") is None


def test_a_place_is_certain_unless_it_hangs_on_what_was_never_seen():
    mirror = heard(*chain("a", "b"), added(message("x", "x"), "p"), added(message("y", "y"), "x"))
    assert [mirror.has_place(name) for name in "abxy"] == [True, True, False, True]
    mirror.apply(deleted("x"))
    mirror.apply(deleted("b"))
    assert [mirror.has_place(name) for name in "abxy"] == [True, True, False, False]
    mirror.apply(added(message("p", "p"), "a"))
    assert [mirror.has_place(name) for name in "abxyp"] == [True] * 5
    assert not mirror.has_place("never seen")


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


# --- what is kept, and for how long --------------------------------------------------------------


@pytest.fixture
def few(monkeypatch):
    monkeypatch.setattr(chains, "MOST_TOMBSTONES", 3)
    monkeypatch.setattr(chains, "MOST_ORPHANS", 3)


def tombstones(mirror):
    return len(mirror._context.chain._tombstones)


def test_the_oldest_tombstones_are_forgotten(few):
    mirror = heard(*chain("a", *"bcdefgh"), *(deleted(name) for name in "bcdefgh"))
    assert tombstones(mirror) == 3
    assert mirror.surviving("h") == "a"
    assert mirror.surviving("b") is None
    # What names one of them stands last, as if it had never been there.
    mirror.apply(added(message("x", "x"), "b"))
    assert ids(mirror) == ["a", "x"]


def test_a_tombstone_that_a_living_snapshot_shows_is_kept(few):
    mirror = heard(*chain("a", *"bcdefgh"))
    shown = mirror.items
    snapshot = mirror.snapshot()
    for name in "bcdefgh":
        mirror.apply(deleted(name))
    assert tombstones(mirror) == 7
    assert list(snapshot.items) == shown
    assert mirror.plan(shown, base=snapshot, new_id=Ids()).gone == tuple("bcdefgh")
    del snapshot
    for name in "xyzuvw":
        mirror.apply(added(message(name, name), "a"))
        mirror.apply(deleted(name))
    assert tombstones(mirror) == 3


def test_what_a_tombstone_said_is_let_go_when_no_snapshot_shows_it():
    mirror = heard(*chain("a", "b", "c"))
    snapshot = mirror.snapshot()
    mirror.apply(deleted("b"))
    assert mirror._context.chain.get("b").wire == message("b", "b")
    del snapshot
    mirror.apply(deleted("c"))
    assert mirror._context.chain.get("b").wire == {}
    assert mirror._context.chain.get("c").wire == {}


def test_what_an_item_said_before_is_kept_for_the_snapshots_that_show_it():
    mirror = heard(added(call("f", "c1", "", "in_progress")))
    first = mirror.snapshot()
    mirror.apply(added(call("f", "c1", "1", "in_progress"), type="conversation.item.done"))
    mirror.apply(added(call("f", "c1", "2"), type="conversation.item.done"))
    assert first.items == (call("f", "c1", "", "in_progress"),)
    (record,) = mirror._context.chain.order()
    assert len(record.former) == 1
    assert mirror.items == [call("f", "c1", "2")]


def test_an_id_that_is_used_again_is_another_item_and_old_snapshots_show_the_first():
    mirror = heard(*chain("a", "b"))
    first = mirror.snapshot()
    mirror.apply(deleted("b"))
    mirror.apply(added(message("b", "again"), "a"))
    assert first.items == (message("a", "a"), message("b", "b"))
    assert mirror.items == [message("a", "a"), message("b", "again")]


def test_an_item_that_waits_too_long_for_its_place_stays_where_it_is(few):
    mirror = heard(*chain("a"))
    for number in range(5):
        mirror.apply(added(message(f"x{number}", "x"), f"p{number}"))
    for number in range(5):
        mirror.apply(added(message(f"p{number}", "p"), None))
    # The first two do not wait any longer.
    assert ids(mirror) == ["p4", "x4", "p3", "x3", "p2", "x2", "p1", "p0", "a", "x0", "x1"]


def test_two_items_that_name_each_other_stand_somewhere():
    mirror = heard(added(message("x", "x"), "y"), added(message("y", "y"), "x"))
    assert sorted(ids(mirror)) == ["x", "y"]
