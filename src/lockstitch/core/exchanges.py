"""A request and what came of it, with its life as a table.

Everything that decides what may happen to a request next lives in this file. A step missing from
a row is illegal in that state; there is no default. docs/architecture.md draws it from here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from lockstitch.core.calls import Call, Life
from lockstitch.core.facts import Ending, Mode, Seq
from lockstitch.core.members import Member


class Standing(Member):
    """How a request stands with the provider."""

    PREPARED = "prepared"
    """Built, and not sent."""
    SENT = "sent"
    """On its way: the provider may have it."""
    ANSWERING = "answering"
    """The provider began to answer."""
    ACCEPTED = "accepted"
    """The provider has it, and its answer: the position moves."""
    REJECTED = "rejected"
    """The provider does not have it: as if it had not been sent."""
    LOST = "lost"
    """Nobody here knows."""


class Move(Member):
    """What happens to a request."""

    SEND = "send"
    OPEN = "open"
    SAY = "say"
    """An item of the answer is whole."""
    END = "end"
    FAIL = "fail"
    ACCEPT = "accept"
    REJECT = "reject"
    LOSE = "lose"


_S, _M = Standing, Move

# Bound once: looking a member up in its enum costs more than what is asked of it here.
_SENT, _ANSWERING, _ACCEPTED = Standing.SENT, Standing.ANSWERING, Standing.ACCEPTED
_ANNOUNCED = Life.ANNOUNCED

STANDING: Final[dict[Standing, dict[Move, Standing]]] = {
    _S.PREPARED: {_M.SEND: _S.SENT, _M.REJECT: _S.REJECTED},
    _S.SENT: {
        _M.OPEN: _S.ANSWERING,
        _M.ACCEPT: _S.ACCEPTED,
        _M.REJECT: _S.REJECTED,
        _M.LOSE: _S.LOST,
    },
    _S.ANSWERING: {
        _M.SAY: _S.ANSWERING,
        _M.END: _S.ACCEPTED,
        _M.FAIL: _S.REJECTED,
        _M.REJECT: _S.REJECTED,
        _M.LOSE: _S.LOST,
    },
    # What was lost may be found: read back from a conversation, or retrieved by its id.
    _S.LOST: {
        _M.OPEN: _S.ANSWERING,
        _M.ACCEPT: _S.ACCEPTED,
        _M.REJECT: _S.REJECTED,
        _M.LOSE: _S.LOST,
    },
    _S.ACCEPTED: {},
    _S.REJECTED: {},
}

MOVE_OF_ENDING: Final = {
    Ending.COMPLETED: Move.END,
    Ending.INCOMPLETE: Move.END,
    Ending.FAILED: Move.FAIL,
    Ending.CUT: Move.LOSE,
}


class Exchange(Struct, eq=False, gc=False):
    """A request and its answer. It is also a link of the tree: what is said next follows it."""

    seq: Seq
    parent: Seq
    """The link it was built from: everything up to here is in it."""
    depth: int
    mode: Mode
    base: Seq
    sent: tuple[Seq, ...]
    anchor: str | None
    standing: Standing = Standing.PREPARED
    id: str | None = None
    """The response's id, once it began."""
    said: list[Seq] = []
    """The items of the answer that are whole."""
    calls: tuple[Call, ...] = ()
    """The calls among them."""
    answers: Sequence[Call] = ()
    """Calls of earlier answers whose output is among them: those that the provider ran."""
    answering: Sequence[Seq] = ()
    """And the entries that hold these outputs."""
    open: Sequence[Call] = ()
    """Calls that the provider waits for, once the answer ended."""
    begins: int | None = None
    """Where among them a compaction stands: what was before it, the provider dropped."""
    shadowed: bool = False
    """Reasoning among them does not travel; see `Ledger.shadowed`."""
    ended_early: bool = False
    """A limit ended it: what it began to run, nobody runs any more."""
    adopted: bool = False
    """Its context begins with something that we never saw."""
    passed: bool = False
    """A later answer was accepted before it was known what became of this one."""

    def __repr__(self) -> str:
        return f"<Exchange {self.seq} {self.id or ''} {self.standing.value}>"

    @property
    def in_flight(self) -> bool:
        return self.standing is _SENT or self.standing is _ANSWERING

    @property
    def kept(self) -> bool:
        """Does an answer that never ended count? Only where a call of it may have had its effect:
        then what the model said is evidence, and must not be forgotten."""
        return any(call.life is not _ANNOUNCED for call in self.calls)

    @property
    def abandoned(self) -> bool:
        """Did the conversation go on without what it said?"""
        return self.passed and not self.kept

    @property
    def counts(self) -> bool:
        """Is what it said part of the conversation?"""
        return self.standing is _ACCEPTED or self.kept

    @property
    def waiting(self) -> Sequence[Call]:
        """The calls that want their output behind it."""
        return self.open if self.standing is _ACCEPTED else self.unanswered()

    def unanswered(self) -> Sequence[Call]:
        """Its calls, but for those of which it holds the output itself."""
        for call in self.calls:
            if call.output is not None:
                said = set(self.said)
                return tuple([call for call in self.calls if call.output not in said])
        return self.calls

    def wants(self, call: Call) -> bool:
        """Must the output of this call come from us? What the provider runs, it runs no more once
        its answer broke off or ended early."""
        if call.output is not None or not call.by_server:
            return call.output is None
        return not (self.in_flight or (self.standing is _ACCEPTED and not self.ended_early))

    def runs(self, call: Call) -> bool:
        """Does the provider run this call of it, and wait for calls of ours that it made?"""
        return (
            call.by_server and not self.wants(call) and any(not one.by_server for one in self.calls)
        )
