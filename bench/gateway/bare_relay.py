"""The least that a relay in Python can be: aiohttp on both sides, and a look at each event's type.

A process of its own, run as `python -m bench.gateway.bare_relay PORT UPSTREAM_PORT`. It keeps
nothing, retries nothing and holds nothing back."""

from __future__ import annotations

import asyncio
import sys

from aiohttp import ClientSession, ClientTimeout, TCPConnector, web

from bench.gateway.loops import run_on_uvloop

_DROPPED = {"host", "content-length", "transfer-encoding", "connection"}


class Peeking:
    """Splits events and reads their types."""

    def __init__(self) -> None:
        self._kept = b""
        self.terminal = False

    def look(self, data: bytes) -> None:
        *events, self._kept = (self._kept + data).split(b"\n\n")
        for event in events:
            at = event.find(b'"type":"')
            kind = event[at + 8 : event.find(b'"', at + 8)]
            if kind == b"response.completed":
                self.terminal = True


async def main(port: int, upstream: int) -> None:
    session = ClientSession(
        connector=TCPConnector(limit=0), timeout=ClientTimeout(total=None), auto_decompress=False
    )

    async def relay(request: web.Request) -> web.StreamResponse:
        body = await request.read()
        url = f"http://127.0.0.1:{upstream}{request.path_qs}"
        headers = {k: v for k, v in request.headers.items() if k.lower() not in _DROPPED}
        async with session.post(url, data=body, headers=headers) as answer:
            passed = {k: v for k, v in answer.headers.items() if k.lower() not in _DROPPED}
            response = web.StreamResponse(status=answer.status, headers=passed)
            response.enable_chunked_encoding()
            await response.prepare(request)
            peeking = Peeking()
            async for data in answer.content.iter_any():
                peeking.look(data)
                await response.write(data)
            await response.write_eof()
        return response

    application = web.Application()
    application.router.add_post("/{path:.*}", relay)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port, backlog=1024).start()
    await asyncio.Event().wait()


if __name__ == "__main__":
    run_on_uvloop(main(*map(int, sys.argv[1:3])))
