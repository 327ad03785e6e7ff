"""The realtime connection of the official client."""

from __future__ import annotations

from typing import Any

import msgspec
from openai import AsyncOpenAI
from openai.resources.realtime.realtime import AsyncRealtimeConnection

from lockstitch.realtime.connection import Connect, Event
from lockstitch.realtime.errors import ConnectionLost
from lockstitch.upstream.failures import Stage, failure_raised, library_errors
from lockstitch.upstream.sockets import OPTIONS

_encode = msgspec.json.Encoder().encode


def openai_realtime(client: AsyncOpenAI, model: str, **options: Any) -> Connect:
    """Connections of an official client; ``options`` go to its `realtime.connect`.

    Its own reconnecting stays off: a new connection is a new session, and must be filled."""

    async def connect() -> OpenAIConnection:
        asked = {"websocket_connection_options": OPTIONS, **options}
        try:
            return OpenAIConnection(await client.realtime.connect(model=model, **asked).enter())
        except library_errors() as error:
            raise failure_raised(error, stage=Stage.UNSENT) from error

    return connect


class OpenAIConnection:
    """One connection that `client.realtime.connect()` gave."""

    def __init__(self, connection: AsyncRealtimeConnection) -> None:
        self._connection = connection
        self._errors = library_errors()

    async def send(self, event: Event) -> None:
        try:
            await self._connection.send_raw(_encode(event).decode())
        except self._errors as error:
            raise _lost(error) from error

    async def receive(self) -> bytes:
        try:
            return await self._connection.recv_bytes()
        except self._errors as error:
            raise _lost(error) from error

    async def close(self) -> None:
        await self._connection.close()

    def __repr__(self) -> str:
        return f"<OpenAIConnection {self._connection!r}>"


def _lost(error: Exception) -> ConnectionLost:
    return ConnectionLost(f"The connection ended: {error or type(error).__name__}.")
