"""What the core sees of one wire item: the part it plays, and what joins it to others.

A dialect makes these from wire items and never gives the core anything else; one chat message
with three tool calls is three core items of one position. Families live in `families`."""

from __future__ import annotations

from enum import Enum

from msgspec import Struct

from lockstitch.core.families import Family

LONGEST_NOTE_CHARACTERS = 600
"""How much of an output's text a dialect passes on. Only short texts are ever told apart (a
client's "aborted"), so a long output never costs a copy."""


class Part(Enum):
    """The part an item plays in a conversation."""

    CALL = "call"
    OUTPUT = "output"
    REASONING = "reasoning"
    MODEL = "model"
    """Anything else that the model said or that its server ran."""
    INPUT = "input"
    """A message from outside: user, system, developer."""
    REFERENCE = "reference"
    """A pointer to an item that only the provider has; it may stand for anything."""
    COMPACTION = "compaction"
    """The provider's own summary: it stands for everything before it."""
    OTHER = "other"
    """A type we do not know. It passes through, and proves nothing."""


class Item(Struct, frozen=True, gc=False):
    """One core item. ``slot`` tells items of one wire item apart (a block, a tool call)."""

    part: Part
    family: Family | None = None
    key: str | None = None
    """What joins a call and its output."""
    alias: str | None = None
    """A second key that joins as well (one family has two)."""
    id: str | None = None
    """The item's own id, where it must be unique."""
    name: str | None = None
    """The tool, for messages to people."""
    slot: int = 0
    lone: bool = False
    """It may stand alone: its other half is somewhere we cannot see, or does not exist."""
    note: str | None = None
    """The text of an output, where it is short."""
    joining_id: str | None = None
    """The id of a call whose id also joins it to its output."""
    misplaced: bool = False
    """An output that stands in a message of the wrong side."""
    carried: bool = False
    """Reasoning that carries its content with it (encrypted). Without, it is only a reference to
    what one provider keeps."""


class Place(Struct, frozen=True, order=True, gc=False):
    """Where an item stands: the position of its wire item, and its slot in it."""

    at: int
    slot: int = 0

    def __str__(self) -> str:
        return f"{self.at}.{self.slot}" if self.slot else str(self.at)
