"""Connections of clients, on aiohttp's server: how many, how slow, and what a request may be.

aiohttp reads HTTP; what is answered is in `server`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from socket import socket
from ssl import SSLContext
from typing import Any, Final

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from lockstitch.gateway.config.model import Limits

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]

BACKLOG: Final = 1024
"""Everybody comes back at once after a restart."""

CLOSE_SECONDS: Final = 1.0
"""For connections that are idle, or were broken off, to be gone."""


class Connection(RequestHandler):
    """One client's connection. One that asks for nothing in time is closed."""

    __slots__ = ("_first", "_listener", "when_lost")

    def __init__(self, listener: Listener, server: web.Server, **more: Any) -> None:
        super().__init__(server, **more)
        self._listener = listener
        self._first: asyncio.TimerHandle | None = None
        self.when_lost: Callable[[], None] | None = None
        """Called when the client has gone: whoever answers it sets this."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._listener.count += 1
        if self._listener.count > self._listener.limits.connections:
            self.force_close()
            return
        # Whoever sends a head byte by byte holds a place, and nothing else ends that.
        self._first = asyncio.get_running_loop().call_later(
            self._listener.limits.request_seconds, self.force_close
        )

    def arrived(self) -> None:
        """A request is here: from now on the server's own limits count."""
        if self._first is not None:
            self._first.cancel()
            self._first = None

    def connection_lost(self, exc: BaseException | None) -> None:
        self.arrived()
        self._listener.count -= 1
        if self.when_lost is not None:
            self.when_lost()
        super().connection_lost(exc)


class Listener:
    """The sockets that a gateway listens on."""

    def __init__(self, handler: Handler, limits: Limits) -> None:
        self.limits = limits
        self.count = 0
        self._handler = handler
        self._server: web.Server | None = None
        self._listening: list[asyncio.Server] = []

    async def start(self, sockets: list[socket], ssl: SSLContext | None) -> None:
        loop = asyncio.get_running_loop()
        limits = self.limits
        self._server = web.Server(
            self._handler, request_factory=partial(_request, most=limits.body_bytes), loop=loop
        )
        made = partial(
            Connection,
            self,
            self._server,
            loop=loop,
            keepalive_timeout=limits.idle_seconds,
            max_line_size=limits.header_bytes,
            max_field_size=limits.header_bytes,
            access_log=None,
            # Nobody waits for the rest of a body that was refused.
            lingering_time=0.0,
        )
        for one in sockets:
            listening = await loop.create_server(made, sock=one, ssl=ssl, backlog=BACKLOG)
            self._listening.append(listening)

    def stop_accepting(self) -> None:
        for listening in self._listening:
            listening.close()
        if self._server is not None:
            self._server.pre_shutdown()

    async def close(self) -> None:
        """Close every connection, idle or not."""
        self.stop_accepting()
        if self._server is not None:
            await self._server.shutdown(CLOSE_SECONDS)


def _request(
    message: Any, payload: Any, protocol: Any, writer: Any, task: Any, *, most: int
) -> web.BaseRequest:
    if isinstance(protocol, Connection):
        protocol.arrived()
    return web.BaseRequest(
        message, payload, protocol, writer, task, asyncio.get_running_loop(), client_max_size=most
    )
