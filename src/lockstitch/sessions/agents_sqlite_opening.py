"""Opening a SQLite database without a trace: no lock stays behind, no file appears beside it.

The database may come from anybody, and a schema is code: triggers, views, and functions in both.
None of it is run, neither while reading nor while a copy is repaired, and every statement has a
limit. What is in the database is not known here (`agents_sqlite_tables`)."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any, Final

from lockstitch.sessions.errors import CannotRead, CannotWrite
from lockstitch.sessions.source import Source, companions, stamp

BUSY_SECONDS = 1.0
"""How long to wait for a lock. A writer of the SDK is done in milliseconds; whoever holds the lock
longer holds it on purpose, and people want to hear that soon."""

PROGRESS_STEPS: Final = 100_000
"""Steps of SQLite's virtual machine between two looks at the limit: a millisecond or less."""

LONGEST_STATEMENT_STEPS: Final = 300_000_000
LONGEST_STATEMENT_STEPS_PER_BYTE: Final = 1_000
"""How long one statement may run: some seconds, and more the larger the database is. A scan takes
some ten steps a row, and a sort some hundred."""

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


class _Connection(sqlite3.Connection):
    """A connection to a database whose schema is not trusted."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._steps = 0
        self._most = LONGEST_STATEMENT_STEPS
        self.text_factory = text
        super().execute("PRAGMA trusted_schema = OFF")
        if hasattr(self, "setconfig"):  # Python 3.12
            self.setconfig(sqlite3.SQLITE_DBCONFIG_DEFENSIVE, True)  # type: ignore[attr-defined]
            for thing in ("TRIGGER", "VIEW"):
                self.setconfig(getattr(sqlite3, f"SQLITE_DBCONFIG_ENABLE_{thing}"), False)
        self.set_authorizer(_authorize)
        self.set_progress_handler(self._progress, PROGRESS_STEPS)

    def allow(self, size: int) -> None:
        """Let a statement take as long as a database of ``size`` bytes may need."""
        self._most = LONGEST_STATEMENT_STEPS + LONGEST_STATEMENT_STEPS_PER_BYTE * size

    def execute(self, *args: Any) -> sqlite3.Cursor:
        """Run a statement. The limit counts from here."""
        self._steps = 0
        return super().execute(*args)

    def _progress(self) -> bool:
        self._steps += PROGRESS_STEPS
        return self._steps > self._most


def _authorize(
    action: int, _: str | None, __: str | None, ___: str | None, inside: str | None
) -> int:
    """``inside``: the trigger or the view that does this. SQLite asks before it runs anything, and
    takes a subquery in FROM and a WITH for a view, too; nothing here needs them."""
    if inside is not None or action in (sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH):
        return sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_OK


@contextlib.contextmanager
def copied(source: Source, path: Path) -> Iterator[sqlite3.Connection]:
    """A copy of the database at ``path``, to be changed in one transaction. No trigger fires: they
    are out of the schema meanwhile, and are back, byte for byte, at the end."""
    try:
        with opened(source) as original, contextlib.closing(sqlite3.connect(path)) as copy:
            original.backup(copy)
        triggers = _take_triggers(path)
        connection = sqlite3.connect(path, isolation_level=None, factory=_Connection)
        with contextlib.closing(connection):
            connection.allow(path.stat().st_size)
            connection.execute("PRAGMA journal_mode = DELETE")  # one file, nothing beside it
            connection.execute("PRAGMA synchronous = OFF")  # it is read back, or thrown away
            connection.execute("PRAGMA foreign_keys = OFF")  # ids move in two steps
            connection.execute("BEGIN")
            yield connection
            connection.execute("COMMIT")
            _check_integrity(connection, source.name)
        _put_triggers(path, triggers)
    except sqlite3.Error as error:
        problem = str(error)
        if _code(error) == sqlite3.SQLITE_INTERRUPT:
            problem = _ENDLESS
        raise CannotWrite(
            f"{source.name}: a mended copy could not be made: {problem}. Nothing was changed."
        ) from error


_ENDLESS: Final = "a statement took longer than any should on a database of this size"


def _take_triggers(path: Path) -> list[tuple[Any, ...]]:
    """Remove the triggers from the schema of a database; its rows that make them."""
    with _schema_writable(path) as connection:
        triggers = connection.execute(
            "SELECT rowid, type, name, tbl_name, rootpage, sql FROM sqlite_master"
            " WHERE type = 'trigger'"
        ).fetchall()
        connection.execute("DELETE FROM sqlite_master WHERE type = 'trigger'")
    return triggers


def _put_triggers(path: Path, triggers: list[tuple[Any, ...]]) -> None:
    with _schema_writable(path) as connection:
        connection.executemany(
            "INSERT INTO sqlite_master"
            " (rowid, type, name, tbl_name, rootpage, sql) VALUES (?, ?, ?, ?, ?, ?)",
            triggers,
        )


@contextlib.contextmanager
def _schema_writable(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection of its own: what it does to the schema counts for those that come after."""
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA writable_schema = ON")
        yield connection


def _check_integrity(connection: sqlite3.Connection, name: str) -> None:
    ((verdict,),) = connection.execute("PRAGMA integrity_check(1)").fetchall()
    if verdict != "ok":
        raise CannotWrite(
            f"{name}: the mended copy does not pass SQLite's integrity check: {verdict}. Nothing "
            "was changed. Recover the database first: sqlite3 FILE .recover | sqlite3 RECOVERED"
        )


def _connect(source: Source, path: Path, way: _Way, folder: Path) -> tuple[_Connection, _Way]:
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


def _begin(path: Path, mode: str) -> _Connection:
    connection = sqlite3.connect(
        f"{path.as_uri()}?{mode}",
        uri=True,
        timeout=BUSY_SECONDS,
        isolation_level=None,
        factory=_Connection,
    )
    try:
        connection.allow(sum(size for _, size, _ in stamp(path)))
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
    if code == sqlite3.SQLITE_INTERRUPT:
        return f"cannot be read: {_ENDLESS}.", "Its schema may be hostile, or lack an index."
    return f"cannot be read: {error}.", ""
