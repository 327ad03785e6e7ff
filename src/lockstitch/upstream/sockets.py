"""One WebSocket of the official client: frames out and in, and whether it can still be used.

Every failure of it is an `UpstreamFailure` that says how far the request had come."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import Any, Final, Self

import msgspec
from msgspec import Struct
from openai import AsyncOpenAI

from lockstitch.upstream.failures import Stage, failure_raised, library_errors
from lockstitch.upstream.sse import LARGEST_EVENT_BYTES

OLDEST_SECONDS: Final = 55 * 60.0
"""The provider ends a connection after 60 minutes, also in the middle of an answer. Five are left
for one that is begun."""

CLOSE_SECONDS: Final = 1.0
"""A server that is still talking may take its time to hear that we are going. Nobody waits for it
longer."""

OPTIONS: Final[Any] = {
    "max_size": LARGEST_EVENT_BYTES,
    "compression": None,
    # It then lets go by itself. The client passes this on, though its types do not name it.
    "close_timeout": CLOSE_SECONDS,
}
"""Of every WebSocket of the official client."""

_closing: Final[set[asyncio.Task[None]]] = set()
"""What goes on with nobody waiting: the event loop itself holds a task only weakly."""


class _Frame(Struct):
    type: str = ""


_frames: Final = msgspec.json.Decoder(_Frame)


class Socket:
    """One connection. Answers come one after the other."""

    __slots__ = ("_connection", "_errors", "_expires", "_heard", "_over", "_seconds", "newest")

    def __init__(self, connection: Any, seconds: float | None) -> None:
        self._connection = connection
        self._errors = library_errors()
        self._expires = time.monotonic() + OLDEST_SECONDS
        self._seconds = seconds
        self._heard = False
        self._over = False
        self.newest: str | None = None
        """The response that the provider keeps with this connection."""

    @classmethod
    async def opened(cls, client: AsyncOpenAI) -> Self:
        """A new connection. Nothing was sent if it cannot be had."""
        try:
            connection = await client.responses.connect(
                websocket_connection_options=OPTIONS
            ).enter()
        except library_errors() as error:
            raise failure_raised(error, stage=Stage.UNSENT) from error
        return cls(connection, _seconds(client.timeout))

    async def send(self, frame: str) -> None:
        self._heard = False
        try:
            await self._connection.send_raw(frame)
        except self._errors as error:
            raise failure_raised(error) from error

    async def receive(self) -> bytes:
        """The next frame; as long may pass without one as over HTTP without a byte."""
        try:
            async with asyncio.timeout(self._seconds):
                frame: bytes = await self._connection.recv_bytes()
        except self._errors as error:
            raise failure_raised(error, stage=self._stage()) from error
        self._heard = True
        return frame

    async def is_usable(self) -> bool:
        """Is it open, young enough, and silent? Late words of the last answer are passed over; an
        error between two answers is about the connection, and once told it stays told."""
        self._over = self._over or time.monotonic() > self._expires or not await self._is_silent()
        return not self._over

    async def _is_silent(self) -> bool:
        # Two turns of the loop: one reads what came, one hands it on.
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        while True:
            try:
                async with asyncio.timeout(0):
                    frame = await self._connection.recv_bytes()
            except TimeoutError:
                return True
            except self._errors:
                return False
            if _is_error(frame):
                return False

    async def close(self) -> None:
        """Say goodbye. Who stops waiting for that does not keep the connection open."""
        closing = asyncio.create_task(self._say_goodbye())
        _closing.add(closing)
        closing.add_done_callback(_closing.discard)
        await asyncio.wait([closing])

    async def _say_goodbye(self) -> None:
        with suppress(*self._errors):
            await self._connection.close()

    def _stage(self) -> Stage:
        return Stage.HEARD if self._heard else Stage.SENT

    def __repr__(self) -> str:
        return f"<Socket after {self.newest or 'nothing'}>"


def _is_error(frame: bytes) -> bool:
    try:
        return _frames.decode(frame).type == "error"
    except (msgspec.DecodeError, UnicodeDecodeError):
        return True


def _seconds(timeout: Any) -> float | None:
    """How long the client waits for bytes: a number, or an object with one for each purpose."""
    read = getattr(timeout, "read", timeout)
    return float(read) if isinstance(read, int | float) else None
