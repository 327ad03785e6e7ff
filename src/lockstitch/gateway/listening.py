"""Connections of clients, on aiohttp's server: how many, how slow, and what a request may be.

aiohttp reads HTTP; what is answered is in `server`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from socket import socket
from ssl import SSLContext
from typing import Any, Final

from aiohttp import web
from aiohttp.http_exceptions import (
    BadHttpMethod,
    BadStatusLine,
    ContentEncodingError,
    HttpProcessingError,
    InvalidURLError,
    LineTooLong,
)
from aiohttp.web_protocol import RequestHandler

from lockstitch.gateway.config.model import Limits

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]

Refuser = Callable[[str], web.StreamResponse]
"""Says no to what is no request, and why."""

BACKLOG: Final = 1024
"""Everybody comes back at once after a restart."""

REFUSED_BODY_SECONDS: Final = 1.0
"""For the rest of a body that was refused, which nobody looks at. A connection that is closed over
it is reset, and a client may never read why."""

CLOSE_SECONDS: Final = 1.0
"""For connections that are idle, or were broken off, to be gone."""

UNREADABLE: Final[tuple[tuple[type[HttpProcessingError], str], ...]] = (
    (BadHttpMethod, "it does not begin as HTTP does; a port without TLS is no https:// address"),
    (BadStatusLine, "its first line is none of HTTP/1.1"),
    (InvalidURLError, "its target is not a path of printable ASCII"),
    (LineTooLong, "a line of its head is too long"),
    (ContentEncodingError, "its content-encoding cannot be unpacked here"),
    (HttpProcessingError, "a header, or the framing of its body, is malformed"),
)
"""What is wrong with bytes that are no request, in words of our own: aiohttp's show the bytes, and
there may be a key in them. The first that fits; most of them are kinds of one another."""


def why_unreadable(error: BaseException | None) -> str | None:
    """What is wrong with what a client sent; None if this error says nothing of that."""
    return next((why for kind, why in UNREADABLE if isinstance(error, kind)), None)


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

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answer what is no request. aiohttp would log it with all of its bytes."""
        why = why_unreadable(exc)
        if why is None or request.writer.output_size > 0:
            return super().handle_error(request, status, exc, message)
        answer = self._listener.refuse(why)
        answer.force_close()
        return answer

    def log_exception(self, *args: Any, **more: Any) -> None:
        # A body that cannot be read was refused. What is left of it is found to be so once more.
        if not isinstance(more.get("exc_info"), web.RequestPayloadError):
            super().log_exception(*args, **more)

    def connection_lost(self, exc: BaseException | None) -> None:
        self.arrived()
        self._listener.count -= 1
        if self.when_lost is not None:
            self.when_lost()
        super().connection_lost(exc)


class Listener:
    """The sockets that a gateway listens on."""

    def __init__(self, handler: Handler, limits: Limits, *, refuse: Refuser) -> None:
        self.refuse = refuse
        self.limits = limits
        """May be changed at any time: for the next request, and where it is about a connection, for
        the next one of these."""
        self.count = 0
        self._handler = handler
        self._server: web.Server | None = None
        self._listening: list[asyncio.Server] = []

    async def start(self, sockets: list[socket], ssl: SSLContext | None) -> None:
        loop = asyncio.get_running_loop()
        server = web.Server(self._handler, request_factory=self._request, loop=loop)
        self._server = server
        for one in sockets:
            listening = await loop.create_server(
                lambda: self._connection(server), sock=one, ssl=ssl, backlog=BACKLOG
            )
            self._listening.append(listening)

    def _connection(self, server: web.Server) -> Connection:
        return Connection(
            self,
            server,
            loop=asyncio.get_running_loop(),
            keepalive_timeout=self.limits.idle_seconds,
            max_line_size=self.limits.header_bytes,
            max_field_size=self.limits.header_bytes,
            access_log=None,
            lingering_time=REFUSED_BODY_SECONDS,
        )

    def _request(
        self, message: Any, payload: Any, protocol: Any, writer: Any, task: Any
    ) -> web.BaseRequest:
        if isinstance(protocol, Connection):
            protocol.arrived()
        loop = asyncio.get_running_loop()
        most = self.limits.body_bytes
        return web.BaseRequest(message, payload, protocol, writer, task, loop, client_max_size=most)

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
