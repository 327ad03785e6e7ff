"""The emulator's session is the strictest provider there is: it takes every edit of a mirror."""

from __future__ import annotations

from lockstitch.emulator.ids import Ids as EmulatorIds
from lockstitch.emulator.realtime.session import RealtimeSession
from lockstitch.mirror import Mirror, summarised
from tests.mirror.provider import Ids, call, message, output


class Side:
    def __init__(self):
        self.session = RealtimeSession(EmulatorIds(1), "gpt-realtime", expires_at=0.0)
        self.mirror = Mirror()
        self.new_id = Ids()

    def sync(self, target):
        mirror = self.mirror
        plan = mirror.plan(target, base=mirror.snapshot(), new_id=self.new_id)
        mirror.commit(plan)
        while edits := list(mirror.due(at=0)):
            for edit in edits:
                outcome = self.session.receive(edit.client_event())
                assert outcome.broke is None
                self.hear(outcome)
        assert mirror.idle
        assert mirror.items == self.session.items()
        return plan

    def hear(self, outcome):
        for event in outcome.events:
            self.mirror.apply(event)


def test_every_edit_is_taken_and_the_mirror_is_true():
    side = Side()
    side.sync(
        [
            message("a", "a"),
            call("f", "c1"),
            output("o", "c1"),
            message("b", "b", "assistant"),
        ]
    )
    side.sync([side.mirror.items[3], *side.mirror.items[:3]])
    changed = side.mirror.items
    changed[0] = message(changed[0]["id"], "changed", "assistant")
    side.sync(changed)
    assert not side.sync(changed).edits
    side.hear(side.session.speech("hello", responds=False))
    side.sync(side.mirror.items)
    side.sync(summarised(side.mirror.items, message("s", "in short"), fraction=0.5))
    assert side.mirror.items[0]["id"] == "s"
