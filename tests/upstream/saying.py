"""A server that says any bytes to any request, and hears whether its client went away."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec

STREAM = "text/event-stream"


def events(*data: Any) -> list[bytes]:
    """Server-sent events: bytes as they are, anything else as JSON."""
    return [
        b"data: %b\n\n" % (each if isinstance(each, bytes) else msgspec.json.encode(each))
        for each in data
    ]


class Server:
    """What came, and what became of it."""

    def __init__(self) -> None:
        self.url = ""
        self.requests = 0
        self.bodies: list[bytes] = []
        self.connections = 0
        self.gone = asyncio.Event()


@asynccontextmanager
async def saying(
    pieces: Iterable[bytes],
    *,
    status: str = "200 OK",
    kind: str = STREAM,
    headers: str = "",
    stays: bool = False,
    ends: bool = True,
    then: Sequence[Iterable[bytes]] = (),
) -> AsyncIterator[Server]:
    """Every request is answered with these pieces, or those behind the first with what `then` has
    for them. `stays` says nothing more and keeps the
    connection; without `ends` it is closed where the body would end."""
    said = [list(pieces), *map(list, then)]
    server = Server()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server.connections += 1
        try:
            while await _request(reader, server):
                head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\n{headers}"
                writer.write(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode())
                for piece in said[min(server.requests, len(said)) - 1]:
                    writer.write(b"%x\r\n%b\r\n" % (len(piece), piece))
                    await writer.drain()
                if stays:
                    await reader.read()
                    return
                if not ends:
                    return
                writer.write(b"0\r\n\r\n")
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            server.gone.set()
            writer.close()

    listening = await asyncio.start_server(answer, "127.0.0.1", 0)
    host, port = listening.sockets[0].getsockname()
    server.url = f"http://{host}:{port}"
    try:
        yield server
    finally:
        listening.close()


async def _request(reader: asyncio.StreamReader, server: Server) -> bool:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return False
    fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:] if b": " in line)
    server.bodies.append(await reader.readexactly(int(fields.get(b"content-length", b"0"))))
    server.requests += 1
    return True
