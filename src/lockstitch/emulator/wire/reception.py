"""One HTTP request, from its arrival to its answer: key, body, faults, record, refusals.

Every door's handlers are wrapped in `received`; they are given an `Exchange` and return an
answer or raise `Refused`. How a refusal is written is the door's dialect."""

import asyncio
import hmac
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import msgspec
from aiohttp import WebSocketError, web

from lockstitch.emulator import refusals
from lockstitch.emulator.decoding import decoded
from lockstitch.emulator.faults import CONNECTIONS, HANDSHAKES, Fault, struck
from lockstitch.emulator.limits import (
    CLOSE_SECONDS,
    LARGEST_BODY_BYTES,
    LARGEST_FRAME_BYTES,
    MOST_CONNECTIONS,
    STOP_SECONDS,
)
from lockstitch.emulator.record import public, public_query
from lockstitch.emulator.refusals import Refused
from lockstitch.emulator.striking import Strikes
from lockstitch.emulator.wire.delivery import leave_unanswered, open_with, tear_down
from lockstitch.emulator.wire.unheard import Unheard
from lockstitch.emulator.world import World

log = logging.getLogger("lockstitch.emulator")

SUBPROTOCOL_KEY = "openai-insecure-api-key."
# How a body may be compressed; it is decompressed before anybody sees it.
ENCODINGS = frozenset({"", "identity", "gzip", "deflate", "br", "zstd"})
# The close code of a server that stops.
GOING_AWAY = 1001

RefusalBody = Callable[[Refused], dict[str, Any]]
Handler = Callable[["Exchange"], Awaitable[web.StreamResponse]]

_encode = msgspec.json.Encoder().encode

# What the provider says with an error status that was asked for by a fault.
STATUSES = {
    400: Refused("fault", "Invalid request.", 400),
    401: Refused("fault", "Incorrect API key provided.", 401, code="invalid_api_key"),
    404: Refused("fault", "The requested resource was not found.", 404),
    409: Refused("fault", "The request conflicts with another one.", 409, code="conflict"),
    429: Refused(
        "fault",
        "Rate limit reached. Please try again later.",
        429,
        type="rate_limit_error",
        code="rate_limit_exceeded",
    ),
    500: refusals.own_fault(),
    502: Refused("fault", "Bad gateway.", 502, type=refusals.SERVER),
    503: Refused("fault", "The server is overloaded.", 503, type=refusals.SERVER),
    529: Refused("fault", "Overloaded", 529, type="overloaded_error"),
}


class Severed(Exception):
    """A fault ended the connection: there is nobody to answer."""


class Exchange:
    """One request being answered."""

    __slots__ = (
        "_recorded",
        "_refusal_body",
        "connection",
        "faults",
        "lost",
        "request",
        "socket",
        "streaming",
        "task",
        "what",
        "world",
    )

    def __init__(self, world: World, request: web.Request, refusal_body: RefusalBody) -> None:
        self.world = world
        self.request = request
        # `*` and `host:port` are no paths, but they are asked for.
        self.what = f"{request.method} {request.path or request.raw_path}"
        self.connection = world.record.connection()
        self.faults: list[Fault] = []
        self.lost: Fault | None = None
        # The head of the answer is out, and its events follow.
        self.streaming = False
        # Whoever answers it, and on what if it was upgraded.
        self.task = asyncio.current_task()
        self.socket: web.WebSocketResponse | None = None
        self._refusal_body = refusal_body
        self._recorded = False

    async def json(self, *, streams: bool = False) -> dict[str, Any]:
        """The body, which must be a JSON object. Recorded, and faults for it looked up.

        A handler that `streams` lets the faults of events strike its own stream; for any other,
        those that strike before the first byte do so here."""
        data = await body_of(self.request)
        self.record_request(data)
        body = decoded(data) if data else None
        if body is None:
            body = {}
        if not isinstance(body, dict):
            raise refusals.unreadable_body()
        model = body.get("model")
        await self._meet_faults(model if isinstance(model, str) else "", streams=streams)
        return body

    async def no_body(self, *, streams: bool = False) -> None:
        """A request without a body, such as a GET."""
        self.record_request(await body_of(self.request))
        await self._meet_faults("", streams=streams)

    async def upgrade(self, *, counts: bool = False) -> None:
        """A request to speak WebSocket; anything else is refused.

        It `counts` as a request where the connection is all there is (Realtime); elsewhere the
        frames are the requests."""
        self.record_request(kind="upgrade")
        model = self.request.query.get("model", "")
        strikes = CONNECTIONS if counts else HANDSHAKES
        self.faults = self.world.faults.concerning(self.request.path, model, strikes)
        fault = self.struck("refuse-upgrade")
        if fault is not None:
            raise upgrade_refusal(int(fault.number("code")))
        fault = self.struck("status") if counts else None
        if fault is not None:
            raise status_refusal(fault)
        if self.request.headers.get("Upgrade", "").lower() != "websocket":
            raise refusals.wrong_method(self.request.method, self.request.path)

    async def open_socket(self, *protocols: str) -> web.WebSocketResponse:
        """The WebSocket that the request asked for; refused if the handshake is not right."""
        socket = web.WebSocketResponse(
            max_msg_size=LARGEST_FRAME_BYTES,
            compress=False,
            protocols=protocols,
            # A client that does not answer a close is not waited for.
            timeout=STOP_SECONDS,
        )
        try:
            await socket.prepare(self.request)
        except web.HTTPException as problem:
            said = (problem.text or problem.reason).partition("\n")[0]
            raise refusals.bad_handshake(said) from None
        self.socket = socket
        return socket

    async def say_goodbye(self) -> None:
        """Close the socket: the emulator stops."""
        if self.socket is not None and not self.socket.closed:
            self.world.record.sent(self.connection, "close", str(GOING_AWAY))
            await self.socket.close(code=GOING_AWAY)

    def record_request(self, data: bytes = b"", kind: str = "request") -> None:
        """What was asked, once."""
        if self._recorded:
            return
        self._recorded = True
        self.world.record.received(
            self.connection,
            kind,
            self.what,
            data,
            public(self.request.headers),
            public_query(self.request.rel_url.raw_query_string),
        )

    def record_end(self) -> None:
        """A frame that broke the protocol, such as one that is too large, closed the socket."""
        problem = self.socket.exception() if self.socket is not None else None
        if isinstance(problem, WebSocketError):
            self.world.record.sent(self.connection, "close", str(int(problem.code)))

    async def _meet_faults(self, model: str, *, streams: bool) -> None:
        self.faults = self.world.faults.concerning(self.request.path, model)
        if not self.faults:
            return
        fault = struck(self.faults, "status")
        if fault is not None:
            self.world.record.struck_by(self.connection, fault.text, self.what)
            raise status_refusal(fault)
        self.lost = struck(self.faults, "lose")
        if not streams:
            await self._meet_first_byte()

    async def _meet_first_byte(self) -> None:
        # The others strike a WebSocket, or the events of a response: they wait for one.
        strikes = Strikes([fault for fault in self.faults if fault.name in {"cut", "stall"}])
        if await open_with(strikes, self.unheard(), self.world.clock) is not None:
            raise Severed

    def unheard(self, told: Callable[[], None] | None = None) -> Unheard:
        """A stream that this request's client does not hear."""
        return Unheard(self.request, self.world.record, self.connection, told)

    def struck(self, name: str) -> Fault | None:
        """The request fault of this name, if one strikes; recorded."""
        fault = struck(self.faults, name) if self.faults else None
        if fault is not None:
            self.world.record.struck_by(self.connection, fault.text, self.what)
        return fault

    def strikes(self, more: tuple[Fault, ...] = ()) -> Strikes:
        """The faults of the stream that answers: those of the request, and the reply's own."""
        return Strikes([*self.faults, *more])

    def answer(self, value: Any, status: int = 200, headers: Any = None) -> web.Response:
        data = _encode(value)
        self.world.record.sent(self.connection, "response", str(status), data)
        return web.Response(
            body=data, status=status, content_type="application/json", headers=headers
        )

    def refuse(self, refused: Refused) -> web.Response:
        data = _encode(self._refusal_body(refused))
        self.world.record.refused(
            self.connection, refused.rule, "response", str(refused.status), data
        )
        return web.Response(
            body=data,
            status=refused.status,
            content_type="application/json",
            headers=refused.headers,
        )


def status_refusal(fault: Fault) -> Refused:
    """The answer of a `status` fault."""
    said = STATUSES[int(fault.number("code"))]
    retry = fault.word("retry_after") or ("1" if said.status == 429 else "")
    headers = {"Retry-After": retry} if retry else {}
    return replace(said, rule="fault", headers=headers)


def upgrade_refusal(status: int) -> Refused:
    """How a handshake is refused: 426 says that this server does not speak WebSocket here."""
    if status == 426:
        return Refused("fault", "WebSocket is not supported here. Use HTTP.", 426)
    return replace(STATUSES[status], rule="fault")


def openai_body(refused: Refused) -> dict[str, Any]:
    return refused.body()


class Reception:
    """Wraps handlers: counts exchanges, checks keys, and turns what they raise into answers."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._open: set[Exchange] = set()
        self._stopping = False

    def received(
        self, handler: Handler, refusal_body: RefusalBody = openai_body
    ) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def handle(request: web.Request) -> web.StreamResponse:
            exchange = Exchange(self._world, request, refusal_body)
            self._open.add(exchange)
            try:
                return await self._answered(handler, exchange)
            finally:
                self._open.discard(exchange)

        return handle

    async def stop(self) -> None:
        """End all that is open: WebSockets with a close, whatever else is in the middle of it."""
        self._stopping = True
        goodbyes = [asyncio.create_task(each.say_goodbye()) for each in self._open if each.socket]
        await _ended(goodbyes, CLOSE_SECONDS)
        await _ended([each.task for each in self._open if each.task is not None], 0.0)
        self._stopping = False

    async def _answered(self, handler: Handler, exchange: Exchange) -> web.StreamResponse:
        request = exchange.request
        try:
            if len(self._open) > MOST_CONNECTIONS:
                raise refusals.too_many_connections(MOST_CONNECTIONS)
            check_key(self._world.settings.key, request)
            answer = await handler(exchange)
        except Refused as refused:
            exchange.record_request()
            answer = exchange.refuse(refused)
        except Severed:
            return web.Response()
        except (ConnectionError, asyncio.CancelledError):
            why = "the emulator stopped" if self._stopping else "the client went away"
            self._world.record.sent(exchange.connection, "cut", why)
            raise
        except Exception:
            log.exception("the emulator failed at %s", exchange.what)
            exchange.record_request()
            if exchange.streaming:
                # Another answer inside the one that has begun would be taken for its events.
                self._world.record.sent(exchange.connection, "cut", "the emulator failed")
                tear_down(request.transport)
                return web.Response()
            answer = exchange.refuse(refusals.own_fault())
        finally:
            exchange.record_end()
            self._world.record.flush()
        if exchange.lost is not None:
            self._world.record.struck_by(exchange.connection, exchange.lost.text, exchange.what)
            leave_unanswered(request.transport, exchange.lost.word("how"))
        return answer


async def _ended(tasks: list[asyncio.Task[Any]], grace: float) -> None:
    """Wait for tasks to end; those that take longer than `grace` seconds are cancelled."""
    if not tasks:
        return
    waiting: set[asyncio.Task[Any]] = set(tasks)
    if grace:
        _, waiting = await asyncio.wait(waiting, timeout=grace)
    for task in waiting:
        task.cancel()
    if waiting:
        await asyncio.wait(waiting, timeout=STOP_SECONDS)


async def body_of(request: web.Request) -> bytes:
    """The bytes of the body, decompressed; refused if there are too many, or they are spoilt."""
    if (request.content_length or 0) > LARGEST_BODY_BYTES:
        raise refusals.body_too_large(LARGEST_BODY_BYTES)
    if request.headers.get("Content-Encoding", "").strip().lower() not in ENCODINGS:
        raise refusals.unreadable_request("Unknown Content-Encoding", 415)
    try:
        return await request.read()
    except web.HTTPRequestEntityTooLarge:
        raise refusals.body_too_large(LARGEST_BODY_BYTES) from None
    except web.RequestPayloadError:
        raise refusals.unreadable_body() from None


def check_key(wanted: str, request: web.Request) -> None:
    """A key must be there; if one was chosen, it must be that one."""
    scheme, _, given = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "bearer":
        given = request.headers.get("x-api-key", "") or request.headers.get("api-key", "")
    given = given or _subprotocol_key(request)
    if not given.strip():
        raise refusals.no_key()
    said = given.strip().encode("utf-8", "surrogateescape")
    if wanted and not hmac.compare_digest(said, wanted.encode()):
        raise refusals.wrong_key()


def _subprotocol_key(request: web.Request) -> str:
    """The key of a browser, which cannot set a header on an upgrade."""
    for offered in request.headers.get("Sec-WebSocket-Protocol", "").split(","):
        name, found, key = offered.strip().partition(SUBPROTOCOL_KEY)
        if found and not name:
            return key
    return ""
