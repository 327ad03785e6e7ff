"""The gateway: who may come in, which door a request takes, and what is told of it afterwards.

It answers nothing itself; the doors do."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from contextlib import suppress
from itertools import count
from socket import socket
from ssl import SSLContext
from typing import Final, TypeAlias
from urllib.parse import unquote

from aiohttp import web

from lockstitch.core.records import Name, Naming
from lockstitch.gateway.config.model import Config, is_from_here
from lockstitch.gateway.deciding import refusals
from lockstitch.gateway.deciding.asked import Api
from lockstitch.gateway.deciding.refusals import Refusal, RequestRefused
from lockstitch.gateway.doors import conversations, guarded, models, passing, responses, retrieving
from lockstitch.gateway.doors.realtime import attend
from lockstitch.gateway.doors.socket import converse
from lockstitch.gateway.lines import Headers
from lockstitch.gateway.listening import Listener, why_unreadable
from lockstitch.gateway.responding.mishaps import refusal_for
from lockstitch.gateway.responding.passing import NOBODY_READS, refused
from lockstitch.gateway.watching import logs
from lockstitch.gateway.watching.logs import RequestEnded
from lockstitch.gateway.watching.tracing import Tracing
from lockstitch.gateway.world import Caller, World
from lockstitch.store.contract import Store
from lockstitch.store.errors import StoreError

READY_SECONDS: Final = 2.0
"""For the journal to answer whether it is there."""

POLL_SECONDS: Final = 0.05
"""How often a gateway that drains looks whether it is done."""

ROOT: Final = "/v1/"

REALTIME: Final = "realtime"

GUARDED: Final = frozenset({"responses", "conversations"})
"""Of what stands below these each thing belongs to one key."""

_BLANK: Final = "".join(map(chr, range(0x21)))

Door: TypeAlias = Callable[..., Awaitable[web.StreamResponse]]


class Gateway:
    """One process of a gateway."""

    def __init__(self, config: Config, store: Store) -> None:
        self.world = World(config, store)
        self._listener = Listener(self._handle, config.limits, refuse=self._unreadable)
        self._tracing = Tracing()
        self._draining = False
        self._open = 0
        # Random once, then counted: to ask the system each time is to wait for it.
        self._named = f"req_{secrets.token_hex(6)}"
        self._requests = count(1)

    async def start(self, sockets: list[socket], ssl: SSLContext | None) -> None:
        """Accept connections. Returns when it does."""
        self.world.connect()
        await self._listener.start(sockets, ssl)

    async def drain(self, seconds: float) -> None:
        """Accept no more, let what runs finish within ``seconds``, break off the rest, close."""
        self._draining = True
        self._listener.stop_accepting()
        for session in list(self.world.sessions):
            session.drain()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self._open:
                    await asyncio.sleep(POLL_SECONDS)
        for answering in list(self.world.running):
            answering.stop("The gateway is shutting down.")
        with suppress(TimeoutError):
            async with asyncio.timeout(READY_SECONDS):
                while self.world.running:
                    await asyncio.sleep(POLL_SECONDS)
        await self._listener.close()
        await self.world.close()
        self._tracing.close()

    async def reload(self, config: Config) -> None:
        """Go on with other keys, limits and upstreams; what runs is not disturbed."""
        self._listener.limits = config.limits
        self.world.reload(config)

    # --- one request ---------------------------------------------------------------------------

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        begun = asyncio.get_running_loop().time()
        caller = self._caller([*request.headers.items()])
        api = _api_of(request.path)
        span = self._tracing.begin(request.method, request.path, request.headers)
        self._open += 1
        try:
            response = await self._answer(request, caller)
        except Exception as error:
            response = refused(caller, refusal_for(error, self.world, caller), api)
        finally:
            self._open -= 1
        if span is not None:
            span.end(response.status, request_id=caller.request_id, upstream=caller.upstream)
        self._ended(caller, response.status, begun, request)
        return response

    def _caller(self, headers: Headers) -> Caller:
        request_id = f"{self._named}{next(self._requests):012x}"
        return Caller(request_id=request_id, key=None, headers=headers, notes=[])

    def _unreadable(self, why: str) -> web.StreamResponse:
        """Bytes came that are no request."""
        caller = self._caller([])
        logs.happened("no request", request_id=caller.request_id, why=why)
        return refused(caller, refusals.unreadable(why))

    async def _answer(self, request: web.BaseRequest, caller: Caller) -> web.StreamResponse:
        if request.path.startswith("/health/"):
            return await self._health(request)
        caller.key = self.world.key_of(caller.headers)
        opened = self.world.may_ask(caller.key)
        if request.path == "/metrics":
            if opened or self.world.config.metrics.open:
                self.world.metrics.held_bytes.set(self.world.runs.size)
                body, kind = self.world.metrics.exposition()
                return web.Response(body=body, headers={"content-type": kind})
            return refused(caller, refusals.bad_key())
        parts = _parts(request)
        if not parts:
            return refused(caller, _no_such_path(request))
        if not opened:
            return refused(caller, refusals.bad_key(), _api_of(request.path))
        if not self.world.keyring and not is_from_here(request.headers.get("origin")):
            return refused(caller, refusals.from_a_page(), _api_of(request.path))
        if self._draining:
            return refused(caller, refusals.draining(), _api_of(request.path))
        if _is_upgrade(request):
            return await self._upgraded(request, caller, parts)
        if request.headers.get("expect", "").lower() == "100-continue" and request.transport:
            request.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        if not await self._arrived(request):
            self.world.metrics.clients_gone.inc()
            caller.note("client gone")
            return web.Response(status=NOBODY_READS)
        with self.world.place_for(caller):
            return await self._through_door(request, caller, parts)

    async def _arrived(self, request: web.BaseRequest) -> bool:
        """Wait for the body. The request keeps it: doors read it again. False, if the client went
        away before it was all there."""
        try:
            if request.content.is_eof():
                await request.read()  # it came with the head: nobody waits, and no clock is needed
            else:
                async with asyncio.timeout(self.world.config.limits.request_seconds):
                    await request.read()
        except web.HTTPRequestEntityTooLarge:
            raise RequestRefused(refusals.too_large(request.client_max_size)) from None
        except web.RequestPayloadError as error:
            why = why_unreadable(error.__cause__) or "its body breaks off"
            raise RequestRefused(refusals.unreadable(why)) from error
        except ConnectionError:
            return False
        return True

    async def _upgraded(
        self, request: web.BaseRequest, caller: Caller, parts: list[str]
    ) -> web.StreamResponse:
        if parts == ["responses"]:
            return await converse(self.world, caller, request, self._frame_ended)
        if self.world.keyring and _is_guarded(parts):
            return refused(caller, _no_such_path(request))
        door = attend if parts == [REALTIME] else passing.sockets
        # One request, and one place, until it ends: nobody knows what is asked in it.
        with self.world.place_for(caller):
            return await door(self.world, caller, request)

    async def _through_door(
        self, request: web.BaseRequest, caller: Caller, parts: list[str]
    ) -> web.StreamResponse:
        door, ids = _door(request.method, parts)
        passes = door in (passing.everything_else, models.model)
        if passes and self.world.keyring and _is_guarded(parts):
            # Whose it is can only be told where it is known what it is.
            return refused(caller, _no_such_path(request))
        return await door(self.world, caller, request, *ids)

    # --- what is told --------------------------------------------------------------------------

    def _ended(self, caller: Caller, status: int, begun: float, request: web.BaseRequest) -> None:
        if not request.path.startswith(ROOT):
            logs.detail("asked", path=request.path, status=status)  # every few seconds, by machines
            return
        self.world.metrics.request_ended(
            api=_counted_as(request), upstream=caller.upstream, status=status
        )
        self._log(caller, status, begun, request.method, request.path)

    def _frame_ended(self, caller: Caller, status: int, begun: float) -> None:
        self.world.metrics.request_ended(api="responses", upstream=caller.upstream, status=status)
        self._log(caller, status, begun, "WEBSOCKET", "/v1/responses")

    def _log(self, caller: Caller, status: int, begun: float, method: str, path: str) -> None:
        # A no of the gateway's own to a key comes before any upstream is named.
        upstream = self.world.upstreams.get(caller.upstream)
        why = None if upstream is None else upstream.why_refused(status)
        if why is not None:
            caller.note(why)
        logs.request_ended(
            RequestEnded(
                request_id=caller.request_id,
                method=method,
                path=path,
                status=status,
                milliseconds=(asyncio.get_running_loop().time() - begun) * 1000,
                key=caller.key.name if caller.key is not None else None,
                upstream=caller.upstream or None,
                events=caller.events,
                notes=caller.notes,
            )
        )

    async def _health(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.path == "/health/live":
            return web.Response(text="live\n")
        if request.path != "/health/ready":
            return web.Response(status=404, text="no such check\n")
        if self._draining:
            return web.Response(status=503, text="draining\n")
        try:
            async with asyncio.timeout(READY_SECONDS):
                await self.world.store.find(Name(Naming.RESPONSE, "ready"))
        except (StoreError, TimeoutError) as error:
            logs.careful("not ready", why=str(error) or "the journal does not answer")
            self.world.journal_failed = True
            return web.Response(status=503, text="the journal does not answer\n")
        return web.Response(text="ready\n")


# --- which door --------------------------------------------------------------------------------


def _door(method: str, parts: list[str]) -> tuple[Door, list[object]]:
    """The door for a path behind `/v1/`, and what the path tells it."""
    match method, parts:
        case "POST", ["responses"]:
            return responses.respond, []
        case "POST", ["responses", "compact"]:
            return responses.respond, [Api.COMPACT]
        case "POST", ["responses", "input_tokens"]:
            return responses.respond, [Api.INPUT_TOKENS]
        case "GET", ["responses", response]:
            return retrieving.retrieve, [response]
        case "DELETE", ["responses", response]:
            return retrieving.delete, [response]
        case "POST", ["responses", response, "cancel"]:
            return retrieving.cancel, [response]
        case "GET", ["responses", response, "input_items"]:
            return retrieving.input_items, [response]
        case "POST", ["chat", "completions"]:
            return guarded.exchange, [Api.CHAT]
        case "POST", ["messages"]:
            return guarded.exchange, [Api.MESSAGES]
        case "GET", ["models"]:
            return models.models, []
        case "GET", ["models", *names] if names:
            return models.model, ["/".join(names)]  # some have a slash in them
        case "POST", ["conversations"]:
            return conversations.create, []
        case "GET", ["conversations", conversation]:
            return conversations.retrieve, [conversation]
        case "POST", ["conversations", conversation]:
            return conversations.update, [conversation]
        case "DELETE", ["conversations", conversation]:
            return conversations.delete, [conversation]
        case "POST", ["conversations", conversation, "items"]:
            return conversations.add_items, [conversation]
        case "GET", ["conversations", conversation, "items"]:
            return conversations.list_items, [conversation]
        case "GET", ["conversations", conversation, "items", item]:
            return conversations.retrieve_item, [conversation, item]
        case "DELETE", ["conversations", conversation, "items", item]:
            return conversations.delete_item, [conversation, item]
        case _, ["chat", *_]:
            return passing.everything_else, [Api.CHAT]
        case _, ["messages", *_]:
            return passing.everything_else, [Api.MESSAGES]
    return passing.everything_else, []


def _is_guarded(parts: list[str]) -> bool:
    """Does a path name something that belongs to one key, as any upstream may read it? There are
    servers that take upper case for lower and a backslash for a slash, that decode twice, and that
    cut off what stands behind a semicolon, or dots and blanks."""
    spelled = unquote("/".join(parts)).lower().replace("\\", "/")
    words = [word.partition(";")[0].strip(_BLANK) for word in spelled.split("/")]
    first = next((word for word in words if word.strip(".")), "")
    return ".." in words or first.strip(".") in GUARDED


def _parts(request: web.BaseRequest) -> list[str]:
    """The parts of the path behind `/v1/`; none if it is not there, or leads out of it again.

    The path as it was sent is looked at, because that is what goes to an upstream."""
    path = request.raw_path.partition("?")[0]
    if not path.startswith(ROOT):
        return []
    parts = [part for part in unquote(path.removeprefix(ROOT)).split("/") if part]
    return [] if {".", ".."} & {*parts} else parts


def _api_of(path: str) -> Api:
    if path.startswith("/v1/chat/"):
        return Api.CHAT
    return Api.MESSAGES if path.startswith("/v1/messages") else Api.RESPONSES


def _counted_as(request: web.BaseRequest) -> str:
    """The API in the metrics. Realtime has no form of its own in which it is refused, so it is no
    `Api`."""
    if request.path.startswith(f"{ROOT}{REALTIME}"):
        return REALTIME
    return _api_of(request.path).value


def _is_upgrade(request: web.BaseRequest) -> bool:
    return request.headers.get("upgrade", "").lower() == "websocket"


def _no_such_path(request: web.BaseRequest) -> Refusal:
    return Refusal(
        status=404,
        message=f"Unknown request URL: {request.method} {request.path}. The API is under /v1.",
    )
