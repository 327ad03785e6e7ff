"""The bytes of frames that a WebSocket server sends: whole, unmasked, uncompressed. Pure.

RFC 6455, 5.2. Reading frames is left to the libraries on either side."""

from __future__ import annotations

from functools import lru_cache
from struct import Struct
from typing import Final

LARGEST_REASON_BYTES: Final = 123
"""RFC 6455, 5.5: a control frame holds 125 bytes, and the code takes two."""

_TEXT: Final = 0x81

_short: Final = Struct("!BB").pack
_medium: Final = Struct("!BBH").pack
_long: Final = Struct("!BBQ").pack


def text_frame(payload: bytes) -> bytes:
    """One text message, in one frame. That it is UTF-8 is the caller's word."""
    return _text_head(len(payload)) + payload


@lru_cache(maxsize=4096)  # words of a model have few lengths
def _text_head(length: int) -> bytes:
    """What stands before a text message of so many bytes."""
    # "The minimal number of bytes MUST be used to encode the length."
    if length < 126:
        return _short(_TEXT, length)
    if length < 65536:
        return _medium(_TEXT, 126, length)
    return _long(_TEXT, 127, length)
