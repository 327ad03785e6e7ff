"""What a turn tells whoever watches it: for a terminal, a page, a log. Nothing depends on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from msgspec import Struct

from lockstitch.core.facts import Seq
from lockstitch.core.outcomes import Outcome


class TextDelta(Struct, frozen=True):
    """A piece of what the model says. If the stream breaks it comes again, from the start."""

    text: str
    kind: str = "text"


class ItemSaid(Struct, frozen=True):
    """The model said an item to its end; it is on disk."""

    item: Mapping[str, Any]


class CallBegan(Struct, frozen=True):
    """A tool is about to run; that is on disk."""

    call_id: str
    name: str
    arguments: str
    attempt: int = 1


class CallEnded(Struct, frozen=True):
    """The output of a call is on disk."""

    call_id: str
    name: str
    outcome: Outcome
    output: str
    """What it says, as a text."""
    failed: bool = False


class Retrying(Struct, frozen=True):
    """A request failed and is built anew; what was heard of its answer is void."""

    reason: str
    attempt: int
    delay_seconds: float


class Waiting(Struct, frozen=True):
    """These calls wait for somebody: for an approval, or for an output from outside. The turn ends
    here; any process can take it up again, with `approve` or after `answer`."""

    for_approval: Sequence[PendingCall] = ()
    for_output: Sequence[PendingCall] = ()


class PendingCall(Struct, frozen=True):
    """A call that somebody must decide about."""

    call_id: str
    name: str
    arguments: str
    position: Seq


class TurnEnded(Struct, frozen=True):
    """The model has said its last word of this turn."""

    text: str
    usage: Mapping[str, Any] | None = None
    rounds: int = 1
    """How many answers it took."""
    incomplete: bool = False
    """A limit ended the last answer early."""


Event: TypeAlias = TextDelta | ItemSaid | CallBegan | CallEnded | Retrying | Waiting | TurnEnded
