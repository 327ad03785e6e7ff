"""One connection to an upstream that the lanes of a client share, and who listens to which of them.

A frame belongs to the lane that it names. What an upstream still says of a response that failed,
or has ended, is passed over: a client would take it for its next answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Protocol

from lockstitch.gateway.events import (
    CREATED,
    ERROR,
    FAILED,
    TERMINAL,
    WATCHED,
    Event,
    body_of,
    peeked,
)
from lockstitch.gateway.lines import Headers, Hearing, LineFailure
from lockstitch.gateway.responding.ways import RESPONSES, of_no_body
from lockstitch.gateway.upstreams import Reached
from lockstitch.gateway.wire import ClientSocket, Flow, UpstreamSocket

OF_A_RESPONSE: Final = "response."
STEERING: Final = "response.steer"


class Sharing(Protocol):
    """Whose connection it is."""

    client: ClientSocket
    flow: Flow

    def retire(self, shared: Shared) -> None:
        """Ask nothing new on this connection."""
        ...


class Shared:
    """One connection to an upstream, and who listens to which of its streams."""

    def __init__(self, session: Sharing) -> None:
        self._session = session
        self._to: Reached | None = None
        self._socket: UpstreamSocket | None = None
        self._hearing: dict[str | None, Hearing] = {}
        self._passed: Callable[[bytes], bool] | None = None
        """Takes a frame that belongs to no lane, if nothing follows from it."""
        self._busy: set[str | None] = set()
        self._muted: set[str | None] = set()
        """Streams whose last response failed, and may still be talking."""
        self._begun: dict[str | None, str | None] = {}
        self.retired = False
        """Nothing new is asked here; what runs may end."""
        self.newest: dict[str | None, str] = {}
        """The response that the upstream keeps with this connection, for each stream."""

    @property
    def usable(self) -> bool:
        return self._socket is not None and self._socket.usable

    @property
    def backlog(self) -> int:
        """Bytes that the upstream has not taken."""
        return self._socket.backlog if self._socket is not None else 0

    def has(self, lane: Any) -> bool:
        return lane in self._hearing

    def leads_to(self, upstream: Reached) -> bool:
        """Is it a connection as one to this upstream would be now? It may have been moved."""
        return self._to is not None and self._to.is_reached_as(upstream)

    async def open(self, upstream: Reached, headers: Headers) -> None:
        self._to = upstream
        self._socket = await upstream.socket(RESPONSES, of_no_body(headers), self)

    def ask(self, lane: str | None, frame: bytes, hearing: Hearing) -> SharedLine:
        assert self._socket is not None
        self._hearing[lane] = hearing
        self._busy.add(lane)
        if lane is None:
            self._passed = getattr(hearing, "passed_frame", None)
        try:
            self._socket.send(frame)
        except LineFailure:
            del self._hearing[lane]
            self._busy.discard(lane)
            self._passed = None if lane is None else self._passed
            raise
        self._open_or_close()
        return SharedLine(self, lane, hearing)

    def send(self, frame: bytes) -> None:
        if self._socket is not None:
            self._socket.send(frame)

    def _open_or_close(self) -> None:
        """What belongs to no lane passes by itself, unless it belongs to what failed."""
        if self._socket is not None:
            self._socket.pass_to(None if None in self._muted else self._passed)

    # What the connection calls.

    def frame(self, payload: bytes) -> None:
        event = peeked(payload)
        lane = event.stream_id if isinstance(event.stream_id, str) else None
        hearing = self._hearing.get(lane)
        if event.type in WATCHED and not self._is_next(lane, event):
            return
        if lane in self._muted and event.type != ERROR:
            return
        if hearing is not None:
            hearing.heard(payload)
        elif event.type == ERROR and lane is None and self._hearing:
            # About the connection: it concerns every stream of it.
            for one in list(self._hearing.values()):
                one.heard(payload)
        elif event.type == ERROR:
            # The connection is old, or broken: the client's is neither, and asked nothing.
            self._session.retire(self)
            self.leave()
        elif not event.type.startswith(OF_A_RESPONSE) or event.type.startswith(STEERING):
            self._session.client.send(payload)
        # Otherwise it is a late word of a response that is over, and would be taken for the next.

    def _is_next(self, lane: str | None, event: Event) -> bool:
        """Does this event belong to what the stream is to hear? What follows from it is noted."""
        if event.type == ERROR:
            # A request that failed takes its parent with it. What its response may still say is
            # passed over, until the next one begins.
            self.newest.pop(lane, None)
            self._busy.discard(lane)
            self._muted.add(lane)
            self._open_or_close()
            return True
        if event.type == CREATED:
            response = body_of(event.response).id
            if response == self._begun.get(lane) and lane not in self._muted:
                return False
            self._muted.discard(lane)
            self._open_or_close()
            self._begun[lane] = response
        elif event.type in TERMINAL and lane not in self._muted:
            response = body_of(event.response).id
            if response is not None and response == self.newest.get(lane):
                return False
            self._busy.discard(lane)
            self.newest.pop(lane, None)
            if event.type != FAILED and response is not None:
                self.newest[lane] = response
        return True

    def closed(self, code: int, reason: str) -> None:
        hearing, self._hearing = self._hearing, {}
        self._passed = None
        self._busy.clear()
        failure = LineFailure(
            f"The upstream closed the WebSocket ({code}) {reason}".strip(), sent=True
        )
        self._session.flow.forget(self)
        for one in hearing.values():
            one.broke(failure)

    # As a line: the flow to the client holds back all streams at once.

    def pause(self) -> None:
        if self._socket is not None:
            self._socket.pause()

    def resume(self) -> None:
        if self._socket is not None:
            self._socket.resume()

    def leave(self) -> None:
        self._session.flow.forget(self)
        if self._socket is not None:
            self._socket.leave()

    def leave_if_unheard(self) -> None:
        if not self._hearing:
            self.leave()

    def release(self, lane: str | None, hearing: Hearing) -> None:
        """Nobody listens to this stream any more."""
        if self._hearing.get(lane) is hearing:
            del self._hearing[lane]
            if lane is None:
                self._passed = None
                self._open_or_close()
        if lane in self._busy:
            # The upstream is still busy with it, and would answer nothing else there.
            self._session.retire(self)
        if self.retired:
            self.leave_if_unheard()


class SharedLine:
    """One answer on a shared connection."""

    def __init__(self, shared: Shared, lane: str | None, hearing: Hearing) -> None:
        self._shared = shared
        self._lane = lane
        self._hearing = hearing

    def pause(self) -> None:
        self._shared.pause()

    def resume(self) -> None:
        self._shared.resume()

    def leave(self) -> None:
        self._shared.release(self._lane, self._hearing)
