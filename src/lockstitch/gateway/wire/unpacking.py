"""A body that came packed although it was asked for as it is: gzip and deflate, piece by piece.

Other codings need libraries that may not be there: such a body stays as it came, and says so. No
I/O."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from lockstitch.core.errors import LockstitchError
from lockstitch.gateway.lines import Headers, first

if TYPE_CHECKING:
    from zlib import _Decompress

CODING: Final = "content-encoding"

LARGEST_UNPACKED_BYTES: Final = 64 * 1024 * 1024
"""Of one piece, which is some 256 KB at most. Text becomes ten times as large, not hundreds."""

_GZIP: Final = 16 + zlib.MAX_WBITS
_METHOD: Final = 0x0F
_MEMBER: Final = b"\x1f"


class CannotUnpack(LockstitchError):
    """What came is not packed as its head says."""


class Unpacking:
    """One body."""

    __slots__ = ("_begin", "_coding", "_parts")

    def __init__(self, coding: str, begin: Callable[[bytes], _Decompress]) -> None:
        self._coding = coding
        self._begin = begin
        self._parts: _Decompress | None = None

    @property
    def breaks_off(self) -> bool:
        """Would it not be whole, if nothing more came?"""
        return self._parts is not None and not self._parts.eof

    def add(self, piece: bytes) -> bytes:
        """What can be read with this piece. Raises `CannotUnpack`."""
        found: list[bytes] = []
        room = LARGEST_UNPACKED_BYTES
        while piece:
            if self._parts is None:
                self._parts = self._begin(piece)
            elif self._parts.eof:
                # RFC 1952, 2.2: "A gzip file consists of a series of members". What is none of
                # them fills up the end.
                if not piece.startswith(_MEMBER):
                    break
                self._parts = self._begin(piece)
            try:
                found.append(self._parts.decompress(piece, room))
            except zlib.error as error:
                raise CannotUnpack(f"its body is not packed with {self._coding}") from error
            room -= len(found[-1])
            if self._parts.unconsumed_tail or room <= 0:
                raise CannotUnpack(
                    f"its body becomes too large when it is unpacked: {self._coding}"
                )
            piece = self._parts.unused_data
        return b"".join(found)


def _gzip(piece: bytes) -> _Decompress:
    return zlib.decompressobj(wbits=_GZIP)


def _deflate(piece: bytes) -> _Decompress:
    # RFC 9110, 8.4.1.2: "Some non-conformant implementations send the "deflate" compressed data
    # without the zlib wrapper."
    wrapped = piece[0] & _METHOD == zlib.DEFLATED
    return zlib.decompressobj(wbits=zlib.MAX_WBITS if wrapped else -zlib.MAX_WBITS)


_CODINGS: Final = {"gzip": _gzip, "x-gzip": _gzip, "deflate": _deflate}


def unpacking(headers: Headers) -> Unpacking | None:
    """What unpacks the body of an answer with these headers; None if it is not packed, or in a
    way that is not known here."""
    coding = (first(headers, CODING) or "").strip().lower()
    begin = _CODINGS.get(coding)
    return None if begin is None else Unpacking(coding, begin)
