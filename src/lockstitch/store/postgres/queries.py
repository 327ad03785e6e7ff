"""The SQL of the PostgreSQL store."""

from typing import Final

from lockstitch.store import statements

QUERIES: Final = statements.queries("lockstitch.store.postgres")
MIGRATIONS: Final = statements.migrations("lockstitch.store.postgres")
