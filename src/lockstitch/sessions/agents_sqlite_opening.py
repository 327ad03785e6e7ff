"""Opening a SQLite database without a trace: no lock stays behind, no file appears beside it.

What is in the database is not known here (`agents_sqlite_tables`)."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Final

from lockstitch.sessions.errors import CannotRead
from lockstitch.sessions.source import Source, companions, stamp

BUSY_SECONDS = 1.0
"""How long to wait for a lock. A writer of the SDK is done in milliseconds; whoever holds the lock
longer holds it on purpose, and people want to hear that soon."""

_SQLITE_MAGIC: Final = b"SQLite format 3\0"
_WRITE_VERSION_OFFSET = 18
_WRITE_VERSION_WAL = 2


def is_sqlite(head: bytes) -> bool:
    """Does a file that begins so hold a SQLite database?"""
    return head.startswith(_SQLITE_MAGIC)


class _Way(Enum):
    """How a database is read so that nothing appears beside it."""

    SHARED = "as any other reader, under SQLite's locks"
    ALONE = "as a file that nobody has open"
    COPIED = "from a copy of our own"


@contextlib.contextmanager
def opened(source: Source) -> Iterator[sqlite3.Connection]:
    """The database, read-only, as of one moment. Whatever fails becomes `CannotRead`."""
    path = source.path.resolve()
    try:
        with tempfile.TemporaryDirectory(prefix="lockstitch-") as folder:
            before = stamp(path)
            way = _way(source, path)
            try:
                connection, way = _connect(source, path, way, Path(folder))
                with contextlib.closing(connection):
                    yield connection
            finally:
                # Without SQLite's locks we must look for ourselves; damage may be just this.
                if way is not _Way.SHARED and stamp(path) != before:
                    raise CannotRead(
                        source.name,
                        "changed while it was being read.",
                        "Stop the process that writes to it, or check a copy.",
                    )
    except sqlite3.Error as error:
        raise CannotRead(source.name, *_problem(error)) from error
    except OSError as error:
        raise CannotRead(source.name, f"cannot be read: {error.strerror or error}.") from error


def _way(source: Source, path: Path) -> _Way:
    if source.compression is not None:
        return _Way.COPIED
    version = source.head(_WRITE_VERSION_OFFSET + 1)[_WRITE_VERSION_OFFSET:]
    beside = {one.name.removeprefix(path.name): one for one in companions(path)}
    if version != bytes([_WRITE_VERSION_WAL]) or {"-wal", "-shm"} <= beside.keys():
        return _Way.SHARED
    # A reader of a database in WAL mode makes the files that are missing, and leaves them, as its
    # own user: the SDK might then not be able to write.
    unmerged = "-wal" in beside and beside["-wal"].stat().st_size > 0
    return _Way.COPIED if unmerged else _Way.ALONE


def _connect(
    source: Source, path: Path, way: _Way, folder: Path
) -> tuple[sqlite3.Connection, _Way]:
    if way is _Way.ALONE:
        return _begin(path, "mode=ro&immutable=1"), way
    if way is _Way.SHARED:
        try:
            return _begin(path, "mode=ro"), way
        except sqlite3.OperationalError as error:
            # A read-only folder, or a transaction that crashed and must be rolled back first.
            if _code(error) not in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN):
                raise
    return _begin(_copy(source, path, folder), "mode=rw"), _Way.COPIED


def _copy(source: Source, path: Path, folder: Path) -> Path:
    copy = folder / "database"
    with source.open() as stream, copy.open("wb") as target:
        shutil.copyfileobj(stream, target)
    if source.compression is None:
        for companion in companions(path):
            suffix = companion.name.removeprefix(path.name)
            if suffix != "-shm":  # an index of the -wal, made anew
                shutil.copyfile(companion, copy.with_name(copy.name + suffix))
    return copy


def _begin(path: Path, mode: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"{path.as_uri()}?{mode}", uri=True, timeout=BUSY_SECONDS, isolation_level=None
    )
    try:
        connection.text_factory = text
        connection.execute("BEGIN")
        # The lock is taken, and the moment fixed, by the first thing that is read.
        connection.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()
    except BaseException:
        connection.close()
        raise
    return connection


def text(raw: bytes) -> str | bytes:
    """A text as it is; bytes where it is not UTF-8, so that one bad row does not hide the rest."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw


def _code(error: sqlite3.Error) -> int:
    """The primary result code."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def _problem(error: sqlite3.Error) -> tuple[str, str]:
    code = _code(error)
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return (
            "is locked by another process.",
            "Stop the process that writes to it, or copy the file and check the copy.",
        )
    if code == sqlite3.SQLITE_NOTADB:
        return "is not a SQLite database, or is encrypted as a whole.", "Name a session database."
    if code == sqlite3.SQLITE_CORRUPT:
        return (
            f"is damaged ({error}).",
            "Recover it first: sqlite3 FILE .recover | sqlite3 RECOVERED",
        )
    return f"cannot be read: {error}.", ""
