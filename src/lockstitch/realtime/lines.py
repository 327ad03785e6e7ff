"""The lines of a session, one after the other: opened, configured, filled, heard, lost.

A new session of the provider is empty. It gets the caller's configuration and then the context of
the thread, whole and once; only then is the line anybody's. When to try again is in
`reconnecting`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from lockstitch.realtime.bell import Bell
from lockstitch.realtime.configuring import Configuration
from lockstitch.realtime.connection import Connect, Connection, Event, hang_up
from lockstitch.realtime.editing import Account, Edited, Seen, Target
from lockstitch.realtime.errors import (
    CannotConnect,
    ConfigurationRefused,
    ConfigurationUnanswered,
    ConnectionLost,
    Renewed,
    SessionOver,
)
from lockstitch.realtime.events import OwnEvent, Reconnecting, Restored
from lockstitch.realtime.holding import Busy
from lockstitch.realtime.ids import new_id
from lockstitch.realtime.limits import MOST_ROUNDS, RENEW_AGAIN_SECONDS, Patience
from lockstitch.realtime.line import Line
from lockstitch.realtime.reconnecting import Attempts, lost_request, waits_for_an_answer
from lockstitch.realtime.renewing import Renewal
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
    clock: Callable[[], float]
    """Tells the age of a connection."""


class Around(Struct, frozen=True, kw_only=True):
    """What the lines need of the session that they are of."""

    busy: Callable[[Line], set[Busy]]
    """Everything that is under way there."""
    written: Callable[[], Awaitable[None]]
    """Until all that is known is on disk, outputs among it."""
    write_down: Callable[[Line], Awaitable[None]]
    """What a line has is written down, and its calls are taken."""
    hear: Callable[[Line, Sequence[Event]], Awaitable[None]]
    go_on: Callable[[Line, Event | None], None]
    """Told of each line that has the context, and of a response that is to be asked for."""
    tell: Callable[[OwnEvent], None]


class Lines:
    """Keeps a line open for as long as the session lives."""

    def __init__(
        self,
        setting: Setting,
        thread: Thread,
        attempts: Attempts,
        around: Around,
    ) -> None:
        self._setting = setting
        self._thread = thread
        self._attempts = attempts
        self._around = around
        self._newest: Line | None = None
        self._renewed: Connection | None = None
        """The connection that takes the place of the one that was given up."""
        self._over: SessionOver | None = None
        self._bell = Bell()
        self._configuring = asyncio.Lock()
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
        `ConfigurationRefused`, and then it is as it was; and `ConfigurationUnanswered`."""
        update = self._setting.configuration.update(given)
        async with self._configuring:  # an answer does not say which update it answers
            while True:
                line = await self.ready()
                try:
                    await self._configure(line, update)
                except ConnectionLost:
                    continue
                except ConfigurationUnanswered as unanswered:
                    raise ConfigurationUnanswered(
                        f"{unanswered} It may be in force or not; the next connection uses"
                        " the configuration from before. Configure again."
                    ) from None
                return self._setting.configuration.take(update)

    def cancel(self, response: str | None) -> None:
        """A response is to end: if it is lost before that, it is not asked for again; nor is one
        that was lost just now."""
        if self._newest is not None:
            self._newest.floor.cancel(response)
            if self._newest.lost is not None:
                self._asks = None

    @property
    def is_over(self) -> bool:
        return self._over is not None

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
        try:
            while True:
                await self._next()
        finally:
            if self._renewed is not None:
                await hang_up(self._renewed)

    async def _next(self) -> None:
        """One line, and the pause before the next."""
        fate, retry_after, response = Fate.LOST, None, False
        try:
            line = await self._one()
            reason, response = str(line.lost), bool(line.floor.speaking)
        except UpstreamFailure as failure:
            reason, fate, retry_after = str(failure), failure.fate, failure.retry_after
        except (ConnectionLost, OSError) as failure:
            reason = str(failure)
        if self._renewed is not None:
            self._around.tell(Reconnecting(reason, 0, 0.0, response, renewal=True))
            return
        delay = self._attempts.next(fate, retry_after)
        if delay is None:
            raise CannotConnect(self._given_up(reason, fate))
        self._around.tell(Reconnecting(reason, self._attempts.failures, delay, response))
        await asyncio.sleep(delay)

    def _given_up(self, reason: str, fate: Fate) -> str:
        if fate is Fate.REFUSED:  # the reason says what to change
            return f"Cannot connect. {reason} The stored thread is valid."
        return (
            f"No connection could be opened or kept open ({reason}); retries in a row: "
            f"{self._attempts.failures - 1}. The stored thread is valid; open it again later."
        )

    async def _one(self) -> Line:
        """One line to its end. Raises what keeps it from being opened, and any failure of ours."""
        setting, clock = self._setting, asyncio.get_running_loop().time
        connection, self._renewed = self._renewed, None
        if connection is None:
            connection = await self._connected()
        transcribes = setting.configuration.transcribes
        line = Line(connection, links=setting.links, transcribes=transcribes)
        opened = clock()
        try:
            await self._live(line)
        finally:
            await line.close(ConnectionLost("The session closed the connection."))
        await self._thread.written()  # what was heard on it is told before it is told as lost
        if line.restored:
            self._attempts.lived(clock() - opened)
        if self._asks is None:
            self._asks = lost_request(line.floor)
        return line

    async def _connected(self) -> Connection:
        seconds = self._setting.patience.connect_seconds
        try:
            async with asyncio.timeout(seconds):
                return await self._setting.connect()
        except TimeoutError:
            raise ConnectionLost(f"No connection stood within {seconds:g} seconds.") from None

    async def _live(self, line: Line) -> None:
        """Fill a line while it is heard, and hear it until it is lost, or given up."""
        parts = (
            line.read(),
            self._hear(line),
            self._fill(line),
            self._renew(line),
            line.outlived(),
        )
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
            await self._around.hear(line, await line.heard())

    async def _renew(self, line: Line) -> None:
        """Give a line up that is getting old, at a quiet moment. The connection that follows stands
        before that: as long as none can be had, the old one is still good."""
        clock, busy = self._setting.clock, self._around.busy
        renewal = Renewal(self._setting.patience, clock())
        while line.lost is None:
            seconds = renewal.look(clock(), busy(line))
            if seconds is not None:
                await line.rung(seconds)
                continue
            try:
                connection = await self._connected()
            except Exception:  # if it stays so, whoever opens the next line says it
                await asyncio.sleep(RENEW_AGAIN_SECONDS)
                continue
            if line.lost is None and renewal.look(clock(), busy(line)) is None:
                self._renewed = connection
                await line.close(Renewed("The session is renewed before its time is up."))
            else:
                await hang_up(connection)  # somebody has begun something meanwhile

    async def _fill(self, line: Line) -> None:
        if self._setting.configuration.body is not None:
            try:
                await self._configure(line, self._setting.configuration.body)
            except ConfigurationUnanswered as unanswered:
                raise ConnectionLost(str(unanswered)) from None
        await self._around.written()
        context = self._thread.context()
        pushed = await self._push(line, Target(context, Seen(line.mirror.snapshot(), line)))
        line.restored = True
        await self._around.write_down(line)
        # Open calls are answered first; then a response is asked for in any case.
        asks, self._asks = self._asks, None
        if not self._setting.replies or self._thread.unsettled():
            asks = None
        if context or self._newest is not None or self._attempts.failures:
            self._around.tell(
                Restored(
                    items=len(line.mirror),
                    rejected=pushed.rejected,
                    unplaceable=pushed.unplaceable,
                    asked_again=asks is not None,
                )
            )
        self._newest = line
        self._bell.ring()
        self._around.go_on(line, asks)

    async def _push(self, line: Line, context: Target) -> Edited:
        account = Account()
        for _ in range(MOST_ROUNDS):
            plan = context.plan(line, {}, new_id)
            account.begin(plan, line)
            await line.carry_out(plan, self._setting.patience.acknowledgement_seconds)
            if not account.take(line):
                break
        account.leave(line)
        pushed = account.result()
        if pushed.in_doubt:
            raise ConnectionLost("The provider did not say whether it has the context.")
        return pushed

    async def _configure(self, line: Line, body: dict[str, Any]) -> None:
        event_id, updates = new_id("event"), line.updates
        seconds = self._setting.patience.answer_seconds
        line.complaint = None
        with line.following.one(event_id) as followed:
            await line.send({"type": "session.update", "event_id": event_id, "session": body})
            answered = await line.until(
                lambda: line.updates > updates or followed.refusal is not None, seconds
            )
        if not answered:
            raise ConfigurationUnanswered(
                f"The configuration was not answered within {seconds:g} seconds; {line.excuse}."
            )
        if followed.refusal is not None:
            said = followed.refusal.get("message")
            raise ConfigurationRefused(f"The provider rejected the configuration: {said}")
