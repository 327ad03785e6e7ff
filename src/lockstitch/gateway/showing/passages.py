"""Events that nothing follows from: straight from a line into a client's transport.

Nearly every event goes this way. Where each comes by itself the processor has forgotten us between
two of them, and what counts is how little is touched: one call, and all that is to be known of
these events is found out later. Which are plain is told in `events`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from lockstitch.gateway.events import block_in_chunk, block_in_frame, is_plain, is_plain_frame

MOST_WAITING: Final = 256
"""Events that were passed on and not yet put away; the next one goes the long way, which does."""


class Passage:
    """The short way of one answer. Closed where anything is in the way."""

    __slots__ = ("_put", "_put_away", "last", "waiting")

    def __init__(self) -> None:
        self._put: Callable[[bytes], None] | None = None
        self._put_away = 0
        self.waiting: list[bytes] = []
        """What was passed on, as it came: chunks of HTTP, or payloads of frames."""
        self.last: bytes | None = None
        """What was put away last, unless something else was shown behind it."""

    def open(self, put: Callable[[bytes], None] | None) -> None:
        """Pass what is plain on to this; nothing passes where it is None."""
        self._put = put

    def close(self) -> None:
        self._put = None

    @property
    def events(self) -> int:
        """How many events it has passed on."""
        return self._put_away + len(self.waiting)

    def chunk(self, chunk: bytes) -> bool:
        """Pass a chunk of HTTP on, if it is plain; was it?"""
        put = self._put
        if put is None or not is_plain(chunk):
            return False
        waiting = self.waiting
        waiting.append(chunk)
        put(chunk)
        if len(waiting) >= MOST_WAITING:
            self._put = None
        return True

    def frame(self, payload: bytes) -> bool:
        """The same for the payload of a frame."""
        put = self._put
        if put is None or not is_plain_frame(payload):
            return False
        waiting = self.waiting
        waiting.append(payload)
        put(payload)
        if len(waiting) >= MOST_WAITING:
            self._put = None
        return True

    def put_away(self) -> list[bytes]:
        """What was passed on since the last time, as it came: `block_of` makes lines of it."""
        waiting, self.waiting = self.waiting, []
        self._put_away += len(waiting)
        self.last = waiting[-1]
        return waiting


def block_of(raw: bytes) -> bytes:
    """The lines of an event that was passed on. A frame is an object, a chunk begins with a
    length."""
    return block_in_frame(raw) if raw.startswith(b"{") else block_in_chunk(raw)
