"""The tools of one turn: started, run, settled. Each step is durable before the next begins.

What may run after a crash is decided here, by the effect that a tool declares; how a function is
called is in `calling`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any

from msgspec import Struct

from lockstitch.core.calls import Call, Life
from lockstitch.core.exchanges import Exchange, Standing
from lockstitch.core.facts import CallSettled, CallStarted, Seq
from lockstitch.core.links import back
from lockstitch.core.outcomes import Evidence, Outcome
from lockstitch.ledgers.ledger import Ledger
from lockstitch.ledgers.making import call_settled, call_settled_honestly
from lockstitch.runner.asked import Asked, asked_of, said_in
from lockstitch.runner.calling import Cancelled
from lockstitch.runner.calling import call as call_tool
from lockstitch.runner.effects import Effect
from lockstitch.runner.errors import CannotContinue
from lockstitch.runner.events import CallBegan, CallEnded, Event, PendingCall
from lockstitch.runner.limits import MOST_TOOLS_AT_ONCE
from lockstitch.runner.tools import CallContext, Tool
from lockstitch.store.journal import Journal

OnUnknown = Callable[[PendingCall], Awaitable[str | None] | str | None]
"""Asked about a call that may have run, and of which nobody knows the end: its output, if it can be
looked up; None where it cannot."""


def _nobody(call: Call) -> None:
    """Nobody wants to know."""


class Place(Struct, frozen=True):
    """A call, by where it stands: it means the same after the journal was read again."""

    seq: int
    slot: int


class Desk:
    """Runs the calls of one turn."""

    def __init__(
        self,
        journal: Journal,
        tools: Mapping[str, Tool],
        *,
        tell: Callable[[Event], None],
        approved: dict[str, bool],
        on_unknown: OnUnknown | None,
        grace: float,
        most: int = MOST_TOOLS_AT_ONCE,
        settled: Callable[[Call], None] = _nobody,
    ) -> None:
        self._journal = journal
        self._tools = tools
        self._tell = tell
        self._approved = approved
        """What was said of calls that are not settled, by their ids."""
        self._on_unknown = on_unknown
        self._grace = grace
        self._room = asyncio.Semaphore(most)
        self._settled = settled
        """Told of each call whose output is on disk."""
        self._running: dict[Place, asyncio.Task[None]] = {}
        """What is not settled yet, and what could not be written."""
        self._changed = asyncio.Event()

    def take(self, calls: Sequence[Call]) -> None:
        """Begin with these calls, as far as nobody must be asked first."""
        for call in calls:
            place = Place(call.seq, call.slot)
            if place not in self._running and self._why_not(call) is None:
                task = self._running[place] = asyncio.create_task(self._settle(place))
                task.add_done_callback(partial(self._ended, place))

    def _ended(self, place: Place, task: asyncio.Task[None]) -> None:
        if task.cancelled() or task.exception() is None:
            self._running.pop(place, None)
        self._changed.set()

    def approve(self, decisions: Mapping[str, bool]) -> None:
        """Say of calls that ask first whether they may run."""
        self._approved.update(decisions)

    def held(self, calls: Sequence[Call]) -> tuple[list[PendingCall], list[PendingCall]]:
        """Of these calls: those that wait for an approval, and those that wait for an output."""
        approval = [self._pending(call) for call in calls if self._why_not(call) == "approval"]
        output = [self._pending(call) for call in calls if self._why_not(call) == "output"]
        return approval, output

    async def finish(self) -> None:
        """Wait until everything that was begun is settled. Raises at once what keeps an output from
        being written: what else runs may take an hour."""
        while self._running:
            for task in self._running.values():
                if task.done():
                    task.result()
            self._changed.clear()
            await self._changed.wait()

    async def stop(self) -> None:
        """Cancel what runs. Each gets its grace time, and an honest outcome on disk."""
        tasks = list(self._running.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._running.clear()

    # --- one call ------------------------------------------------------------------------------

    def _call(self, place: Place) -> Call:
        return self._journal.ledger.calls[place.seq, place.slot]

    def _pending(self, call: Call) -> PendingCall:
        asked = asked_of(self._journal.ledger, call)
        return PendingCall(call.item.key or "", asked.name, asked.arguments, call.seq)

    def _why_not(self, call: Call) -> str | None:
        """What a call must wait for before it may run."""
        asked = asked_of(self._journal.ledger, call)
        if self._recorded(call, asked) is not None:
            return None
        undecided = "approval" if self._is_approved(call) is None else None
        if _is_question(call):
            return undecided
        tool = self._tools.get(asked.name)
        if tool is None:
            # A built-in call (a shell, a patch) has no name of a tool: somebody else runs it.
            return None if call.item.name or call.by_server else "output"
        if tool.external:
            return "output"
        asks = call.life is Life.ANNOUNCED and tool.asks_first(asked.arguments)
        return undecided if asks else None

    def _is_approved(self, call: Call) -> bool | None:
        """What was said of this call; None if nothing was."""
        return self._approved.get(call.item.key or "")

    def _may_have_run(self, call: Call, tool: Tool) -> bool:
        """May it have had its effect, and must not have it twice? Whoever made a call before it was
        brought along had another key for it; but who approves of it here has decided."""
        if call.life is Life.STARTED:
            return tool.effect is Effect.ONCE
        if self._journal.ledger.is_unstarted(call) or self._is_approved(call):
            return False
        return tool.effect is not Effect.READ

    async def _settle(self, place: Place) -> None:
        async with self._room:
            call = self._call(place)
            asked = asked_of(self._journal.ledger, call)
            tool = self._tools.get(asked.name)
            recorded = self._recorded(call, asked)
            if recorded is not None:
                await self._write(place, call_settled(self._journal.ledger, call, recorded))
            elif call.by_server:
                await self._write(place, self._honest(call, None))
            elif self._is_approved(call) is False and call.life is Life.ANNOUNCED:
                await self._write(place, self._refused(call))
            elif _is_question(call):
                await self._write(place, call_settled(self._journal.ledger, call, _yes_to(call)))
            elif tool is None:
                text = f"There is no tool {asked.name!r}."
                await self._write(place, self._failed(call, text), failed=True)
            elif self._may_have_run(call, tool):
                await self._look_up(place, call)
            else:
                await self._run(place, call, asked, tool)

    def _recorded(self, call: Call, asked: Asked) -> Mapping[str, Any] | None:
        """The output of the same call in an answer that broke off: the model repeats itself."""
        ledger = self._journal.ledger
        others = [
            other for other in ledger.calls_with_key(call.item.key or "") if other is not call
        ]
        broke_off = _broke_off_before(ledger, call) if others else ()
        for other in others:
            if (
                other.link in broke_off
                and other.output is not None
                and other.outcome is Outcome.FINISHED
                and asked_of(ledger, other) == asked
            ):
                return ledger.wire(other.output)
        return None

    async def _look_up(self, place: Place, call: Call) -> None:
        """It may have run, and must not run twice."""
        found = None
        if self._on_unknown is not None:
            found = await self._asked_outside(self._on_unknown, call)
        call = self._call(place)
        if found is not None:
            await self._write(place, call_settled(self._journal.ledger, call, found))
        else:
            await self._write(place, self._honest(call, None))

    async def _asked_outside(self, on_unknown: OnUnknown, call: Call) -> str | None:
        try:
            found = on_unknown(self._pending(call))
            return await found if isinstance(found, Awaitable) else found
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            # Nobody has stopped us: something that it waited for was cancelled.
            raise CannotContinue(
                f"The on_unknown function for {call.named} was cancelled from inside. No result "
                "was recorded; the next turn calls it again."
            ) from None

    async def _run(self, place: Place, call: Call, asked: Asked, tool: Tool) -> None:
        attempt = 2 if call.life is Life.STARTED else 1
        try:
            await self._journal.append(CallStarted(call=call.seq, slot=call.slot))
        except asyncio.CancelledError:
            # That it started is on disk, or on its way there; and it did not.
            unrun = self._failed(self._call(place), "It was not run: it was cancelled.")
            await self._write(place, unrun, failed=True)
            raise
        key = call.item.key or ""
        self._tell(CallBegan(key, asked.name, asked.arguments, attempt))
        context = CallContext(
            # The place alone would be used again by a thread of the same name that begins anew.
            key=f"{self._journal.conversation}:{call.seq}:{call.slot}:{key}",
            call_id=key,
            thread=self._journal.conversation,
            attempt=attempt,
        )
        cancelled = False
        try:
            result = await call_tool(
                tool,
                asked.arguments,
                context,
                grace=self._grace,
                dialect=self._journal.ledger.dialect.name,
            )
        except Cancelled as stopped:
            cancelled, result = True, stopped.result
        call = self._call(place)
        if not result.certain:
            fact = self._honest(call, Evidence(Outcome.UNKNOWN, "was stopped", result.text))
        elif result.content is not None:
            fact = call_settled(self._journal.ledger, call, result.content, failed=result.failed)
        else:
            fact = call_settled(self._journal.ledger, call, result.text, failed=result.failed)
        await self._write(place, fact, failed=result.failed)
        if cancelled:
            raise asyncio.CancelledError

    def _refused(self, call: Call) -> CallSettled:
        known = self._journal.ledger.is_unstarted(call)
        outcome = Outcome.NEVER_STARTED if known else Outcome.UNKNOWN
        return self._honest(call, Evidence(outcome, "was refused", "It was not approved."))

    def _failed(self, call: Call, text: str) -> CallSettled:
        return call_settled(self._journal.ledger, call, text, failed=True)

    def _honest(self, call: Call, evidence: Evidence | None) -> CallSettled:
        return call_settled_honestly(self._journal.ledger, call, evidence)

    async def _write(self, place: Place, fact: CallSettled, *, failed: bool = False) -> None:
        # An output that a tool produced is durable before anything else happens to it. No shield:
        # the journal has it, and goes on with the write, before it first waits.
        await self._journal.append(fact)
        call = self._call(place)
        # Servers use ids again: who approved of this call did not approve of the next.
        self._approved.pop(call.item.key or "", None)
        name = call.item.name or ""
        output = said_in(fact.item)
        self._settled(call)
        self._tell(CallEnded(call.item.key or "", name, fact.outcome, output, failed))


def _is_question(call: Call) -> bool:
    """Is it the provider who asks before it runs something itself? No tool of ours is meant, of
    whatever name."""
    return call.item.family is not None and call.item.family.asks_first


def _yes_to(question: Call) -> dict[str, Any]:
    key = question.item.key
    return {"type": question.output_type, "approval_request_id": key, "approve": True}


def _broke_off_before(ledger: Ledger, call: Call) -> set[Seq]:
    """The answers that broke off since the last that ended: what they said may be said again."""
    found: set[Seq] = set()
    for link, _ in back(ledger.links, ledger.links[call.link].parent):
        if isinstance(link, Exchange):
            if link.standing is Standing.ACCEPTED:
                break
            found.add(link.seq)
    return found
