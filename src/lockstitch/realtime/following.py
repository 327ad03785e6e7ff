"""Client events that somebody follows, and what became of each.

Of all others nothing is kept: a call of an hour has thousands of edits, and a server can refuse
what nobody has sent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from msgspec import Struct

from lockstitch.mirror import Standing


class Followed(Struct):
    """What became of one of them so far."""

    refusal: Mapping[str, Any] | None = None
    """What the provider said instead of doing it."""
    standing: Standing | None = None
    """How it ended, if it is an edit. A mirror remembers that for a while, and a plan can be
    longer."""


class Following:
    """All that are followed on one line, by their ids."""

    def __init__(self) -> None:
        self._events: dict[str, Followed] = {}

    def __repr__(self) -> str:
        return f"<Following {len(self._events)} events>"

    def __len__(self) -> int:
        return len(self._events)

    def begin(self, event_ids: Iterable[str]) -> None:
        for event_id in event_ids:
            self._events[event_id] = Followed()

    def end(self, event_ids: Iterable[str]) -> None:
        for event_id in event_ids:
            self._events.pop(event_id, None)

    @contextmanager
    def one(self, event_id: str) -> Iterator[Followed]:
        """Follow one of them, from before it is sent."""
        followed = self._events[event_id] = Followed()
        try:
            yield followed
        finally:
            if self._events.get(event_id) is followed:  # a caller may give two events one id
                del self._events[event_id]

    def get(self, event_id: str) -> Followed | None:
        return self._events.get(event_id)

    def refuse(self, event_id: str, error: Mapping[str, Any]) -> None:
        followed = self._events.get(event_id)
        if followed is not None:
            followed.refusal = error

    def close(self, event_id: str, standing: Standing) -> None:
        followed = self._events.get(event_id)
        if followed is not None:
            followed.standing = standing
