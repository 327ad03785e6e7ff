"""Reads an export, conversation by conversation. One is given when all of it has been read.

Knows nothing of stores; what is done with a conversation is in `transfer`."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from types import TracebackType
from typing import BinaryIO, Self

from lockstitch.core.records import Record
from lockstitch.store.errors import NotAnExport
from lockstitch.store.transfer.lines import (
    UNREADABLE,
    VERSION,
    AnyLine,
    End,
    Entry,
    Gone,
    Head,
    Whole,
    decoded,
)

SPOOL_BYTES = 16 * 1024 * 1024
"""A larger conversation waits in a temporary file until all of it has been read."""

LONGEST_LINE_BYTES = 512 * 1024 * 1024
"""The largest body that SQLite takes has 1 GB; a line this long is a file without line ends."""


class Spool:
    """The lines of one conversation, until all of them are there. Closed when it is left."""

    def __init__(self, conversation: str) -> None:
        self.conversation = conversation
        self.length = 0
        self._file = tempfile.SpooledTemporaryFile(max_size=SPOOL_BYTES)  # noqa: SIM115

    def add(self, line: bytes) -> None:
        self._file.write(line)
        self.length += 1

    def records(self) -> Iterator[Record]:
        """Every record, from the first. One such walk at a time."""
        self._file.seek(0)
        for line in self._file:
            yield _entry(line).record()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()


def _entry(line: bytes) -> Entry:
    one = decoded(line)
    assert isinstance(one, Entry)
    return one


def spools(file: BinaryIO, name: str, advance: Callable[[int], None] | None) -> Iterator[Spool]:
    """Every conversation that is whole, each usable until the next is asked for.

    Raises `NotAnExport` with the line that is wrong, or if the file does not end as it should."""
    with ExitStack() as stack:
        reading = _Reading(name)
        stack.callback(reading.drop)
        while line := file.readline(LONGEST_LINE_BYTES):
            complete = reading.take(line)
            if advance is not None:
                advance(len(line))
            if complete is not None:
                with complete:
                    yield complete
        reading.finish()


def expect_export(file: BinaryIO, name: str) -> None:
    """Raises `NotAnExport` if the file does not begin like one. Nothing else of it is read."""
    _Reading(name).take(file.readline(LONGEST_LINE_BYTES))


class _Reading:
    """How far a file has been read, and what may come next."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._line = 0
        self._began = False
        self._ended = False
        self._open: Spool | None = None
        self._conversations = 0
        self._records = 0

    def take(self, line: bytes) -> Spool | None:
        """Take the next line; the conversation that it makes whole, if it does."""
        self._line += 1
        if not self._began:
            self._begin(line)
            return None
        if self._ended:
            raise self._wrong("comes after the end of the export")
        try:
            one = decoded(line)
        except UNREADABLE as error:
            raise self._wrong(f"is torn, or is none of an export ({error})") from None
        return self._taken(one, line)

    def _begin(self, line: bytes) -> None:
        try:
            head = decoded(line)
        except UNREADABLE:
            head = None
        if not isinstance(head, Head):
            raise NotAnExport(
                f"{self._name} is no export of a store: its first line says nothing of one."
                " Exports are written by: lockstitch store export URL FILE"
            )
        if head.version != VERSION:
            raise NotAnExport(
                f"{self._name} is an export of version {head.version}, and this Lockstitch reads"
                f" version {VERSION}. Upgrade it."
            )
        self._began = True

    def _taken(self, one: AnyLine, line: bytes) -> Spool | None:
        match one:
            case Entry():
                self._add(one, line)
            case Whole():
                return self._whole(one)
            case Gone():
                self._closing(one.conversation)
                self.drop()
            case End():
                self._end(one)
            case Head():
                raise self._wrong("is the head of another export")
        return None

    def _add(self, one: Entry, line: bytes) -> None:
        if self._open is None:
            self._open = Spool(one.conversation)
        if one.conversation != self._open.conversation:
            raise self._wrong(f"begins {one.conversation!r} inside {self._open.conversation!r}")
        if one.seq != self._open.length + 1:
            raise self._wrong(f"has record {one.seq} where {self._open.length + 1} should be")
        self._open.add(line if line.endswith(b"\n") else line + b"\n")

    def _whole(self, one: Whole) -> Spool:
        spool = self._closing(one.conversation)
        if one.length != spool.length:
            raise self._wrong(f"tells of {one.length} records, and {spool.length} are above")
        self._open = None
        self._conversations += 1
        self._records += spool.length
        return spool

    def _closing(self, conversation: str) -> Spool:
        if self._open is None or self._open.conversation != conversation:
            raise self._wrong(f"closes {conversation!r}, which is not open")
        return self._open

    def _end(self, one: End) -> None:
        if self._open is not None:
            raise self._wrong(f"ends the export inside {self._open.conversation!r}")
        if (one.conversations, one.records) != (self._conversations, self._records):
            raise self._wrong(
                f"tells of {one.conversations} conversations with {one.records} records, and"
                f" {self._conversations} with {self._records} are above"
            )
        self._ended = True

    def finish(self) -> None:
        if not self._began:
            raise NotAnExport(f"{self._name} is empty. Is it the right file?")
        if not self._ended:
            raise NotAnExport(
                f"{self._name} is incomplete: it stops after line {self._line}."
                " The complete conversations before that are in the store. Export again, or find a"
                " complete copy, and import it; records that are there already are skipped."
            )

    def drop(self) -> None:
        """Forget a conversation that is not whole."""
        if self._open is not None:
            with self._open:
                self._open = None

    def _wrong(self, what: str) -> NotAnExport:
        return NotAnExport(
            f"{self._name}, line {self._line}: {what}. The complete conversations before that"
            " are in the store. Find a complete copy and import it; records that are there already"
            " are skipped."
        )
