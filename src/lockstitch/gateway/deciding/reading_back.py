"""Whether a request that was lost on its way to a conversation is there, from what that lists.

A conversation is a list: what is sent twice is there twice. The outputs of calls can be told for
certain, by their ids; what a user says can be said again, and may be listed in other words. What is
not proven is in doubt. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lockstitch.core.items import Part
from lockstitch.dialects import by_name
from lockstitch.dialects.base import Wire

_RESPONSES = by_name("responses")


def can_be_found(sent: Sequence[Wire]) -> bool:
    """Would these items be known again in a listing?"""
    return bool(_keys(sent, Part.OUTPUT))


def is_absent(sent: Sequence[Wire], listed: Sequence[Wire]) -> bool:
    """Is it proven that these items are not in a conversation that lists those?

    It is, if the calls are listed that they answer, and none of the answers. A listing that does
    not have the calls is too short, or too old, to prove anything."""
    answered = _keys(sent, Part.OUTPUT)
    return (
        bool(answered)
        and answered <= _keys(listed, Part.CALL)
        and not answered & _keys(listed, Part.OUTPUT)
    )


def _keys(items: Iterable[Wire], part: Part) -> set[str]:
    return {
        one.key
        for item in items
        for one in _RESPONSES.read(item)
        if one.part is part and one.key is not None
    }
