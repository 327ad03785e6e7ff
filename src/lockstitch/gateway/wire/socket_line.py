"""A WebSocket to an upstream, on picows: frames come to whoever listens from its callback.

Many answers can go over one connection; whose frame it is is not known here."""

from __future__ import annotations

import asyncio
import contextlib
import re
import ssl as tls
from collections import deque
from collections.abc import Callable
from functools import lru_cache
from typing import Final, Protocol

import picows
from msgspec import Struct

from lockstitch.gateway.lines import Headers, LineFailure
from lockstitch.gateway.wire.frames import LARGEST_REASON_BYTES
from lockstitch.gateway.wire.heads import HOP_BY_HOP, base_of, own_target, written
from lockstitch.gateway.wire.looks import looks_here

_OURS: Final = HOP_BY_HOP | {
    "accept-encoding",
    "content-length",
    "content-type",
    "expect",
    "host",
    "sec-websocket-accept",
    "sec-websocket-extensions",
    "sec-websocket-key",
    "sec-websocket-protocol",
    "sec-websocket-version",
}
"""The handshake is ours, from end to end. No extension is offered, so none can be used."""

CLOSE_SECONDS: Final = 2.0
"""For the upstream to answer that it heard of the end."""

ABNORMAL: Final = 1006
"""RFC 6455, 7.4.1: the connection was lost without a word."""

_NO_CODE: Final = 1005
"""RFC 6455, 7.4.1: it was closed without saying why."""

_TEXT: Final = picows.WSMsgType.TEXT
_STATUS: Final = re.compile(rb"HTTP/1\.\d (\d{3})")


class SocketLimits(Struct, frozen=True, kw_only=True):
    """What one connection may take."""

    open_seconds: float = 10.0
    """For name, TCP, TLS and the handshake together."""
    largest_message_bytes: int = 64 * 1024 * 1024
    """A completed response holds everything that the model said. Longer ones end the connection."""
    ping_seconds: float = 20.0
    """Without a frame before we ask whether anybody is there; at most twice as long, because a
    frame does not look at the clock."""
    pong_seconds: float = 30.0
    """For the answer to that. A large frame may be in front of it."""


class HandshakeRefused(LineFailure):
    """The upstream did not open a WebSocket. It has been asked for nothing else."""

    def __init__(self, message: str, *, status: int, headers: Headers, body: bytes) -> None:
        super().__init__(message, sent=False)
        self.status = status
        self.headers = headers
        self.body = body
        """As much of it as came with the head."""


class SocketHearing(Protocol):
    """Who listens to a connection. Every call comes from the event loop."""

    def frame(self, payload: bytes) -> None:
        """One text message, whole. That it is UTF-8 was not looked at."""
        ...

    def closed(self, code: int, reason: str) -> None:
        """It is over, and not because of our own `close`. Comes once, and last."""
        ...


class UpstreamSocket(picows.WSListener):
    """One connection. After its end every call does nothing."""

    __slots__ = (
        "_end",
        "_heard",
        "_hearing",
        "_held",
        "_in_parts",
        "_limits",
        "_looks",
        "_loop",
        "_lost",
        "_parts",
        "_parts_bytes",
        "_pass",
        "_passes",
        "_paused",
        "_pinged",
        "_transport",
        "_watch",
    )

    def __init__(self, hearing: SocketHearing, limits: SocketLimits) -> None:
        super().__init__()
        self._hearing: SocketHearing | None = hearing
        self._limits = limits
        self._loop = asyncio.get_running_loop()
        self._looks = looks_here()
        self._transport: picows.WSTransport | None = None
        self._parts: list[bytes] = []
        self._parts_bytes = 0
        self._in_parts = False
        # Until whoever opens it has it: frames may come together with the handshake's answer.
        self._paused = True
        self._held: deque[bytes] = deque()
        """Frames that came out of the same read as the one at which we were paused."""
        self._pass: Callable[[bytes], bool] | None = None
        """Takes a message, if it is one that nothing follows from."""
        self._passes: Callable[[bytes], bool] | None = None
        """The same, where nothing is in the way."""
        self._heard = False
        """Since it was looked at last."""
        self._pinged = False
        self._watch: asyncio.TimerHandle | None = None
        self._end: tuple[int, str] | None = None
        self._lost = False

    @property
    def usable(self) -> bool:
        transport = self._transport
        return transport is not None and not (
            transport.is_disconnected or transport.is_close_frame_sent
        )

    @property
    def backlog(self) -> int:
        """Bytes that the upstream has not taken."""
        if self._transport is None or self._transport.is_disconnected:
            return 0
        return self._transport.underlying_transport.get_write_buffer_size()

    def send(self, text: bytes) -> None:
        """Send one text message, at once. Raises `LineFailure` if the connection is over."""
        if self._transport is None or not self.usable:
            raise LineFailure("The WebSocket to the upstream is closed. Open another.", sent=False)
        self._transport.send(picows.WSMsgType.TEXT, text)

    def pass_to(self, take: Callable[[bytes], bool] | None) -> None:
        """Ask this first whether it takes a message; what it does not take is told as ever."""
        self._pass = take
        self._open_or_close()

    def _open_or_close(self) -> None:
        blocked = self._paused or self._held or self._in_parts or self._end is not None
        self._passes = None if blocked or self._hearing is None else self._pass

    def pause(self) -> None:
        """Read no more for now, and tell nothing more until `resume`."""
        if not self._paused:
            self._paused = True
            self._passes = None
            if self._transport is not None and self.usable:
                self._transport.underlying_transport.pause_reading()

    def resume(self) -> None:
        if self._paused:
            self._paused = False
            # Nothing could be heard meanwhile.
            self._heard = True
            if self._transport is not None and not self._transport.is_disconnected:
                self._transport.underlying_transport.resume_reading()
            # Not from inside of the caller's own call. Frames that come before it are behind these.
            self._loop.call_soon(self._tell_held)

    def leave(self) -> None:
        """Nobody listens any more: break the connection."""
        self._hearing = self._passes = None
        self._stop_watching()
        if self._transport is not None:
            self._transport.disconnect(graceful=False)

    async def close(self, code: int = 1000, reason: str = "") -> None:
        """Say goodbye, and wait for the upstream to have heard it; not long."""
        self._hearing = self._passes = None
        self._stop_watching()
        transport = self._transport
        if transport is None or transport.is_disconnected:
            return
        self.resume()
        self._say_goodbye(code, reason)
        with contextlib.suppress(TimeoutError, picows.WSError):
            async with asyncio.timeout(CLOSE_SECONDS):
                await transport.wait_disconnected()
        transport.disconnect(graceful=False)

    # What picows calls.

    def on_ws_connected(self, transport: picows.WSTransport) -> None:
        self._transport = transport
        if self._hearing is None:
            # Left before it was there.
            transport.disconnect(graceful=False)
            return
        self._watch = self._loop.call_later(self._limits.ping_seconds, self._check)

    def on_ws_frame(self, transport: picows.WSTransport, frame: picows.WSFrame) -> None:
        self._heard = True
        if not self._looks.looked:
            self._looks.look(self._loop)
        hearing = self._hearing
        if hearing is None or self._end is not None:
            if frame.msg_type == picows.WSMsgType.CLOSE:
                transport.disconnect()
            return
        if frame.rsv1 or frame.rsv2 or frame.rsv3:
            self._refuse(1002, "a frame has bits of an extension that was not agreed on")
        elif frame.msg_type == _TEXT and frame.fin and not self._in_parts:
            payload = frame.get_payload_as_bytes()
            passes = self._passes
            if passes is not None and passes(payload):
                return
            if self._paused or self._held:
                self._held.append(payload)
            else:
                hearing.frame(payload)
        else:
            self._unusual_frame(transport, frame)

    def on_ws_disconnected(self, transport: picows.WSTransport) -> None:
        self._stop_watching()
        self._end = self._end or _seen_by(transport)
        self._lost = True
        self._tell_held()

    def pause_writing(self) -> None:
        return None  # `backlog` tells

    def resume_writing(self) -> None:
        return None

    # How it is told.

    def _tell(self, message: bytes) -> None:
        if self._paused or self._held:
            self._held.append(message)
        elif self._hearing is not None:
            self._hearing.frame(message)

    def _tell_held(self) -> None:
        while self._held and not self._paused and self._hearing is not None:
            try:
                self._hearing.frame(self._held.popleft())
            except Exception:
                # As picows does where it calls itself.
                self._held.clear()
                self._refuse(1011, "whoever listens failed")
                raise
        self._open_or_close()
        if self._lost and self._end is not None and not self._paused:
            hearing, self._hearing = self._hearing, None
            if hearing is not None:
                hearing.closed(*self._end)

    # What is rare.

    def _unusual_frame(self, transport: picows.WSTransport, frame: picows.WSFrame) -> None:
        kind = frame.msg_type
        if kind == picows.WSMsgType.TEXT:
            if self._in_parts:
                self._refuse(1002, "a message began inside of another")
                return
            self._in_parts = True
            self._passes = None
            self._part(frame)
        elif kind == picows.WSMsgType.CONTINUATION:
            if self._in_parts:
                self._part(frame)
            else:
                self._refuse(1002, "a continuation frame without a message")
        elif kind == picows.WSMsgType.CLOSE:
            code = int(frame.get_close_code().value) or _NO_CODE
            self._end = (code, frame.get_close_reason() or "")
            # RFC 6455, 5.5.1: an endpoint that was told goodbye says it, too.
            self._say_goodbye(1000 if code == _NO_CODE else code, "")
            transport.disconnect()
        elif kind == picows.WSMsgType.BINARY:
            self._refuse(1003, "a frame is binary")

    def _part(self, frame: picows.WSFrame) -> None:
        self._parts_bytes += frame.payload_size
        if self._parts_bytes > self._limits.largest_message_bytes:
            self._refuse(
                1009, f"a message is longer than {self._limits.largest_message_bytes} bytes"
            )
            return
        self._parts.append(frame.get_payload_as_bytes())
        if frame.fin:
            message = b"".join(self._parts)
            self._forget_parts()
            self._tell(message)

    def _forget_parts(self) -> None:
        self._parts.clear()
        self._parts_bytes = 0
        self._in_parts = False
        self._open_or_close()

    def _refuse(self, code: int, why: str) -> None:
        """The upstream broke a rule: nothing behind it can be trusted."""
        self._end = (code, f"The upstream broke the WebSocket protocol: {why}.")
        self._forget_parts()
        self._say_goodbye(code, why)
        if self._transport is not None:
            self._transport.disconnect()

    def _say_goodbye(self, code: int, reason: str) -> None:
        if self._transport is None or not self.usable:
            return
        cut = reason.encode("utf-8", "replace")[:LARGEST_REASON_BYTES].decode("utf-8", "ignore")
        self._transport.send_close(code, cut.encode())  # type: ignore[arg-type]  # any code is one

    def _check(self) -> None:
        """Once in a while, so that a frame costs no timer."""
        transport = self._transport
        if transport is None or self._hearing is None:
            return
        limits = self._limits
        left = limits.ping_seconds
        if self._heard or self._paused:
            self._heard = self._pinged = False
        elif self._pinged:
            self._end = (ABNORMAL, f"No answer to a ping within {limits.pong_seconds:g} seconds.")
            transport.disconnect(graceful=False)
            return
        else:
            self._pinged = True
            transport.send_ping(b"lockstitch")
            left = limits.pong_seconds
        self._watch = self._loop.call_later(left, self._check)

    def _stop_watching(self) -> None:
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None

    def __repr__(self) -> str:
        return f"<UpstreamSocket {'open' if self.usable else 'closed'}>"


async def open_socket(
    url: str,
    headers: Headers,
    hearing: SocketHearing,
    *,
    ssl: tls.SSLContext | None = None,
    limits: SocketLimits | None = None,
) -> UpstreamSocket:
    """Open a WebSocket; the address may be http(s) or ws(s). A `LineFailure` if there is none."""
    limits = limits or SocketLimits()
    name, address = _address_of(url)
    opened = UpstreamSocket(hearing, limits)
    try:
        async with asyncio.timeout(limits.open_seconds):
            _, listener = await picows.ws_connect(
                lambda: opened,
                address,
                ssl_context=ssl,
                websocket_handshake_timeout=limits.open_seconds,
                max_frame_size=limits.largest_message_bytes,
                extra_headers=written(headers, without=_OURS),
                # A key is for the server it was given for.
                max_redirects=0,
                # Its own transports cost more than uvloop's where each frame comes by itself.
                use_aiofastnet=False,
            )
    except BaseException as error:
        # The handshake may still come to its end, and nobody would have the connection.
        opened.leave()
        failure = _failure(name, error, limits)
        if failure is None:
            raise
        raise failure from error
    if listener is None:
        # picows returns all the same if the connection is lost before it was answered.
        raise LineFailure(
            f"The upstream {name} closed the connection in the handshake.", sent=False
        )
    opened.resume()
    return opened


@lru_cache(maxsize=64)  # an upstream has one for all answers
def _address_of(url: str) -> tuple[str, str]:
    """The name of a server, and the whole address as picows takes it."""
    base = base_of(re.sub(r"^ws(s?)://", r"http\1://", url))
    scheme = "wss" if base.secure else "ws"
    return base.authority, f"{scheme}://{base.authority}{own_target(base)}"


def _failure(name: str, error: BaseException, limits: SocketLimits) -> LineFailure | None:
    """What is told of why there is no connection; nothing of what is not about it."""
    if isinstance(error, picows.WSHandshakeError):
        return _refusal(name, error)
    if isinstance(error, TimeoutError):
        return LineFailure(
            f"No WebSocket to the upstream {name} within {limits.open_seconds:g} seconds.",
            sent=False,
        )
    if isinstance(error, OSError | UnicodeError | picows.WSError):
        return LineFailure(f"No WebSocket to the upstream {name}: {error}.", sent=False)
    return None


def _refusal(name: str, error: picows.WSHandshakeError) -> LineFailure:
    # A status that Python's own list does not have (529) is only in the bytes.
    found = _STATUS.match(error.raw_header or b"")
    if found is None:
        return LineFailure(f"No WebSocket to the upstream {name}: {error}.", sent=False)
    status = int(found[1])
    headers = list(error.response.headers.items()) if error.response is not None else []
    if status == 101:
        return LineFailure(f"No WebSocket to the upstream {name}: {error}.", sent=False)
    return HandshakeRefused(
        f"The upstream {name} answered the handshake with status {status}.",
        status=status,
        headers=headers,
        body=error.raw_body or b"",
    )


def _seen_by(transport: picows.WSTransport) -> tuple[int, str]:
    """How picows itself ended it, where it found frames that break the rules."""
    shaken = transport.close_handshake
    if shaken is not None and shaken.sent is not None:
        return int(shaken.sent.code.value), shaken.sent.reason
    return ABNORMAL, "The connection was lost."
