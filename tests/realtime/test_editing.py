"""An edit that was cut off in the middle, planned anew: the rest goes where it belongs."""

from __future__ import annotations

import pytest

from lockstitch.mirror import ROOT, Create
from lockstitch.realtime.editing import Changes, Seen
from lockstitch.realtime.ids import new_id
from lockstitch.realtime.line import Line
from tests.realtime.hearing import function_call, function_output, user
from tests.realtime.stage import within


def arrive(line, wire, behind):
    item = wire | {"status": "completed"}
    event = {"type": "conversation.item.added", "previous_item_id": behind, "item": item}
    line.take(event)


def behind_what(plan):
    return {one.item_id: one.previous_item_id for one in plan.edits if isinstance(one, Create)}


@pytest.mark.parametrize(
    ("there", "expected"),
    [
        ("", {"a": "x", "b": "x", "c": "x"}),  # sent last first, each behind the same item
        ("c", {"a": "x", "b": "x"}),
        ("bc", {"a": "x"}),
        ("ac", {"b": "a"}),
        ("a", {"b": "a", "c": "a"}),
        ("abc", {}),
    ],
)
@pytest.mark.parametrize("same", [True, False], ids=["on the same line", "on the next"])
def test_the_rest_of_what_was_added_keeps_its_order(there, expected, same):
    async def scene():
        first, line = Line(None), Line(None)
        for one in (first, line):
            arrive(one, user("x", "x"), None)
        base = Seen(first.mirror.snapshot(), first)
        line = first if same else line
        for before, name in zip(["x", *there], there, strict=False):
            arrive(line, user(name, name), before)
        change = Changes(base=base, added=[user(name, name) for name in "abc"])
        assert behind_what(change.plan(line, {}, new_id)) == expected

    within(scene)


def test_two_names_of_one_item_are_one_on_the_next_line():
    """The caller looked while a copy took the place of an item, and saw both."""

    async def scene():
        first, line = Line(None), Line(None)
        arrive(first, user("old", "a"), None)
        arrive(first, user("new", "copy"), "a")
        arrive(line, user("new", "copy"), None)
        change = Changes(
            base=Seen(first.mirror.snapshot(), first),
            inserted={"a": [user("x", "x")], "copy": [user("y", "y")]},
            changed=[user("newer", "copy"), user("older", "a")],
        )
        plan = change.plan(line, {"a": "copy"}, new_id)
        *placed, copy = [edit for edit in plan.edits if isinstance(edit, Create)]
        assert [edit.item_id for edit in placed] == ["y", "x"]  # sent last first
        assert behind_what(plan) == dict.fromkeys([copy.item_id, "x", "y"], "copy")
        assert copy.item["content"] == user("newer")["content"]

    within(scene)


def test_it_stands_in_front_of_nothing_that_the_caller_had_seen():
    async def scene():
        line = Line(None)
        arrive(line, user("x", "x"), None)
        arrive(line, user("y", "y"), "x")
        base = Seen(line.mirror.snapshot(), line)
        change = Changes(base=base, added=[user("a", "a"), user("x", "x")])
        assert behind_what(change.plan(line, {}, new_id)) == {"a": "y"}

    within(scene)


def test_it_stands_in_front_of_no_output_for_that_stands_behind_its_call():
    async def scene():
        line = Line(None)
        arrive(line, function_call("f", "c1"), None)
        arrive(line, user("x", "x"), "f")
        base = Seen(line.mirror.snapshot(), line)
        arrive(line, function_output("o", "c1"), "f")
        change = Changes(base=base, added=[user("a", "a"), function_output("o", "c1")])
        assert behind_what(change.plan(line, {}, new_id)) == {"a": "x"}

    within(scene)


def test_what_was_inserted_at_the_same_place_stands_before_it():
    async def scene():
        line = Line(None)
        base = Seen(line.mirror.snapshot(), line)
        arrive(line, user("c", "c"), None)
        change = Changes(
            base=base,
            added=[user("b", "b"), user("c", "c")],
            inserted={ROOT: [user("a", "a")]},
        )
        sent = behind_what(change.plan(line, {}, new_id))
        assert sent == {"a": ROOT, "b": ROOT}
        assert [*sent] == ["b", "a"]  # the last first

    within(scene)
