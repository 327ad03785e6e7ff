"""Connections that are kept for whoever needs one next.

Not the driver's own pool: a loan from that costs more than a small statement does (measured: 0.1
to 0.2 ms of 0.7 for a claim), and a writer alone would pay it for every append."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeAlias

import asyncpg

from lockstitch.store.postgres.errors import FAILURES

Connection: TypeAlias = "asyncpg.Connection[Any]"

IDLE_SECONDS = 300
"""A connection that nobody needed for so long is let go: a server has only so many."""

CLOSE_SECONDS = 10
"""How long a goodbye may take, and what still runs."""


class Pool:
    """Up to so many connections, made when they are needed. A lost one is made again."""

    def __init__(self, connect: Callable[[], Awaitable[Connection]], *, connections: int) -> None:
        self._connect = connect
        self._connections = connections
        self._room = asyncio.Semaphore(connections)
        # The one that was used last is used next, so that the others can go.
        self._idle: deque[tuple[float, Connection]] = deque()
        self._all: set[Connection] = set()
        self._closed = False

    @contextlib.asynccontextmanager
    async def acquire(self) -> AsyncIterator[Connection]:
        """Borrow one; wait until there is one."""
        async with self._room:
            if self._closed:
                raise asyncpg.InterfaceError("the connections are closed")
            connection = await self._take()
            try:
                yield connection
            finally:
                self._give_back(connection)

    async def _take(self) -> Connection:
        while self._idle:
            _, connection = self._idle.pop()
            if not connection.is_closed():
                return connection
            self._all.discard(connection)
        connection = await self._connect()
        self._all.add(connection)
        return connection

    def _give_back(self, connection: Connection) -> None:
        now = asyncio.get_running_loop().time()
        if connection.is_closed() or connection.is_in_transaction():
            self._let_go(connection)  # what was left half-way is not for the next one
        else:
            self._idle.append((now, connection))
        while self._idle and self._idle[0][0] < now - IDLE_SECONDS:
            self._let_go(self._idle.popleft()[1])

    def _let_go(self, connection: Connection) -> None:
        self._all.discard(connection)
        connection.terminate()

    async def close(self) -> None:
        """Say goodbye to the server when all came back; one that does not answer gets none."""
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                for _ in range(self._connections):
                    await self._room.acquire()
                self._closed = True
                for _, connection in self._idle:
                    await connection.close()
        except FAILURES:
            pass  # a server that is gone needs no goodbye
        finally:
            self.terminate()

    def terminate(self) -> None:
        """Let go of everything at once."""
        self._closed = True
        for connection in self._all:
            connection.terminate()
        self._all.clear()
        self._idle.clear()
        for _ in range(self._connections):
            self._room.release()  # whoever still waits is told
