"""The life of one call, as a table.

Everything that decides what may happen to a call next lives in this file. A step missing from a
row is illegal in that state; there is no default. docs/architecture.md draws it from here."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from lockstitch.core.facts import Seq
from lockstitch.core.items import Item, Part
from lockstitch.core.members import Member
from lockstitch.core.outcomes import Outcome

_OUTPUT = Part.OUTPUT


class Life(Member):
    """Where a call stands."""

    ANNOUNCED = "announced"
    """The model made it. Nothing has been done about it."""
    STARTED = "started"
    """Its effect may have begun."""
    SETTLED = "settled"
    """Its output is in the ledger."""
    DELIVERED = "delivered"
    """The provider has its output."""


class Step(Member):
    """What happens to a call."""

    START = "start"
    SETTLE = "settle"
    DELIVER = "deliver"


LIFE: Final[dict[Life, dict[Step, Life]]] = {
    # Settled without a start: refused, answered from outside, or told to the model as never
    # started.
    Life.ANNOUNCED: {Step.START: Life.STARTED, Step.SETTLE: Life.SETTLED},
    # Started again: a call that may be repeated, after a crash in the middle of it.
    Life.STARTED: {Step.START: Life.STARTED, Step.SETTLE: Life.SETTLED},
    Life.SETTLED: {Step.DELIVER: Life.DELIVERED},
    # Delivered again: on another branch, or when everything is sent anew.
    Life.DELIVERED: {Step.DELIVER: Life.DELIVERED},
}


class Call(Struct, eq=False, gc=False):
    """One call of the model, and what has become of it."""

    seq: Seq
    """The entry that holds it."""
    link: Seq
    """The link that holds that entry."""
    item: Item
    life: Life = Life.ANNOUNCED
    output: Seq | None = None
    """The entry that holds its output."""
    outcome: Outcome | None = None

    def __repr__(self) -> str:
        return f"<Call {self.named} at {self.seq}, {self.life.value}>"

    @property
    def named(self) -> str:
        """For people: its id, and its tool where that is known."""
        key = self.item.key or "a call without an id"
        return f"{key} ({self.item.name})" if self.item.name else key

    @property
    def slot(self) -> int:
        return self.item.slot

    @property
    def by_server(self) -> bool:
        """Is it the provider that runs it?"""
        return self.item.family is not None and self.item.family.by_server

    @property
    def output_type(self) -> str:
        return self.item.family.output_type if self.item.family is not None else "unknown"

    def is_answered_by(self, output: Item) -> bool:
        """Is this an output that means this call?"""
        own = self.item
        if output.part is not _OUTPUT or output.key is None:
            return False
        if output.key not in (own.key, own.alias):
            return False
        family = output.family
        return own.family is family or (
            own.family is not None and family is not None and own.family.accepts(family)
        )

    def allows(self, step: Step) -> bool:
        return step in LIFE[self.life]

    def take(self, step: Step) -> None:
        self.life = LIFE[self.life][step]


def id_of(call: Call) -> tuple[Seq, int]:
    """What tells a call from every other: where it stands."""
    return call.seq, call.item.slot
