"""What leaves a session: edits one after the other, requests for responses, everything else.

Each waits for its turn as `holding` says, and goes on over a lost connection: on the next line it
is planned anew."""

from __future__ import annotations

import asyncio

from lockstitch.realtime.connection import Event
from lockstitch.realtime.editing import Account, Change, Edited
from lockstitch.realtime.errors import ConnectionLost, ResponseRefused
from lockstitch.realtime.holding import Act, Busy, act_of, act_of_plan, may
from lockstitch.realtime.ids import new_id
from lockstitch.realtime.limits import MOST_ROUNDS, Patience
from lockstitch.realtime.line import Line
from lockstitch.realtime.lines import Lines

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
                        if clock() >= held_until or may(act, line.floor.busy()):
                            await line.carry_out(plan, self._patience.acknowledgement_seconds)
                            rounds += 1
                            again = account.take(plan, line)
                            self._names.update(account.copies)
                            if not again or rounds >= MOST_ROUNDS:
                                return account.result()
                            continue
                    await line.changed(held_until - clock())
                except ConnectionLost:
                    account.lose(line)
        finally:
            self._edits -= 1
            self._lines.ring()

    async def respond(self, event: Event, *, unless_begun: tuple[Line, int] | None = None) -> None:
        """Ask for a response, until it has begun. ``unless_begun``: not if one has begun on that
        line beyond that count, for it has seen what this one is about."""
        act = act_of(event)
        while True:
            line = await self._lines.ready()
            try:
                while not may(act, self._busy(line)):
                    await line.changed()
                if unless_begun is not None and _has_begun_since(line, *unless_begun):
                    return
                if act is Act.RESPOND_ASIDE:
                    await line.send(event)
                    return
                if await self._has_begun(line, event):
                    return
            except ConnectionLost:
                continue

    async def _has_begun(self, line: Line, event: Event) -> bool:
        """Send a request for a response; False if another one was quicker."""
        event_id, begun = str(event["event_id"]), line.floor.begun
        line.refusals.pop(event_id, None)
        line.floor.ask(event)
        await line.send(event)
        seconds = self._patience.answer_seconds
        floor, refusals = line.floor, line.refusals
        if not await line.until(lambda: floor.begun > begun or event_id in refusals, seconds):
            line.floor.give_up(event)
            raise ResponseRefused(
                f"No response has begun within {seconds:g} seconds, and the provider did not say "
                "why. Ask again."
            )
        refused = line.refusals.get(event_id)
        if refused is None:
            return True
        if refused.get("code") == ACTIVE:
            return False
        raise ResponseRefused(f"The provider will not respond: {refused.get('message')}")

    async def send(self, event: Event) -> None:
        """Send anything else, as soon as there is a line."""
        while True:
            line = await self._lines.ready()
            item = event.get("item")
            if isinstance(item, dict):
                line.created[str(item.get("id"))] = False
            try:
                return await line.send(event)
            except ConnectionLost:
                continue

    def _busy(self, line: Line) -> set[Busy]:
        busy = line.floor.busy()
        if self._edits:
            busy.add(Busy.EDITING)
        return busy


def _has_begun_since(line: Line, where: Line, begun: int) -> bool:
    return line is where and line.floor.begun > begun
