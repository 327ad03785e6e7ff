"""What a line to an upstream is to the rest: one answer under way, told by plain calls.

An upstream's bytes arrive in the callback of its connection, and go on from there without a task
being woken: that is what an event costs. Lines are in `wire`; who listens is `relay`."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Sequence
from typing import Final, Protocol, TypeAlias

from msgspec import Struct

from lockstitch.core.errors import LockstitchError

Headers: TypeAlias = Sequence[tuple[str, str]]
"""Names as they came, in order; a name may come twice."""


class Asking(Struct, frozen=True, kw_only=True):
    """One request to an upstream."""

    method: str
    target: str
    """The path and the query, behind the upstream's own base path: `/responses?include=…`."""
    headers: Headers
    """What goes on to the upstream; the line adds what it must (host, length)."""
    body: bytes = b""


UNREACHED: Final[tuple[tuple[type[Exception], str], ...]] = (
    (ssl.SSLCertVerificationError, "its certificate is not trusted"),
    (ssl.SSLError, "TLS failed"),
    (socket.gaierror, "its name is not known"),
    # A name that no resolver can be asked for.
    (UnicodeError, "its name is not known"),
    (ConnectionRefusedError, "it refused the connection"),
    (TimeoutError, "there was no connection in time"),
)
"""Why there is no connection, in words that anybody may see: no address is in them. The first that
fits; most of them are kinds of one another."""


class LineFailure(LockstitchError):
    """The line to an upstream failed. Its words name the address, and are for the log."""

    def __init__(self, message: str, *, sent: bool, timed_out: bool = False) -> None:
        super().__init__(message)
        self.sent = sent
        """May the upstream have the request?"""
        self.timed_out = timed_out

    @property
    def unreached(self) -> str | None:
        """Why there was no connection, for everybody; None where there was one, or nobody knows."""
        cause = self.__cause__
        return next((why for kind, why in UNREACHED if isinstance(cause, kind)), None)


class Hearing(Protocol):
    """Who listens to an answer. Every call comes from the event loop, in this order: `begun`, any
    number of `heard`, then once `ended` or `broke`, which may also come alone.

    One that can take what passes as it came has `passed`, too, for a whole chunk of HTTP with whole
    events, or `passed_frame`, for a payload. It is asked first; what it does not take (False) is
    told as heard."""

    def begun(self, status: int, headers: Headers) -> None: ...

    def heard(self, data: bytes) -> None:
        """Bytes of a body as they came, or the whole payload of one frame."""
        ...

    def ended(self) -> None:
        """The answer is there whole, as far as its framing tells."""
        ...

    def broke(self, failure: LineFailure) -> None:
        """The line broke before that."""
        ...


class Line(Protocol):
    """One answer that is being heard."""

    def pause(self) -> None:
        """Read no more for now: whoever listens cannot keep up."""
        ...

    def resume(self) -> None: ...

    def leave(self) -> None:
        """Nobody listens any more. `Hearing` is not called again."""
        ...


def first(headers: Headers, name: str) -> str | None:
    """The value of a header, whatever its case; ``name`` is in lower case."""
    length = len(name)
    for key, value in headers:
        if len(key) == length and key.lower() == name:
            return value
    return None


def is_event_stream(headers: Headers) -> bool:
    """Are these the headers of a stream of events? One that is still packed cannot be read as
    such: it goes on as it came."""
    kind = first(headers, "content-type") or ""
    coding = first(headers, "content-encoding") or "identity"
    return kind.lower().startswith("text/event-stream") and coding.lower() == "identity"
