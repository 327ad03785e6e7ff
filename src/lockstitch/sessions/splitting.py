"""Splitting a JSON document into the elements of its list of items, without holding it whole.

The list is the document itself, or one of the known fields of an object (a request body, a
`ChatContext`). Every byte that is not an element is passed on too, so that a document can be
written back with only some of its elements changed."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from typing import Any, BinaryIO, Final, TypeAlias

from msgspec import Struct

from lockstitch.sessions.errors import CannotRead
from lockstitch.sessions.lines import LONGEST_LINE_BYTES, integer

LIST_FIELDS: Final = ("input", "messages", "items", "contents")
"""Where a document keeps its items: a Responses body, a chat body, a `ChatContext`, a Gemini
body."""

READ_CHARACTERS = 1 << 16

_WHITESPACE: Final = " \t\n\r"
_WHITE: Final = re.compile(f"[{_WHITESPACE}]*")
_scan: Final = json.JSONDecoder(parse_int=integer).raw_decode


class Text(Struct, frozen=True):
    """Part of the document that is no element."""

    text: str


class Element(Struct, frozen=True):
    """One element of the list."""

    index: int
    line: int
    lead: str
    """What stands before it: a comma (not before the first) and white space."""
    text: str


class Field(Struct, frozen=True):
    """A field of the document that is not the list: its value, for those who need to know."""

    name: str
    value: Any


class ListField(Struct, frozen=True):
    """The name of the field whose list comes next."""

    name: str


Piece: TypeAlias = Text | Element | Field | ListField


class Splitter:
    """One pass over one document."""

    def __init__(self, stream: BinaryIO, name: str) -> None:
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")()
        self._name = name
        self._buffer = ""
        self._at = 0
        self._ended = False
        self._line = 1
        self.found_list = False

    def pieces(self) -> Iterator[Piece]:
        """The document in order. Only `Text` and `Element` are parts of it; the others tell."""
        yield Text(self._white())
        opening = self._peek()
        if opening == "[":
            yield from self._list()
        elif opening == "{":
            yield from self._object()
        else:
            raise self._broken("is not a list or an object of items")
        yield Text(self._white())
        if self._peek():
            raise self._broken("has something behind its end")

    def _object(self) -> Iterator[Piece]:
        yield Text(self._take(1))
        fields = 0
        while True:
            lead = self._white()
            if self._peek() == "}":
                yield Text(lead + self._take(1))
                return
            if fields:
                if self._peek() != ",":
                    raise self._lacks("a comma between its fields")
                lead += self._take(1) + self._white()
            fields += 1
            key, key_text = self._value()
            if not isinstance(key, str):
                raise self._broken("has a key that is not a string")
            between = self._white()
            if self._peek() != ":":
                raise self._lacks("a colon")
            between += self._take(1) + self._white()
            yield Text(lead + key_text + between)
            if key in LIST_FIELDS and self._peek() == "[" and not self.found_list:
                yield ListField(key)
                yield from self._list()
            else:
                value, text = self._value()
                yield Text(text)
                yield Field(key, value)

    def _list(self) -> Iterator[Text | Element]:
        self.found_list = True
        yield Text(self._take(1))
        index = 0
        while True:
            lead = self._white()
            if self._peek() == "]":
                yield Text(lead + self._take(1))
                return
            if index:
                if self._peek() != ",":
                    raise self._lacks("a comma in its list")
                lead += self._take(1) + self._white()
            line = self._line
            _, text = self._value()
            yield Element(index, line, lead, text)
            index += 1

    # --- the buffer ----------------------------------------------------------------------------

    def _peek(self) -> str:
        while self._at >= len(self._buffer) and self._more():
            pass
        return self._buffer[self._at : self._at + 1]

    def _take(self, count: int) -> str:
        taken = self._buffer[self._at : self._at + count]
        self._at += count
        self._line += taken.count("\n")
        return taken

    def _white(self) -> str:
        taken = ""
        while (character := self._peek()) and character in _WHITESPACE:
            white = _WHITE.match(self._buffer, self._at)
            assert white is not None, "it also matches nothing"
            taken += self._take(white.end() - self._at)
            if len(taken) > LONGEST_LINE_BYTES:
                most = LONGEST_LINE_BYTES // (1024 * 1024)
                raise self._broken(f"has more than {most} MiB of white space in one place")
        return taken

    def _value(self) -> tuple[Any, str]:
        """The next value, whole, and its text. The buffer grows until the value ends in it."""
        while True:
            try:
                value, end = _scan(self._buffer, self._at)
            except json.JSONDecodeError as error:
                if not self._more():
                    raise self._broken(f"is torn or not JSON ({error.msg})") from None
                continue
            except RecursionError:
                raise self._broken("is nested too deeply") from None
            may_go_on = end == len(self._buffer) and not isinstance(value, dict | list | str)
            if may_go_on and self._more():
                continue
            text = self._take(end - self._at)
            if _is_too_long(text):
                raise self._too_long()
            return value, text

    def _more(self) -> bool:
        """Read on; False at the end. Doubles what is kept, so that one value is read in O(n)."""
        if self._ended:
            return False
        kept = self._buffer[self._at :]
        if len(kept) > LONGEST_LINE_BYTES:
            raise self._too_long()
        data = self._stream.read(max(READ_CHARACTERS, len(kept)))
        try:
            text = self._decoder.decode(data, final=not data)
        except UnicodeDecodeError:
            raise self._broken("is not UTF-8") from None
        self._ended = not data
        self._buffer = kept + text
        self._at = 0
        return bool(data)

    def _lacks(self, what: str) -> CannotRead:
        return self._broken(f"lacks {what}" if self._peek() else "ends before it is whole")

    def _too_long(self) -> CannotRead:
        return self._broken(f"has an item longer than {LONGEST_LINE_BYTES // (1024 * 1024)} MiB")

    def _broken(self, problem: str) -> CannotRead:
        return CannotRead(
            self._name,
            f"the document {problem} (line {self._line}).",
            "Expected a list of items, or an object with one under " + ", ".join(LIST_FIELDS) + ".",
        )


def _is_too_long(text: str) -> bool:
    # A character has up to four bytes. Most values are so short that nobody need count them.
    return len(text) * 4 > LONGEST_LINE_BYTES and len(text.encode()) > LONGEST_LINE_BYTES
