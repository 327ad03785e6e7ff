"""Ids that mean the same item: the one that a caller knows, and those of the copies that took its
place. Which of them is at the provider is decided in `context`."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec import Struct

MOST_NAMES_REMEMBERED = 4096
"""Of items that are gone; a name that was forgotten is new when somebody uses it again."""

MOST_NAMES_OF_ONE_ITEM = 16
"""The first, which a caller may use for ever, and the last ones, from snapshots."""


class Line(Struct, eq=False, gc=False):
    """The names of one item, oldest first."""

    names: tuple[str, ...]
    current: tuple[str, ...]
    """Those of them that can be there, or may come."""

    def __repr__(self) -> str:
        return f"<Line {' = '.join(self.names)}>"


class Names:
    """The lines of all items that were replaced, by each of their names."""

    def __init__(self) -> None:
        self._lines: dict[str, Line] = {}
        self._oldest: deque[Line] = deque()
        self._unsettled: dict[Line, None] = {}
        """Those of which more than one name may be there."""

    def __repr__(self) -> str:
        return f"<Names {len(self._lines)} of {len(self._oldest)} items>"

    def __len__(self) -> int:
        return len(self._lines)

    def __contains__(self, id: str) -> bool:
        return id in self._lines

    def knows_any(self, ids: Iterable[str]) -> bool:
        return bool(self._lines) and not self._lines.keys().isdisjoint(ids)

    def of(self, id: str) -> Sequence[str]:
        """All names of this item, the first first; none if it was never replaced."""
        line = self._lines.get(id)
        return () if line is None else line.names

    def is_older(self, id: str, other: str) -> bool:
        """Of two names of one item, is it the one that it had first?"""
        return next((name for name in self.of(id) if name in {id, other}), other) == id

    def current(self, id: str) -> Sequence[str]:
        """The names under which this item can be there; none if it was never replaced."""
        line = self._lines.get(id)
        return () if line is None else line.current

    def join(self, id: str, copy: str, there: Callable[[str], bool]) -> None:
        """The item ``copy`` is to take the place of ``id``; ``there`` tells who is, or may come."""
        line = self._lines.get(id)
        if line is None:
            names = (id, copy)
            line = self._lines[id] = Line(names, names)
            self._oldest.append(line)
        else:
            line.current = (*filter(there, line.current), copy)
            line.names = (*line.names, copy)
        self._unsettled[line] = None
        self._lines[copy] = line
        if len(line.names) > MOST_NAMES_OF_ONE_ITEM:
            first, forgotten, *others = line.names
            line.names = (first, *others)
            del self._lines[forgotten]
        if len(self._lines) > MOST_NAMES_REMEMBERED:
            self._forget_oldest(there)

    def unsettled(self, there: Callable[[str], bool]) -> Iterator[str]:
        """The names of items that are being replaced, or of which a copy was left over."""
        for line in list(self._unsettled):
            line.current = tuple(filter(there, line.current))
            if len(line.current) > 1:
                yield from line.current
            else:
                del self._unsettled[line]

    def _forget_oldest(self, there: Callable[[str], bool]) -> None:
        """Drop the oldest line if nobody of it is there; else its turn comes again."""
        oldest = self._oldest.popleft()
        if any(map(there, oldest.current)):
            self._oldest.append(oldest)
            return
        self._unsettled.pop(oldest, None)
        for name in oldest.names:
            del self._lines[name]
