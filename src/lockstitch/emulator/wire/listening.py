"""The listening socket, and what happens on it before there is a request, or without one.

What is no HTTP is refused and recorded here; what aiohttp would answer by itself is handed on, to
be said as the provider says it. Idle connections beyond the limit are closed."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError, InvalidURLError

from lockstitch.emulator import refusals
from lockstitch.emulator.limits import KEEP_ALIVE_SECONDS, MOST_CONNECTIONS, STOP_SECONDS
from lockstitch.emulator.record import Record
from lockstitch.emulator.refusals import Refused

log = logging.getLogger("lockstitch.emulator")

# An answer to what aiohttp has no handler for.
Elsewhere = Callable[[web.Request, web.HTTPException], Awaitable[web.StreamResponse]]

_encode = msgspec.json.Encoder().encode
# What goes wrong when a client does wrong, or goes away: nobody has to see a traceback.
_OF_CLIENTS = (HttpProcessingError, web.RequestPayloadError, ConnectionError)


class Listener:
    """One address, for as long as it is open."""

    def __init__(self, application: web.Application, record: Record, elsewhere: Elsewhere) -> None:
        self._runner = web.AppRunner(
            application,
            access_log=None,
            handler_cancellation=True,
            shutdown_timeout=STOP_SECONDS,
        )
        self._elsewhere = elsewhere
        self._socket: asyncio.Server | None = None
        self.record = record
        # Those that were idle longest first; and how many requests each is answering.
        self._connections: dict[_Connection, int] = {}

    async def start(self, host: str, port: int) -> tuple[str, int]:
        """The address it listens on. Raises OSError or OverflowError if it cannot."""
        await self._runner.setup()
        server = self._runner.server
        assert server is not None
        answer = server.request_handler

        async def handle(request: Any) -> web.StreamResponse:
            connection = request.protocol
            self._connections[connection] = self._connections.pop(connection, 0) + 1
            try:
                return await answer(request)
            except web.HTTPException as said:
                return await self._elsewhere(request, said)
            finally:
                if connection in self._connections:
                    self._connections[connection] = self._connections.pop(connection) - 1

        server.request_handler = handle
        loop = asyncio.get_running_loop()
        try:
            self._socket = await loop.create_server(
                lambda: _Connection(self, server, loop), host, port, reuse_address=True
            )
        except BaseException:
            await self._runner.cleanup()
            raise
        address = self._socket.sockets[0].getsockname()
        return address[0], address[1]

    def refuse(self) -> None:
        """Let nobody in any more."""
        if self._socket is not None:
            self._socket.close()

    async def stop(self) -> None:
        self.refuse()
        await self._runner.cleanup()

    def opened(self, connection: "_Connection") -> None:
        self._connections[connection] = 0
        if len(self._connections) > MOST_CONNECTIONS:
            # The newest is idle too, so there is one.
            idle = next(each for each, asking in self._connections.items() if not asking)
            if idle is not connection:
                self.closed(idle)
                idle.force_close()

    def closed(self, connection: "_Connection") -> None:
        self._connections.pop(connection, None)

    def __repr__(self) -> str:
        return f"<Listener {len(self._connections)} connections>"


class _Connection(web.RequestHandler):
    """aiohttp's side of one connection, with the provider's words."""

    __slots__ = ("_listener",)

    def __init__(
        self, listener: Listener, server: web.Server, loop: asyncio.AbstractEventLoop
    ) -> None:
        super().__init__(
            server,
            loop=loop,
            # It may be None, whatever its type says.
            access_log=None,  # type: ignore[arg-type]
            keepalive_timeout=KEEP_ALIVE_SECONDS,
        )
        self._listener = listener

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._listener.opened(self)

    def connection_lost(self, exc: BaseException | None) -> None:
        self._listener.closed(self)
        super().connection_lost(exc)

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        if isinstance(exc, ConnectionError):
            # Nobody is there to be answered.
            raise exc
        if isinstance(exc, HttpProcessingError):
            refused = refusals.unreadable_request(_why(exc), status)
            log.debug("a client sent what is no request: %s", refused)
        else:
            refused = refusals.own_fault()
            log.error("the emulator failed at a request", exc_info=exc)
        answer = web.Response(
            body=self._recorded(refused), status=status, content_type="application/json"
        )
        answer.force_close()
        return answer

    def _recorded(self, refused: Refused) -> bytes:
        record, data = self._listener.record, _encode(refused.body())
        number = record.connection()
        record.received(number, "request", "unreadable")
        record.refused(number, refused.rule, "response", str(refused.status), data)
        record.flush()
        return data

    def log_exception(self, *args: Any, **named: Any) -> None:
        problem = named.get("exc_info")
        if isinstance(problem, _OF_CLIENTS):
            log.debug("a client did wrong, or went away: %s", problem)
        else:
            super().log_exception(*args, **named)


def _why(problem: HttpProcessingError) -> str:
    """What is wrong with a request, without what is in it: that may be a secret."""
    if isinstance(problem, InvalidURLError):
        return "Invalid URL"
    return problem.message.partition("\n")[0].partition(":")[0].rstrip(".") or "It is no HTTP"
