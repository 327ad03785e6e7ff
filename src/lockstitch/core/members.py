"""Members of tables: enums that are cheap to look up."""

from __future__ import annotations

from enum import Enum


class Member(Enum):
    """An enum whose members hash as the single objects that they are, not by their names in
    Python: a table is asked several times for every fact."""

    __hash__ = object.__hash__
