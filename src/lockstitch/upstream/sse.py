"""Server-sent events: bytes in, the data of whole events out.

Names, ids and comments are not handed on: what the providers send says its type itself. An event
that is not ended by an empty line was not said."""

from __future__ import annotations

from typing import Final

LARGEST_EVENT_BYTES: Final = 64 * 1024 * 1024
"""A response with several pictures is a few MiB in one event. Beyond this, it is no event."""

_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"


class EventTooLarge(ValueError):
    """The stream has no end of an event in it for too long."""


class Events:
    """One stream of events, as it comes in pieces."""

    __slots__ = ("_after_return", "_buffer", "_looked", "_started")

    def __init__(self) -> None:
        self._buffer = bytearray()
        # How much of the buffer holds no end of an event.
        self._looked = 0
        self._after_return = False
        self._started = False

    def feed(self, piece: bytes) -> list[bytes]:
        """The data of the events that this piece ends."""
        if b"\r" in piece or self._after_return:
            piece = self._with_line_feeds(piece)
        buffer = self._buffer
        buffer += piece
        if not self._started:
            if _BYTE_ORDER_MARK.startswith(buffer[:3]) and len(buffer) < 3:
                return []
            self._started = True
            if buffer.startswith(_BYTE_ORDER_MARK):
                del buffer[:3]
        end = buffer.rfind(b"\n\n", self._looked)
        if end < 0:
            if len(buffer) > LARGEST_EVENT_BYTES:
                raise EventTooLarge(f"An event is larger than {LARGEST_EVENT_BYTES:,} bytes")
            # The first of the two line feeds may be the last byte here.
            self._looked = max(len(buffer) - 1, 0)
            return []
        whole = bytes(buffer[:end])
        del buffer[: end + 2]
        self._looked = 0
        return [data for event in whole.split(b"\n\n") if (data := _data(event))]

    def _with_line_feeds(self, piece: bytes) -> bytes:
        """A line may end with CR, LF, or both; a CR at the end of a piece may be half of both."""
        if self._after_return and piece.startswith(b"\n"):
            piece = piece[1:]
            self._after_return = False
        if piece:
            self._after_return = piece.endswith(b"\r")
        return piece.replace(b"\r\n", b"\n").replace(b"\r", b"\n")


def _data(event: bytes) -> bytes:
    """What stands behind `data:`, with several lines of it joined."""
    # Nearly every event is one name and one line of data.
    lines = [line[5:] for line in event.split(b"\n") if line.startswith(b"data:")]
    if len(lines) == 1:
        line = lines[0]
        return line[1:] if line.startswith(b" ") else line
    return b"\n".join(line[1:] if line.startswith(b" ") else line for line in lines)
