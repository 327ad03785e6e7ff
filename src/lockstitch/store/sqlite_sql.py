"""The SQL of the SQLite store, read from its files: statements by name, migrations by number."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.resources import files
from typing import Final

_FOLDER = files("lockstitch.store") / "sql" / "sqlite"
_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)
_MIGRATION = re.compile(r"migration_(\d{3})\.sql")


def _queries() -> Mapping[str, str]:
    parts = _NAME.split((_FOLDER / "queries.sql").read_text(encoding="utf-8"))
    # What stands before the first name is the head of the file.
    return dict(zip(parts[1::2], map(str.strip, parts[2::2]), strict=True))


def _migrations() -> tuple[str, ...]:
    found: dict[int, str] = {}
    for file in _FOLDER.iterdir():
        if match := _MIGRATION.fullmatch(file.name):
            found[int(match[1])] = file.read_text(encoding="utf-8")
    return tuple(found[number] for number in range(1, len(found) + 1))


QUERIES: Final = _queries()
"""Every statement, by the name that stands above it."""

MIGRATIONS: Final = _migrations()
"""What to run, in order. The first one makes schema 1 of an empty file."""
