"""A session of hours: what a mirror holds is as large as what is there, not as what was."""

from __future__ import annotations

import gc
from types import BuiltinFunctionType, FunctionType, ModuleType

import pytest

from lockstitch.mirror import Mirror, chain, context, flight, naming
from tests.mirror.provider import Ids, message

LIVING = 20
CHURN_EVENTS = 100_000
STEADY_TURNS = 800
"""Until every limit is reached."""

ATOMS = (type, ModuleType, FunctionType, BuiltinFunctionType, str, int, float, bool, type(None))


@pytest.fixture(autouse=True)
def small_limits(monkeypatch):
    """So that every limit is passed many times."""
    monkeypatch.setattr(chain, "MOST_TOMBSTONES", 64)
    monkeypatch.setattr(chain, "MOST_ORPHANS", 64)
    monkeypatch.setattr(naming, "MOST_NAMES_REMEMBERED", 64)
    monkeypatch.setattr(flight, "MOST_ENDED_EDITS_REMEMBERED", 64)
    monkeypatch.setattr(flight, "MOST_ITEMS_ASKED_ABOUT", 64)
    monkeypatch.setattr(context, "MOST_ENDED_RESPONSES_REMEMBERED", 64)
    monkeypatch.setattr("lockstitch.mirror.mirror.MOST_EVENT_IDS_REMEMBERED", 64)


def held(mirror):
    """How many objects a mirror keeps alive, and how many entries their containers have."""
    seen: dict[int, object] = {}
    found: list[object] = [mirror]
    entries = 0
    while found:
        one = found.pop()
        if isinstance(one, ATOMS) or id(one) in seen:
            continue
        seen[id(one)] = one
        inside = gc.get_referents(one)
        entries += len(inside)
        found += inside
    return entries


class Churn:
    """A conversation in which everything happens all the time, and 20 items stay."""

    def __init__(self):
        self.mirror = Mirror()
        self.new_id = Ids()
        self.events = 0
        self.turns = 0

    def tell(self, type, **fields):
        self.events += 1
        self.mirror.apply({"type": type, "event_id": f"srv_{self.events}", **fields})

    def carry(self, refuse=False, lose=False):
        """Answer what is due; some of it with a refusal, some of it never."""
        mirror = self.mirror
        while edits := list(mirror.due(at=self.events)):
            for edit in edits:
                event = edit.client_event()
                if lose and event["type"] != "conversation.item.retrieve":
                    continue
                if refuse or event["type"] == "conversation.item.retrieve":
                    code = "refused" if refuse else "item_retrieve_invalid_item_id"
                    self.tell("error", error={"code": code, "event_id": edit.event_id})
                elif event["type"] == "conversation.item.create":
                    previous = event["previous_item_id"]
                    previous = None if previous == "root" else previous
                    self.tell("conversation.item.added", item=edit.item, previous_item_id=previous)
                else:
                    self.tell("conversation.item.deleted", item_id=edit.item_id)

    def turn(self):
        """The server speaks, with an item behind what nobody has seen now and then; the caller
        drops the oldest, changes one under the id that it knows, and adds one."""
        mirror, self.turns = self.mirror, self.turns + 1
        turn = self.turns
        self.tell("response.created", response={"id": f"r{turn}"})
        said = message(f"said{turn}", f"word {turn}", "assistant")
        last = mirror.items[-1]["id"] if mirror.items and turn % 7 else f"never{turn}"
        self.tell("response.output_item.added", response_id=f"r{turn}", item=said)
        self.tell("conversation.item.added", item=said, previous_item_id=last)
        self.tell("conversation.item.done", item=said, previous_item_id=last)
        if turn % 11:  # else its end is never told
            self.tell("response.done", response={"id": f"r{turn}", "output": [said]})
        self.tell("conversation.item.deleted", item_id=f"unseen{turn}")
        base = mirror.snapshot()
        target = list(base.items)[-LIVING:]
        if target:
            at = turn % len(target)
            target[at] = target[at] | {"content": [{"type": "output_text", "text": f"so {turn}"}]}
        target.append(message(f"mine{turn}", f"mine {turn}"))
        mirror.commit(mirror.plan(target, base=base, new_id=self.new_id))
        self.carry(refuse=turn % 5 == 0, lose=turn % 13 == 0)
        mirror.expire(sent_before=self.events + 1)
        return base


def test_a_hundred_thousand_events_leave_no_more_than_ten_thousand_did():
    churn = Churn()
    while churn.events < CHURN_EVENTS // 10:
        churn.turn()
    before = held(churn.mirror)
    while churn.events < CHURN_EVENTS:
        churn.turn()
    assert LIVING < len(churn.mirror) < LIVING + 2 * context.MOST_RESPONSES_AT_ONCE
    assert held(churn.mirror) < 1.2 * before


def test_a_snapshot_that_lives_shows_what_it_showed_and_costs_what_it_shows():
    churn = Churn()
    for _ in range(STEADY_TURNS):
        base = churn.turn()
    unread, shown = churn.mirror.snapshot(), tuple(churn.mirror.items)
    before = held(churn.mirror)
    while churn.events < CHURN_EVENTS // 5:
        churn.turn()
    # Twice: what is there now, and what was there then.
    assert held(churn.mirror) < 2 * before
    assert unread.items == shown
    assert base.items
    plan = churn.mirror.plan(shown, base=unread, new_id=churn.new_id)
    there = {item["id"] for item in churn.mirror.items}
    assert set(plan.gone) <= {item["id"] for item in shown} - there
    assert not [edit for edit in plan.edits if edit.item_id in there]


def test_what_only_a_snapshot_showed_goes_when_it_goes():
    churn = Churn()
    for _ in range(STEADY_TURNS):
        churn.turn()
    before = held(churn.mirror)
    snapshots = [churn.turn() for _ in range(300)]
    assert held(churn.mirror) > 1.5 * before
    snapshots.clear()
    for _ in range(200):
        churn.turn()
    assert held(churn.mirror) < 1.2 * before
