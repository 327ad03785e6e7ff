"""A WebSocket of our own, by its URL: for providers that no official client knows, and for those
who do without one."""

from __future__ import annotations

from collections.abc import Mapping

import aiohttp
import msgspec

from lockstitch.realtime.connection import Connect, Event
from lockstitch.realtime.errors import ConnectionLost
from lockstitch.realtime.limits import HEARTBEAT_SECONDS
from lockstitch.upstream.contract import Fate
from lockstitch.upstream.failures import Stage, failure_of_ours, failure_said
from lockstitch.upstream.said import Said
from lockstitch.upstream.sse import LARGEST_EVENT_BYTES

_encode = msgspec.json.Encoder().encode


def websocket(
    url: str, *, key: str | None = None, headers: Mapping[str, str] | None = None
) -> Connect:
    """Connections to ``wss://…/v1/realtime?model=…``, with this key or these headers."""
    sent = {**({} if key is None else {"Authorization": f"Bearer {key}"}), **(headers or {})}

    async def connect() -> WebSocket:
        http = aiohttp.ClientSession()
        try:
            socket = await http.ws_connect(
                url, headers=sent, heartbeat=HEARTBEAT_SECONDS, max_msg_size=LARGEST_EVENT_BYTES
            )
        except aiohttp.WSServerHandshakeError as error:
            await http.close()
            said = Said(status=error.status, message=error.message)
            raise failure_said(said, stage=Stage.UNSENT) from error
        except aiohttp.InvalidURL as error:
            await http.close()
            raise failure_of_ours(f"{url} is not a URL.", Fate.REFUSED, Stage.UNSENT) from error
        except (aiohttp.ClientError, OSError) as error:
            await http.close()
            told = f"The connection failed: {error}."
            raise failure_of_ours(told, Fate.BUSY, Stage.UNSENT) from error
        except BaseException:
            await http.close()
            raise
        return WebSocket(http, socket)

    return connect


class WebSocket:
    """One connection."""

    def __init__(
        self, http: aiohttp.ClientSession, socket: aiohttp.ClientWebSocketResponse
    ) -> None:
        self._http = http
        self._socket = socket

    async def send(self, event: Event) -> None:
        try:
            await self._socket.send_str(_encode(event).decode())
        except (aiohttp.ClientError, OSError) as error:
            raise ConnectionLost(f"The connection ended: {error}.") from error

    async def receive(self) -> str | bytes:
        message = await self._socket.receive()
        if message.type in {aiohttp.WSMsgType.TEXT, aiohttp.WSMsgType.BINARY}:
            data: str | bytes = message.data
            return data
        why = f"with the code {self._socket.close_code}" if self._socket.close_code else "unasked"
        told = f": {message.extra}" if message.extra else ""
        raise ConnectionLost(f"The connection ended {why}{told}.")

    async def close(self) -> None:
        try:
            await self._socket.close()
        finally:  # also if nobody waits for the server's goodbye any longer
            await self._http.close()

    def __repr__(self) -> str:
        return f"<WebSocket {'closed' if self._socket.closed else 'open'}>"
