"""What grows and what does not, counted in steps and not in seconds."""

from __future__ import annotations

import sys

import pytest

from tests.mirror.building import heard
from tests.mirror.provider import Ids, message


def full(count):
    names = [f"m{number}" for number in range(count)]
    return heard(
        *(
            {
                "type": "conversation.item.added",
                "item": message(name, name),
                "previous_item_id": previous,
            }
            for name, previous in zip(names, (None, *names), strict=False)
        )
    )


def steps(act):
    """Lines of Python and calls that this takes."""
    count = 0

    def trace(frame, event, argument):
        nonlocal count
        count += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        act()
    finally:
        sys.settrace(before)
    return count


def of_event(mirror):
    event = {
        "type": "conversation.item.added",
        "item": message("x", "x"),
        "previous_item_id": "m1",
    }
    return lambda: mirror.apply(event)


def of_deletion(mirror):
    return lambda: mirror.apply({"type": "conversation.item.deleted", "item_id": "m3"})


def of_word(mirror):
    mirror.snapshot()
    done = {"type": "conversation.item.done", "item": message("m3", "else")}
    return lambda: mirror.apply(done)


def of_answer_without_a_name(mirror):
    """Everything is being deleted, and the provider does not say what it has deleted."""
    mirror.commit(mirror.plan([], base=mirror.snapshot(), new_id=Ids()))
    list(mirror.due(at=0))
    return lambda: mirror.apply({"type": "conversation.item.deleted", "item_id": ""})


def of_changes(mirror):
    base = mirror.snapshot()
    return lambda: mirror.plan_changes(
        base=base,
        new_id=Ids(),
        added=[message("x", "x")],
        changed=[message("m3", "changed")],
        removed=["m2"],
    )


def of_snapshot(mirror):
    return mirror.snapshot


@pytest.mark.parametrize(
    "act",
    [of_event, of_deletion, of_word, of_answer_without_a_name, of_changes, of_snapshot],
)
def test_it_costs_the_same_however_long_the_context_is(act):
    assert steps(act(full(50))) == steps(act(full(500)))


@pytest.mark.parametrize("turned", [False, True], ids=["drop half", "reverse"])
def test_a_plan_grows_with_the_context_and_not_with_its_square(turned):
    def plan(mirror):
        base = mirror.snapshot()
        items = list(base.items)
        target = items[::-1] if turned else items[len(items) // 2 :]
        return lambda: mirror.plan(target, base=base, new_id=Ids())

    assert steps(plan(full(400))) < 5 * steps(plan(full(100)))
