"""A server that says whatever it likes: the session hands it on, goes on, and can be closed."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from hypothesis import given, settings
from hypothesis import strategies as st

from lockstitch.mirror.hearing import HANDLERS
from lockstitch.realtime import ConnectionLost, Patience, RealtimeError, Session
from lockstitch.realtime.remembering import Memory
from lockstitch.store.journal import Journal
from lockstitch.store.memory import MemoryStore
from tests.generated import examples
from tests.mirror.hostile import hostile_events
from tests.realtime.hearing import until, user
from tests.realtime.stage import THREAD, within

HEARD = (
    *HANDLERS,
    "session.updated",
    "input_audio_buffer.committed",
    "input_audio_buffer.speech_started",
    "conversation.item.input_audio_transcription.completed",
)
SHORT = Patience(
    acknowledgement_seconds=0.01,
    answer_seconds=0.01,
    hold_seconds=0.01,
    turn_seconds=0.01,
    renew_after_seconds=0.0,
    renew_by_seconds=0.0,
    quiet_seconds=0.0,
    attempts=0,
)
LAST = {"type": "the last of them"}


class Hostile:
    """A connection on which these things are said, and no answer is given but the first."""

    def __init__(self, events):
        self._events = asyncio.Queue()
        self._left = [*events, LAST]
        self._closed = False

    async def send(self, event):
        if event["type"] == "session.update":
            self._events.put_nowait({"type": "session.updated", "session": {}})

    async def receive(self):
        if self._closed:
            raise ConnectionLost("It was closed.")
        return await self._events.get()

    def begin(self):
        for event in self._left:
            self._events.put_nowait(event)

    async def close(self):
        self._closed = True
        self._events.put_nowait(LAST)


def look(where: str = "") -> str:
    """Look somewhere."""
    return where


@settings(max_examples=examples(50), deadline=None)
@given(st.lists(hostile_events(HEARD), min_size=1, max_size=8))
def test_nothing_that_a_server_says_breaks_a_session(events):
    async def scene():
        connections, store = [], MemoryStore()

        async def connect():
            connections.append(Hostile(events))
            if len(connections) > 1:
                raise OSError("There is only one.")
            return connections[0]

        session = await Session.open(
            connect, session={}, tools=[look], patience=SHORT, thread=THREAD, store=store
        )
        async with session:
            connections[0].begin()
            reading = await until(session, LAST["type"])
            told = [event for event in reading if isinstance(event, dict)]
            assert told[-len(events) - 1 :] == [*events, LAST]
            for doing in (
                session.change(added=[user("a", "a")]),
                session.respond(),
                session.configure({"instructions": "Be brief."}),
            ):
                # It may not be answered; but nothing else has happened.
                with suppress(RealtimeError):
                    await doing
            await session.send({"type": "input_audio_buffer.clear"})  # it lives
        async with await Journal.open(store, THREAD) as journal:  # and what it knows can be read
            assert Memory(journal.ledger).history() == session.history()

    within(scene)
