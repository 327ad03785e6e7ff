"""What a connection to a realtime provider is to a session: events out, events in, an end.

`openai_connection` is that of the official client, `websocket` one of our own; whatever has these
three methods will do."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, Protocol, TypeAlias

import msgspec

from lockstitch.dialects.characters import read_whole
from lockstitch.dialects.reading import UNREADABLE
from lockstitch.realtime.errors import ConnectionLost
from lockstitch.realtime.limits import CLOSE_SECONDS

Event: TypeAlias = dict[str, Any]


class Connection(Protocol):
    """One connection. Both ways raise `ConnectionLost` once it has ended."""

    async def send(self, event: Event) -> None: ...

    async def receive(self) -> Mapping[str, Any] | str | bytes:
        """The next event of the server: as JSON, or decoded."""
        ...

    async def close(self) -> None: ...


async def hang_up(connection: Connection) -> None:
    """End a connection, whatever it says to that. Nobody waits long for it."""
    with suppress(Exception):
        async with asyncio.timeout(CLOSE_SECONDS):
            await connection.close()


Connect: TypeAlias = Callable[[], Awaitable[Connection]]
"""Opens a new connection; asked again whenever one is lost. Raises `UpstreamFailure`, which says
whether another try makes sense; any `OSError` is taken for one that does."""


def event_of(received: Mapping[str, Any] | str | bytes) -> Event:
    """A server event, decoded. What is no event ends the connection: nothing behind it is sure."""
    if isinstance(received, Mapping):
        return dict(received)
    try:
        data = received if isinstance(received, bytes) else received.encode()
        event = read_whole(msgspec.json.decode, data)
    except UNREADABLE as error:
        raise ConnectionLost(f"The server sent what is no JSON: {error}.") from None
    if not isinstance(event, dict):
        raise ConnectionLost(f"The server sent what is no event: {received!r:.80}.")
    return event
