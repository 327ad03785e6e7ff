"""A WebSocket server that begins to answer, and then hears nothing any more."""

from __future__ import annotations

import asyncio
import re
from base64 import b64encode
from hashlib import sha1


class DeafServer:
    """Begins to answer, and never says another word, not even goodbye."""

    def __init__(self) -> None:
        self.asked, self.left = asyncio.Event(), asyncio.Event()

    async def __aenter__(self) -> DeafServer:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1")
        port = self._server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        return self

    async def __aexit__(self, *failure: object) -> None:
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        (key,) = re.findall(r"(?i)sec-websocket-key: (\S+)", head)
        accepted = b64encode(sha1(f"{key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11".encode()).digest())
        writer.write(
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Accept: " + accepted + b"\r\n\r\n"
        )
        await reader.read(1)
        said = b'{"type":"response.created","response":{"id":"resp_1"}}'
        writer.write(bytes([0x81, len(said)]) + said)
        self.asked.set()
        while await reader.read(65_536):
            pass
        self.left.set()
        writer.close()
