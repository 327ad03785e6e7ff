"""The door: a realtime conversation that is edited, answered by tools, cut off and taken up again.

What is heard is written down before it is handed on, so a new line, in this process or another,
is filled from the thread. Lines are kept in `lines`, what leaves is in `sending`, tools are in
`calling`; this puts them together."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping, Sequence
from itertools import compress
from types import TracebackType
from typing import Any, Self, TypeVar

from lockstitch.dialects.base import Wire
from lockstitch.mirror import summarised
from lockstitch.realtime.calling import Calls
from lockstitch.realtime.configuring import Configuration
from lockstitch.realtime.connection import Connect, Event
from lockstitch.realtime.editing import Changes, Edited, Outputs, Seen, Target
from lockstitch.realtime.errors import NoTurn, ResponseRefused, SessionOver
from lockstitch.realtime.events import NoReply, OutputUnplaced, Told
from lockstitch.realtime.holding import Act, Busy, act_of
from lockstitch.realtime.ids import new_id
from lockstitch.realtime.inbox import Inbox
from lockstitch.realtime.limits import Patience
from lockstitch.realtime.line import Line
from lockstitch.realtime.lines import Around, Lines, Setting
from lockstitch.realtime.reconnecting import Attempts
from lockstitch.realtime.sendable import sendable, sendable_item
from lockstitch.realtime.sending import Sending
from lockstitch.realtime.thread import Thread
from lockstitch.runner.desk import OnUnknown
from lockstitch.runner.limits import GRACE_SECONDS
from lockstitch.runner.tools import Tool, by_name
from lockstitch.store.contract import Store
from lockstitch.store.errors import StoreError
from lockstitch.store.opening import open_store

Value = TypeVar("Value")


class Session:
    """One realtime conversation. Make it with `open`; iterate over it for its events."""

    def __init__(
        self,
        setting: Setting,
        thread: Thread,
        own_store: Store | None,
        *,
        tools: Mapping[str, Tool],
        on_unknown: OnUnknown | None,
        grace: float,
    ) -> None:
        self._thread = thread
        self._own_store = own_store
        self._replies = setting.replies
        self._inbox = Inbox()
        self._calls = Calls(
            thread,
            tools,
            lambda: setting.configuration.functions,
            tell=self._inbox.put,
            on_unknown=on_unknown,
            grace=grace,
        )
        around = Around(
            busy=self._busy,
            written=self._written,
            write_down=self._write_down,
            hear=self._hear,
            go_on=self._go_on,
            tell=self._inbox.put,
        )
        self._lines = Lines(setting, thread, Attempts(setting.patience, random.random), around)
        self._sending = Sending(self._lines, setting.patience)
        self._tasks: set[asyncio.Task[Any]] = set()
        """What happens by itself; it is cancelled at the end."""
        self._asked: set[asyncio.Task[Any]] = set()
        """What callers have begun; at the end it hears that the session is over."""
        self._failure: BaseException | None = None
        self._closing: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        return f"<Session {self._thread!r}, {self._lines!r}>"

    @classmethod
    async def open(
        cls,
        connect: Connect,
        *,
        session: Mapping[str, Any] | None = None,
        tools: Iterable[Tool | Callable[..., Any]] = (),
        thread: str | None = None,
        store: str | Store = "memory:",
        replies: bool = True,
        links: bool = True,
        patience: Patience | None = None,
        on_unknown: OnUnknown | None = None,
        grace: float = GRACE_SECONDS,
        wait: float = 0,
        clock: Callable[[], float] = time.monotonic,
    ) -> Self:
        """Open a conversation, or take up the ``thread`` in the ``store`` where it was left.

        ``session`` is the body of `session.update`, sent on every line. ``replies``: ask for a
        response when calls were answered. ``links=False`` for a provider that takes items at the
        end only. ``clock`` tells the age of a connection, which is renewed before it is too old.
        Raises `CannotConnect`, `ConfigurationRefused`, and `ConversationBusy` if another process
        has the thread for longer than ``wait`` seconds."""
        if session is not None:
            session = sendable(session, "The configuration")
        named = by_name(tools)
        setting = Setting(
            connect=connect,
            configuration=Configuration(session, named.values()),
            links=links,
            replies=replies,
            patience=patience or Patience(),
            clock=clock,
        )
        opened = await open_store(store) if isinstance(store, str) else store
        own = opened if isinstance(store, str) else None
        try:
            kept = await Thread.open(opened, thread or new_id("thread"), wait=wait)
        except BaseException:
            if own is not None:
                await own.close()
            raise
        made = cls(
            setting,
            kept,
            own,
            tools=named,
            on_unknown=on_unknown,
            grace=grace,
        )
        try:
            await made._begin()
        except BaseException:
            await made.close()
            raise
        return made

    async def _begin(self) -> None:
        self._spawn(self._lines.keep())
        self._spawn(self._calls.watch())
        try:
            await self._lines.ready()
        except SessionOver:
            if self._failure is not None:
                raise self._failure from None
            raise
        self._spawn(self._deliver())
        # What an earlier process left: the desk knows what may run again, and what may not.
        self._calls.take(self._thread.unsettled())

    # --- what is there, and what is told -------------------------------------------------------

    @property
    def thread(self) -> str:
        return self._thread.name

    @property
    def items(self) -> list[Wire]:
        """What the provider has, in its order, as far as it has told."""
        return self._lines.newest.mirror.items

    def snapshot(self) -> Seen:
        """What can be seen now: the base of the edit that follows from it."""
        line = self._lines.newest
        return Seen(line.mirror.snapshot(), line)

    def history(self) -> list[Wire]:
        """What the thread has: everything that was said, also what was summarised away."""
        return self._thread.history()

    async def __aiter__(self) -> AsyncIterator[Told]:
        """Every event of the server as it came, and the session's own. One reader at a time."""
        with self._inbox.reading():
            while (event := await self._inbox.get()) is not None:
                yield event

    # --- what a caller does --------------------------------------------------------------------

    async def edit(self, target: Sequence[Wire], *, base: Seen) -> Edited:
        """Take the context to ``target``, which was made from what ``base`` shows."""
        return await self._owned(self._sending.edit(Target(_sendable(target, base), base)))

    async def change(
        self,
        *,
        base: Seen | None = None,
        added: Sequence[Wire] = (),
        inserted: Mapping[str, Sequence[Wire]] | None = None,
        changed: Sequence[Wire] = (),
        removed: Sequence[str] = (),
    ) -> Edited:
        """The same for who knows what changed: what goes to the end, behind others, or away.
        New items without an id get one."""
        change = Changes(
            base=self.snapshot() if base is None else base,
            added=[_named(sendable_item(wire)) for wire in added],
            inserted={
                behind: [_named(sendable_item(wire)) for wire in new]
                for behind, new in (inserted or {}).items()
            },
            changed=[sendable_item(wire) for wire in changed],
            removed=removed,
        )
        return await self._owned(self._sending.edit(change))

    async def summarise(
        self,
        summary: Wire,
        *,
        base: Seen,
        count: int | None = None,
        fraction: float | None = None,
        leading: int = 0,
    ) -> Edited:
        """Put ``summary`` in the place of the oldest items that ``base`` shows; no pair is torn."""
        new = _named(sendable_item(summary))
        target = summarised(base.items, new, count=count, fraction=fraction, leading=leading)
        return await self.edit(target, base=base)

    async def respond(self, response: Mapping[str, Any] | None = None) -> None:
        """Ask for a response, as soon as no other is active; returns when it has begun. One out of
        band (``{"conversation": "none"}``) waits for nothing. Raises `ResponseRefused`, and
        `NoTurn` if another one does not end."""
        asked = {} if response is None else {"response": dict(response)}
        await self.send({"type": "response.create", **asked})

    async def send(self, event: Mapping[str, Any]) -> None:
        """Send a client event, audio for example. While there is no connection it waits."""
        given = sendable(event, "The event")
        sent: Event = {"event_id": new_id("event"), **given}
        if sent.get("type") == "session.update":
            await self.configure(sent.get("session") or {})
        elif act_of(sent) is not Act.EVENT:
            await self._owned(self._sending.respond(sent))
        else:
            if isinstance(sent.get("item"), dict):
                sent["item"] = _named(sent["item"])
            await self._sending.send(sent)

    async def configure(self, session: Mapping[str, Any]) -> None:
        """Change what `session.update` can change; it holds on every line from now on. Raises
        `ConfigurationRefused`, and then nothing has changed; `ConfigurationUnanswered` if nobody
        knows."""
        await self._owned(self._lines.configure(sendable(session, "The configuration")))

    async def answer(
        self, call_id: str, output: str | Wire | Sequence[Wire], *, failed: bool = False
    ) -> None:
        """Give the output of a call that is answered from outside. It is on disk on return, and is
        delivered as those of tools are. Raises `NoSuchCall`."""
        self._lines.check()
        # What is not encoded would be found out too late: while it is written down.
        plain = sendable({"output": output}, f"The output of {call_id}")["output"]
        await self._owned(self._answer(call_id, plain, failed))

    def approve(self, decisions: Mapping[str, bool]) -> None:
        """Say of calls that asked first whether they may run. Raises `NoSuchCall`."""
        self._lines.check()
        self._calls.approve(decisions)

    async def _answer(self, call_id: str, output: Any, failed: bool) -> None:
        try:
            await self._calls.answer(call_id, output, failed=failed)
        except StoreError as error:
            self._fail(error)  # nobody knows what is on disk
            raise

    # --- what happens by itself ----------------------------------------------------------------

    async def _hear(self, line: Line, events: Sequence[Event]) -> None:
        told = [line.take(event) for event in events]
        if any(told) and line.restored:
            await self._write_down(line, events)
        else:
            self._hand_on(line, events)
        await self._inbox.room()

    def _hand_on(self, line: Line, events: Sequence[Event]) -> None:
        for event in events:
            self._inbox.put(event)
        line.ring()

    async def _write_down(self, line: Line, events: Sequence[Event] = ()) -> None:
        """To its end, also if the line is lost meanwhile: what was heard is run, and handed on."""
        await self._owned(self._take_news(line, events))

    async def _take_news(self, line: Line, events: Sequence[Event]) -> None:
        try:
            news = await self._thread.remember(line)
        except Exception as error:
            self._fail(error)  # also if the line is lost, and nobody waits for this
            raise
        self._calls.delivered(news.answered)
        self._calls.forsake(news.gone)
        if not self._lines.is_over:  # whoever opens the thread again runs them
            self._calls.take(news.calls)
        self._hand_on(line, events)

    async def _written(self) -> None:
        await self._thread.written()
        await self._calls.written()

    def _busy(self, line: Line) -> set[Busy]:
        busy = self._sending.busy(line)
        if not line.restored:
            busy.add(Busy.RESTORING)
        if self._calls.open:
            busy.add(Busy.CALLING)
        return busy

    def _go_on(self, line: Line, asks: Event | None) -> None:
        """A line has the context. What it has not of the outputs is delivered now."""
        if asks is not None:
            self._spawn(self._reply(line, line.floor.begun, asks))

    async def _deliver(self) -> None:
        """Place outputs behind their calls as they come, and let the model go on."""
        while True:
            calls = await self._calls.settled()
            outputs = self._thread.outputs(calls)
            edited = await self._sending.edit(Outputs(outputs))
            # What is in doubt is asked about until it is known, or pushed on the next line.
            known = [wire["id"] not in edited.in_doubt for wire in outputs]
            self._calls.delivered(compress(calls, known))
            unplaced = _unplaced(edited, outputs)
            for one in unplaced:
                self._inbox.put(one)
            if not all(known):
                await self._sending.settle()
            if self._replies and len(unplaced) < len(calls) and not self._calls.open:
                line = await self._lines.ready()
                self._spawn(self._reply(line, line.floor.begun_before_output, {}))

    async def _reply(self, line: Line, begun: int, asked: Event) -> None:
        event = {"type": "response.create", "event_id": new_id("event"), **asked}
        try:
            await self._sending.respond(event, unless_begun=(line, begun))
        except (ResponseRefused, NoTurn) as refused:
            self._inbox.put(NoReply(str(refused)))

    # --- tasks, and the end --------------------------------------------------------------------

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Have something done. If it fails, the session has."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._check)

    def _check(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, SessionOver):
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        """Nothing goes on. Whoever waits hears that the session is over; whoever reads, why."""
        self._failure = self._failure or error
        self._lines.end(SessionOver(f"The session has failed: {error}"))
        self._inbox.end(error)
        for other in self._tasks:
            other.cancel()

    async def _owned(self, work: Coroutine[Any, Any, Value]) -> Value:
        """What a caller has begun comes to its end, whether or not the caller still waits."""
        task = asyncio.create_task(work)
        self._asked.add(task)
        task.add_done_callback(self._asked.discard)
        task.add_done_callback(lambda done: done.cancelled() or done.exception())
        return await asyncio.shield(task)

    async def close(self) -> None:
        """Hang up and let others have the thread. Tools that run are asked to end and get their
        grace time; each has an honest outcome on disk then."""
        if self._closing is None:
            self._closing = asyncio.create_task(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        self._lines.end(SessionOver("The session was closed."))
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, *self._asked, return_exceptions=True)
        try:
            await self._calls.stop()
        finally:
            self._inbox.end()
            try:
                await self._thread.journal.close()
            finally:
                if self._own_store is not None:
                    await self._own_store.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()


def _sendable(target: Sequence[Wire], base: Seen) -> list[Wire]:
    """The items of a target. What the caller has from ``base`` needs no look."""
    shown = {wire["id"]: wire for wire in base.items}
    items: list[Wire] = []
    for wire in target:
        known = shown.get(str(wire.get("id"))) if isinstance(wire, dict) else None
        items.append(wire if wire is known or wire == known else sendable_item(wire))
    return items


def _named(wire: Wire) -> Wire:
    return wire if wire.get("id") else {**wire, "id": new_id("item")}


def _unplaced(edited: Edited, outputs: Sequence[Wire]) -> list[OutputUnplaced]:
    """The outputs that are not at the provider, and why."""
    why = {one.item_id: one.why.value for one in edited.unplaceable}
    why |= {one.item_id: one.message for one in edited.rejected}
    return [
        OutputUnplaced(str(wire["call_id"]), why[wire["id"]])
        for wire in outputs
        if wire["id"] in why
    ]
