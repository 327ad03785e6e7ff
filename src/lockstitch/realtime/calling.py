"""The calls of a session: which of them are run here, and which wait for somebody.

Running them is the runner's own affair (`runner.desk`): started, run and settled on disk, each
step before the next. This only hands them over, and notes what has come back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence

from lockstitch.core.calls import Call, id_of
from lockstitch.core.facts import Seq
from lockstitch.dialects.base import Wire
from lockstitch.ledgers.making import call_settled
from lockstitch.realtime.bell import Bell
from lockstitch.realtime.errors import NoSuchCall
from lockstitch.realtime.thread import Thread
from lockstitch.runner import given
from lockstitch.runner.asked import asked_of
from lockstitch.runner.desk import Desk, OnUnknown
from lockstitch.runner.events import CallBegan, CallEnded, Event, PendingCall, Waiting
from lockstitch.runner.tools import Tool


class Calls:
    """Calls from their announcement to the delivery of their output."""

    def __init__(
        self,
        thread: Thread,
        tools: Mapping[str, Tool],
        outside: Callable[[], frozenset[str]],
        *,
        tell: Callable[[CallBegan | CallEnded | Waiting], None],
        on_unknown: OnUnknown | None,
        grace: float,
    ) -> None:
        self._thread = thread
        self._tools = tools
        self._outside = outside
        """Names of functions that the caller has declared itself, and answers itself."""
        self._tell_reader = tell
        self._approved: dict[str, bool] = {}
        self._under_way: dict[tuple[Seq, int], Call] = {}
        """Calls whose output is not delivered."""
        self._on_disk: set[tuple[Seq, int]] = set()
        """Those of them whose output is on disk; that the ledger has it says less."""
        self._taken = asyncio.Event()
        self._bell = Bell()
        self._desk = Desk(
            thread.journal,
            tools,
            tell=self._tell,
            approved=self._approved,
            on_unknown=on_unknown,
            grace=grace,
            settled=self._settle,
        )

    def __repr__(self) -> str:
        return f"<Calls {len(self._under_way)} under way>"

    def _tell(self, event: Event) -> None:
        if isinstance(event, CallBegan | CallEnded):
            self._tell_reader(event)

    def _settle(self, call: Call) -> None:
        self._under_way[id_of(call)] = call
        self._on_disk.add(id_of(call))
        # Also where it was answered from outside, of which the desk does not hear.
        self._approved.pop(call.item.key or "", None)
        self._bell.ring()

    def take(self, calls: Iterable[Call]) -> None:
        """Run these calls, and tell of those that wait for somebody."""
        calls = list(calls)
        if not calls:
            return
        self._under_way.update((id_of(call), call) for call in calls)
        inside = [call for call in calls if not self._is_outside(call)]
        self._thread.run_here(inside)
        self._desk.take(inside)
        self._taken.set()
        approval, output = self._desk.held(inside)
        output += [self._pending(call) for call in calls if self._is_outside(call)]
        if approval or output:
            self._tell_reader(Waiting(approval, output))

    def _is_outside(self, call: Call) -> bool:
        # Who gave no tools at all runs every call itself.
        theirs = call.item.name in self._outside() or not self._tools
        return theirs and call.item.name not in self._tools

    def _pending(self, call: Call) -> PendingCall:
        asked = asked_of(self._thread.journal.ledger, call)
        return PendingCall(call.item.key or "", asked.name, asked.arguments, call.seq)

    def approve(self, decisions: Mapping[str, bool]) -> None:
        """Say of calls that asked first whether they may run."""
        decided = given.decisions(decisions)
        calls = [self._waiting(call_id) for call_id in decided]
        self._approved.update(decided)
        self.take(calls)

    async def answer(
        self, call_id: str, output: str | Wire | Sequence[Wire], *, failed: bool
    ) -> None:
        """The output of a call that is answered from outside. It is on disk on return."""
        call = self._waiting(call_id)
        if not self._is_outside(call) and not any(self._desk.held([call])):
            raise NoSuchCall(f"{call_id} waits for nobody: the session itself runs it.")
        journal = self._thread.journal
        await journal.append(call_settled(journal.ledger, call, output, failed=failed))
        self._settle(call)

    def _waiting(self, call_id: str) -> Call:
        for call in reversed(self._thread.unsettled()):
            if call.item.key == call_id:
                return call
        raise NoSuchCall(f"No call {call_id} waits for an output: it may have one already.")

    # --- what has come back --------------------------------------------------------------------

    async def settled(self) -> list[Call]:
        """Calls whose output is on disk and not delivered, once there are some."""
        while not (found := [self._under_way[place] for place in sorted(self._on_disk)]):
            await self._bell.rung()
        return found

    async def written(self) -> None:
        """Until every output that the ledger has is on disk."""
        while any(
            call.output is not None and place not in self._on_disk
            for place, call in self._under_way.items()
        ):
            await self._bell.rung()

    def delivered(self, calls: Iterable[Call]) -> None:
        """These outputs are at the provider, or will never be."""
        for call in calls:
            self._on_disk.discard(id_of(call))
            self._under_way.pop(id_of(call), None)
        self._bell.ring()

    def forsake(self, calls: Iterable[Call]) -> None:
        """These are in the context no more: nobody can answer those that wait for somebody."""
        for call in calls:
            if self._is_outside(call) or any(self._desk.held([call])):
                self._approved.pop(call.item.key or "", None)
                self.delivered([call])

    @property
    def open(self) -> bool:
        """Is there a call whose output is not delivered?"""
        return bool(self._under_way)

    # --- tools that run ------------------------------------------------------------------------

    async def watch(self) -> None:
        """Raises what kept an output from being written: nobody may go on as if it were."""
        while True:
            await self._taken.wait()
            self._taken.clear()
            await self._desk.finish()

    async def stop(self) -> None:
        """Ask the tools to end; each gets its grace time, and an honest outcome on disk."""
        await self._desk.stop()
