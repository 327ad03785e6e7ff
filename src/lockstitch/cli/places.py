"""Where a command writes: what is there already, and what must not be written over.

A regular file is replaced at once and whole. A pipe or a device stays what it is: it is written
into. A link stays, too: what it leads to is the place. What is written is not known here."""

from __future__ import annotations

import os
import secrets
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import Enum, auto
from functools import partial
from pathlib import Path
from typing import BinaryIO, Final

from lockstitch.cli.streams import discard
from lockstitch.sessions.errors import CannotWrite

STANDARD_OUTPUT: Final = "-"
"""What names standard output on the command line."""


class Kind(Enum):
    """What is there, before anything is written."""

    NOTHING = auto()
    FILE = auto()
    NODE = auto()
    """A pipe or a device: written into, never replaced."""
    STANDARD_OUTPUT = auto()


@dataclass(frozen=True, slots=True)
class Place:
    """Somewhere to write to. Nothing was done to it yet."""

    name: str
    """As it was given."""
    path: Path
    kind: Kind

    @property
    def is_stdout(self) -> bool:
        return self.kind is Kind.STANDARD_OUTPUT

    @property
    def is_node(self) -> bool:
        return self.kind is Kind.NODE

    def refuse(self, others: Iterable[Path], what: str, advice: str) -> None:
        """Raises `CannotWrite` if it is one of these files, under whatever name."""
        for other in others:
            if self.path == other.resolve() or _same(self.path, other):
                raise CannotWrite(f"{self.name}: is {what}. {advice}")

    def refuse_taken(self) -> None:
        """Raises `CannotWrite` if a file is there."""
        if self.kind is Kind.FILE:
            raise CannotWrite(
                f"{self.name}: exists already. Use --force to overwrite it, or name another place."
            )


def place(name: str) -> Place:
    """What is there under this name. Raises `CannotWrite` if nothing can be written to it."""
    if name == STANDARD_OUTPUT:
        return Place(name, Path("/dev/stdout"), Kind.STANDARD_OUTPUT)
    try:
        kind = _kind(name)
        # As an editor does it: a link is followed, not replaced. A node is opened by the name that
        # it has: what `/dev/fd/63` leads to has none.
        path = Path(name) if kind is Kind.NODE else Path(name).resolve()
    except (OSError, RuntimeError) as error:  # RuntimeError: a link that leads to itself
        why = error.strerror if isinstance(error, OSError) else "its links lead nowhere"
        raise CannotWrite(f"{name}: cannot be written: {why}. Name another place.") from error
    return Place(name, path, kind)


def _kind(name: str) -> Kind:
    try:
        there = os.stat(name)
    except FileNotFoundError:
        return Kind.NOTHING
    if _is_stdout(there):  # `/dev/stdout`, and whatever it was redirected to
        return Kind.STANDARD_OUTPUT
    if stat.S_ISREG(there.st_mode):
        return Kind.FILE
    if stat.S_ISFIFO(there.st_mode) or stat.S_ISCHR(there.st_mode):
        return Kind.NODE
    if stat.S_ISDIR(there.st_mode):
        raise CannotWrite(f"{name}: is a folder. Name a file.")
    raise CannotWrite(f"{name}: is neither a file nor a pipe. Use - for standard output.")


def _is_stdout(there: os.stat_result) -> bool:
    try:
        return os.path.samestat(there, os.fstat(sys.stdout.fileno()))
    except (OSError, ValueError):  # closed, or no file of the system
        return False


def _same(one: Path, other: Path) -> bool:
    """Also hard links, and systems that take upper and lower case for the same."""
    try:
        return one.samefile(other)
    except OSError:  # one of them is not there
        return False


@contextmanager
def writing_into(place: Place) -> Iterator[BinaryIO]:
    """A stream into standard output, a pipe or a device, as it is. Raises `CannotWrite`, or
    `BrokenPipeError` if whoever reads has seen enough."""
    try:
        if place.is_stdout:
            sys.stdout.flush()
            yield sys.stdout.buffer
            sys.stdout.buffer.flush()
        else:
            with place.path.open("wb") as out:
                yield out
    except BrokenPipeError:
        raise
    except OSError as error:
        if place.is_stdout:
            discard(sys.stdout)
        name = "Standard output" if place.is_stdout else f"{place.name}:"
        raise CannotWrite(f"{name} cannot be written: {error.strerror}.") from error


@contextmanager
def prepared(place: Place, content: bytes) -> Iterator[Callable[[], None]]:
    """What puts ``content`` in its place, at once and whole. It is on the disk there already, under
    another name, so that little is left that can fail; until it is called, nothing is changed."""
    if place.is_stdout or place.is_node:
        yield partial(_write_into, place, content)
        return
    made = place.path.with_name(f".lockstitch-{secrets.token_hex(8)}")
    try:
        try:
            made.write_bytes(content)
        except OSError as error:
            raise CannotWrite(
                f"{place.name}: cannot be written: {error.strerror}. Nothing was changed."
            ) from error
        yield partial(_put, made, place)
    finally:
        with suppress(OSError):  # where nothing can be written, nothing can be removed either
            made.unlink()


def _write_into(place: Place, content: bytes) -> None:
    with writing_into(place) as out:
        out.write(content)


def _put(made: Path, place: Place) -> None:
    try:
        os.replace(made, place.path)
    except OSError as error:
        raise CannotWrite(f"{place.name}: cannot be written: {error.strerror}.") from error
