"""One answer of an upstream over HTTP/1.1, read from bytes in whatever pieces they come. No I/O.

Framing is httptools' business; what counts as an answer, and what is too long, is decided here. A
body that came packed is unpacked (`unpacking`)."""

from __future__ import annotations

from typing import Final

import httptools

from lockstitch.core.errors import LockstitchError
from lockstitch.gateway.wire.unpacking import CODING, CannotUnpack, Unpacking, unpacking

LARGEST_HEAD_BYTES: Final = 64 * 1024
"""Real heads have a few KB. Also the most that may come in a row without a byte of the body:
interim answers, a trailer, the extension of a chunk."""

_NO_BODY: Final = frozenset({204, 304})
_PARTIAL: Final = 206


class BadAnswer(LockstitchError):
    """What came is no HTTP answer that can be understood to its end."""


class Answer:
    """One answer, as far as its bytes came. `pieces` is its body, until that is taken."""

    __slots__ = (
        "_head_bytes",
        "_in_chunk",
        "_interim",
        "_is_head",
        "_largest_head",
        "_parser",
        "_unheard_bytes",
        "_unpacking",
        "between_chunks",
        "headers",
        "pieces",
        "reusable",
        "status",
        "until_eof",
        "whole",
    )

    def __init__(self, method: str, *, largest_head: int = LARGEST_HEAD_BYTES) -> None:
        self.status = 0
        """Nothing until the head is whole."""
        self.headers: list[tuple[str, str]] = []
        self.pieces: list[bytes] = []
        self.whole = False
        self.until_eof = False
        """Does the body end only with the connection?"""
        self.reusable = False
        """Once it is whole: may the connection be asked again?"""
        self.between_chunks = False
        """Does what comes next begin with a chunk? Known only where that is easy to tell."""
        self._in_chunk = True
        self._unpacking: Unpacking | None = None
        self._is_head = method == "HEAD"
        self._interim = False
        self._head_bytes = 0
        self._unheard_bytes = 0
        self._largest_head = largest_head
        self._parser: httptools.HttpResponseParser | None = httptools.HttpResponseParser(self)

    def feed(self, data: bytes) -> None:
        """Read on. What was understood before a `BadAnswer` is there all the same."""
        assert self._parser is not None, "an answer that is over was fed"
        self.between_chunks = False
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as error:
            raise BadAnswer("it switched to another protocol, which nobody asked for") from error
        except httptools.HttpParserError as error:
            if not self.whole:
                raise BadAnswer(_reason(error)) from error
            # Bytes behind the end: the answer is good, the connection is not.
            self.reusable = False
        # The line of a length ends with a digit, or with an extension: what ends so is a chunk.
        self.between_chunks = not self._in_chunk and data.endswith(b"\n\r\n")
        if self.pieces or self.whole:
            self._unheard_bytes = 0
            return
        self._unheard_bytes += len(data)
        if self._unheard_bytes > self._largest_head:
            raise BadAnswer(f"{self._unheard_bytes} bytes came without any of its body")

    @property
    def breaks_off(self) -> bool:
        """Is a packed body not whole, whatever its framing says?"""
        return self._unpacking is not None and self._unpacking.breaks_off

    def close(self) -> None:
        """The parser knows the answer, and the answer its parser."""
        self._parser = None

    # What httptools calls.

    def on_message_begin(self) -> None:
        if self.whole:
            # A second answer, which nobody asked for.
            self.reusable = False

    def on_header(self, name: bytes, value: bytes) -> None:
        if self.status:
            return  # a trailer
        self._head_bytes += len(name) + len(value) + 4
        if self._head_bytes > self._largest_head:
            raise BadAnswer(f"its head is longer than {self._largest_head} bytes")
        self.headers.append((name.decode("utf-8", "replace"), value.decode("utf-8", "replace")))

    def on_headers_complete(self) -> None:
        if self.whole:
            return
        assert self._parser is not None
        status = self._parser.get_status_code()
        if status < 200:
            if status == 101:
                raise BadAnswer("it switched to another protocol, which nobody asked for")
            self._interim = True
            self.headers.clear()
            return
        self.status = status
        if self._is_head:
            # Its length is that of a body which does not come; the parser would wait for it.
            self.whole = True
            self.reusable = self._parser.should_keep_alive()
        elif status not in _NO_BODY:
            self.until_eof = _lasts_until_eof(self.headers)
            # A part of what was packed cannot be unpacked.
            self._unpacking = unpacking(self.headers) if status != _PARTIAL else None
            if self._unpacking is not None:
                self.headers = [one for one in self.headers if one[0].lower() != CODING]

    def on_body(self, body: bytes) -> None:
        if self.whole:
            self.reusable = False
        elif self._unpacking is not None:
            try:
                plain = self._unpacking.add(body)
            except CannotUnpack as error:
                raise BadAnswer(str(error)) from error
            if plain:
                self.pieces.append(plain)
        else:
            self._in_chunk = True
            self.pieces.append(body)

    def on_chunk_complete(self) -> None:
        # A packed chunk is none that can be handed on as it is.
        self._in_chunk = self.whole or self._unpacking is not None

    def on_message_complete(self) -> None:
        if self._interim:
            self._interim = False
        elif not self.whole:
            assert self._parser is not None
            if self.breaks_off:
                raise BadAnswer("its body is packed, and breaks off")
            self.whole = self._in_chunk = True
            self.reusable = self._parser.should_keep_alive()


def _lasts_until_eof(headers: list[tuple[str, str]]) -> bool:
    """RFC 9112, 6.3: without a length and without chunks."""
    codings = ""
    for name, value in headers:
        lowered = name.lower()
        if lowered == "content-length":
            return False
        if lowered == "transfer-encoding":
            codings = value
    return codings.rpartition(",")[2].strip().lower() != "chunked"


def _reason(error: httptools.HttpParserError) -> str:
    cause = error.__context__
    return str(cause if isinstance(cause, BadAnswer) else error) or type(error).__name__
