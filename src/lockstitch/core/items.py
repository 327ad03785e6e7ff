"""What the core sees of one wire item: the part it plays, and what joins it to others.

A dialect makes these from wire items and never gives the core anything else; one chat message
with three tool calls is three core items of one position. Families live in `families`."""

from __future__ import annotations

import json
from enum import Enum

from msgspec import Struct

from lockstitch.core.families import Family

LONGEST_NOTE_CHARACTERS = 600
"""How much of an output's text a dialect passes on. Only short texts are ever told apart (a
client's "aborted"), so a long output never costs a copy."""


LONGEST_ESCAPE_CHARACTERS = 6
"""A backslash, a `u` and four digits: a shorter one at the end of a text was cut off."""


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
    unread: str | None = None
    """What makes this item look like a call or an output that could not be read as one."""
    partial: bool = False
    """A call that is marked as incomplete: the model was cut off while it wrote the call."""
    arguments: str | None = None
    """The arguments of a call, where they are a text that must be JSON."""
    about: str | None = None
    """For a request for approval of another call: the key of that call. For an item that is no
    call: it says whether the call with this key was approved."""
    approved: bool = False
    """For the answer to a request for approval: was the call approved?"""

    @property
    def incomplete(self) -> bool:
        """Is this a call that the model did not finish writing?"""
        return self.partial or (self.arguments is not None and is_unfinished(self.arguments))


def is_unfinished(text: str) -> bool:
    """Is this the beginning of JSON, cut off before its end? Other text that is not JSON is not."""
    text = text.strip()
    if not text:
        return False
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        if error.pos >= len(text) or error.msg.startswith("Unterminated string"):
            return True
        rest = text[error.pos :]
        if error.msg.startswith("Invalid \\uXXXX escape"):
            return len(rest) < LONGEST_ESCAPE_CHARACTERS
        return any(
            word != rest and word.startswith(rest) for word in ("true", "false", "null", "-0")
        )
    except (RecursionError, ValueError):  # too deep, or a number with too many digits
        return False
    return False


def note_of(text: object) -> str | None:
    """The note of an output that says this: its text, if it is one and short."""
    return text if isinstance(text, str) and len(text) <= LONGEST_NOTE_CHARACTERS else None


class Place(Struct, frozen=True, order=True, gc=False):
    """Where an item stands: the position of its wire item, and its slot in it."""

    at: int
    slot: int = 0

    def __str__(self) -> str:
        return f"{self.at}.{self.slot}" if self.slot else str(self.at)
