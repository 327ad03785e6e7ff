"""WebSocket frames (RFC 6455), as little of them as the bench's own two ends need: no fragments, no
extensions."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator

TEXT, CLOSE, PING, PONG = 1, 8, 9, 10
_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


def accepted(key: bytes) -> bytes:
    """`Sec-WebSocket-Accept` for a key."""
    return base64.b64encode(hashlib.sha1(key + _GUID).digest())


def text_frame(payload: bytes) -> bytes:
    """As a server sends it."""
    return bytes((0x80 | TEXT,)) + _length(len(payload), 0) + payload


def masked_frame(payload: bytes, opcode: int = TEXT) -> bytes:
    """As a client sends it. A mask of zeros is a mask, and costs nothing."""
    return bytes((0x80 | opcode,)) + _length(len(payload), 0x80) + bytes(4) + payload


def _length(length: int, masked: int) -> bytes:
    if length < 126:
        return bytes((masked | length,))
    if length < 65536:
        return bytes((masked | 126,)) + length.to_bytes(2, "big")
    return bytes((masked | 127,)) + length.to_bytes(8, "big")


class FrameReader:
    """Bytes in, whole frames out."""

    def __init__(self) -> None:
        self._kept = b""

    def read(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """Opcode and payload of every frame that is whole now. Read it to its end."""
        data = self._kept + data if self._kept else data
        start, size = 0, len(data)
        while size - start >= 2:
            length = data[start + 1] & 0x7F
            body = start + 2
            if length >= 126:
                wide = 2 if length == 126 else 8
                length = int.from_bytes(data[body : body + wide], "big")
                body += wide
            mask = b""
            if data[start + 1] & 0x80:
                mask = data[body : body + 4]
                body += 4
            if body + length > size:
                break
            yield data[start] & 0x0F, _unmasked(data[body : body + length], mask)
            start = body + length
        self._kept = data[start:]


def _unmasked(payload: bytes, mask: bytes) -> bytes:
    if not any(mask):
        return payload
    size = len(payload)
    key = (mask * (size // 4 + 1))[:size]
    return (int.from_bytes(payload, "big") ^ int.from_bytes(key, "big")).to_bytes(size, "big")
