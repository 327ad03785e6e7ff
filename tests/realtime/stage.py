"""Where realtime sessions are played: the emulator over real sockets, a store, two connections."""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import asynccontextmanager

import openai
from openai import AsyncOpenAI

import lockstitch
from lockstitch.emulator import ALWAYS, Emulator, Script, Turn
from lockstitch.realtime import Patience, Session
from lockstitch.realtime.connection import event_of
from lockstitch.realtime.openai_connection import openai_realtime
from lockstitch.realtime.websocket import websocket
from lockstitch.store.journal import kept_ledger
from lockstitch.store.memory import MemoryStore

MODEL = "gpt-realtime"
THREAD = "voice"
SECONDS = 20.0
"""A test takes well below a second; one that takes this long hangs."""
KINDS = ("websocket", "openai")
QUICK = Patience(acknowledgement_seconds=10.0, answer_seconds=5.0, hold_seconds=5.0)
"""On a busy machine an acknowledgement may take seconds. One that is given up is asked about, and a
strict provider takes the question for one item that was deleted as a mistake."""
HURRIED = Patience(acknowledgement_seconds=0.25, answer_seconds=1.0, hold_seconds=0.25)


def within(work, seconds=SECONDS):
    """Run a test, which must end."""

    async def bounded():
        async with asyncio.timeout(seconds):
            return await work()

    return asyncio.run(bounded())


@asynccontextmanager
async def staged(*turns, decide=None, **settings):
    """A stage with an emulator that says these turns, or what is decided."""
    script = Script([Turn(decide=decide, times=ALWAYS)]) if decide else Script(list(turns))
    # Nothing here is encrypted, and to read the certificates takes longer than most tests.
    async with (
        Emulator(script=script, **settings) as emulator,
        AsyncOpenAI(
            base_url=emulator.base_url,
            api_key="any",
            http_client=openai.DefaultAsyncHttpxClient(verify=False),
        ) as client,
    ):
        yield Stage(emulator, client)


class Stage:
    """An emulator and a store; sessions between them are opened as other processes would."""

    def __init__(self, emulator, client):
        self.emulator = emulator
        self.client = client
        self.store = MemoryStore()

    @property
    def url(self):
        return f"{self.emulator.url.replace('http', 'ws', 1)}/v1/realtime?model={MODEL}"

    def connect(self, kind="websocket"):
        if kind == "openai":
            return openai_realtime(self.client, MODEL)
        return websocket(self.url, key="any")

    @asynccontextmanager
    async def session(self, *tools, kind="websocket", connect=None, **more):
        """A session that answers in text, on a thread of the stage's store."""
        configured = {"output_modalities": ["text"], **more.pop("configured", {})}
        opened = await Session.open(
            connect or self.connect(kind),
            session=configured,
            tools=tools,
            **{"thread": THREAD, "store": self.store, "patience": QUICK, **more},
        )
        async with opened as session:
            yield session

    # What the provider has, and what it saw

    @property
    def provider(self):
        """The newest session as the provider has it."""
        sessions = self.emulator.realtime.sessions
        return sessions[max(sessions)].session

    def broken(self):
        return dict(self.emulator.record.broken)

    def struck(self):
        """How often faults have struck."""
        return sum(fault.struck for fault in self.emulator.faults.all())

    def frames(self, type):
        """The client events of a type, over all connections, in order."""
        return [
            entry.readable()["data"]
            for entry in self.emulator.record.entries()
            if not entry.sent and entry.what == f"frame {type}"
        ]

    def what_passed(self):
        """The names of all frames so far, in both directions."""
        return [entry.what for entry in self.emulator.record.entries() if entry.kind == "frame"]

    def in_step(self, session):
        """The provider and the mirror have the same context, and it is whole."""
        assert session.items == self.provider.items()
        assert lockstitch.check(session.items, dialect="realtime") == []
        return [wire["id"] for wire in session.items]

    def in_step_but_open(self, session):
        """The same where a call has no output yet."""
        assert session.items == self.provider.items()
        return [wire["id"] for wire in session.items]

    async def ledger(self, thread=THREAD):
        return await kept_ledger(self.store, thread)


class Through:
    """A connection of ours, with what the server says passed through a function: an event, or
    None to lose it."""

    def __init__(self, connect, passes):
        self._connect = connect
        self._passes = passes

    async def __call__(self):
        inner = await self._connect()
        passes = self._passes

        class Passing:
            send, close = inner.send, inner.close

            async def receive(self):
                while True:
                    event = passes(event_of(await inner.receive()))
                    if event is not None:
                        return event

        return Passing()


class Slow:
    """A connection on which each event of one type is late by so long."""

    def __init__(self, connect, type, *, seconds):
        self._connect = connect
        self._type = type
        self._seconds = seconds

    async def __call__(self):
        inner, late, seconds = await self._connect(), self._type, self._seconds

        class Late:
            send, close = inner.send, inner.close

            async def receive(self):
                event = event_of(await inner.receive())
                if event["type"] == late:
                    await asyncio.sleep(seconds)
                return event

        return Late()


class Stalling:
    """A connection that stands still between two events: all from the first through the last come
    at once. ``meanwhile`` is what happens there."""

    def __init__(self, connect, first, last, meanwhile):
        self._connect = connect
        self._first = first
        self._last = last
        self._meanwhile = meanwhile

    async def __call__(self):
        inner = await self._connect()
        first, last, meanwhile = self._first, self._last, self._meanwhile
        held = deque()

        class Still:
            send, close = inner.send, inner.close

            async def receive(self):
                if held:
                    return held.popleft()
                event = event_of(await inner.receive())
                if not first(event):
                    return event
                await meanwhile()
                held.append(event)
                while not last(event):
                    event = event_of(await inner.receive())
                    held.append(event)
                return held.popleft()

        return Still()
