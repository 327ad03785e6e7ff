"""A real PostgreSQL, for the commands that look after a store."""

from __future__ import annotations

from tests.store.conftest import postgres_server, postgres_url

__all__ = ["postgres_server", "postgres_url"]
