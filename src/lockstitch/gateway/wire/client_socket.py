"""A client's side of a WebSocket: aiohttp accepts and receives, frames go out past aiohttp.

A frame is one write into the transport, from whatever callback it came in, and never waits."""

from __future__ import annotations

import contextlib
from typing import Final, Literal, Self

from aiohttp import WSCloseCode, web

from lockstitch.gateway.wire.frames import LARGEST_REASON_BYTES, text_frame
from lockstitch.gateway.wire.outlet import HIGH_WATER_BYTES, LOW_WATER_BYTES, Outlet

LARGEST_MESSAGE_BYTES: Final = 64 * 1024 * 1024
"""A request holds a whole history, with its pictures."""

HEARTBEAT_SECONDS: Final = 60.0
"""A client that went away without a word is noticed after this, and half as long again."""

CLOSE_SECONDS: Final = 2.0
"""For a client to answer that it heard of the end."""


class ClientSocket(Outlet):
    """One client's connection. Iterate over `socket` for what it says: texts come as bytes."""

    __slots__ = ("socket",)

    def __init__(
        self,
        request: web.BaseRequest,
        socket: web.WebSocketResponse[Literal[False]],
        *,
        high_water: int,
        low_water: int,
    ) -> None:
        transport = request.transport
        if transport is None or transport.is_closing():
            raise ConnectionResetError("The client went away before its connection was accepted.")
        super().__init__(
            transport, request.writer.drain, high_water=high_water, low_water=low_water
        )
        self.socket: Final = socket
        """What is iterated over, and what the handler returns to aiohttp."""

    @classmethod
    async def accept(
        cls,
        request: web.BaseRequest,
        *,
        largest_message: int = LARGEST_MESSAGE_BYTES,
        heartbeat_seconds: float | None = HEARTBEAT_SECONDS,
        high_water: int = HIGH_WATER_BYTES,
        low_water: int = LOW_WATER_BYTES,
        subprotocols: tuple[str, ...] = (),
    ) -> Self:
        """Answer the handshake. Raises aiohttp's `HTTPBadRequest` if it is none.

        Compression is declined: frames go out as they came, and are looked into on their way."""
        socket: web.WebSocketResponse[Literal[False]] = web.WebSocketResponse(
            timeout=CLOSE_SECONDS,
            protocols=subprotocols,
            heartbeat=heartbeat_seconds,
            compress=False,
            max_msg_size=largest_message,
            decode_text=False,
        )
        await socket.prepare(request)
        return cls(request, socket, high_water=high_water, low_water=low_water)

    def send(self, payload: bytes) -> None:
        """Send a text frame, at once."""
        # RFC 6455, 5.5.1: "MUST NOT send any more data frames after sending a Close frame".
        if not self.ended and not self.socket.closed:
            self.put(text_frame(payload))

    async def close(self, code: int = WSCloseCode.OK, reason: str = "") -> None:
        """Say goodbye, and wait for the client to have heard it; not long."""
        if self.ended:
            return
        self.ended = True
        cut = reason.encode("utf-8", "replace")[:LARGEST_REASON_BYTES]
        with contextlib.suppress(ConnectionError):
            await self.socket.close(
                code=code, message=cut.decode("utf-8", "ignore").encode(), drain=not self.full
            )
