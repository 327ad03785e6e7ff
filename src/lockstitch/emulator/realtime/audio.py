"""Audio in a Realtime session: how long some bytes are, bytes of some length, and the buffer.

Nothing is heard here. What a simulated user says travels beside the audio, as text."""

import base64
import binascii
from collections import deque
from typing import Any

from lockstitch.emulator.limits import (
    LARGEST_REALTIME_BUFFER_BYTES,
    LARGEST_REALTIME_SILENCE_BYTES,
)
from lockstitch.emulator.realtime import refusals as realtime_refusals

# Bytes in a millisecond: PCM is 24 kHz in 16 bits, the G.711 formats are 8 kHz in 8 bits.
_BYTES_A_MILLISECOND = {"audio/pcm": 48, "audio/pcmu": 8, "audio/pcma": 8}
# A hum that nobody hears: the two smallest PCM samples, and the silence of G.711.
_HUM = {"audio/pcm": b"\x00\x00\x01\x00", "audio/pcmu": b"\xff\xff", "audio/pcma": b"\xd5\xd5"}
# A slow reader's pace, so that two words are never at the same millisecond.
_WORD_MILLISECONDS = 300


def milliseconds_of(size: int, format: dict[str, Any]) -> float:
    return size / _BYTES_A_MILLISECOND[format["type"]]


def hum(milliseconds: int, format: dict[str, Any]) -> bytes:
    """Audio of this length: the same for the same length."""
    size = milliseconds * _BYTES_A_MILLISECOND[format["type"]]
    pattern = _HUM[format["type"]]
    return pattern * (size // len(pattern))


def spoken_milliseconds(text: str) -> int:
    """How long somebody speaks who says this."""
    return _WORD_MILLISECONDS * max(1, len(text.split()))


def encoded(audio: bytes) -> str:
    return base64.b64encode(audio).decode()


def decoded(text: str, param: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise realtime_refusals.not_audio(param) from None


class InputBuffer:
    """What the user said and nobody committed yet."""

    def __init__(self) -> None:
        self._pieces: deque[bytes] = deque()
        self._size = 0
        self._words: list[str] = []
        # Bytes of audio that the session ever received.
        self.received = 0

    @property
    def size(self) -> int:
        return self._size

    def append(self, audio: bytes, words: str = "") -> None:
        """More audio, and the words in it, if somebody speaks."""
        if self._size + len(audio) > LARGEST_REALTIME_BUFFER_BYTES:
            raise realtime_refusals.buffer_full(LARGEST_REALTIME_BUFFER_BYTES)
        self._pieces.append(audio)
        self._size += len(audio)
        self.received += len(audio)
        if words:
            self._words.append(words)

    def forget_silence(self) -> None:
        """Drop the oldest of a long silence, as whoever detects turns does."""
        while self._size > LARGEST_REALTIME_SILENCE_BYTES and not self._words:
            self._size -= len(self._pieces.popleft())

    def take(self) -> tuple[bytes, str]:
        """All of it: the audio, and the words that were spoken in it."""
        audio, words = b"".join(self._pieces), " ".join(self._words)
        self.clear()
        return audio, words

    def clear(self) -> None:
        self._pieces.clear()
        self._words.clear()
        self._size = 0

    def __repr__(self) -> str:
        return f"<InputBuffer {self._size} bytes>"
