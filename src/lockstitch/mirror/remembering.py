"""Ids that are remembered for a while: so many of them, the oldest forgotten first."""

from __future__ import annotations

from collections import OrderedDict


class Recent:
    """The last ids that were added."""

    __slots__ = ("_ids", "_most")

    def __init__(self, most: int) -> None:
        self._ids: OrderedDict[str, None] = OrderedDict()
        self._most = most

    def __repr__(self) -> str:
        return f"<Recent {len(self._ids)} of {self._most}>"

    def __len__(self) -> int:
        return len(self._ids)

    def __contains__(self, id: str) -> bool:
        return id in self._ids

    def add(self, id: str) -> str | None:
        """Remember this one. Gives the one that is forgotten for it."""
        self._ids[id] = None
        if len(self._ids) <= self._most:
            return None
        oldest, _ = self._ids.popitem(last=False)
        return oldest
