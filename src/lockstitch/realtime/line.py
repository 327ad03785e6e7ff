"""One connection with a mirror beside it: events sent and heard, edits followed to their end.

A line ends with its connection. What was under way on it is then decided by whoever waited; the
next line is opened in `lines`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final

from lockstitch.dialects.base import text_of
from lockstitch.mirror import Create, Mirror, Plan, Standing
from lockstitch.realtime.bell import Bell
from lockstitch.realtime.connection import Connection, Event, event_of
from lockstitch.realtime.errors import ConnectionLost
from lockstitch.realtime.holding import Floor
from lockstitch.realtime.limits import CLOSE_SECONDS, MOST_EVENTS_AT_ONCE
from lockstitch.realtime.remembering import Origins

OPEN: Final = frozenset({Standing.PLANNED, Standing.SENT, Standing.IN_DOUBT})
"""How an edit can stand that has not ended."""

OVER: Final = frozenset({"session_expired"})
"""Errors that say that the session ends now, whether or not the server hangs up."""


class Line:
    """One connection."""

    def __init__(
        self, connection: Connection, *, links: bool = True, transcribes: bool = False
    ) -> None:
        self.mirror = Mirror(links=links, transcribes=transcribes)
        self.transcribes = transcribes
        self.floor = Floor()
        self.restored = False
        """Has the provider the whole context? What it has not before that, it never had."""
        self.lost: ConnectionLost | None = None
        self.updates = 0
        """How many configurations came into force."""
        self.refusals: dict[str, Mapping[str, Any]] = {}
        """What the provider said no to, by the id of the client event."""
        self.created: dict[str, bool] = {}
        """Items that this client has created, and whether each as the copy of another."""
        self.shown: set[str] = set()
        """Ids of the items that were there when it was last written down."""
        self._spoken: set[str] = set()
        self._connection = connection
        self._ended: dict[str, Standing] = {}
        self._read: asyncio.Queue[Event | ConnectionLost] = asyncio.Queue(MOST_EVENTS_AT_ONCE)
        self._sending = asyncio.Lock()
        self._bell = Bell()

    def __repr__(self) -> str:
        return f"<Line {'lost' if self.lost else 'open'}, {self.mirror!r}, {self.floor!r}>"

    @property
    def origins(self) -> Origins:
        return Origins(self._spoken, self.created)

    @property
    def last(self) -> str | None:
        """The id of the last item."""
        items = self.mirror.items
        return str(items[-1]["id"]) if items else None

    # --- out and in ----------------------------------------------------------------------------

    async def send(self, event: Event) -> None:
        """Raises `ConnectionLost`; then nobody knows whether it arrived."""
        self.check()
        async with self._sending:
            try:
                await self._connection.send(event)
            except ConnectionLost as lost:
                self.end(lost)
                raise

    async def read(self) -> None:
        """Read events until the connection is lost."""
        try:
            while True:
                await self._read.put(event_of(await self._connection.receive()))
        except ConnectionLost as lost:
            await self._read.put(lost)

    async def heard(self) -> list[Event]:
        """Everything that was read since, once there is something. Raises `ConnectionLost` behind
        the last event: what was read before counts."""
        events: list[Event] = []
        read = await self._read.get()
        while not isinstance(read, ConnectionLost):
            events.append(read)
            if self._read.empty():
                return events
            read = self._read.get_nowait()
        if not events:
            self.end(read)
            raise read
        self._read.put_nowait(read)
        return events

    def take(self, event: Event) -> bool:
        """Hear an event; True if it may say something about items."""
        self.floor.hear(event)
        kind = str(event.get("type"))
        if kind == "error":
            self._refuse(event.get("error"))
        elif kind == "session.updated":
            self.updates += 1
        elif kind.startswith("response.output_item."):
            item = event.get("item")
            if isinstance(item, Mapping):
                self._spoken.add(str(item.get("id")))
        return self.mirror.apply(event)

    def _refuse(self, error: object) -> None:
        if not isinstance(error, Mapping):
            return
        event_id = text_of(error.get("event_id"))
        if event_id is not None:
            self.refusals[event_id] = error
        if error.get("code") in OVER:
            self.end(ConnectionLost(f"The session is over: {error.get('message')}"))

    def ring(self) -> None:
        """Something was heard, and is on disk: whoever waits looks again."""
        self._bell.ring()

    async def changed(self, seconds: float | None = None) -> None:
        """Until something was heard, or so long. Raises `ConnectionLost` if the line has ended."""
        self.check()
        await self._bell.rung(seconds)
        self.check()

    async def until(self, answered: Callable[[], bool], seconds: float) -> bool:
        """Until this is so; False if it is not so after so long. Raises `ConnectionLost`."""
        clock = asyncio.get_running_loop().time
        deadline = clock() + seconds
        while not answered():  # before the line is looked at: it may be lost behind the answer
            self.check()
            left = deadline - clock()
            if left <= 0:
                return False
            await self._bell.rung(left)
        return True

    def check(self) -> None:
        if self.lost is not None:
            raise self.lost

    async def outlived(self) -> None:
        """Raises `ConnectionLost` some time after the line has ended, for a connection that does
        not say so itself."""
        while self.lost is None:
            await self._bell.rung()
        await asyncio.sleep(CLOSE_SECONDS)
        raise self.lost

    def end(self, lost: ConnectionLost) -> None:
        self.lost = self.lost or lost
        self.ring()

    async def close(self) -> None:
        self.end(ConnectionLost("The session closed the connection."))
        await self._connection.close()

    # --- edits ---------------------------------------------------------------------------------

    async def carry_out(self, plan: Plan, acknowledgement_seconds: float) -> None:
        """Send the edits of a plan that was just made, and wait for each: until it is answered,
        or in doubt. Raises `ConnectionLost`."""
        clock = asyncio.get_running_loop().time
        self.mirror.commit(plan)
        for edit in plan.edits:
            if isinstance(edit, Create):
                self.created[edit.item_id] = edit.copy_of is not None
        under_way = dict.fromkeys([edit.event_id for edit in plan.edits], 0.0)
        """Edits that have not ended, and when each was sent; also those that others left."""
        while True:
            for number, due in enumerate(self.mirror.due(at=clock()), 1):
                under_way[due.event_id] = clock()
                await self.send(due.client_event())
                if not number % MOST_EVENTS_AT_ONCE:
                    self._note_ends(under_way)
            self._note_ends(under_way)
            waiting = [at for event_id, at in under_way.items() if self._is_sent(event_id)]
            if not waiting:
                return
            await self.changed(max(0.0, min(waiting) + acknowledgement_seconds - clock()))
            self.mirror.expire(sent_before=clock() - acknowledgement_seconds)

    def standing(self, event_id: str) -> Standing | None:
        """How far an edit of this line came."""
        return self._ended.get(event_id) or self.mirror.standing(event_id)

    def _note_ends(self, under_way: dict[str, float]) -> None:
        """A mirror remembers for a while how an edit ended, and a plan can be longer than that."""
        for event_id in [*under_way]:
            standing = self.mirror.standing(event_id)
            if standing is not None and standing not in OPEN:
                self._ended[event_id] = standing
                del under_way[event_id]

    def _is_sent(self, event_id: str) -> bool:
        return self.mirror.standing(event_id) is Standing.SENT
