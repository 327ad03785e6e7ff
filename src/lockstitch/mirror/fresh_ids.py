"""Ids that were never used: what a plan needs a great many of.

The prefix comes from outside, because nothing here is random: one that nobody else has."""

from __future__ import annotations

from itertools import count


class FreshIds:
    """A prefix, and a number for each id. Told what for: ``item``, ``event`` or ``group``."""

    __slots__ = ("_numbers", "prefix")

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self._numbers = count(1)

    def __repr__(self) -> str:
        return f"<FreshIds {self.prefix}>"

    def __call__(self, what: str) -> str:
        return f"{what}_{self.prefix}_{next(self._numbers)}"
