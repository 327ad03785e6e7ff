"""What the caller saw, what it wants and what is there now, merged."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstitch.mirror import ROOT, Delete, Kept, NotATarget, Why
from lockstitch.mirror.ordering import longest_run
from tests.mirror.building import added, chain, heard, kinds, session_with
from tests.mirror.provider import Ids, call, message, output


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


@pytest.mark.parametrize(
    "places",
    [
        {"added": [message("n", "n")], "inserted": {"a": [message("n", "n")]}},
        {"inserted": {"a": [message("n", "n")], ROOT: [message("n", "n")]}},
    ],
    ids=["added and inserted", "inserted twice"],
)
def test_an_item_that_is_to_come_at_two_places_is_refused(places):
    """One of the two creates would never be answered."""
    session = session_with("a")
    base = session.mirror.snapshot()
    with pytest.raises(NotATarget, match="n twice"):
        session.mirror.plan_changes(base=base, new_id=session.new_id, **places)


def test_a_change_of_what_somebody_has_changed_since_is_reported_and_not_carried_out():
    session = session_with("a", "b")
    mirror = session.mirror
    base = mirror.snapshot()
    session.sync([message("a", "first"), message("b", "b")], base)
    copy = session.ids()[0]
    plan = mirror.plan_changes(
        base=base, new_id=session.new_id, changed=[message("a", "second"), message("b", "b")]
    )
    assert not plan.edits
    assert plan.kept == (Kept(copy, Why.CHANGED),)
    unchanged = mirror.plan(base.items, base=base, new_id=session.new_id)
    assert not unchanged.edits
    assert not unchanged.kept


def test_a_change_of_what_was_unfinished_is_reported_and_not_carried_out():
    session = session_with("a")
    session.provider.starts("r")
    session.provider.announces(message("m", "half", "assistant"))
    session.drain()
    base = session.mirror.snapshot()
    changed = [message("m", "other", "assistant")]
    plan = session.mirror.plan_changes(base=base, new_id=session.new_id, changed=changed)
    assert not plan.edits
    assert plan.kept == (Kept("m", Why.UNFINISHED),)


def test_changes_go_behind_changes_that_are_on_their_way():
    session = session_with("a")
    for name in "nm":
        plan = session.mirror.plan_changes(
            base=session.mirror.snapshot(), new_id=session.new_id, added=[message(name, name)]
        )
        session.mirror.commit(plan)
    session.drain()
    assert session.ids() == ["a", "n", "m"]


# --- any target ----------------------------------------------------------------------------------


@st.composite
def wishes(draw):
    """What is there, and what shall be: some gone, some changed, some new, in any order."""
    there = [f"m{number}" for number in range(draw(st.integers(0, 8)))]
    kept = draw(st.lists(st.sampled_from(there), unique=True)) if there else []
    changed = draw(st.sets(st.sampled_from(kept))) if kept else set()
    target = [message(name, "changed" if name in changed else name) for name in kept]
    for number in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(target)))
        target.insert(at, message(f"n{number}", f"n{number}"))
    return there, kept, changed, target


@given(wishes())
def test_what_the_caller_wants_is_what_is_there_afterwards_with_no_edit_too_many(wish):
    there, kept, changed, target = wish
    session = session_with(*there)
    plan = session.sync(target)
    assert [item["content"] for item in session.mirror.items] == [one["content"] for one in target]
    assert session.mirror.items == session.provider.items
    assert not plan.kept
    positions = [there.index(name) for name in kept]
    moved = {there[at] for at in set(positions) - longest_run(positions)}
    deletes = sum(isinstance(edit, Delete) for edit in plan.edits)
    assert deletes == len(there) - len(kept) + len(moved | changed)
    assert len(plan.edits) - deletes == len(target) - len(kept) + len(moved | changed)
    assert not session.sync(target).edits


@given(wishes())
def test_naming_the_changes_does_the_same_as_the_whole_target(wish):
    there, kept, changed, _ = wish
    kept = sorted(kept, key=there.index)
    whole, named = session_with(*there), session_with(*there)
    new = message("n", "n")
    items = [message(name, "changed" if name in changed else name) for name in kept]
    whole.sync([*items, new])
    plan = named.mirror.plan_changes(
        base=named.mirror.snapshot(),
        new_id=named.new_id,
        added=[new],
        changed=[message(name, "changed") for name in sorted(changed)],
        removed=[name for name in there if name not in kept],
    )
    named.mirror.commit(plan)
    named.drain()
    assert [one["content"] for one in named.mirror.items] == [
        one["content"] for one in whole.mirror.items
    ]


# --- what cannot be done -------------------------------------------------------------------------


def test_without_links_nothing_is_moved_and_only_the_last_item_is_replaced():
    session = session_with("a", "b", "c", links=False)
    items = session.mirror.items
    plan = session.sync([items[2], items[0], message("b", "changed")])
    assert {kept.why for kept in plan.kept} == {Why.UNLINKED}
    assert session.ids() == ["a", "b", "c"]
    session.sync([*items[:2], message("c", "changed")])
    assert [one["content"][0]["text"] for one in session.mirror.items] == ["a", "b", "changed"]


def test_what_only_a_server_makes_is_neither_moved_nor_replaced():
    approval = {"id": "p", "type": "mcp_list_tools", "server_label": "x", "tools": []}
    mirror = heard(*chain("a"), added(approval, "a"), added(message("b", "b"), "p"))
    items = mirror.items
    moved = mirror.plan([items[1], items[0], items[2]], base=mirror.snapshot(), new_id=Ids())
    assert "p" not in {edit.item_id for edit in moved.edits}
    changed = [items[0], items[1] | {"server_label": "y"}, items[2]]
    plan = mirror.plan(changed, base=mirror.snapshot(), new_id=Ids())
    assert plan.kept == (Kept("p", Why.FIXED),)
    assert not plan.edits


def test_what_stands_behind_an_item_that_is_not_there_waits():
    session = session_with("a")
    plan = session.mirror.plan_changes(
        base=session.mirror.snapshot(),
        new_id=session.new_id,
        inserted={"never": [message("n", "n")]},
    )
    assert not plan.edits
    assert plan.waiting == ("n",)


def test_what_stands_behind_an_item_that_somebody_deleted_since_stands_behind_what_is_left():
    session = session_with("a", "b", "c")
    base = session.mirror.snapshot()
    session.provider.deletes("b")
    session.provider.deletes("a")
    session.drain()
    plan = session.mirror.plan_changes(
        base=base,
        new_id=session.new_id,
        inserted={"a": [message("first", "1")], "b": [message("second", "2")]},
    )
    session.mirror.commit(plan)
    session.drain()
    assert session.ids() == ["first", "second", "c"]


def test_what_stands_behind_an_item_in_doubt_waits():
    session = session_with("a")
    mirror, new_id = session.mirror, session.new_id
    base = mirror.snapshot()
    mirror.commit(mirror.plan_changes(base=base, new_id=new_id, added=[message("b", "b")]))
    assert [edit.item_id for edit in mirror.due(at=0.0)] == ["b"]
    mirror.expire(sent_before=1.0)
    plan = mirror.plan_changes(base=base, new_id=new_id, inserted={"b": [message("n", "n")]})
    assert kinds(plan) == [("Retrieve", "b")]
    assert plan.waiting == ("n",)


def test_a_change_of_what_somebody_deleted_since_is_reported():
    session = session_with("a", "b")
    base = session.mirror.snapshot()
    session.provider.deletes("a")
    session.drain()
    plan = session.mirror.plan_changes(
        base=base, new_id=session.new_id, changed=[message("a", "changed")]
    )
    assert not plan.edits
    assert plan.gone == ("a",)
