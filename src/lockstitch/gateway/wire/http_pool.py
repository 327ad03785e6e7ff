"""The lines to one upstream over HTTP/1.1: connections that are opened, kept and asked again.

A request is written once. Whether it may be written a second time is for the caller to know."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl as tls
from collections import deque
from typing import Final

from msgspec import Struct

from lockstitch.gateway.lines import Asking, Hearing, Line, LineFailure
from lockstitch.gateway.wire.heads import base_of, request_head
from lockstitch.gateway.wire.http_answer import LARGEST_HEAD_BYTES
from lockstitch.gateway.wire.http_line import HttpConnection

CLOSE_SECONDS: Final = 1.0
"""A connection that was aborted is gone in the next turns of the loop. TLS may take longer."""


class HttpLimits(Struct, frozen=True, kw_only=True):
    """What the lines to one upstream may take."""

    connections: int = 1000
    """Answers at a time, each with a connection of its own. The files that a process may open set
    the outer limit."""
    connect_seconds: float = 10.0
    """For a connection to be had: waiting for its turn, name, TCP and TLS together."""
    silence_seconds: float = 600.0
    """Without a byte while an answer is awaited. Models think for minutes before the first one."""
    idle_seconds: float = 15.0
    """A server that closes an idle connection in the moment in which it is asked leaves the request
    unknown. Common servers wait for 60 or 75 seconds, so ours are gone before."""
    largest_head_bytes: int = LARGEST_HEAD_BYTES


class HttpLines:
    """The lines to one upstream."""

    __slots__ = (
        "_all",
        "_base",
        "_closed",
        "_idle",
        "_limits",
        "_name",
        "_sweeper",
        "_tls",
        "_turns",
        "opened",
    )

    def __init__(
        self, base_url: str, *, ssl: tls.SSLContext | None = None, limits: HttpLimits | None = None
    ) -> None:
        """`ssl` is for an https address; without one the system's roots are trusted."""
        self._base = base_of(base_url)
        self._limits = limits or HttpLimits()
        self._tls = (ssl or tls.create_default_context()) if self._base.secure else None
        self._name = self._base.authority
        self._turns = asyncio.Semaphore(self._limits.connections)
        self._all: set[HttpConnection] = set()
        # The one that was used last is asked first, so that the others can grow old.
        self._idle: deque[HttpConnection] = deque()
        self._sweeper: asyncio.TimerHandle | None = None
        self._closed = False
        self.opened = 0
        """How many connections were made so far."""

    async def ask(self, asking: Asking, hearing: Hearing) -> Line:
        """Write a request; `hearing` is told the rest. If this raises, nothing was sent."""
        head = request_head(self._base, asking)
        connection = await self._connection()
        # From here on nothing waits: what is taken is asked.
        return connection.ask(asking.method, head, asking.body, hearing)

    async def connect(self) -> None:
        """Open a connection, and keep it for whoever asks next. Raises `LineFailure`."""
        self.freed(await self._connection(), reusable=True)

    async def close(self) -> None:
        """Close every connection. Lines under way break."""
        self._closed = True
        if self._sweeper is not None:
            self._sweeper.cancel()
            self._sweeper = None
        for connection in list(self._all):
            connection.give_up("was left, because the gateway is being closed")
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS):
                while self._all:
                    await asyncio.sleep(0)

    async def _connection(self) -> HttpConnection:
        """A connection that nobody else has, and a turn that `freed` gives back."""
        if self._closed:
            raise LineFailure(f"The lines to {self._name} are closed.", sent=False)
        if not self._turns.locked():
            # Nobody waits, and nearly always there is one: no clock is needed for that.
            await self._turns.acquire()
            if (kept := self._kept()) is not None:
                return kept
            self._turns.release()
        has_turn = False
        try:
            async with asyncio.timeout(self._limits.connect_seconds):
                await self._turns.acquire()
                has_turn = True
                return self._kept() or await self._open()
        except BaseException as error:
            if has_turn:
                self._turns.release()
            if isinstance(error, TimeoutError):
                raise LineFailure(self._what_took_so_long(has_turn), sent=False) from error
            # A name that is too long for the system's resolver is a UnicodeError.
            if isinstance(error, OSError | UnicodeError):
                raise LineFailure(
                    f"No connection to the upstream {self._name}: {error}.", sent=False
                ) from error
            raise

    def _kept(self) -> HttpConnection | None:
        oldest = asyncio.get_running_loop().time() - self._limits.idle_seconds
        while self._idle:
            connection = self._idle.pop()
            if connection.usable and connection.idle_since > oldest:
                return connection
            connection.abort()
        return None

    async def _open(self) -> HttpConnection:
        connection = HttpConnection(
            self,
            self._name,
            silence_seconds=self._limits.silence_seconds,
            largest_head=self._limits.largest_head_bytes,
        )
        base = self._base
        try:
            transport, _ = await asyncio.get_running_loop().create_connection(
                lambda: connection,
                base.host,
                base.port,
                ssl=self._tls,
                server_hostname=base.host if self._tls else None,
            )
            if self._closed or transport.is_closing():
                raise ConnectionResetError("it was closed as soon as it was open")
        except BaseException:
            # It may be there although nobody waits for it any more.
            connection.abort()
            raise
        # An upstream that went away without a word while a model thinks is noticed by the system.
        if (raw := transport.get_extra_info("socket")) is not None:
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self._all.add(connection)
        self.opened += 1
        return connection

    # What connections call.

    def freed(self, connection: HttpConnection, *, reusable: bool) -> None:
        if reusable and not self._closed:
            now = asyncio.get_running_loop().time()
            connection.idle_since = now
            self._idle.append(connection)
            if self._sweeper is None:
                self._sweep_in(self._limits.idle_seconds)
        elif reusable:
            connection.abort()
        self._turns.release()

    def lost(self, connection: HttpConnection) -> None:
        self._all.discard(connection)
        with contextlib.suppress(ValueError):
            self._idle.remove(connection)

    def _sweep_in(self, seconds: float) -> None:
        self._sweeper = asyncio.get_running_loop().call_later(seconds, self._sweep)

    def _sweep(self) -> None:
        """Close what nobody has asked for a while; the oldest stand first."""
        self._sweeper = None
        now = asyncio.get_running_loop().time()
        while self._idle:
            left = self._idle[0].idle_since + self._limits.idle_seconds - now
            if left > 0:
                self._sweep_in(left)
                return
            self._idle.popleft().abort()

    def _what_took_so_long(self, has_turn: bool) -> str:
        seconds = f"{self._limits.connect_seconds:g} seconds"
        if has_turn:
            return f"No connection to the upstream {self._name} within {seconds}."
        return (
            f"All {self._limits.connections} connections to the upstream {self._name} were in use"
            f" for {seconds}: allow more, or ask less at a time."
        )

    def __repr__(self) -> str:
        return f"<HttpLines to {self._name}: {len(self._all)} open, {len(self._idle)} idle>"
