"""A store in one SQLite file: one owner thread writes, in groups; others read."""

from lockstitch.store.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
