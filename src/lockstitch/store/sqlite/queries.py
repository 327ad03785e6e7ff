"""The SQL of the SQLite store."""

from typing import Final

from lockstitch.store import statements

QUERIES: Final = statements.queries("lockstitch.store.sqlite")
MIGRATIONS: Final = statements.migrations("lockstitch.store.sqlite")
