"""Ids that were never used: what a plan needs a great many of.

The prefix comes from outside, because nothing here is random: one that nobody else has."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count


def fresh_ids(prefix: str) -> Callable[[str], str]:
    """Gives what a plan takes as ``new_id``: the prefix, and a number for each id."""
    next_number = count(1).__next__

    def new_id(what: str) -> str:
        return f"{what}_{prefix}_{next_number()}"

    return new_id
