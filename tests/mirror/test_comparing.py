"""What a target has in common with what is there."""

from __future__ import annotations

import pytest

from lockstitch.mirror import NotATarget
from tests.mirror.building import session_with
from tests.mirror.provider import Session, message


@pytest.mark.parametrize(
    "target", [[{"role": "user"}], [message("a", "a"), message("a", "b")]], ids=["no id", "twice"]
)
def test_a_target_that_cannot_be_meant_is_refused(target):
    with pytest.raises(NotATarget):
        Session().sync(target)


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


@pytest.mark.parametrize("told", [False, True], ids=["kept", "changed"])
def test_a_snapshot_from_between_holds_when_the_copy_was_replaced_as_well(told):
    """It names two items that are one by now, under a third id: the caller means that one."""
    session = session_with("a", "b")
    mirror = session.mirror
    target = [message("a", "changed"), message("b", "b")]
    mirror.commit(mirror.plan(target, base=mirror.snapshot(), new_id=session.new_id))
    session.send()
    session.hear(2)
    between = mirror.snapshot()
    ids = [item["id"] for item in between.items]
    session.drain()
    session.sync([message("a", "changed again"), message("b", "b")], mirror.snapshot())
    last, _ = session.ids()
    assert last not in ids
    if told:
        plan = mirror.plan_changes(
            base=between, new_id=session.new_id, changed=[*between.items[:2]]
        )
    else:
        plan = mirror.plan(between.items, base=between, new_id=session.new_id)
    assert not plan.edits  # it was changed since
