"""An edit as a client event."""

from __future__ import annotations

from lockstitch.mirror import Create, Delete, Plan, Retrieve
from tests.mirror.provider import message


def test_every_edit_says_what_the_provider_is_asked():
    item = message("a", "a")
    create = Create(event_id="e", item=item, previous_item_id="b")
    assert create.client_event() == {
        "type": "conversation.item.create",
        "event_id": "e",
        "item": item,
        "previous_item_id": "b",
    }
    last = Create(event_id="e", item=item, previous_item_id=None)
    assert "previous_item_id" not in last.client_event()
    for kind, edit in (("delete", Delete), ("retrieve", Retrieve)):
        assert edit(event_id="e", item_id="a").client_event() == {
            "type": f"conversation.item.{kind}",
            "event_id": "e",
            "item_id": "a",
        }


def test_a_plan_without_edits_is_false():
    assert not Plan(version=1)
    assert Plan(version=1, edits=(Delete(event_id="e", item_id="a"),))
