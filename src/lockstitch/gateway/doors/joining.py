"""A client's WebSocket and an upstream's, joined: text frames pass in both directions.

What becomes of a frame of the Realtime API is decided in `deciding.realtime`; here it is carried
out. No API of the providers has binary frames: one ends it, from either side."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Final

from aiohttp import WSCloseCode, WSMsgType, web

from lockstitch.gateway.deciding.realtime import (
    PASSING,
    CarryOut,
    DeleteOutput,
    Drop,
    Hold,
    LeaveOut,
    Pass,
    RealtimeConversation,
    Redirect,
    Refuse,
    Rewrite,
    Step,
    Steps,
)
from lockstitch.gateway.responding.passing import Whole, target_of, told
from lockstitch.gateway.upstreams import Reached
from lockstitch.gateway.wire import ClientSocket, Flow, HandshakeRefused, UpstreamSocket
from lockstitch.gateway.world import Caller, World

ONLY_TEXT: Final = "The gateway passes text frames only."
NO_KEY: Final = "The key of this connection was taken back, or has expired."

SUBPROTOCOLS: Final = ("realtime",)
"""Browsers show their key in another one beside it (`access.keys`), and take it for a failure if
none is agreed on."""

LOOK_SECONDS: Final = 0.05
"""How often a side that does not read is looked at, while the client is not read."""

COUNTED: Final[dict[type[Step], str]] = {
    Hold: "delete_held",
    Drop: "delete_dropped",
    CarryOut: "delete_carried_out",
    DeleteOutput: "output_deleted",
    Refuse: "output_refused",
    Rewrite: "predecessor_rewritten",
    Redirect: "create_redirected",
}
"""What is counted, and noted in the log."""

_SENDABLE: Final = {
    # RFC 6455, 7.4.1: these "MUST NOT be set as a status code in a Close control frame".
    1005: WSCloseCode.OK,
    1006: WSCloseCode.INTERNAL_ERROR,
    1015: WSCloseCode.INTERNAL_ERROR,
}


async def joined(
    world: World,
    caller: Caller,
    request: web.BaseRequest,
    upstream: Reached,
    conversation: RealtimeConversation | None = None,
) -> web.StreamResponse:
    """Both, until one of them ends. Without a ``conversation`` all frames only pass."""
    caller.upstream = upstream.name
    between = _Between(world, caller, conversation)
    try:
        line = await upstream.socket(target_of(request), upstream.headers(caller.headers), between)
    except HandshakeRefused as error:
        return told(caller, Whole(error.status, error.headers, error.body))
    line.pause()  # until there is somebody to tell
    limits = world.config.limits
    try:
        client = await ClientSocket.accept(
            request,
            largest_message=limits.body_bytes,
            high_water=limits.unread_bytes,
            low_water=limits.drained_bytes,
            subprotocols=SUBPROTOCOLS,
        )
    except BaseException:
        line.leave()
        raise
    between.join(client, line)
    flow = Flow(client, line.leave, patience_seconds=limits.unread_seconds)
    flow.follow(line)
    line.resume()
    world.running.add(between)
    world.passing.add(between)
    between.look_at_key()
    try:
        async for message in client.socket:
            if message.type is WSMsgType.BINARY:
                await client.close(WSCloseCode.UNSUPPORTED_DATA, ONLY_TEXT)
            elif message.type is WSMsgType.TEXT and line.usable:
                between.said(bytes(message.data))
                # A client is read no faster than its upstream reads.
                while between.is_full(limits.unread_bytes) and not client.ended:
                    await asyncio.sleep(LOOK_SECONDS)
    finally:
        world.running.discard(between)
        world.passing.discard(between)
        flow.stop()
        between.end()
        await line.close()
    return client.socket


class _Between:
    """Stands between a client and an upstream, and carries out what is decided."""

    def __init__(
        self, world: World, caller: Caller, conversation: RealtimeConversation | None
    ) -> None:
        self._world = world
        self._metrics = world.metrics
        self._caller = caller
        self._conversation = conversation
        self._loop = asyncio.get_running_loop()
        self._client: ClientSocket
        self._upstream: UpstreamSocket
        self._timer: asyncio.TimerHandle | None = None
        self._expiry: asyncio.TimerHandle | None = None
        self._closing: asyncio.Task[None] | None = None
        self._done: Counter[str] = Counter()
        self._answered = False

    def join(self, client: ClientSocket, upstream: UpstreamSocket) -> None:
        """Both sides are there. Nothing was heard before."""
        self._client = client
        self._upstream = upstream

    def is_full(self, most_bytes: int) -> bool:
        """Is the client to say no more for now? Its answers from here are what it may not read."""
        return self._upstream.backlog > most_bytes or (self._answered and self._client.full)

    def end(self) -> None:
        """One side has gone: what is held is held for nobody."""
        for timer in (self._timer, self._expiry):
            if timer is not None:
                timer.cancel()
        self._metrics.events.inc(self._caller.events)
        for what, times in self._done.items():
            self._caller.note(f"{what}: {times}")

    def stop(self, why: str) -> None:
        """The gateway ends it."""
        self.closed(WSCloseCode.GOING_AWAY, why)

    def look_at_key(self) -> None:
        """End it if its key is no more; otherwise look again when the key expires."""
        if self._expiry is not None:
            self._expiry.cancel()
            self._expiry = None
        world = self._world
        key = world.key_of(self._caller.headers)
        if not world.may_ask(key):
            self._caller.note("the key is no more")
            self.closed(WSCloseCode.POLICY_VIOLATION, NO_KEY)
        elif key is not None and key.expires is not None:
            left = key.expires - world.clock()
            self._expiry = self._loop.call_later(left, self.look_at_key)

    # --- the client --------------------------------------------------------------------------

    def said(self, payload: bytes) -> None:
        conversation = self._conversation
        steps = PASSING
        if conversation is not None:
            steps = conversation.from_client(payload, self._loop.time())
        if steps is PASSING:
            self._upstream.send(payload)
            return
        self._carry_out(steps, b"")
        self._set_timer()

    def _set_timer(self) -> None:
        """Held deletes have their time. It never comes earlier than it was set for."""
        deadline = self._conversation.deadline if self._conversation is not None else None
        if deadline is not None and self._timer is None:
            self._timer = self._loop.call_at(deadline, self._expire)

    def _expire(self) -> None:
        self._timer = None
        if self._conversation is not None:
            self._carry_out(self._conversation.expire(self._loop.time()), b"")
        self._set_timer()

    # --- the upstream ------------------------------------------------------------------------

    def frame(self, payload: bytes) -> None:
        conversation = self._conversation
        steps = PASSING if conversation is None else conversation.from_upstream(payload)
        if steps is PASSING:
            self._tell(payload)
        else:
            self._carry_out(steps, payload)

    def closed(self, code: int, reason: str) -> None:
        if self._closing is None:
            said = _SENDABLE.get(code, code)
            self._closing = asyncio.create_task(self._client.close(said, reason))

    # --- what is decided ---------------------------------------------------------------------

    def _carry_out(self, steps: Steps, event: bytes) -> None:
        for step in steps:
            match step:
                case Pass():
                    self._tell(event)
                case Rewrite(event=instead):
                    self._tell(instead)
                case Drop(answer=answer) | Refuse(answer=answer):
                    self._answered = True
                    self._tell(answer)
                case Redirect(frame=frame) | CarryOut(frame=frame) | DeleteOutput(frame=frame):
                    if self._upstream.usable:
                        self._upstream.send(frame)
                case Hold() | LeaveOut():
                    pass
            what = COUNTED.get(type(step))
            if what is not None:
                self._done[what] += 1
                self._metrics.realtime.labels(what).inc()

    def _tell(self, event: bytes) -> None:
        self._caller.events += 1
        self._client.send(event)
