"""The items that a response sees, up to one point: a path in the tree of responses.

Contexts share their items. The first to extend a context writes on the same line; whoever
extends it again forks the line. So a long conversation costs its items once, and a turn costs
only its own."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lockstitch.emulator.responses.pairs import BORROWED_IDS

Item = dict[str, Any]
# The open calls, by type and key, with how many are open under it, in the order they were made.
Open = Mapping[tuple[str, str], int]


class _Line:
    """Items one after the other, and where each id stands."""

    __slots__ = ("items", "places")

    def __init__(self, items: list[Item], places: dict[str, int]) -> None:
        self.items = items
        self.places = places


class Context:
    """A point on a line. It never changes."""

    __slots__ = ("_line", "length", "open", "tokens")

    def __init__(
        self,
        line: _Line | None = None,
        length: int = 0,
        open: Open | None = None,
        tokens: int = 0,
    ) -> None:
        self._line = line or _Line([], {})
        self.length = length
        self.open: Open = open or {}
        self.tokens = tokens

    def __len__(self) -> int:
        return self.length

    def __iter__(self) -> Iterator[Item]:
        items = self._line.items
        return (items[place] for place in range(self.length))

    def has(self, id: str) -> bool:
        return self._line.places.get(id, self.length) < self.length

    def last(self, count: int) -> list[Item]:
        return self._line.items[max(0, self.length - count) : self.length]

    def backwards(self) -> Iterator[Item]:
        items = self._line.items
        return (items[place] for place in range(self.length - 1, -1, -1))

    def extended(self, items: Sequence[Item], open: Open, tokens: int) -> "Context":
        """This context and `items` after it."""
        line = self._line
        if len(line.items) != self.length:
            places = {known: at for known, at in line.places.items() if at < self.length}
            line = _Line(line.items[: self.length], places)
        for item in items:
            own = item.get("id")
            if own and item["type"] not in BORROWED_IDS:
                line.places[own] = len(line.items)
            line.items.append(item)
        return Context(line, len(line.items), open, self.tokens + tokens)

    def __repr__(self) -> str:
        return f"<Context {self.length} items, {len(self.open)} open calls>"
