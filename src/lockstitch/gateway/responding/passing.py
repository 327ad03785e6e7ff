"""A request that the gateway has nothing to say to: it goes to an upstream, and its answer comes
back as it is, piece by piece."""

from __future__ import annotations

import asyncio
from typing import Final

from aiohttp import web
from msgspec import Struct

from lockstitch.gateway.deciding.asked import Api
from lockstitch.gateway.deciding.refusals import Refusal, unreachable
from lockstitch.gateway.events import Splitter
from lockstitch.gateway.headers import to_client
from lockstitch.gateway.lines import Asking, Headers, Line, LineFailure, is_event_stream
from lockstitch.gateway.upstreams import Reached
from lockstitch.gateway.wire import ClientStream, Flow
from lockstitch.gateway.world import Caller, World
from lockstitch.upstream.sse import EventTooLarge

JSON: Final[Headers] = (("content-type", "application/json"),)

NOBODY_READS: Final = 499
"""The status of an answer whose client went away before it began. Only the log shows it."""

LARGEST_ANSWER_BYTES = 256 * 1024 * 1024
"""An answer that comes whole is kept in memory until it is written down. Pictures in base64 make
some of them large."""


class Whole(Struct, frozen=True):
    """An answer that was heard to its end, over HTTP: what was asked for, or a refusal."""

    status: int
    headers: Headers
    body: bytes


class Collected:
    """An answer of which not all is there yet."""

    def __init__(self, status: int, headers: Headers) -> None:
        self._status, self._headers = status, headers
        self._pieces: list[bytes] = []
        self._size = 0

    def add(self, data: bytes) -> None:
        """Raises `LineFailure` if that is too much."""
        self._pieces.append(data)
        self._size += len(data)
        if self._size > LARGEST_ANSWER_BYTES:
            raise LineFailure(
                f"The answer is larger than {LARGEST_ANSWER_BYTES:,} bytes.", sent=True
            )

    def whole(self) -> Whole:
        return Whole(self._status, self._headers, b"".join(self._pieces))


class _Collecting:
    """Hears an answer to its end."""

    def __init__(self) -> None:
        self.whole: asyncio.Future[Whole] = asyncio.get_running_loop().create_future()
        self._collected = Collected(0, ())

    def begun(self, status: int, headers: Headers) -> None:
        self._collected = Collected(status, headers)

    def heard(self, data: bytes) -> None:
        if self.whole.done():
            return
        try:
            self._collected.add(data)
        except LineFailure as failure:
            self.broke(failure)

    def ended(self) -> None:
        if not self.whole.done():
            self.whole.set_result(self._collected.whole())

    def broke(self, failure: LineFailure) -> None:
        if not self.whole.done():
            self.whole.set_exception(failure)


async def fetched(upstream: Reached, asking: Asking) -> Whole:
    """The whole answer of an upstream. Raises `LineFailure`."""
    collecting = _Collecting()
    line = await upstream.ask(asking, collecting)
    try:
        return await collecting.whole
    except BaseException:
        line.leave()
        raise


class _Passing:
    """Hears an answer, and writes it to the client as it comes. Of a stream of events only whole
    ones go on, so that it can be ended well whatever happens."""

    def __init__(self, world: World, caller: Caller, request: web.BaseRequest, api: Api) -> None:
        self._api = api
        self._events: Splitter | None = None
        self._limits = world.config.limits
        self._caller = caller
        self._request = request
        self._beginning: asyncio.Task[None] | None = None
        self._client: ClientStream | None = None
        self._flow: Flow | None = None
        self._early: list[bytes] = []
        self.line: Line | None = None
        self.over: asyncio.Future[LineFailure | None] = asyncio.get_running_loop().create_future()

    def begun(self, status: int, headers: Headers) -> None:
        if is_event_stream(headers):
            self._events = Splitter()
        self._beginning = asyncio.create_task(self._begin(status, headers))

    async def _begin(self, status: int, headers: Headers) -> None:
        try:
            client = await ClientStream.begin(
                self._request,
                status,
                to_client(headers, self._caller.own_headers),
                high_water=self._limits.unread_bytes,
                low_water=self._limits.drained_bytes,
            )
        except ConnectionError:
            self._leave()
            return
        self._client = client
        self._flow = Flow(client, self._leave, patience_seconds=self._limits.unread_seconds)
        if self.line is not None:
            self._flow.follow(self.line)
        if self._early:
            client.write(b"".join(self._early))
            self._early.clear()

    def heard(self, data: bytes) -> None:
        if self.over.done():
            return
        if self._events is not None:
            try:
                data, events = self._events.feed(data)
            except EventTooLarge as error:
                self.broke(LineFailure(f"{error}.", sent=True))
                return
            self._caller.events += len(events)
        if self._client is not None:
            self._client.write(data)
        elif data:
            self._early.append(data)

    def ended(self) -> None:
        if not self.over.done():
            self.over.set_result(None)

    def broke(self, failure: LineFailure) -> None:
        if not self.over.done():
            self._caller.note_failure(self._caller.upstream, failure)
            self.over.set_result(failure)

    async def finish(self, failure: LineFailure | None) -> web.StreamResponse | None:
        """The answer that the client has; None if nothing of it went out."""
        if self._beginning is None:
            return None
        await self._beginning
        if self._flow is not None:
            self._flow.stop()
        if self._client is None:
            return web.Response(status=NOBODY_READS)
        if failure is not None and self._events is not None:
            self._client.write(unreachable(self._caller.upstream, failure).event(self._api))
        if failure is None or self._events is not None:
            self._client.end()
        else:
            self._client.cut()  # a body that is not whole must not look so
        return self._client.response

    def _leave(self) -> None:
        if self.line is not None:
            self.line.leave()
        if not self.over.done():
            self.over.set_result(LineFailure("The client went away.", sent=True))


async def passed(
    world: World,
    caller: Caller,
    request: web.BaseRequest,
    upstream: Reached,
    asking: Asking,
    *,
    api: Api = Api.RESPONSES,
) -> web.StreamResponse:
    """Pass a request on, and its answer back. Raises `LineFailure` if no answer began."""
    caller.upstream = upstream.name
    passing = _Passing(world, caller, request, api)
    passing.line = await upstream.ask(asking, passing)
    try:
        failure = await passing.over
    except BaseException:
        passing.line.leave()
        raise
    if failure is not None:
        passing.line.leave()
    answer = await passing.finish(failure)
    if answer is None:
        assert failure is not None
        raise failure
    return answer


def refused(caller: Caller, refusal: Refusal, api: Api = Api.RESPONSES) -> web.Response:
    """A no, as an HTTP answer."""
    return told(caller, Whole(refusal.status, refusal.headers(), refusal.body(api)))


def told(caller: Caller, whole: Whole) -> web.Response:
    """An answer that is there whole."""
    response = web.Response(status=whole.status, body=whole.body)
    response.headers.popall("content-type", None)
    for name, value in to_client(whole.headers, caller.own_headers):
        response.headers.add(name, value)
    return response


def told_json(caller: Caller, body: bytes) -> web.Response:
    """JSON that the gateway itself has to tell."""
    return told(caller, Whole(200, JSON, body))


async def asking_of(request: web.BaseRequest, upstream: Reached, caller: Caller) -> Asking:
    """The request as it came, for an upstream. The body is read whole."""
    return Asking(
        method=request.method,
        target=target_of(request),
        headers=upstream.headers(caller.headers),
        body=await request.read(),
    )


def target_of(request: web.BaseRequest) -> str:
    """The path and query behind `/v1`, as they were sent."""
    return request.raw_path.removeprefix("/v1") or "/"
