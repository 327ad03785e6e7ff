"""What leaves a session: edits one after the other, requests for responses, everything else.

Each waits for its turn as `holding` says, and goes on over a lost connection: on the next line it
is planned anew."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from lockstitch.dialects.base import text_of
from lockstitch.realtime.connection import Event
from lockstitch.realtime.editing import Account, Change, Edited
from lockstitch.realtime.errors import ConnectionLost, NoTurn, ResponseRefused
from lockstitch.realtime.holding import WAITS_FOR, Act, Busy, act_of, act_of_plan, may
from lockstitch.realtime.ids import new_id
from lockstitch.realtime.limits import ACTIVE_SECONDS, MOST_ROUNDS, Patience
from lockstitch.realtime.line import Line
from lockstitch.realtime.lines import Lines
from lockstitch.realtime.rebasing import rename

CANCEL = "response.cancel"

ACTIVE = "conversation_already_has_active_response"
"""The refusal of a response because of another one, which was quicker."""


class Sending:
    """Sends on whatever line there is."""

    def __init__(self, lines: Lines, patience: Patience) -> None:
        self._lines = lines
        self._patience = patience
        self._names: dict[str, str] = {}
        """Ids of items that took another's place, on whichever line, by the ids of those."""
        self._turn = asyncio.Lock()
        self._edits = 0
        """Edits that are under way, or wait for their turn."""

    def __repr__(self) -> str:
        return f"<Sending {self._edits} edits under way>"

    async def edit(self, change: Change) -> Edited:
        """One edit to its end, over as many plans, and lines, as it takes."""
        account, rounds = Account(), 0
        line: Line | None = None
        clock = asyncio.get_running_loop().time
        held_until = clock() + self._patience.hold_seconds
        self._edits += 1
        try:
            while True:
                line = await self._lines.ready()
                try:
                    async with self._turn:
                        line.check()
                        plan = change.plan(line, self._names, new_id)
                        act = act_of_plan(plan, line.last)
                        if clock() >= held_until or may(act, line.busy()):
                            account.begin(plan, line)
                            await line.carry_out(plan, self._patience.acknowledgement_seconds)
                            rounds += 1
                            again = account.take(line)
                            rename(self._names, account.copies)
                            if not again or rounds >= MOST_ROUNDS:
                                return account.result()
                            continue
                    await line.changed(held_until - clock())
                except ConnectionLost:
                    await self._heard_to_its_end()
                    account.lose(line)
                    rename(self._names, account.copies)
        finally:
            if line is not None:
                account.leave(line)
            self._edits -= 1
            self._lines.ring()

    async def _heard_to_its_end(self) -> None:
        """A line is lost. What was sent may have arrived, and the answer may be on its way: there
        is no other line before this one was heard to its end."""
        await self._lines.ready()

    async def settle(self) -> None:
        """Until nothing is in doubt, or so long that it makes sense to ask once more."""
        line = await self._lines.ready()
        with suppress(ConnectionLost):
            await line.until(lambda: line.mirror.idle, self._patience.acknowledgement_seconds)

    async def respond(self, event: Event, *, unless_begun: tuple[Line, int] | None = None) -> None:
        """Ask for a response, until it has begun. ``unless_begun``: not if one has begun on that
        line beyond that count, or on another, for it has seen what this one is about."""
        act = act_of(event)
        while True:
            line = await self._lines.ready()
            try:
                await self._turn_of(act, line)
                if unless_begun is not None and _has_begun_since(line, *unless_begun):
                    return
                if act is Act.RESPOND_ASIDE:
                    await line.send(event)
                    return
                if await self._has_begun(line, event):
                    return
            except ConnectionLost:
                continue

    async def _turn_of(self, act: Act, line: Line) -> None:
        """Until this may be sent. Raises `NoTurn` if something is in the way for too long."""
        seconds = self._patience.turn_seconds
        if not await line.until(lambda: may(act, self.busy(line)), seconds):
            busy = self.busy(line)
            in_the_way = "; ".join(one.value for one in Busy if one in WAITS_FOR[act] & busy)
            raise NoTurn(
                f"No response could be asked for within {seconds:g} seconds: {in_the_way}. If the"
                ' provider has fallen silent, send {"type": "response.cancel"} and ask again; if'
                " that does not help, close the session and open its thread again."
            )

    async def _has_begun(self, line: Line, event: Event) -> bool:
        """Send a request for a response; False if another one was quicker, or the line is lost."""
        floor, begun = line.floor, line.floor.begun
        line.complaint = None
        with line.following.one(str(event["event_id"])) as followed:
            floor.ask(event)
            try:
                await line.send(event)
                seconds = self._patience.answer_seconds
                answered = await line.until(
                    lambda: floor.begun > begun or followed.refusal is not None, seconds
                )
                if floor.begun > begun and floor.contested:
                    await line.until(
                        lambda: followed.refusal is not None or not floor.speaking, seconds
                    )
            except ConnectionLost:
                await self._heard_to_its_end()
                # If it has begun it is lost, and that is dealt with where lines are opened.
                return floor.begun > begun
            finally:
                floor.give_up(event)
        if not answered:
            raise ResponseRefused(
                f"No response has begun within {seconds:g} seconds; {line.excuse}. Ask again."
            )
        refused = followed.refusal
        if refused is None:
            return True
        if refused.get("code") == ACTIVE:
            # It is told of any moment now. If it is not, nobody asks without a pause.
            await line.until(lambda: bool(floor.speaking) or floor.begun > begun, ACTIVE_SECONDS)
            return False
        raise ResponseRefused(f"The provider will not respond: {refused.get('message')}")

    async def send(self, event: Event) -> None:
        """Send anything else, as soon as there is a line."""
        if event.get("type") == CANCEL:
            self._lines.cancel(text_of(event.get("response_id")))
        while True:
            line = await self._lines.ready()
            if isinstance(event.get("item"), dict):
                line.origins.sends(str(event["item"].get("id")))
            try:
                return await line.send(event)
            except ConnectionLost:
                continue

    def busy(self, line: Line) -> set[Busy]:
        """What is under way on a line."""
        busy = line.busy()
        if self._edits:
            busy.add(Busy.EDITING)
        return busy


def _has_begun_since(line: Line, where: Line, begun: int) -> bool:
    return where.floor.begun > begun or (line is not where and line.floor.begun > 0)
