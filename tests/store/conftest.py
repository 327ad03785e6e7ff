"""A real PostgreSQL for every test that asks for one: nothing to install, nothing to start.

There is one server for each process of pytest (`tests.postgres`), and one database for each
test."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator

import asyncpg
import pytest

from tests.postgres import NOT_SYNCED, PostgresServer, running_postgres


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """The server of this process of pytest, started when the first test asks for it."""
    with running_postgres(NOT_SYNCED) as server:
        yield server


_numbers = itertools.count(1)


@pytest.fixture
def postgres_url(postgres_server: PostgresServer) -> Iterator[str]:
    """The URL of an empty database of this test alone."""
    database = f"test_{next(_numbers)}"
    postgres_server.execute(f"CREATE DATABASE {database} TEMPLATE template0")
    yield postgres_server.url(database)
    with contextlib.suppress(OSError, asyncpg.PostgresError):  # a test may have stopped the server
        postgres_server.execute(f"DROP DATABASE {database} WITH (FORCE)")
