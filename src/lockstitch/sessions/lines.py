"""Lines of a stream, bounded: memory holds one block and one line, whatever comes."""

from __future__ import annotations

import io
import json
import math
import re
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, Final

import msgspec

from lockstitch.dialects.base import as_json
from lockstitch.sessions.errors import CannotRead

BLOCK_BYTES = 1 << 17
"""One read. It stays in the processor's cache while it is cut into lines: larger is slower."""

LONGEST_LINE_BYTES = 64 * 1024 * 1024
"""No client writes records like that; a line this long is a file without line ends."""


BYTE_ORDER_MARK = b"\xef\xbb\xbf"
"""Some editors put it before UTF-8; it is no part of the first line."""


def lines(stream: BinaryIO, name: str) -> io.BufferedReader:
    """Each line with its newline (the last may lack one). Joined, they are the stream again,
    but for a byte order mark."""
    return io.BufferedReader(_Bounded(stream, name), BLOCK_BYTES)


SKIPPED_LINES: Final = 32
"""After so many blank lines in a row the next ones are skipped in bulk. A look ahead copies a
block, so it is not worth it for fewer."""

_BLANK: Final = re.compile(rb"[ \t\r\n\v\f]*\n")


def numbered_lines(
    stream: BinaryIO, name: str, *, blank: Callable[[bytes], object] | None = None
) -> Iterator[tuple[int, bytes]]:
    """The lines that are not blank, each with its number, from 1 on. ``blank`` is given the others,
    in order, one or many at a time. A file of blank lines is read as fast as one of records."""
    reader = lines(stream, name)
    number = run = 0
    for line in reader:
        number += 1
        if not line.isspace():
            run = 0
            yield number, line
            continue
        if blank is not None:
            blank(line)
        run += 1
        while run >= SKIPPED_LINES:
            skipped = blank_lines(reader)
            if not skipped:
                run = 0
                break
            number += skipped.count(b"\n")
            if blank is not None:
                blank(skipped)


def blank_lines(reader: io.BufferedReader) -> bytes:
    """Read the blank lines that come next, as far as they are in one block; empty if none does."""
    ahead = _BLANK.match(reader.peek())  # at most one read
    return b"" if ahead is None else reader.read(ahead.end())


def skip_blank_lines(reader: io.BufferedReader) -> int:
    """Read all blank lines that come next; how many there were."""
    count = 0
    while skipped := blank_lines(reader):
        count += skipped.count(b"\n")
    return count


def problem_of(line: bytes) -> str | None:
    """Why a line cannot be decoded; None if it can."""
    try:
        line.decode()
    except UnicodeDecodeError:
        return "is not UTF-8"
    try:
        decoded(line)
    except RecursionError:
        return "is nested too deeply"
    except ValueError:
        return "is torn or not JSON"
    return None


def decoded(text: bytes | str) -> Any:
    """A record. Raises `ValueError` if it is not JSON, and `RecursionError` if it is too deep."""
    try:
        return msgspec.json.decode(text)
    except msgspec.MsgspecError:
        # JSON all the same, if only its numbers are beyond 64 bits, or a client cut a text in the
        # middle of an emoji: that leaves half of a surrogate pair.
        return json.loads(text, parse_constant=_no_constant, parse_int=integer, parse_float=_float)


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def integer(digits: str) -> int | msgspec.Raw:
    """The number, or its digits as they are where Python does not read as many."""
    try:
        return int(digits)
    except ValueError:
        return msgspec.Raw(digits.encode())


def _float(digits: str) -> float | msgspec.Raw:
    number = float(digits)
    return number if math.isfinite(number) else msgspec.Raw(digits.encode())


def encoded(record: Any) -> bytes:
    """A record as one line, with its newline."""
    return as_json(record) + b"\n"


class _Bounded(io.RawIOBase):
    """Passes bytes on to the buffer that cuts lines, which by itself would read any line whole."""

    def __init__(self, stream: BinaryIO, name: str) -> None:
        self._stream = stream
        self._name = name
        self._run = 0
        self._begun = False
        self._ahead = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        block = self._read(len(buffer))
        size = len(block)
        buffer[:size] = block
        newline = block.rfind(b"\n")
        self._run = size - newline - 1 if newline >= 0 else self._run + size
        if self._run > LONGEST_LINE_BYTES:
            most = LONGEST_LINE_BYTES // (1024 * 1024)
            raise CannotRead(
                self._name,
                f"has a line longer than {most} MiB.",
                "A session has one record a line; is this another kind of file?",
            )
        return size

    def _read(self, most: int) -> bytes:
        """What comes next, without a byte order mark, which a small buffer would see in parts."""
        if not self._begun:
            self._begun = True
            self._ahead = self._stream.read(len(BYTE_ORDER_MARK)).removeprefix(BYTE_ORDER_MARK)
        if self._ahead:
            block, self._ahead = self._ahead[:most], self._ahead[most:]
            return block
        return self._stream.read(most)
