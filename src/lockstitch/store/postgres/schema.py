"""Which version the tables have, and how they get to ours: the migrations, one after the other.

An empty database is ours to fill. An older schema is left alone unless the operator says so:
other processes of the version that made it may be at work."""

from __future__ import annotations

from collections.abc import Sequence

from lockstitch.store.errors import CannotOpen, SchemaTooNew, SchemaTooOld
from lockstitch.store.postgres.pool import Connection
from lockstitch.store.postgres.queries import QUERIES

LOCK_KEY = 0x6C6F636B73746368
"""What two processes that migrate at once wait for: "lockstch" as a number."""


async def check_schema(
    connection: Connection, url: str, migrations: Sequence[str], *, migrate: bool
) -> int:
    """Make the tables in an empty database, refuse those of another version; the version.

    With ``migrate`` an older version is brought to ours."""
    if (encoding := await connection.fetchval(QUERIES["encoding"])) != "UTF8":
        raise CannotOpen(
            f"{url} has the encoding {encoding}, which cannot hold every text. Make a database"
            " with ENCODING 'UTF8' and use that."
        )
    version = await _version(connection)
    if 0 < version < len(migrations) and not migrate:
        raise SchemaTooOld(
            f"{url} has schema {version}, and this version of Lockstitch needs"
            f" {len(migrations)}. Stop what uses the older one, then run"
            f" `lockstitch store migrate {url}`."
        )
    if version < len(migrations):
        version = await _migrate(connection, migrations)
    if version > len(migrations):
        raise SchemaTooNew(
            f"{url} was written by a newer Lockstitch (schema {version}, this one knows"
            f" {len(migrations)}): upgrade Lockstitch. Nothing was changed."
        )
    return version


async def _version(connection: Connection) -> int:
    """0 where there are no tables of ours."""
    if not await connection.fetchval(QUERIES["schema_exists"]):
        return 0
    return int(await connection.fetchval(QUERIES["schema_version"]) or 0)


async def _migrate(connection: Connection, migrations: Sequence[str]) -> int:
    """All of it or nothing; the version that it has then."""
    async with connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock($1)", LOCK_KEY)
        version = await _version(connection)  # another process may have been faster
        if version == 0:
            await connection.execute(QUERIES["begin_schema"])
        for number in range(version + 1, len(migrations) + 1):
            await connection.execute(migrations[number - 1])
            await connection.execute(QUERIES["note_migration"], number)
        return max(version, len(migrations))
