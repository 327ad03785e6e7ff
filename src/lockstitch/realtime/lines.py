"""The lines of a session, one after the other: opened, configured, filled, heard, lost.

A new session of the provider is empty. It gets the caller's configuration and then the context of
the thread, whole and once; only then is the line anybody's. When to try again is in
`reconnecting`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from msgspec import Struct

from lockstitch.realtime.bell import Bell
from lockstitch.realtime.configuring import Configuration
from lockstitch.realtime.connection import Connect, Event
from lockstitch.realtime.editing import Account, Edited, Seen, Target
from lockstitch.realtime.errors import (
    CannotConnect,
    ConfigurationRefused,
    ConnectionLost,
    SessionOver,
)
from lockstitch.realtime.events import OwnEvent, Reconnecting, Restored
from lockstitch.realtime.ids import new_id
from lockstitch.realtime.limits import CLOSE_SECONDS, MOST_ROUNDS, Patience
from lockstitch.realtime.line import Line
from lockstitch.realtime.reconnecting import Attempts, lost_request, waits_for_an_answer
from lockstitch.realtime.thread import Thread
from lockstitch.upstream.contract import Fate, UpstreamFailure


class Setting(Struct, frozen=True, kw_only=True):
    """What all lines of a session have in common."""

    connect: Connect
    configuration: Configuration
    links: bool
    """Does the provider take items anywhere, and say what they follow?"""
    replies: bool
    patience: Patience


class Lines:
    """Keeps a line open for as long as the session lives."""

    def __init__(
        self,
        setting: Setting,
        thread: Thread,
        attempts: Attempts,
        *,
        tell: Callable[[OwnEvent], None],
        written: Callable[[], Awaitable[None]],
        heard: Callable[[Line, Sequence[Event]], Awaitable[None]],
        filled: Callable[[Line, Event | None], None],
    ) -> None:
        self._setting = setting
        self._thread = thread
        self._attempts = attempts
        self._tell = tell
        self._written = written
        self._heard = heard
        self._filled = filled
        """Told of each line that has the context, and of a response that is to be asked for."""
        self._newest: Line | None = None
        self._over: SessionOver | None = None
        self._bell = Bell()
        self._asks: Event | None = {} if waits_for_an_answer(thread.context()) else None
        """What a response is to be asked for with, once there is a line."""

    def __repr__(self) -> str:
        return f"<Lines {self._newest!r}, {self._attempts!r}>"

    @property
    def newest(self) -> Line:
        """The line that had the context last, whether or not it is lost by now."""
        if self._newest is None:
            raise self._over or SessionOver("The session has no line yet. Wait for its opening.")
        return self._newest

    async def ready(self) -> Line:
        """The line that has the whole context, once there is one. Raises `SessionOver`."""
        while True:
            self.check()
            if self._newest is not None and self._newest.lost is None:
                return self._newest
            await self._bell.rung()

    async def configure(self, given: Mapping[str, Any]) -> None:
        """Change the configuration, of this line and of those that follow. Raises
        `ConfigurationRefused`; then it is as it was."""
        update = self._setting.configuration.update(given)
        while True:
            line = await self.ready()
            try:
                await self._configure(line, update)
            except ConnectionLost:
                if line.lost is None:
                    raise
            else:
                return self._setting.configuration.take(update)

    def check(self) -> None:
        if self._over is not None:
            raise self._over

    def ring(self) -> None:
        """Something has changed that no line has heard."""
        if self._newest is not None:
            self._newest.ring()

    def end(self, over: SessionOver) -> None:
        """There will be no more lines."""
        self._over = self._over or over
        if self._newest is not None:
            self._newest.end(ConnectionLost(str(over)))
        self._bell.ring()

    # --- one after the other -------------------------------------------------------------------

    async def keep(self) -> None:
        """Open a line, fill it, hear it to its end; and again. Raises `CannotConnect` when no more
        is tried, and `ConfigurationRefused`."""
        while True:
            fate, retry_after, response = Fate.LOST, None, False
            try:
                line = await self._one()
                reason, response = str(line.lost), bool(line.floor.speaking)
            except UpstreamFailure as failure:
                reason, fate, retry_after = str(failure), failure.fate, failure.retry_after
            except (ConnectionLost, OSError) as failure:
                reason = str(failure)
            delay = self._attempts.next(fate, retry_after)
            if delay is None:
                raise CannotConnect(
                    f"No connection could be had, or kept ({reason}); attempts in a row: "
                    f"{self._attempts.failures}. The thread is whole: open it again later."
                )
            self._tell(Reconnecting(reason, self._attempts.failures, delay, response))
            await asyncio.sleep(delay)

    async def _one(self) -> Line:
        """One line to its end. Raises what keeps it from being opened, and any failure of ours."""
        setting, clock = self._setting, asyncio.get_running_loop().time
        connection = await setting.connect()
        transcribes = setting.configuration.transcribes
        line = Line(connection, links=setting.links, transcribes=transcribes)
        opened = clock()
        try:
            await self._live(line)
        finally:
            with suppress(Exception):
                async with asyncio.timeout(CLOSE_SECONDS):
                    await line.close()
        if line.restored:
            self._attempts.lived(clock() - opened)
        if self._asks is None:
            self._asks = lost_request(line.floor)
        return line

    async def _live(self, line: Line) -> None:
        """Fill a line while it is heard, and hear it until it is lost."""
        parts = (line.read(), self._hear(line), self._fill(line), line.outlived())
        tasks = [asyncio.create_task(part) for part in parts]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        finally:
            for task in tasks:
                task.cancel()
            ended = await asyncio.gather(*tasks, return_exceptions=True)
        for error in ended:
            if isinstance(error, ConnectionLost):
                line.end(error)
            elif error is not None and not isinstance(error, asyncio.CancelledError):
                raise error

    async def _hear(self, line: Line) -> None:
        while True:
            await self._heard(line, await line.heard())

    async def _fill(self, line: Line) -> None:
        if self._setting.configuration.body is not None:
            await self._configure(line, self._setting.configuration.body)
        await self._written()  # an output is on disk before it is anywhere else
        context = self._thread.context()
        pushed = await self._push(line, Target(context, Seen(line.mirror.snapshot(), line)))
        line.restored = True
        await self._thread.remember(line)
        # Open calls are answered first; then a response is asked for in any case.
        asks, self._asks = self._asks, None
        if not self._setting.replies or self._thread.unsettled():
            asks = None
        if context or self._attempts.failures:
            self._tell(
                Restored(
                    items=len(line.mirror),
                    rejected=pushed.rejected,
                    unplaceable=pushed.unplaceable,
                    asked_again=asks is not None,
                )
            )
        self._newest = line
        self._bell.ring()
        self._filled(line, asks)

    async def _push(self, line: Line, context: Target) -> Edited:
        account = Account()
        for _ in range(MOST_ROUNDS):
            plan = context.plan(line, {}, new_id)
            await line.carry_out(plan, self._setting.patience.acknowledgement_seconds)
            if not account.take(plan, line):
                break
        pushed = account.result()
        if pushed.in_doubt:
            raise ConnectionLost("The provider did not say whether it has the context.")
        return pushed

    async def _configure(self, line: Line, body: dict[str, Any]) -> None:
        event_id, updates = new_id("event"), line.updates
        await line.send({"type": "session.update", "event_id": event_id, "session": body})
        seconds = self._setting.patience.answer_seconds
        if not await line.until(
            lambda: line.updates > updates or event_id in line.refusals, seconds
        ):
            raise ConnectionLost(f"The configuration was not answered within {seconds:g} seconds.")
        if event_id in line.refusals:
            said = line.refusals[event_id].get("message")
            raise ConfigurationRefused(f"The provider refused the configuration: {said}")
