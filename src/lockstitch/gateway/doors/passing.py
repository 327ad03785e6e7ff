"""Everything else under `/v1`: it goes to the first upstream that may be used, as it came."""

from __future__ import annotations

import asyncio
from typing import Final

from aiohttp import WSCloseCode, WSMsgType, web

from lockstitch.gateway.deciding import refusals
from lockstitch.gateway.responding.passing import Whole, asking_of, passed, refused, target_of, told
from lockstitch.gateway.wire import ClientSocket, Flow, HandshakeRefused, UpstreamSocket
from lockstitch.gateway.world import Caller, World

ONLY_TEXT: Final = "The gateway passes text frames only."

POLL_SECONDS: Final = 0.02
"""How often it is looked whether an upstream has taken what waits for it."""


async def everything_else(
    world: World, caller: Caller, request: web.BaseRequest
) -> web.StreamResponse:
    """A request that the gateway knows nothing of."""
    upstreams = world.upstreams_for(caller)
    if not upstreams:
        return refused(caller, refusals.no_such_model(None))
    asking = await asking_of(request, upstreams[0], caller)
    return await passed(world, caller, request, upstreams[0], asking)


async def sockets(world: World, caller: Caller, request: web.BaseRequest) -> web.StreamResponse:
    """A WebSocket that the gateway knows nothing of: text frames pass in both directions. A binary
    one ends it, from either side; no API of the providers has them."""
    upstreams = world.upstreams_for(caller)
    if not upstreams:
        return refused(caller, refusals.no_such_model(None))
    caller.upstream = upstreams[0].name
    joining = _Joining()
    try:
        joining.upstream = await upstreams[0].socket(
            target_of(request), upstreams[0].headers(caller.headers), joining
        )
    except HandshakeRefused as error:
        return told(caller, Whole(error.status, error.headers, error.body))
    limits = world.config.limits
    try:
        client = await ClientSocket.accept(
            request,
            largest_message=limits.body_bytes,
            high_water=limits.unread_bytes,
            low_water=limits.unread_bytes // 4,
        )
    except BaseException:
        joining.upstream.leave()
        raise
    joining.join(client)
    flow = Flow(client, joining.upstream.leave, patience_seconds=limits.unread_seconds)
    flow.follow(joining.upstream)
    world.running.add(joining)
    try:
        async for message in client.socket:
            if message.type is WSMsgType.BINARY:
                await client.close(WSCloseCode.UNSUPPORTED_DATA, ONLY_TEXT)
            elif message.type is WSMsgType.TEXT and joining.upstream.usable:
                joining.upstream.send(bytes(message.data))
                # A client is read no faster than its upstream reads.
                while joining.upstream.backlog > limits.unread_bytes:
                    await asyncio.sleep(POLL_SECONDS)
    finally:
        world.running.discard(joining)
        flow.stop()
        await joining.upstream.close()
    return client.socket


class _Joining:
    """Hears an upstream for a client that may not be there yet."""

    def __init__(self) -> None:
        self.upstream: UpstreamSocket
        self._client: ClientSocket | None = None
        self._early: list[bytes] = []
        self._closed: tuple[int, str] | None = None
        self._closing: asyncio.Task[None] | None = None

    def join(self, client: ClientSocket) -> None:
        self._client = client
        for payload in self._early:
            client.send(payload)
        self._early.clear()
        if self._closed is not None:
            self.closed(*self._closed)

    def stop(self, why: str) -> None:
        """The gateway ends it."""
        self.closed(WSCloseCode.GOING_AWAY, why)

    # What the upstream's connection calls.

    def frame(self, payload: bytes) -> None:
        if self._client is None:
            self._early.append(payload)
        else:
            self._client.send(payload)

    def closed(self, code: int, reason: str) -> None:
        if self._client is None:
            self._closed = (code, reason)
        else:
            self._closing = asyncio.create_task(self._client.close(code, reason))
