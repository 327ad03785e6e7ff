"""The straightest relay there is: an upstream's bytes to a client, for tests of both together."""

from __future__ import annotations

import asyncio
from typing import Any

from aiohttp import web

from lockstitch.gateway.lines import Headers, LineFailure
from lockstitch.gateway.wire.client_stream import ClientStream
from lockstitch.gateway.wire.flow import Flow
from lockstitch.gateway.wire.http_pool import HttpLines
from tests.gateway.wire.playing import asking


class Relay:
    """Writes what it hears into a client's stream, and keeps the largest backlog it saw."""

    def __init__(self, request: web.Request, **flow: Any) -> None:
        self._request = request
        self._flow_options = flow
        self._stream: ClientStream | None = None
        self._head: asyncio.Future[tuple[int, Headers]] = asyncio.get_running_loop().create_future()
        self._over = asyncio.Event()
        self.is_lost = False
        self.largest_backlog = 0
        self.line: Any = None

    async def run(self, lines: HttpLines) -> web.StreamResponse:
        self.line = await lines.ask(asking(body=await self._request.read()), self)
        # Nothing is heard before there is a stream to write it to.
        status, headers = await self._head
        self._stream = await ClientStream.begin(self._request, status, headers)
        flow = Flow(self._stream, self._lost, **self._flow_options)
        flow.follow(self.line)
        self.line.resume()
        await self._over.wait()
        flow.stop()
        self.line.leave()
        return self._stream.response

    def begun(self, status: int, headers: Headers) -> None:
        self.line.pause()
        self._head.set_result((status, headers))

    def heard(self, data: bytes) -> None:
        assert self._stream is not None
        self._stream.write(data)
        self.largest_backlog = max(self.largest_backlog, self._stream.backlog)

    def ended(self) -> None:
        assert self._stream is not None
        self._stream.end()
        self._over.set()

    def broke(self, failure: LineFailure) -> None:
        if self._stream is not None:
            self._stream.cut()
        self._over.set()

    def _lost(self) -> None:
        self.is_lost = True
        self._over.set()
