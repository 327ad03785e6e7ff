"""A summary runs while a call is in flight: the founding case, step by step."""

from __future__ import annotations

import pytest

from lockstitch.mirror import Delete, summarised
from tests.mirror.building import in_flight, session_with
from tests.mirror.provider import Ids, call, message, output


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


@pytest.mark.parametrize("ran", [True, False], ids=["the tool ran", "it still runs"])
def test_the_same_with_an_item_at_the_tail_that_only_the_application_has(ran):
    session = session_with("u1", "u2")
    provider, mirror = session.provider, session.mirror
    base = mirror.snapshot()
    note = message("note", "speak slowly", "system")
    own = [*base.items, note]
    provider.starts("r1")
    provider.announces(call("FC", "c1"))
    provider.finishes(call("FC", "c1"))
    provider.ends()
    session.drain()
    provider.starts("r2")
    target = summarised(own, message("S", "in short"), count=1)
    session.sync(target, base)
    # The note is new there; it stands behind what came since.
    assert session.ids() == ["S", "u2", "FC", "note"]
    assert provider.deleted == ["u1"]
    if ran:
        session.sync([*target, output("O", "c1")])
    provider.announces(message("A", "answer", "assistant"))
    provider.finishes(message("A", "answer", "assistant"))
    provider.ends()
    session.drain()
    answered = ["O"] if ran else []
    assert session.ids() == ["S", "u2", "FC", "A", *answered, "note"]
    assert not session.sync(mirror.items).edits
    assert sorted(provider.created) == sorted(["S", "note", *answered])
