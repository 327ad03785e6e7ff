"""Events on their way to whoever reads them.

A reader loses nothing: if it is slow, the connection waits for it. As long as there is none, the
oldest go beyond the limit, and the first reader is told how many."""

from __future__ import annotations

import asyncio
from collections import deque

from lockstitch.realtime.events import EventsMissed, Told
from lockstitch.realtime.limits import MOST_EVENTS_UNREAD


class Inbox:
    """What was told and not read so far."""

    def __init__(self, most: int = MOST_EVENTS_UNREAD) -> None:
        self._most = most
        self._events: deque[Told] = deque()
        self._missed = 0
        self._is_read = False
        self._over = False
        self._error: BaseException | None = None
        self._arrived = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()

    def __repr__(self) -> str:
        return f"<Inbox {len(self._events)} unread{', over' if self._over else ''}>"

    def put(self, event: Told) -> None:
        """Hand an event on; whoever hears many waits for `room` between them."""
        if self._over:
            return
        self._events.append(event)
        if len(self._events) > self._most:
            if self._is_read:
                self._room.clear()
            else:
                self._events.popleft()
                self._missed += 1
        self._arrived.set()

    async def room(self) -> None:
        """Until the reader has caught up."""
        await self._room.wait()

    def end(self, error: BaseException | None = None) -> None:
        """Nothing more will come; a reader gets what is there, and then the error, if any."""
        if not self._over:
            self._over, self._error = True, error
            self._room.set()
            self._arrived.set()

    async def get(self) -> Told | None:
        """The next event; None at the end."""
        self._is_read = True
        if self._missed:
            missed, self._missed = self._missed, 0
            return EventsMissed(missed)
        while not self._events:
            if self._over:
                if self._error is not None:
                    raise self._error
                return None
            self._arrived.clear()
            await self._arrived.wait()
        event = self._events.popleft()
        if len(self._events) <= self._most // 2:
            self._room.set()
        return event
