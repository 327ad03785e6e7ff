"""`GET /v1/responses` with an upgrade: the lanes of a client's WebSocket.

Lanes are answered side by side, and each in order. They share one connection to an upstream that
speaks WebSocket; to one that does not, each request is a POST. The client's connection outlives
its upstream's."""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

import msgspec
from aiohttp import WSCloseCode, WSMsgType, web
from msgspec import Raw, Struct

from lockstitch.dialects.reading import UNREADABLE
from lockstitch.gateway.deciding.asked import CREATE_FRAME, Asked, NotARequest, read
from lockstitch.gateway.deciding.refusals import (
    Refusal,
    RequestRefused,
    bad_key,
    draining,
    not_a_request,
    too_many_requests,
)
from lockstitch.gateway.doors.joining import LOOK_SECONDS
from lockstitch.gateway.doors.shared_socket import Shared, SharedLine
from lockstitch.gateway.events import ERROR, fields_of
from lockstitch.gateway.keeping.exchanges import Kept
from lockstitch.gateway.lines import Headers, Hearing, Line, LineFailure, first
from lockstitch.gateway.responding.answering import Answering
from lockstitch.gateway.responding.mishaps import refusal_for
from lockstitch.gateway.responding.passing import Whole
from lockstitch.gateway.responding.ways import OverHttp, Way
from lockstitch.gateway.showing.sinks import LaneSink
from lockstitch.gateway.showing.streams import Log, Stream
from lockstitch.gateway.upstreams import Reached
from lockstitch.gateway.wire import ClientSocket, Flow
from lockstitch.gateway.world import Caller, World

LANE: Final = re.compile(r"[A-Za-z0-9_.-]{1,256}")
MOST_LANES: Final = 32
"""As providers have it."""
MOST_WAITING: Final = 64
"""Requests that wait in one lane. A client sends the next one when it has the answer."""

BAD_NAME: Final = Refusal(
    status=400,
    message="Invalid 'stream_id': expected 1 to 256 of A-Z a-z 0-9 _ . -",
    param="stream_id",
    code="invalid_stream_id",
)
TOO_MANY_LANES: Final = Refusal(
    status=400,
    message=f"This connection has {MOST_LANES} streams already.",
    param="stream_id",
    code="websocket_stream_limit_reached",
)

Ended = Callable[[Caller, int, float], None]
"""Told of each request that ended: who asked, its status, when it began."""


class _Frame(Struct):
    type: str = ""
    stream_id: Any = None


_frames: Final = msgspec.json.Decoder(_Frame)


async def converse(
    world: World, caller: Caller, request: web.BaseRequest, ended: Ended
) -> web.StreamResponse:
    """Accept a client's WebSocket, and answer until it ends."""
    limits = world.config.limits
    client = await ClientSocket.accept(
        request,
        largest_message=limits.body_bytes,
        high_water=limits.unread_bytes,
        low_water=limits.drained_bytes,
    )
    session = Session(world, caller, client, ended)
    world.sessions.add(session)
    try:
        async for message in client.socket:
            if message.type in (WSMsgType.TEXT, WSMsgType.BINARY):
                # Here, and not behind it: the pings of a client that waits are answered meanwhile.
                while session.is_full and not client.ended and not client.gone:
                    await asyncio.sleep(LOOK_SECONDS)
                session.take(bytes(message.data))
    finally:
        world.sessions.discard(session)
        await session.close()
    return client.socket


class Session:
    """One client's connection."""

    def __init__(self, world: World, caller: Caller, client: ClientSocket, ended: Ended) -> None:
        self.world = world
        self.caller = caller
        self.client = client
        self.ended = ended
        self.shared: dict[str, Shared] = {}
        self._lanes: dict[str | None, Lane] = {}
        self._opening = asyncio.Lock()
        self._limits = limits = world.config.limits
        self.flow = Flow(client, self._lost, patience_seconds=limits.unread_seconds)
        self.requests = 0
        self._answered = False
        self._draining: asyncio.Task[None] | None = None

    @property
    def is_full(self) -> bool:
        """Is nothing more to be taken for now? A client is read no faster than its upstreams read,
        nor than it reads what is answered from here."""
        most = self._limits.unread_bytes
        return any(shared.backlog > most for shared in self.shared.values()) or (
            self._answered and self.client.full
        )

    def has_room_for(self, asked: Asked) -> bool:
        """May it wait here? What waits is no larger, together, than one request may be."""
        waiting = sum(lane.waiting_bytes for lane in self._lanes.values())
        return not waiting or waiting + len(asked.body) <= self._limits.body_bytes

    def answer(self, frame: bytes) -> None:
        """An answer that is no stream. No upstream is held back for it."""
        self._answered = True
        self.client.send(frame)

    def refuse(self, refusal: Refusal, lane: str | None = None) -> None:
        self.answer(refusal.frame(lane))

    def drain(self) -> None:
        """Take no more, and say goodbye when what runs has ended."""
        if self._draining is None:
            self._draining = asyncio.create_task(self._drain())

    async def _drain(self) -> None:
        await asyncio.gather(*(lane.over() for lane in self._lanes.values()))
        await self.client.close(WSCloseCode.GOING_AWAY, "The gateway is shutting down.")

    def take(self, payload: bytes) -> None:
        """A frame of the client."""
        try:
            frame = _frames.decode(payload)
        except UNREADABLE:
            self.refuse(not_a_request(NotARequest("The frame is not a JSON object. Send one.")))
            return
        name = frame.stream_id
        if name is not None and (not isinstance(name, str) or not LANE.fullmatch(name)):
            self.refuse(BAD_NAME)
        elif self._draining is not None:
            self.refuse(draining(), name)
        elif frame.type != CREATE_FRAME:
            self._pass(payload, frame)
        else:
            try:
                self._ask(name, read(payload))
            except NotARequest as error:
                self.refuse(not_a_request(error), name)

    def _ask(self, name: str | None, asked: Asked) -> None:
        lane = self._lanes.get(name)
        if lane is None:
            if len(self._lanes) >= MOST_LANES:
                self.refuse(TOO_MANY_LANES, name)
                return
            lane = self._lanes[name] = Lane(self, name)
        lane.put(asked)

    def _pass(self, payload: bytes, frame: _Frame) -> None:
        """What steers a response goes to the upstream that gives it."""
        for shared in self.shared.values():
            if shared.has(frame.stream_id):
                with suppress(LineFailure):  # its end is told to whoever hears it
                    shared.send(payload)
                return
        name = frame.stream_id if isinstance(frame.stream_id, str) else None
        refusal = Refusal(
            status=400,
            message=f"Nothing takes {frame.type or 'this frame'!r}: no response runs on this "
            "stream, or its upstream is not reached over a WebSocket.",
            param="type",
            code="invalid_request_error",
        )
        self.refuse(refusal, name)

    async def connection(self, upstream: Reached, headers: Headers) -> Shared:
        """The connection to an upstream that the lanes share."""
        async with self._opening:
            shared = self.shared.get(upstream.name)
            if shared is not None and not shared.leads_to(upstream):
                self.retire(shared)
                shared.leave_if_unheard()
                shared = None
            if shared is None or not shared.usable:
                shared = Shared(self)
                await shared.open(upstream, headers)
                self.shared[upstream.name] = shared
                self.flow.follow(shared)
            return shared

    def retire(self, shared: Shared) -> None:
        """Ask nothing new on this connection."""
        shared.retired = True
        self.shared = {name: one for name, one in self.shared.items() if one is not shared}

    def _lost(self) -> None:
        for lane in self._lanes.values():
            lane.left()

    async def close(self) -> None:
        """The client has gone; what runs is heard to its end."""
        for lane in self._lanes.values():
            lane.left()
        await asyncio.gather(*(lane.over() for lane in self._lanes.values()))
        self.flow.stop()
        for shared in self.shared.values():
            shared.leave()


class Lane:
    """The requests of one stream of a connection, in order."""

    def __init__(self, session: Session, name: str | None) -> None:
        self.name = name
        self.session = session
        self._waiting: deque[Asked] = deque()
        self._answering: Answering | None = None
        self._task: asyncio.Task[None] | None = None
        self._gone = False

    @property
    def waiting_bytes(self) -> int:
        return sum(len(asked.body) for asked in self._waiting)

    def put(self, asked: Asked) -> None:
        if len(self._waiting) >= MOST_WAITING:
            what = f"requests on stream {self.name or ''}".rstrip()
            self.session.refuse(too_many_requests(1.0, what), self.name)
            return
        if not self.session.has_room_for(asked):
            what = "bytes in requests that wait on this connection"
            self.session.refuse(too_many_requests(1.0, what), self.name)
            return
        self._waiting.append(asked)
        if self._task is None:
            self._task = asyncio.create_task(self._work())

    def left(self) -> None:
        self._gone = True
        self._waiting.clear()
        if self._answering is not None:
            self._answering.left()

    async def over(self) -> None:
        if self._task is not None:
            await asyncio.wait([self._task])

    async def _work(self) -> None:
        try:
            while self._waiting:
                await self._answer(self._waiting.popleft())
        finally:
            self._task = None

    async def _answer(self, asked: Asked) -> None:
        session = self.session
        world = session.world
        session.requests += 1
        caller = session.caller.again(session.requests)
        begun = asyncio.get_running_loop().time()
        status = 200
        try:
            # Keys are taken back, and expire, while a connection is open.
            caller.key = world.key_of(caller.headers)
            if not world.may_ask(caller.key):
                raise RequestRefused(bad_key())
            with world.place_for(caller):
                status = await self._run(caller, asked)
        except Exception as error:
            refusal = refusal_for(error, world, caller)
            status = refusal.status
            session.refuse(refusal, self.name)
        finally:
            session.ended(caller, status, begun)

    async def _run(self, caller: Caller, asked: Asked) -> int:
        """Answer one request; its status."""
        session = self.session
        world = session.world
        stream = Stream(LaneSink(session.client, self.name), Log())
        answering = Answering(world, caller, asked, stream, _Ways(self))
        self._answering = answering
        if self._gone:
            answering.left()
        world.running.add(answering)
        world.metrics.streams.inc()
        try:
            whole = await answering.run()
            if whole is None:
                return 200
            session.answer(_as_frame(whole, self.name))
            return whole.status
        finally:
            self._answering = None
            world.running.discard(answering)
            world.metrics.streams.dec()
            world.metrics.events.inc(stream.events)
            caller.events = stream.events


class _Ways:
    """A client that speaks WebSocket."""

    def __init__(self, lane: Lane) -> None:
        self._lane = lane

    def to(self, upstream: Reached) -> Way:
        return SharedWay(self._lane) if upstream.speaks_websocket else OverHttp(from_frame=True)

    def fills(self, line: Line) -> None:
        if not isinstance(line, SharedLine):
            self._lane.session.flow.follow(line)

    def drains(self, line: Line) -> None:
        if not isinstance(line, SharedLine):
            self._lane.session.flow.forget(line)

    def warms_up(self, upstream: Reached) -> bool:
        return upstream.speaks_websocket and upstream.keeps_state

    def anchor_gone(self, parent: Kept | None) -> bool:
        if parent is None or parent.asked.stored:
            return False
        return not any(
            shared.usable and parent.id in shared.newest.values()
            for shared in self._lane.session.shared.values()
        )


class SharedWay:
    """Over the connection that the lanes share."""

    framed = True

    def __init__(self, lane: Lane) -> None:
        self._lane = lane

    async def ask(self, upstream: Reached, body: bytes, headers: Headers, hearing: Hearing) -> Line:
        shared = await self._lane.session.connection(upstream, headers)
        return shared.ask(self._lane.name, body, hearing)


def _as_frame(whole: Whole, lane: str | None) -> bytes:
    """An answer of HTTP, as a frame: only refusals come so."""
    frame: dict[str, Any] = {"type": ERROR, "status": whole.status}
    if lane is not None:
        frame["stream_id"] = lane
    try:
        error = fields_of(whole.body).get("error", Raw(b"null"))
    except UNREADABLE:
        error = Raw(msgspec.json.encode({"message": whole.body.decode("utf-8", "replace")}))
    frame["error"] = error
    wait = first(whole.headers, "retry-after")
    if wait is not None:
        frame["headers"] = {"retry-after": wait}
    return msgspec.json.encode(frame)
