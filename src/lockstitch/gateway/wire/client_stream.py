"""A client's side of an answer over HTTP: aiohttp writes its head, the body goes past aiohttp.

The server's own writer wakes a task for each piece; here a piece is one write into the transport,
from whatever callback it came in. The end is aiohttp's again, and keep-alive its business."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Callable, Coroutine
from typing import Any, Final, Self, TypeVar

from aiohttp import HttpVersion11, web
from aiohttp.http import StreamWriter

from lockstitch.gateway.lines import Headers
from lockstitch.gateway.wire.heads import HOP_BY_HOP, written
from lockstitch.gateway.wire.outlet import HIGH_WATER_BYTES, LOW_WATER_BYTES, Outlet

_OURS: Final = HOP_BY_HOP | {"content-length"}
"""How the body is framed towards the client is not how it was framed towards us."""

_NO_BODY: Final = frozenset({204, 304})

_RESET: Final = struct.pack("ii", 1, 0)
"""Close without waiting, which the system tells the other side as a reset."""


T = TypeVar("T")


def _at_once(steps: Coroutine[Any, Any, T]) -> T:
    """What aiohttp does in a coroutine, and without waiting for anything."""
    try:
        steps.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    steps.close()
    raise AssertionError("the head of an answer was waited for")


class _Response(web.StreamResponse):
    """One whose head waits for the first piece of its body, to go out with it."""

    _send_headers_immediately = False


class ClientStream(Outlet):
    """One answer to one client. A handler begins it, and returns its `response` after the end."""

    __slots__ = ("_chunked", "_silent", "_writer", "response")

    def __init__(
        self,
        transport: asyncio.Transport,
        writer: StreamWriter,
        response: web.StreamResponse,
        *,
        silent: bool,
        high_water: int,
        low_water: int,
    ) -> None:
        super().__init__(transport, writer.drain, high_water=high_water, low_water=low_water)
        self._writer = writer
        self._chunked = writer.chunked
        self._silent = silent
        self.response: Final = response
        """What the handler returns to aiohttp."""

    @classmethod
    async def begin(
        cls,
        request: web.BaseRequest,
        status: int,
        headers: Headers,
        *,
        high_water: int = HIGH_WATER_BYTES,
        low_water: int = LOW_WATER_BYTES,
    ) -> Self:
        """`begun`, before there is anything of the body."""
        return cls.begun(request, status, headers, b"", high_water=high_water, low_water=low_water)

    @classmethod
    def begun(
        cls,
        request: web.BaseRequest,
        status: int,
        headers: Headers,
        first: bytes,
        *,
        high_water: int = HIGH_WATER_BYTES,
        low_water: int = LOW_WATER_BYTES,
    ) -> Self:
        """Send the head, and with it the first piece of the body, if that is there. Headers about
        a single connection, and the length, are left out.

        Raises `ConnectionError` if the client has gone away, `Unwritable` if a header cannot be
        sent; either leaves everything as it was."""
        response = _Response(status=status)
        for name, value in written(headers, without=_OURS):
            response.headers.add(name, value)
        silent = request.method == "HEAD" or status in _NO_BODY
        if request.version < HttpVersion11 and not silent:
            # No chunks there: the body ends with the connection, also where it should be kept.
            response.force_close()
        transport = request.transport
        if transport is None or transport.is_closing():
            raise ConnectionResetError("The client went away before its answer began.")
        writer = _at_once(response.prepare(request))
        assert isinstance(writer, StreamWriter)
        if first and not silent:
            _at_once(writer.write(first, drain=False))
        else:
            writer.send_headers()
        stream = cls(
            transport,
            writer,
            response,
            silent=silent,
            high_water=high_water,
            low_water=low_water,
        )
        stream.check()
        return stream

    def write(self, data: bytes) -> None:
        """Send a piece of the body, at once."""
        if self.ended or self._silent or not data:
            # An empty chunk would be the end.
            return
        self.put(b"%x\r\n%b\r\n" % (len(data), data) if self._chunked else data)

    def passes(self) -> Callable[[bytes], None] | None:
        """Takes a piece of the body that is a chunk already, as long as the answer has not ended;
        None if it is not sent in chunks."""
        return self.put if self._chunked and not self._silent else None

    def end(self, last: bytes = b"") -> None:
        """The body is whole, with this last piece of it. The connection can have its next
        request."""
        if self.ended:
            return
        if last and self._chunked and not self._silent:
            self.put(b"%x\r\n%b\r\n0\r\n\r\n" % (len(last), last))
            self._writer.chunked = False  # its own end has been written
        else:
            self.write(last)
        self.ended = True
        self._writer.output_size += self.written  # what the access log shows
        if not self.gone:
            self._writer.set_eof()

    def cut(self) -> None:
        """End the answer so that the client sees that it is not whole."""
        if self.ended:
            return
        self.ended = True
        if self._chunked:
            # What was sent arrives, and its end does not.
            self._transport.close()
            return
        # Without chunks a body ends with the connection, so only one that is broken tells.
        raw = self._transport.get_extra_info("socket")
        if raw is not None and not self.gone:
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self.abort()
