"""The SQL of a store, read from the files beside it: statements by name, migrations by number."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.resources import files

_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)
_MIGRATION = re.compile(r"migration_(\d{3})\.sql")


def queries(package: str) -> Mapping[str, str]:
    """Every statement in the package's `sql/queries.sql`, by the name that stands above it."""
    written = (files(package) / "sql" / "queries.sql").read_text(encoding="utf-8")
    parts = _NAME.split(written)
    # What stands before the first name is the head of the file.
    return dict(zip(parts[1::2], map(str.strip, parts[2::2]), strict=True))


def migrations(package: str) -> tuple[str, ...]:
    """What to run, in order: the first makes schema 1 where there is nothing."""
    found: dict[int, str] = {}
    for file in (files(package) / "sql").iterdir():
        if match := _MIGRATION.fullmatch(file.name):
            found[int(match[1])] = file.read_text(encoding="utf-8")
    return tuple(found[number] for number in range(1, len(found) + 1))
