"""A store in PostgreSQL, for many processes: groups of appends in one round trip, fenced."""

from lockstitch.store.postgres.store import PostgresStore

__all__ = ["PostgresStore"]
