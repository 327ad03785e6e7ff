"""Opening the file of a SQLite store: is it ours, is it whole, is its schema one we know?

A file that is not there begins; an older schema is migrated. What is in the tables is the
business of `writing` and `reading`."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from pathlib import Path

import apsw

from lockstitch.store.errors import CannotOpen, SchemaTooNew
from lockstitch.store.sqlite.errors import opening_failed
from lockstitch.store.sqlite.queries import MIGRATIONS

SCHEMA = len(MIGRATIONS)
"""The schema this version writes, in the file's `user_version`."""

APPLICATION_ID = 0x4C_6B_73_74
"""`Lkst`, in the file's `application_id`: how a file of ours is told from any other database."""

OLDEST_SQLITE = (3, 51, 3)
"""Before it, a checkpoint beside a writer can corrupt a file in WAL mode."""

BUSY_SECONDS = 10.0
"""How long to wait for another process. Its transactions take milliseconds, but they queue up, and
a vacuum of a large file takes seconds."""

PAGE_BYTES = 8_192
"""Larger than SQLite's own: an append of 64 writers touches half as many pages (measured: a fifth
faster), and most items fit into one."""

LOG_BYTES = 67_108_864
"""What the write-ahead log is cut back to after something large. It is 8 MB at most times."""

_RETRY_SECONDS = 0.02
"""SQLite does not wait by itself where the journal mode is changed."""

_creating = threading.Lock()

_PRIVATE = 0o600
"""Conversations are nobody else's business. SQLite gives -wal and -shm the mode of the file."""


def url_of(path: Path) -> str:
    return f"sqlite:///{path}"


def check_version(version: str) -> None:
    """Refuse a SQLite that can lose what it acknowledged."""
    if tuple(map(int, version.split("."))) < OLDEST_SQLITE:
        oldest = ".".join(map(str, OLDEST_SQLITE))
        raise CannotOpen(
            f"SQLite {version} can corrupt a file that is written and checkpointed at once;"
            f" {oldest} or newer is needed. Upgrade the package apsw, which brings its own."
        )


def opened_for_writing(path: Path) -> apsw.Connection:
    """A connection that writes, to a file of the schema this version knows."""
    check_version(apsw.sqlite_lib_version())
    url = url_of(path)
    if problem := _create(Path(os.path.realpath(path))):
        raise CannotOpen(f"{url} cannot be opened: {problem}")
    connection = connected(path, apsw.SQLITE_OPEN_READWRITE)
    try:
        _prepare(connection, url)
    except BaseException as error:
        let_go(connection)
        if isinstance(error, apsw.Error):
            raise opening_failed(url, error) from error
        raise
    return connection


def connected(path: Path, flags: int) -> apsw.Connection:
    """One more connection; the file is there."""
    connection = None
    try:
        connection = apsw.Connection(str(path), flags=flags)
        connection.set_busy_timeout(int(BUSY_SECONDS * 1000))
        # A commit is synced before it returns; on macOS, as far as the disk itself.
        connection.pragma("synchronous", "FULL")
        connection.pragma("fullfsync", True)
    except apsw.Error as error:
        if connection is not None:
            let_go(connection)
        raise opening_failed(url_of(path), error) from error
    return connection


def let_go(connection: apsw.Connection) -> None:
    """Close a connection. The last one copies the log into the file; if that fails, the log stays
    where it is and nothing is lost."""
    with contextlib.suppress(apsw.Error):
        connection.close()


def _create(path: Path) -> str | None:
    """Make the file if it is not there, empty and private; or say why it cannot be written.

    SQLite must not find that out: its attempt would leave files behind that cannot be written
    either."""
    folder = path.parent
    if not os.path.isdir(folder):
        return f"there is no folder {folder}. Create it."
    if os.path.isdir(path):  # unlike Path.is_dir, it raises for no name
        return "it is a folder. Name a file in it."
    if not _writable(folder):
        return f"the folder {folder} is read-only. Make it writable, or open a copy elsewhere."
    # Closing a file drops the locks that SQLite has on it anywhere in the process: nobody may
    # open the new one before we have closed it.
    with _creating:
        try:
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, _PRIVATE))
        except FileExistsError:
            if not _writable(path):
                return "the file is read-only. Make it writable, or open a copy."
        except OSError as error:
            return (
                f"it cannot be created ({error.strerror}). Name a file in another folder, in which"
                " you may make one."
            )
        else:
            _sync(folder)
    return None


def _writable(path: Path) -> bool:
    return os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids)


def _sync(folder: Path) -> None:
    """Have a new file still be there after a loss of power."""
    if os.name == "nt":
        return  # it has no such thing
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def _prepare(connection: apsw.Connection, url: str) -> None:
    with connection:  # all that it looks at, as of one moment
        _check_ours(connection, url)
    connection.pragma("page_size", PAGE_BYTES)  # of a file that begins; others keep theirs
    _use_wal(connection)
    connection.pragma("journal_size_limit", LOG_BYTES)
    # Under the lock of the writer: another process may be migrating at this moment.
    connection.execute("BEGIN IMMEDIATE")
    try:
        version = _check_ours(connection, url)
        for number in range(version, SCHEMA):
            connection.execute(MIGRATIONS[number])
        if version < SCHEMA:
            connection.pragma("application_id", APPLICATION_ID)
            connection.pragma("user_version", SCHEMA)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _check_ours(connection: apsw.Connection, url: str) -> int:
    """The schema of the file: 0 where it is empty."""
    application = connection.pragma("application_id")
    version = int(connection.pragma("user_version"))
    tables = connection.execute("SELECT count(*) FROM sqlite_schema").get
    if not (application or version or tables):
        return 0
    if application != APPLICATION_ID or version < 1:
        raise CannotOpen(
            f"{url} is the database of another application; nothing was changed in it."
            " Name another file."
        )
    if version > SCHEMA:
        raise SchemaTooNew(
            f"{url} was written by a newer Lockstitch (schema {version}, this one knows {SCHEMA})."
            " Upgrade Lockstitch."
        )
    return version


def _use_wal(connection: apsw.Connection) -> None:
    patience_ends = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.pragma("journal_mode", "WAL")
        except apsw.BusyError:
            if time.monotonic() >= patience_ends:
                raise
            time.sleep(_RETRY_SECONDS)
        else:
            return
