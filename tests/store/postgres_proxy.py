"""Between a store and its server: loses the connection at the nth thing that the store asks for.

It stands for a network: what is asked may be lost on the way, or its answer on the way back."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

SOCKET = ".s.PGSQL.5432"
_ASKS = b"SQH"
"""Messages that make the server answer: Sync, Query, Flush."""


class Proxy:
    """A socket that leads to the server at ``sockets``. It cuts once, at the ``nth`` question."""

    def __init__(self, sockets: Path, *, nth: int, when_answered: bool) -> None:
        self._upstream = str(sockets / SOCKET)
        self._nth = nth
        self._when_answered = when_answered
        self._asked = 0
        self.has_cut = False

    async def __aenter__(self) -> Self:
        # Not the test's own folder: the path of a socket must be short.
        self._folder = tempfile.TemporaryDirectory(prefix="lockstitch-")
        self.sockets = Path(self._folder.name)
        self._server = await asyncio.start_unix_server(
            self._serve, self.sockets / SOCKET, limit=2**20
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.close()
        self._folder.cleanup()

    def url(self, database: str) -> str:
        return f"postgresql://postgres@/{database}?host={self.sockets}"

    async def _serve(self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        server, to_server = await asyncio.open_unix_connection(self._upstream)
        swallow = asyncio.Event()
        back = asyncio.create_task(_answers(server, to_client, swallow))
        try:
            # The first message has no letter.
            message = await client.readexactly(4)
            message += await client.readexactly(int.from_bytes(message) - 4)
            while True:
                if message[:1] in _ASKS or message[:1] == b"\0":
                    self._asked += 1
                    if self._asked == self._nth:
                        self.has_cut = True
                        if self._when_answered:
                            swallow.set()
                            to_server.write(message)
                            await back
                        return
                to_server.write(message)
                head = await client.readexactly(5)
                message = head + await client.readexactly(int.from_bytes(head[1:]) - 4)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            back.cancel()
            for writer in (to_client, to_server):
                writer.close()


async def _answers(
    server: asyncio.StreamReader, to_client: asyncio.StreamWriter, swallow: asyncio.Event
) -> None:
    """What the server says, until it is to be lost; then the end of one answer."""
    with contextlib.suppress(ConnectionError):
        while data := await server.read(2**16):
            if swallow.is_set():
                return
            to_client.write(data)
    to_client.close()
