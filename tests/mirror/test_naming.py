"""An item goes by every name it had, however often it was replaced."""

from __future__ import annotations

import pytest

from lockstitch.mirror import naming
from lockstitch.mirror.naming import MOST_NAMES_OF_ONE_ITEM, Names
from tests.mirror.building import session_with
from tests.mirror.provider import message


def texts(session):
    return [item["content"][0]["text"] for item in session.mirror.items]


def test_a_caller_may_go_on_with_the_first_id_for_ever():
    session = session_with("a", "b")
    for number in range(2 * MOST_NAMES_OF_ONE_ITEM):
        plan = session.sync([message("a", f"{number}"), message("b", "b")])
        assert len(plan.edits) == 2
        assert texts(session) == [f"{number}", "b"]
        assert session.mirror.get("a")["content"][0]["text"] == f"{number}"
    assert not session.sync([message("a", f"{number}"), message("b", "b")]).edits
    assert len(session.mirror._context.names) == MOST_NAMES_OF_ONE_ITEM
    assert len(session.mirror._context.names.current("a")) <= 2


def test_a_caller_that_names_its_changes_may_do_so_too():
    session = session_with("a", "b")
    mirror = session.mirror
    for number in range(2 * MOST_NAMES_OF_ONE_ITEM):
        changed = [message("a", f"{number}")]
        plan = mirror.plan_changes(base=mirror.snapshot(), new_id=session.new_id, changed=changed)
        mirror.commit(plan)
        session.drain()
        assert texts(session) == [f"{number}", "b"]
    assert len(mirror._context.names.current("a")) <= 2


def test_a_caller_may_go_on_with_any_id_that_it_was_shown():
    session = session_with("a")
    names = ["a"]
    for number in range(4):
        session.sync([message(names[-1], f"{number}")])
        names.append(session.mirror.items[0]["id"])
    assert len(set(names)) == 5
    for name in names:
        assert session.mirror.get(name)["content"][0]["text"] == "3"
        assert not session.sync([message(name, "3")]).edits


def test_a_refused_replacement_leaves_the_name_with_what_is_there():
    session = session_with("a")
    session.sync([message("a", "one")])
    session.provider.refuse_next = 1
    session.sync([message("a", "two")])
    assert session.mirror.get("a")["content"][0]["text"] == "one"
    session.sync([message("a", "three")])
    assert texts(session) == ["three"]


@pytest.mark.parametrize("again", [True, False], ids=["said again", "as it is"])
def test_a_copy_whose_original_cannot_be_deleted_is_taken_away_again(again):
    session = session_with("a", "b")
    plan = session.mirror.plan(
        [message("a", "one"), message("b", "b")],
        base=session.mirror.snapshot(),
        new_id=session.new_id,
    )
    session.mirror.commit(plan)
    session.send()
    session.hear(2)
    session.provider.refuse_next = 1
    session.drain()
    assert texts(session) == ["a", "one", "b"]
    session.sync([message("a", "one"), message("b", "b")] if again else session.mirror.items)
    assert texts(session) == ["one" if again else "a", "b"]


@pytest.mark.parametrize("living", [True, False])
def test_names_of_items_that_are_gone_are_forgotten_in_time(monkeypatch, living):
    monkeypatch.setattr(naming, "MOST_NAMES_REMEMBERED", 10)
    names = Names()
    for number in range(100):
        names.join(f"a{number}", f"b{number}", lambda name: living)
    assert len(names) == (200 if living else 10)
    assert ("a0" in names) is living
    assert list(names.unsettled(lambda name: living)) == (
        [name for number in range(100) for name in (f"a{number}", f"b{number}")] if living else []
    )
