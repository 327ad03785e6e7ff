"""The store of a soak: a file, or a real PostgreSQL in a folder of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tests.postgres import running_postgres

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
    with running_postgres() as server:
        yield Kept(server.url(), None)
