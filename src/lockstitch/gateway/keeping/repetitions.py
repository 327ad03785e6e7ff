"""Calls that a client sends again behind the response that made them.

Some clients send a call together with its output, although the call is behind the anchor already.
Providers pass over it; in the journal, and where a chain is rebuilt, the call stands once. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from lockstitch.core.items import Part
from lockstitch.dialects import by_name
from lockstitch.dialects.base import Wire
from lockstitch.dialects.likeness import likeness
from lockstitch.dialects.reading import decoded
from lockstitch.gateway.keeping.exchanges import OpenCall

_RESPONSES = by_name("responses")


def without_repetitions(items: Sequence[Wire], waiting: Sequence[OpenCall]) -> Sequence[int]:
    """The positions of the items that say something new behind these calls."""
    if not waiting:
        return range(len(items))
    keys = {one.call.key for one in waiting}
    made = {likeness(decoded(one.item)) for one in waiting}
    return [
        n for n, item in enumerate(items) if not _calls(item) & keys or likeness(item) not in made
    ]


def _calls(item: Wire) -> set[str | None]:
    return {part.key for part in _RESPONSES.read(item) if part.part is Part.CALL}
