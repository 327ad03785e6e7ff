"""Databases whose schema is meant to do harm: none of it is run, and every statement ends."""

from __future__ import annotations

import contextlib
import gzip
import re
import sqlite3

import pytest

from lockstitch.sessions import agents_sqlite_opening as opening
from lockstitch.sessions.agents_sqlite_opening import copied, opened
from lockstitch.sessions.errors import CannotRead, CannotWrite
from lockstitch.sessions.files import check_file, mended
from lockstitch.sessions.source import Source
from tests.formats import agents, langgraph, opencode
from tests.formats.sample import Sample

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT COUNT(*) FROM n"
LONG = "SELECT COUNT(*) FROM many a, many b"
ENDLESS_SCAN = f"{LONG}, many c, many d"
EVENTS = [f"{when} {what}" for when in ("BEFORE", "AFTER") for what in ("INSERT", "UPDATE")]
EVENTS += ["BEFORE DELETE", "AFTER DELETE"]
DATABASES = [
    *agents.SAMPLES,
    *langgraph.SAMPLES,
    Sample("opencode", opencode.rows(opencode.KILLED), opencode.as_database),
]


def query(path, statement):
    with contextlib.closing(sqlite3.connect(path)) as connection:
        return connection.execute(statement).fetchall()


def alter(path, *statements):
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        for one in statements:
            connection.execute(one)


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "session.db"
    alter(
        path,
        "CREATE TABLE many (i)",
        f"INSERT INTO many {ENDLESS.replace('SELECT COUNT(*)', 'SELECT i')} LIMIT 1000",
    )
    return path


@pytest.mark.parametrize("sample", DATABASES, ids=repr)
def test_a_trigger_that_never_ends_is_not_fired_by_a_repair_and_stays(tmp_path, sample):
    path = tmp_path / "session.db"
    sample.write(sample.broken, path)
    tables = query(
        path, "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
    )
    alter(
        path,
        *(
            f'CREATE TRIGGER "{table} {event}" {event} ON "{table}"'
            f" BEGIN SELECT COUNT(*) FROM ({ENDLESS}); END"
            for (table,) in tables
            for event in EVENTS
        ),
    )
    before = query(path, "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY rowid")
    with mended(Source(path), beside=tmp_path) as ready:
        assert ready.changes
        schema = "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY rowid"
        assert query(ready.path, schema) == before
        assert query(ready.path, "PRAGMA integrity_check") == [("ok",)]
        assert not check_file(Source(ready.path)).findings()


@pytest.mark.parametrize("packed", [False, True])
def test_a_view_of_the_schema_is_not_run(path, packed):
    alter(path, f"CREATE VIEW endless AS {ENDLESS}")
    if packed:
        path.write_bytes(gzip.compress(path.read_bytes()))
    with pytest.raises(CannotRead, match="cannot be read: "), opened(Source(path)) as connection:
        connection.execute("SELECT * FROM endless").fetchone()


def test_a_schema_is_not_trusted_and_no_other_file_is_opened(path):
    with opened(Source(path)) as connection:
        assert connection.execute("PRAGMA trusted_schema").fetchone() == (0,)
        with pytest.raises(sqlite3.DatabaseError, match="not authorized"):
            connection.execute("ATTACH 'other.db' AS other")


def test_a_statement_that_takes_too_long_ends_with_an_error(path, tmp_path, monkeypatch):
    monkeypatch.setattr(opening, "LONGEST_STATEMENT_STEPS", 1_000_000)
    monkeypatch.setattr(opening, "LONGEST_STATEMENT_STEPS_PER_BYTE", 1)
    message = re.escape("a statement took longer than any should on a database of this size")
    with pytest.raises(CannotRead, match=message), opened(Source(path)) as connection:
        connection.execute(ENDLESS_SCAN).fetchone()
    with (
        pytest.raises(CannotWrite, match=f"{message}. Nothing was changed"),
        copied(Source(path), tmp_path / "copy.db") as connection,
    ):
        connection.execute(ENDLESS_SCAN).fetchone()


def test_the_limit_counts_for_each_statement_alone(path, monkeypatch):
    monkeypatch.setattr(opening, "LONGEST_STATEMENT_STEPS", 10_000_000)
    monkeypatch.setattr(opening, "LONGEST_STATEMENT_STEPS_PER_BYTE", 0)
    with opened(Source(path)) as connection:
        for _ in range(10):
            assert connection.execute(LONG).fetchone() == (1_000_000,)
