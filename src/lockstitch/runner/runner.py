"""The door: an agent loop that can be killed, unplugged and resumed.

A runner holds no conversation. Each turn claims its thread in the store, reads it, goes on from
exactly there, and lets go. So any process can take up any thread, at any time."""

from __future__ import annotations

import asyncio
import random
import weakref
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Any, Self

from lockstitch.core.errors import NotAnItem, UnknownMode
from lockstitch.core.facts import Mode
from lockstitch.ledgers.ledger import mode_named
from lockstitch.ledgers.making import call_settled
from lockstitch.runner.desk import Desk, OnUnknown
from lockstitch.runner.errors import CannotContinue, NoSuchCall
from lockstitch.runner.events import Event
from lockstitch.runner.given import Wire, decisions, items_of
from lockstitch.runner.limits import GRACE_SECONDS, MOST_TOOLS_AT_ONCE, Budget
from lockstitch.runner.outputs import foreign_type
from lockstitch.runner.shapes import leading_items, request_settings
from lockstitch.runner.tools import Tool, by_name
from lockstitch.runner.turn import InputFilter, Setting, Turn
from lockstitch.store.contract import Store
from lockstitch.store.errors import UnknownStore
from lockstitch.store.journal import Journal, kept_ledger
from lockstitch.store.opening import FORMS, open_store
from lockstitch.upstream.choosing import upstream_for
from lockstitch.upstream.contract import Upstream


class Runner:
    """Runs turns of threads: asks the model, runs its tools, and writes everything down."""

    def __init__(
        self,
        *,
        client: Any,
        model: str,
        store: str | Store,
        tools: Iterable[Tool | Callable[..., Any]] = (),
        instructions: str | None = None,
        mode: Mode | str | None = None,
        settings: Mapping[str, Any] | None = None,
        budget: Budget | None = None,
        input_filter: InputFilter | None = None,
        on_unknown: OnUnknown | None = None,
        websocket: bool = False,
        wait: float = 0,
        grace: float = GRACE_SECONDS,
        eager: bool = True,
        tools_at_once: int = MOST_TOOLS_AT_ONCE,
    ) -> None:
        if not isinstance(store, str | Store):
            raise UnknownStore(
                f"{store!r:.80} is neither a store nor a store URL. URLs: {', '.join(FORMS)}"
            )
        if tools_at_once < 1:
            raise ValueError(
                f"tools_at_once is {tools_at_once}: at least one tool must be able to run."
            )
        self.tools = by_name(tools)
        # A client of ours (`OpenAIChat(client)`) is taken as it is.
        own = isinstance(client, Upstream)
        self._upstream: Upstream = client if own else upstream_for(client, websocket=websocket)
        modes = self._upstream.modes
        default = Mode.CHAIN if Mode.CHAIN in modes else Mode.FULL
        chosen = default if mode is None else mode_named(mode)
        if chosen not in modes:
            offered = ", ".join(sorted(one.value for one in modes))
            raise UnknownMode(f"This client has no mode {chosen.value!r}. It offers: {offered}.")
        self._setting = Setting(
            upstream=self._upstream,
            model=model,
            mode=chosen,
            settings=request_settings(
                self._upstream.dialect, chosen, [*self.tools.values()], instructions, settings or {}
            ),
            leading=leading_items(self._upstream.dialect, instructions),
            budget=budget or Budget(),
            input_filter=input_filter,
            eager=eager,
            random=random.random,
        )
        self._store = store
        self._opened: Store | None = None if isinstance(store, str) else store
        self._opening = asyncio.Lock()
        self._on_unknown = on_unknown
        self._wait = wait
        self._grace = grace
        self._at_once = tools_at_once
        self._under_way: set[_UnderWay] = set()

    def __repr__(self) -> str:
        return (
            f"<Runner {self._setting.model}, {self._setting.mode.value}, {len(self.tools)} tools>"
        )

    def turn(
        self,
        thread: str,
        message: str | Wire | Sequence[Wire | str] | None = None,
        *,
        approve: Mapping[str, bool] | None = None,
    ) -> AsyncGenerator[Event, None]:
        """Go on with a thread, with a message or without one, until the model has said its last
        word or a call must wait for somebody.

        ``approve`` says of calls that asked first whether they may run, by their ids; an id that no
        call of the thread has raises `NoSuchCall`. Leaving the loop early stops the turn: tools get
        their grace time, and everything is on disk."""
        known: list[weakref.ref[AsyncGenerator[Event, None]]] = []
        given, decided = items_of(message), decisions(approve or {})
        events = self._events(thread, given, decided, lambda: known[0]() is None)
        known.append(weakref.ref(events))
        return events

    async def _events(
        self,
        thread: str,
        given: Sequence[Wire | str],
        approved: dict[str, bool],
        is_left: Callable[[], bool],
    ) -> AsyncGenerator[Event, None]:
        journal = await self._journal(thread)
        told: asyncio.Queue[Event | None] = asyncio.Queue()
        desk = Desk(
            journal,
            self.tools,
            tell=told.put_nowait,
            approved={},
            on_unknown=self._on_unknown,
            grace=self._grace,
            most=self._at_once,
        )
        turn = Turn(self._setting, journal, desk, tell=told.put_nowait)
        running = asyncio.create_task(turn.run(given, approved))
        running.add_done_callback(lambda done: told.put_nowait(None))
        under_way = _UnderWay(running, journal, is_left)
        self._under_way.add(under_way)
        try:
            while (event := await told.get()) is not None:
                yield event
            await running
        finally:
            await under_way.stop()
            self._under_way.discard(under_way)

    async def answer(
        self,
        thread: str,
        call_id: str,
        output: str | Wire | Sequence[Wire],
        *,
        failed: bool = False,
    ) -> None:
        """Give the output of a call that is answered from outside. It is on disk on return; the
        next turn takes it up. Raises `NotAnItem` for content parts of another API."""
        parts = output if isinstance(output, list | tuple) else ()
        foreign = foreign_type(parts, self._upstream.dialect)
        if foreign is not None:
            raise NotAnItem(
                f"The {self._upstream.dialect} API takes no {foreign} in an output. Nothing was "
                "added. Give a text, or content parts of this API."
            )
        async with await self._journal(thread) as journal:
            waiting = [c for c in journal.ledger.unsettled() if c.item.key == call_id]
            if not waiting:
                raise NoSuchCall(
                    f"No call {call_id} waits for an output in {thread}: it may have one already."
                )
            await journal.append(call_settled(journal.ledger, waiting[-1], output, failed=failed))

    async def history(self, thread: str) -> list[dict[str, Any]]:
        """The conversation of a thread, as wire items: what is on disk, also while a turn runs."""
        store = await self._store_for(thread)
        ledger = await kept_ledger(store, thread)
        return [] if ledger is None else ledger.history()

    async def _journal(self, thread: str) -> Journal:
        store = await self._store_for(thread)
        dialect = self._upstream.dialect
        journal = await Journal.open(store, thread, dialect=dialect, wait=self._wait)
        begun_in = journal.ledger.dialect.name
        if begun_in != dialect:
            await journal.close()
            raise CannotContinue(
                f"{thread} was begun in the dialect {begun_in}, and this client speaks {dialect}. "
                "Go on with a client of the first kind, or begin another thread."
            )
        return journal

    async def _store_for(self, thread: str) -> Store:
        """The store, once nothing of ours is left under way in this thread."""
        async with self._opening:  # several turns may be the first
            if self._opened is None:
                assert isinstance(self._store, str)
                self._opened = await open_store(self._store)
            store = self._opened
        # Whoever breaks out of a loop leaves its turn to the garbage collector, and goes on here.
        for one in [*self._under_way]:
            if one.thread == thread and one.is_left():
                await one.stop()
        return store

    async def close(self) -> None:
        """Stop the turns that are under way, as leaving their loops does; then let go of the
        provider's connection, and of the store if the runner opened it. What fails on the way is
        raised when all of that is done."""
        async with AsyncExitStack() as last:
            last.push_async_callback(self._close_store)
            last.push_async_callback(self._upstream.close)
            stopping = [one.stop() for one in self._under_way]
            for failure in await asyncio.gather(*stopping, return_exceptions=True):
                if failure is not None:
                    raise failure

    async def _close_store(self) -> None:
        async with self._opening:
            if self._opened is not None and isinstance(self._store, str):
                opened, self._opened = self._opened, None
                await opened.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()


class _UnderWay:
    """A turn that runs, and the claim it holds."""

    def __init__(
        self, running: asyncio.Task[None], journal: Journal, is_left: Callable[[], bool]
    ) -> None:
        self.thread = journal.conversation
        self.is_left = is_left
        """Has nobody its events any more? It may not have heard that yet."""
        self._running = running
        self._journal = journal
        self._stopping = asyncio.Lock()

    async def stop(self) -> None:
        """End it, and let others have the thread. Whoever comes second waits for the first, and a
        cancel does not hurry it."""
        async with self._stopping:
            if not self._running.done():
                self._running.cancel()
            cancelled = await _over(self._running)
            closing = asyncio.create_task(self._journal.close())
            cancelled = await _over(closing) or cancelled
            if cancelled is not None:
                raise cancelled
            closing.result()


async def _over(task: asyncio.Task[None]) -> asyncio.CancelledError | None:
    """Wait for the end of a task, however often that is cancelled; the last cancel, if any. How the
    task ended is for others to tell."""
    cancelled = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as again:
            cancelled = again
    if not task.cancelled():
        task.exception()
    return cancelled
