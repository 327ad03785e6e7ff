"""One broken history in one format, as JSON, and how it becomes a file."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple


def document(value: Any, path: Path) -> None:
    """The value as one JSON document."""
    path.write_text(json.dumps(value))


def json_lines(records: Any, path: Path) -> None:
    """A record on each line."""
    path.write_text("".join(json.dumps(record) + "\n" for record in records))


class Sample(NamedTuple):
    """A broken history: in it at least one call has no result, or one result has no call."""

    format: str
    broken: Any
    write: Callable[[Any, Path], None] = document
    is_list: bool = True
    """Is ``broken`` a list that `lockstitch.check` takes?"""
    is_repaired: bool = True
    """Is the file repaired, not only checked?"""

    def __repr__(self) -> str:
        return self.format
