"""`POST /v1/responses`, and what is asked in the same form: compaction, counting of tokens."""

from __future__ import annotations

from aiohttp import web

from lockstitch.gateway.deciding.asked import Api, Asked, read
from lockstitch.gateway.keeping.exchanges import Kept
from lockstitch.gateway.lines import Line
from lockstitch.gateway.listening import Connection
from lockstitch.gateway.responding.answering import Answering
from lockstitch.gateway.responding.passing import JSON, Whole, target_of, told
from lockstitch.gateway.responding.ways import OverHttp, OverSocket, Way
from lockstitch.gateway.showing.sinks import SseSink, UnseenSink
from lockstitch.gateway.showing.streams import Log, Stream
from lockstitch.gateway.upstreams import Reached
from lockstitch.gateway.world import Caller, World


class _Ways:
    """A client that speaks HTTP."""

    def __init__(self, asked: Asked, target: str, sink: SseSink | None) -> None:
        self._asked = asked
        self._target = target
        self._sink = sink

    def to(self, upstream: Reached) -> Way:
        if upstream.speaks_http or self._asked.api is not Api.RESPONSES:
            return OverHttp(self._target)
        return OverSocket()

    def fills(self, line: Line) -> None:
        if self._sink is not None:
            self._sink.follow(line)

    def warms_up(self, upstream: Reached) -> bool:
        return False

    def drains(self, line: Line) -> None:
        """The sink lets go of it when another fills it, or at the end."""

    def anchor_gone(self, parent: Kept | None) -> bool:
        # What was not stored was on a WebSocket alone, and this is none.
        return parent is not None and not parent.asked.stored


async def respond(
    world: World, caller: Caller, request: web.BaseRequest, api: Api = Api.RESPONSES
) -> web.StreamResponse:
    """Answer one request. A body that is none raises `NotARequest`."""
    asked = read(await request.read(), api)
    if asked.stream:
        return await _streamed(world, caller, request, asked)
    sink = UnseenSink()
    stream = Stream(sink, visible=False)
    answering = Answering(world, caller, asked, stream, _Ways(asked, target_of(request), None))
    whole = await _run(world, request, answering)
    if whole is None and sink.last is not None:
        whole = Whole(200, JSON, bytes(sink.last.event.response))
    assert whole is not None
    return told(caller, whole)


async def _streamed(
    world: World, caller: Caller, request: web.BaseRequest, asked: Asked
) -> web.StreamResponse:
    sink = SseSink(request, lambda: caller.own_headers, world.config.limits)
    stream = Stream(sink, Log())
    answering = Answering(world, caller, asked, stream, _Ways(asked, target_of(request), sink))
    sink.when_lost = answering.left
    world.metrics.streams.inc()
    try:
        whole = await _run(world, request, answering)
    finally:
        world.metrics.streams.dec()
        world.metrics.events.inc(stream.events)
        caller.events = stream.events
    return await sink.finish() if whole is None else told(caller, whole)


async def _run(world: World, request: web.BaseRequest, answering: Answering) -> Whole | None:
    """The answer. A client that goes away before anything of it was written is noticed, too."""
    connection = request.protocol
    world.running.add(answering)
    if isinstance(connection, Connection):
        connection.when_lost = answering.left
    try:
        return await answering.run()
    finally:
        world.running.discard(answering)
        if isinstance(connection, Connection):
            connection.when_lost = None
