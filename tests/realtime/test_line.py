"""One connection: what is heard on it, whatever that is."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from lockstitch.mirror.hearing import HANDLERS
from lockstitch.realtime.line import Line
from lockstitch.realtime.thread import Thread
from lockstitch.store.memory import MemoryStore
from tests.generated import examples
from tests.mirror.hostile import hostile_events
from tests.realtime.stage import within


@settings(max_examples=examples(150), deadline=None)
@given(st.lists(hostile_events([*HANDLERS, "session.updated"]), min_size=1, max_size=8))
def test_nothing_that_a_server_says_is_too_strange_to_be_heard_and_written_down(events):
    async def scene():
        store = MemoryStore()
        thread, line = await Thread.open(store, "strange", wait=0), Line(None)
        for event in events:
            line.take(event)
            await thread.remember(line)
        context = thread.context()
        await thread.journal.close()
        again = await Thread.open(store, "strange", wait=0)
        assert again.context() == context
        await again.journal.close()

    within(scene)
