"""What a session tells beside the server's own events. Nothing depends on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from msgspec import Struct

from lockstitch.mirror import Unplaceable
from lockstitch.realtime.editing import Refusal
from lockstitch.runner.events import CallBegan, CallEnded, Waiting


class Reconnecting(Struct, frozen=True):
    """The connection is lost; another one is opened. What the user says meanwhile is not heard."""

    reason: str
    attempt: int
    """Which try in a row this begins, from 1; 0 if it is renewed."""
    delay_seconds: float
    response_lost: bool = False
    """Was a response being generated?"""
    renewal: bool = False
    """Has the session itself ended it, at a quiet moment, because of its age?"""


class Restored(Struct, frozen=True, kw_only=True):
    """A session has the whole context: the first one of a thread that has a history, or one that
    took the place of another."""

    items: int
    """How many items the context has."""
    rejected: Sequence[Refusal] = ()
    """Items that the provider did not take."""
    unplaceable: Sequence[Unplaceable] = ()
    """Items that cannot be made again: speech of which nobody has the words."""
    asked_again: bool = False
    """Is a response asked for, in place of one that was lost or never came?"""


class OutputUnplaced(Struct, frozen=True):
    """The output of a call is on disk, and not at the provider: its call is not there, or has
    another one; or the provider refused it."""

    call_id: str
    why: str


class NoReply(Struct, frozen=True):
    """A response that the session asked for by itself has not begun. The context is whole: ask for
    one when it makes sense."""

    why: str


class EventsMissed(Struct, frozen=True):
    """So many events came before anybody read them, and are gone."""

    count: int


OwnEvent: TypeAlias = (
    Reconnecting
    | Restored
    | OutputUnplaced
    | NoReply
    | EventsMissed
    | CallBegan
    | CallEnded
    | Waiting
)
Told: TypeAlias = Mapping[str, Any] | OwnEvent
"""A server event as it came, or one of the session's own."""
