"""What the tests of the wire share: servers that say exact bytes, and all that is heard of them."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

from aiohttp import web

from lockstitch.gateway.lines import Asking, Headers, LineFailure
from lockstitch.gateway.wire.http_pool import HttpLimits, HttpLines

# What does not come within this never comes.
SECONDS = 60.0

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def close_frame(code: int, reason: str = "") -> bytes:
    """A server's goodbye, as RFC 6455 has it."""
    payload = code.to_bytes(2) + reason.encode()
    return bytes([0x88, len(payload)]) + payload


class Heard:
    """Listens, and keeps everything."""

    def __init__(self) -> None:
        self.status: int | None = None
        self.headers: Headers = ()
        self.pieces: list[bytes] = []
        self.failure: LineFailure | None = None
        self.is_whole = False
        self.first = asyncio.Event()
        self._over = asyncio.Event()

    @property
    def body(self) -> bytes:
        return b"".join(self.pieces)

    @property
    def is_over(self) -> bool:
        return self._over.is_set()

    def begun(self, status: int, headers: Headers) -> None:
        assert self.status is None
        assert not self.is_over
        self.status, self.headers = status, headers
        self.first.set()

    def heard(self, data: bytes) -> None:
        assert self.status is not None
        assert not self.is_over
        assert data
        self.pieces.append(data)

    def ended(self) -> None:
        assert self.status is not None
        assert not self.is_over
        self.is_whole = True
        self._over.set()

    def broke(self, failure: LineFailure) -> None:
        assert not self.is_over
        self.failure = failure
        self._over.set()

    async def over(self) -> Heard:
        await self._over.wait()
        return self


def asking(**changes: Any) -> Asking:
    given: dict[str, Any] = {"method": "POST", "target": "/responses", "headers": (), "body": b"{}"}
    return Asking(**(given | changes))


async def request_read(reader: asyncio.StreamReader) -> tuple[str, bytes]:
    """The head and the body of a request with a length."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    length = 0
    for line in head.split("\r\n"):
        if line.lower().startswith("content-length:"):
            length = int(line.partition(":")[2])
    return head, await reader.readexactly(length)


@asynccontextmanager
async def serving(talk: Talk, **options: Any) -> AsyncIterator[str]:
    """A server that talks in exact bytes; its address."""
    talks: set[asyncio.Task[None]] = set()

    async def talked(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        talks.add(task)
        try:
            # What cancels it is only the end of the server, below.
            with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
                await talk(reader, writer)
        finally:
            talks.discard(task)
            writer.close()

    host = options.pop("host", "127.0.0.1")
    server = await asyncio.start_server(talked, host, 0, **options)
    port = server.sockets[0].getsockname()[1]
    shown = f"[{host}]" if ":" in host else host
    try:
        yield f"http{'s' if 'ssl' in options else ''}://{shown}:{port}"
    finally:
        server.close()
        for task in list(talks):
            task.cancel()
        await asyncio.gather(*talks, return_exceptions=True)


def saying(*pieces: bytes, then_close: bool = True) -> Talk:
    """Answers every request with these pieces, one after the other."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            await request_read(reader)
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(0)
            if then_close:
                return

    return talk


@asynccontextmanager
async def lines_to(url: str, **limits: Any) -> AsyncIterator[HttpLines]:
    ssl = limits.pop("ssl", None)
    lines = HttpLines(url, ssl=ssl, limits=HttpLimits(**limits))
    try:
        yield lines
    finally:
        await lines.close()


async def answer_to(lines: HttpLines, **changes: Any) -> Heard:
    heard = Heard()
    await lines.ask(asking(**changes), heard)
    return await heard.over()


async def heard_of(*pieces: bytes, **changes: Any) -> Heard:
    """What is heard of one answer, whose server closes behind it."""
    async with serving(saying(*pieces)) as url, lines_to(url) as lines:
        return await answer_to(lines, **changes)


@asynccontextmanager
async def app_serving(
    handler: Callable[[web.Request], Awaitable[web.StreamResponse]],
) -> AsyncIterator[tuple[str, int]]:
    """An aiohttp server whose every path is this handler; its host and port."""
    app = web.Application(client_max_size=1 << 30)
    app.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield runner.addresses[0]
    finally:
        await runner.cleanup()


class Paused:
    """A line that only remembers whether it is held back."""

    def __init__(self) -> None:
        self.is_paused = False
        self.is_left = False

    def pause(self) -> None:
        self.is_paused = True

    def resume(self) -> None:
        self.is_paused = False

    def leave(self) -> None:
        self.is_left = True


def deaf_client(address: tuple[str, int], request: bytes) -> socket.socket:
    """Asks, and never reads. Its own buffer is as small as the system allows."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.connect(address)
    client.sendall(request)
    return client
