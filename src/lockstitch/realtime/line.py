"""One connection with a mirror beside it: events sent and heard, edits followed to their end.

A line ends with its connection. What was under way on it is then decided by whoever waited; the
next line is opened in `lines`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

from lockstitch.core import families
from lockstitch.dialects.base import text_of
from lockstitch.mirror import Create, Mirror, Plan, Standing
from lockstitch.mirror.flight import OPEN
from lockstitch.realtime.bell import Bell
from lockstitch.realtime.connection import Connection, Event, event_of, hang_up
from lockstitch.realtime.errors import ConnectionLost
from lockstitch.realtime.following import Following
from lockstitch.realtime.holding import Busy, Ear, Floor
from lockstitch.realtime.limits import CLOSE_SECONDS, MOST_EVENTS_AT_ONCE, SEND_SECONDS
from lockstitch.realtime.origins import Origins

OVER: Final = frozenset({"session_expired"})
"""Errors that say that the session ends now, whether or not the server hangs up."""


class Line:
    """One connection."""

    def __init__(
        self, connection: Connection, *, links: bool = True, transcribes: bool = False
    ) -> None:
        self.mirror = Mirror(links=links, transcribes=transcribes)
        self.floor = Floor()
        self.ear = Ear(transcribes=transcribes)
        self.restored = False
        """Has the provider the whole context? What it has not before that, it never had."""
        self.lost: ConnectionLost | None = None
        self.updates = 0
        """How many configurations came into force."""
        self.following = Following()
        self.complaint: str | None = None
        """The last error that does not say which event it is about."""
        self.origins = Origins()
        self._shown: set[str] = set()
        """Ids of the items that were there when it was last written down."""
        self._connection = connection
        self._read: asyncio.Queue[Event | ConnectionLost] = asyncio.Queue(MOST_EVENTS_AT_ONCE)
        self._sending = asyncio.Lock()
        self._bell = Bell()

    def __repr__(self) -> str:
        return f"<Line {'lost' if self.lost else 'open'}, {self.mirror!r}, {self.floor!r}>"

    @property
    def transcribes(self) -> bool:
        """Will the words of what the user says come later?"""
        return self.ear.transcribes

    def busy(self) -> set[Busy]:
        """What is under way here, as far as the provider has told."""
        return self.floor.busy() | self.ear.busy()

    def show(self, ids: set[str]) -> set[str]:
        """These items are there now. Gives those that went since it was last asked."""
        gone, self._shown = self._shown - ids, ids
        return gone

    @property
    def last(self) -> str | None:
        """The id of the last item."""
        items = self.mirror.items
        return str(items[-1]["id"]) if items else None

    # --- out and in ----------------------------------------------------------------------------

    async def send(self, event: Event) -> None:
        """Raises `ConnectionLost`; then nobody knows whether it arrived."""
        async with self._sending:
            self.check()
            try:
                async with asyncio.timeout(SEND_SECONDS):
                    await self._connection.send(event)
            except TimeoutError:
                lost = ConnectionLost(f"The connection took nothing for {SEND_SECONDS:g} seconds.")
                self.end(lost)
                raise lost from None
            except ConnectionLost as lost:
                self.end(lost)
                raise
        self.ear.sends(event)

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
        self.ear.hear(event)
        self.mirror.transcribes = self.ear.transcribes
        kind = str(event.get("type"))
        if kind == "error":
            self._refuse(event.get("error"))
        elif kind == "session.updated":
            self.updates += 1
        elif kind.startswith("response.output_item."):
            item = event.get("item")
            said = text_of(item.get("id")) if isinstance(item, Mapping) else None
            if said is not None:
                self.origins.speaks(said)
        output = self._new_output(event.get("item"))
        told = self.mirror.apply(event)
        if output is not None and output in self.mirror:
            self.floor.output_came()
        return told

    def _new_output(self, item: object) -> str | None:
        """The id of an output that is told of for the first time."""
        if not isinstance(item, Mapping) or item.get("type") != families.FUNCTION.output_type:
            return None
        output = text_of(item.get("id"))
        return None if output is None or output in self.mirror else output

    def _refuse(self, error: object) -> None:
        if not isinstance(error, Mapping):
            return
        event_id = text_of(error.get("event_id"))
        if event_id is not None:
            self.following.refuse(event_id, error)
        else:
            self.complaint = str(error.get("message")).rstrip(".")
        if text_of(error.get("code")) in OVER:
            self.end(ConnectionLost(f"The session is over: {error.get('message')}"))

    def ring(self) -> None:
        """Something was heard, and is on disk: whoever waits looks again."""
        self._bell.ring()

    async def changed(self, seconds: float | None = None) -> None:
        """Until something was heard, or so long. Raises `ConnectionLost` if the line has ended."""
        self.check()
        await self._bell.rung(seconds)
        self.check()

    async def rung(self, seconds: float) -> None:
        """Until something was heard, or the line has ended, or so long."""
        await self._bell.rung(seconds)

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

    @property
    def excuse(self) -> str:
        """What the provider said instead of an answer."""
        said = f"said: {self.complaint}" if self.complaint else "did not say why"
        return f"the provider {said}"

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

    async def close(self, why: ConnectionLost) -> None:
        self.end(why)
        await hang_up(self._connection)

    # --- edits ---------------------------------------------------------------------------------

    async def carry_out(self, plan: Plan, acknowledgement_seconds: float) -> None:
        """Send the edits of a plan that was just made, and wait for each: until it is answered,
        or in doubt. Raises `ConnectionLost`.

        A provider takes edits in their order: as long as it answers some, the others are not
        late."""
        clock = asyncio.get_running_loop().time
        self.mirror.commit(plan)
        self.origins.keep(self._may_come)
        self.origins.creates(plan.edits)
        under_way = dict.fromkeys([edit.event_id for edit in plan.edits], 0.0)
        """Edits that have not ended, and when each was sent; also those that others left."""
        answered_at = clock()
        """When the last of them was: a provider that works off many of them is not silent."""
        while True:
            for number, due in enumerate(self.mirror.due(at=clock()), 1):
                under_way[due.event_id] = clock()
                await self.send(due.client_event())
                if not number % MOST_EVENTS_AT_ONCE and self._note_ends(under_way):
                    answered_at = clock()
            if self._note_ends(under_way):
                answered_at = clock()
            waiting = [at for event_id, at in under_way.items() if self._is_sent(event_id)]
            if not waiting:
                return
            left = max(answered_at, min(waiting)) + acknowledgement_seconds - clock()
            if left <= 0:
                self.mirror.expire(sent_before=clock() - acknowledgement_seconds)
            else:
                await self.changed(left)

    def standing(self, event_id: str) -> Standing | None:
        """How far an edit of this line came."""
        followed = self.following.get(event_id)
        ended = None if followed is None else followed.standing
        return ended or self.mirror.standing(event_id)

    def _note_ends(self, under_way: dict[str, float]) -> bool:
        """Did any end? A mirror remembers for a while how, and a plan can be longer than that."""
        before = len(under_way)
        for event_id in [*under_way]:
            standing = self.mirror.standing(event_id)
            if standing is not None and standing not in OPEN:
                self.following.close(event_id, standing)
                del under_way[event_id]
        return len(under_way) < before

    def _may_come(self, create: Create) -> bool:
        """Is this item there, or on its way?"""
        return create.item_id in self.mirror or self.mirror.standing(create.event_id) in OPEN

    def _is_sent(self, event_id: str) -> bool:
        return self.mirror.standing(event_id) is Standing.SENT
