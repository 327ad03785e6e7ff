"""The write-ahead log of a SQLite store is copied into the file, and begins anew."""

from __future__ import annotations

import threading
from pathlib import Path

import apsw
import pytest

from lockstitch.store.sqlite import checkpoints as sqlite_checkpoints
from lockstitch.store.sqlite.checkpoints import Checkpoints
from lockstitch.store.sqlite.opening import let_go, opened_for_writing


class Interrupted:
    """A connection that makes checkpoints; something happens behind the first part of each."""

    def __init__(self, connection: apsw.Connection, happens) -> None:
        self._connection = connection
        self._happens = happens
        self.ended = threading.Semaphore(0)
        self.tried = 0

    def wal_checkpoint(self, *, mode: int):
        try:
            return self._connection.wal_checkpoint(mode=mode)
        finally:
            if mode == apsw.SQLITE_CHECKPOINT_PASSIVE:
                self._happens()
            else:
                self.ended.release()

    def close(self) -> None:
        self._connection.close()


def beginnings(path: Path) -> int:
    """How often the log began anew: it counts that in its head."""
    return int.from_bytes(Path(f"{path}-wal").read_bytes()[12:16], "big")


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
def writer(path):
    connection = opened_for_writing(path)
    yield connection
    let_go(connection)


def commit(writer: apsw.Connection) -> None:
    writer.execute("UPDATE fence SET token = token + 1")


def test_the_log_begins_anew_though_a_commit_came_while_it_was_copied(path, writer):
    seen = []

    def happens() -> None:
        commit(writer)
        seen.append(beginnings(path))

    checkpoints = Checkpoints(path, writer)
    checkpoints._connection = interrupted = Interrupted(checkpoints._connection, happens)
    checkpoints._due.set()
    assert interrupted.ended.acquire(timeout=30)
    commit(writer)
    assert beginnings(path) == seen[0] + 1
    checkpoints.stop()


def test_a_reading_that_needs_the_log_does_not_cost_every_commit_a_checkpoint(
    path, writer, monkeypatch
):
    monkeypatch.setattr(sqlite_checkpoints, "CHECKPOINT_PAGES", 5)
    commit(writer)
    reader = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    reader.execute("BEGIN; SELECT count(*) FROM fence")
    checkpoints = Checkpoints(path, writer)
    checkpoints._connection = interrupted = Interrupted(checkpoints._connection, lambda: None)
    for _ in range(15):  # a page each
        commit(writer)
        if interrupted.ended.acquire(timeout=0.05):  # it has had its time
            interrupted.tried += 1
    checkpoints.stop()
    reader.close()
    assert interrupted.tried <= 4
