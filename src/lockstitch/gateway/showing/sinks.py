"""Where events go: an HTTP response, a lane of a WebSocket, or nowhere before the end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from aiohttp import web

from lockstitch.gateway.config.model import Limits
from lockstitch.gateway.events import ERROR, TERMINAL, Heard, error_as_frame, with_stream_id
from lockstitch.gateway.headers import to_client
from lockstitch.gateway.lines import Headers, Line
from lockstitch.gateway.showing.streams import sse_of
from lockstitch.gateway.wire import ClientSocket, ClientStream, Flow, Unwritable

LAST_SECONDS: Final = 0.005
"""The last event waits so long at most for the end of the body, to go out with it: both are there
in the same turn of the loop, unless something else has to be written down first."""


def _nothing() -> None:
    return None


class SseSink:
    """An HTTP response that is a stream of events."""

    framed = False

    def __init__(
        self,
        request: web.BaseRequest,
        own_headers: Callable[[], Headers],
        limits: Limits,
    ) -> None:
        self._request = request
        self._own_headers = own_headers
        self._limits = limits
        self.when_lost: Callable[[], None] = _nothing
        """Called once if the client goes away before the end."""
        self.passes: Callable[[bytes], None] | None = None
        self._head: tuple[int, Headers] | None = None
        self._client: ClientStream | None = None
        self._flow: Flow | None = None
        self._line: Line | None = None
        self._failure: Unwritable | None = None
        self._last = b""
        self._waits: asyncio.TimerHandle | None = None
        self._over = False
        self.gone = False

    def begin(self, status: int, headers: Headers) -> None:
        """The head goes out with the first events."""
        self._head = (status, headers)

    def show(self, block: bytes | None, events: Sequence[Heard]) -> None:
        if block is None:
            block = b"".join(sse_of(heard) for heard in events)
        if self._client is None:
            if not self.gone:
                self._begin(block)
        elif self._waits is None and events and events[-1].event.type in TERMINAL:
            self._last = block
            loop = asyncio.get_running_loop()
            self._waits = loop.call_later(LAST_SECONDS, self._write_last)
        else:
            self._write_last()
            self._client.write(block)

    def _write_last(self) -> None:
        if self._client is not None and self._last:
            self._client.write(self._last)
            self._last = b""

    def _begin(self, first: bytes) -> None:
        assert self._head is not None
        status, headers = self._head
        try:
            client = ClientStream.begun(
                self._request,
                status,
                to_client(headers, self._own_headers()),
                first,
                high_water=self._limits.unread_bytes,
                low_water=self._limits.drained_bytes,
            )
        except Unwritable as failure:
            self._failure = failure
            self.gone = True
        except ConnectionError:
            self._leave()
        else:
            self._client = client
            self._flow = Flow(client, self._leave, patience_seconds=self._limits.unread_seconds)
            if self._line is not None:
                self._flow.follow(self._line)
            if not self._over:
                self.passes = client.passes()

    def follow(self, line: Line) -> None:
        """This line fills it from now on: hold it back if the client does not read."""
        if self._flow is not None:
            if self._line is not None:
                self._flow.forget(self._line)
            self._flow.follow(line)
        self._line = line

    def end(self) -> None:
        self._over = True
        self.passes = None

    async def finish(self) -> web.StreamResponse:
        """What the handler gives back to the server, once everything was shown."""
        if self._client is None and self._head is not None and not self.gone:
            self._begin(b"")
        if self._failure is not None:
            raise self._failure
        self._line = self.passes = None
        self.when_lost = _nothing
        if self._client is None or self._flow is None:
            return web.Response(status=499)  # nobody reads it
        if self._waits is not None:
            self._waits.cancel()
            self._waits = None
        self._client.end(self._last)
        self._last = b""
        self._flow.stop()
        return self._client.response

    def _leave(self) -> None:
        if not self.gone:
            self.gone = True
            self.passes = None
            if self._line is not None and self._flow is not None:
                self._flow.forget(self._line)
            if not self._over:
                self.when_lost()


class LaneSink:
    """A lane of a client's WebSocket."""

    framed = True

    def __init__(self, socket: ClientSocket, stream_id: str | None) -> None:
        self._socket = socket
        self._stream_id = stream_id
        # What has a name is given it; what has none goes as it came.
        self.passes: Callable[[bytes], None] | None = socket.send if stream_id is None else None

    def begin(self, status: int, headers: Headers) -> None:
        """A lane has no head."""

    def show(self, block: bytes | None, events: Sequence[Heard]) -> None:
        for heard in events:
            data = heard.data
            if block is not None and heard.event.type == ERROR:
                data = error_as_frame(data)
            if self._stream_id is not None and heard.event.stream_id != self._stream_id:
                data = with_stream_id(data, self._stream_id)
            self._socket.send(data)

    def end(self) -> None:
        """The next answer of the lane comes behind."""


class UnseenSink:
    """For a client that asked for no stream: only the last event is of interest."""

    passes: Callable[[bytes], None] | None = None
    framed = False

    def __init__(self) -> None:
        self.last: Heard | None = None

    def begin(self, status: int, headers: Headers) -> None: ...

    def show(self, block: bytes | None, events: Sequence[Heard]) -> None:
        for heard in events:
            if heard.event.type in TERMINAL:
                self.last = heard

    def end(self) -> None: ...
