"""Calls that wait for their outputs, and the groups in which the model made them.

Plain state, changed by `pairing` alone. Not frozen, and without equality: a call is the one that
stands at its place."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from msgspec import Struct

from lockstitch.core.items import Item, Place
from lockstitch.core.outcomes import stands_in


class Cut(Struct, frozen=True):
    """What took one half of a pair away."""

    at: int
    by: str
    """``compaction`` or ``rollback``."""


class Queue:
    """Further calls under one key, in order. They are kept by family, and by whether the key is
    their own or their second one: so the one that an output means is found at once, however many
    wait."""

    __slots__ = ("_alike", "_key")

    def __init__(self, key: str) -> None:
        self._key = key
        self._alike: dict[tuple[str, bool], OrderedDict[tuple[int, int], OpenCall]] = {}

    def __bool__(self) -> bool:
        return bool(self._alike)

    def __repr__(self) -> str:
        return f"<Queue {self.calls()}>"

    def add(self, call: OpenCall) -> None:
        self._alike.setdefault(self._kind(call), OrderedDict())[call.at, call.item.slot] = call

    def remove(self, call: OpenCall) -> None:
        """Take a call out, if it is there."""
        kind = self._kind(call)
        alike = self._alike.get(kind)
        if alike is not None:
            alike.pop((call.at, call.item.slot), None)
            if not alike:
                del self._alike[kind]

    def take_first(self) -> OpenCall:
        first = min(self.heads(), key=_order)
        self.remove(first)
        return first

    def heads(self) -> list[OpenCall]:
        """The first call of each kind."""
        return [next(iter(alike.values())) for alike in self._alike.values()]

    def tails(self) -> list[OpenCall]:
        """The last call of each kind."""
        return [next(reversed(alike.values())) for alike in self._alike.values()]

    def calls(self) -> list[OpenCall]:
        return [call for alike in self._alike.values() for call in alike.values()]

    def _kind(self, call: OpenCall) -> tuple[str, bool]:
        family = call.item.family
        return (family.name if family is not None else "", (call.item.key or "") == self._key)


def _order(call: OpenCall) -> tuple[int, int]:
    return (call.at, call.item.slot)


class Group(Struct, eq=False, gc=False):
    """Calls that the model made at once."""

    calls: int = 0
    answered: int = 0
    last_at: int = -1
    last_slot: int = 0
    """Where the last of them stands."""
    sealed: bool = False
    """Something else has followed: a further call is of another group."""
    into: int | None = None
    """The first message behind them that is not the model's: outputs belong there."""
    interrupted: Place | None = None
    """What came before all outputs were there, where that is not allowed."""


class OpenCall(Struct, eq=False, gc=False):
    """A call that waits for its output, or waited for it."""

    item: Item
    at: int
    group: Group
    testimony: Any = None
    """What else tells how the call ended; read only if it is needed."""
    testimony_at: int = 0
    answer_at: int | None = None
    answer_slot: int = 0
    answer_note: str | None = None
    """What its output says, where that is short."""
    wrong: tuple[Item, Place] | None = None
    """An output of another family that names this call."""
    first: OpenCall | None = None
    """An earlier call that was still open under the same key."""
    cut: Cut | None = None
    early: list[tuple[Item, Place]] | None = None
    """Outputs with this key that stood before the call."""
    about: OpenCall | None = None
    """For a request for approval: the call that it asks about."""
    asked: bool = False
    """Was a request for approval of this call made?"""
    approved: bool | None = None
    """What the answer to that request says, where there is one."""

    def __repr__(self) -> str:
        return f"<OpenCall {self.item.key} ({self.item.name}) at {self.place}>"

    @property
    def place(self) -> Place:
        return Place(self.at, self.item.slot)

    @property
    def placeholder(self) -> bool:
        """Does its output only stand in for one: did nobody record what really came?"""
        return self.answer_note is not None and stands_in(self.answer_note)

    @property
    def answer(self) -> Place | None:
        return None if self.answer_at is None else Place(self.answer_at, self.answer_slot)
