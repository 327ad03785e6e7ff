"""Copies what the write-ahead log holds into the file, on a thread and a connection of its own.

In the writer it would make the slowest appends ten times slower. A checkpoint that fails loses
nothing: the log is kept, and a later commit asks again."""

from __future__ import annotations

import threading
from pathlib import Path

import apsw

from lockstitch.store.sqlite.opening import connected, let_go

CHECKPOINT_PAGES = 1_000
"""The length of the log at which it is copied: 8 MB, so that one is done in a few milliseconds."""

_PATIENCE_MS = 10
"""How long to hold writers up for a slow reader, to let the log begin anew."""


class Checkpoints:
    """Keeps the write-ahead log short."""

    def __init__(self, path: Path, writer: apsw.Connection) -> None:
        """Follows the commits of ``writer``, which makes no checkpoints of its own any more."""
        self._connection = connected(path, apsw.SQLITE_OPEN_READWRITE)
        self._connection.set_busy_timeout(_PATIENCE_MS)
        self._due = threading.Event()
        self._due_at = CHECKPOINT_PAGES
        self._length = 0
        self._stopped = False
        writer.set_wal_hook(self._committed)
        self._thread = threading.Thread(target=self._work, name="lockstitch-copy", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopped = True
        self._due.set()
        self._thread.join()
        let_go(self._connection)

    def _committed(self, _: apsw.Connection, __: str, pages: int) -> int:
        self._length = pages
        if pages >= self._due_at:
            self._due.set()
        return apsw.SQLITE_OK

    def _work(self) -> None:
        while self._due.wait() and not self._stopped:
            self._due.clear()
            try:
                # Most of it beside the writers; then the little that came meanwhile, while they
                # wait, so that the log begins anew even if they never pause.
                self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
                self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_RESTART)
                self._due_at = CHECKPOINT_PAGES
            except apsw.Error:
                # A long reading needs the log. Not at every commit until it is over.
                self._due_at = self._length + CHECKPOINT_PAGES
