"""Ways to ask an upstream: over HTTP, or over a WebSocket of its own for each answer.

The lanes of a client's WebSocket share one connection to their upstream; that way is in
`doors.socket`."""

from __future__ import annotations

from typing import Protocol

from lockstitch.gateway.deciding.asked import frame, http_body
from lockstitch.gateway.lines import Asking, Headers, Hearing, Line, LineFailure
from lockstitch.gateway.upstreams import Reached
from lockstitch.gateway.wire import UpstreamSocket

RESPONSES = "/responses"


class Way(Protocol):
    """How an upstream is asked for one response."""

    framed: bool
    """Does each event come in a frame of its own?"""

    async def ask(
        self, upstream: Reached, body: bytes, headers: Headers, hearing: Hearing
    ) -> Line: ...


class OverHttp:
    """Each request is a POST. A frame of a client becomes one that is answered by a stream."""

    framed = False

    def __init__(self, target: str = RESPONSES, *, from_frame: bool = False) -> None:
        self._target = target
        self._from_frame = from_frame

    async def ask(self, upstream: Reached, body: bytes, headers: Headers, hearing: Hearing) -> Line:
        if self._from_frame:
            body = http_body(body)
            headers = [*of_no_body(headers), ("content-type", "application/json")]
        asking = Asking(method="POST", target=self._target, headers=headers, body=body)
        return await upstream.ask(asking, hearing)


class OverSocket:
    """Each request has a WebSocket of its own, for an upstream that speaks nothing else."""

    framed = True

    async def ask(self, upstream: Reached, body: bytes, headers: Headers, hearing: Hearing) -> Line:
        sent = frame(body)
        single = _Single(hearing)
        single.socket = await upstream.socket(RESPONSES, of_no_body(headers), single)
        single.socket.send(sent)
        return single


def of_no_body(headers: Headers) -> Headers:
    """What a handshake says beside its body, which it does not have."""
    return [one for one in headers if not one[0].lower().startswith("content-")]


class _Single:
    """A WebSocket with one answer."""

    def __init__(self, hearing: Hearing) -> None:
        self._hearing = hearing
        self.socket: UpstreamSocket | None = None

    def frame(self, payload: bytes) -> None:
        self._hearing.heard(payload)

    def closed(self, code: int, reason: str) -> None:
        self._hearing.broke(
            LineFailure(f"The upstream closed the WebSocket ({code}) {reason}".strip(), sent=True)
        )

    def pause(self) -> None:
        if self.socket is not None:
            self.socket.pause()

    def resume(self) -> None:
        if self.socket is not None:
            self.socket.resume()

    def leave(self) -> None:
        if self.socket is not None:
            self.socket.leave()
