"""The lines of an export: a head, the records of each conversation, its close, and the end.

Payloads and bodies are bytes. Where they are UTF-8, which JSON is, they are written as text, so
that people can read and search them; where not, as base64. Either way they come back the same."""

from __future__ import annotations

from typing import TypeAlias

import msgspec
from msgspec import Struct

from lockstitch.core.records import Name, Naming, Record

VERSION = 1

UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What decoding raises for a line that is none."""


class Base64(Struct, frozen=True, forbid_unknown_fields=True):
    """Bytes that are not text."""

    base64: bytes


Written: TypeAlias = str | Base64


class Line(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="line"):
    """The root of every line."""


class Head(Line, frozen=True, tag="lockstitch store"):
    """The first line: this is an export."""

    version: int


class Entry(Line, frozen=True, tag="record"):
    """One record."""

    conversation: str
    seq: int
    at: float | None
    names: tuple[tuple[Naming, str], ...]
    payload: Written
    body: Written | None

    def record(self) -> Record:
        names = tuple(Name(naming, own) for naming, own in self.names)
        body = None if self.body is None else _bytes(self.body)
        return Record(self.seq, _bytes(self.payload), body, names, self.at)


class Whole(Line, frozen=True, tag="whole"):
    """All records of a conversation are above."""

    conversation: str
    length: int


class Gone(Line, frozen=True, tag="gone"):
    """A conversation was deleted while it was exported: what is above of it does not count."""

    conversation: str


class End(Line, frozen=True, tag="end"):
    """The last line: nothing is missing."""

    conversations: int
    records: int


AnyLine: TypeAlias = Head | Entry | Whole | Gone | End

_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[AnyLine] = msgspec.json.Decoder(AnyLine)


def entry(conversation: str, record: Record) -> Entry:
    return Entry(
        conversation=conversation,
        seq=record.seq,
        at=record.at,
        names=tuple((name.naming, name.id) for name in record.names),
        payload=_written(record.payload),
        body=None if record.body is None else _written(record.body),
    )


def encoded(line: AnyLine) -> bytes:
    return _encoder.encode(line) + b"\n"


def decoded(line: bytes) -> AnyLine:
    """Raises one of `UNREADABLE`."""
    return _decoder.decode(line)


def _written(given: bytes) -> Written:
    try:
        return given.decode()
    except UnicodeDecodeError:
        return Base64(given)


def _bytes(written: Written) -> bytes:
    return written.encode() if isinstance(written, str) else written.base64
