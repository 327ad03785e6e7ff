"""A chain of exchanges as one ledger: what the anchor of a request holds, and what a replay sends.

The ledger plans and proves; nothing here decides what is whole. A chain whose beginning is not
known, or that goes on from an answer that broke off, cannot be rebuilt. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from lockstitch.core.continuation import Continue, Plan, Reason, Refuse, Replay, Why
from lockstitch.core.errors import LockstitchError
from lockstitch.core.facts import (
    START,
    AnchorLost,
    Ending,
    ItemAdded,
    ItemCompleted,
    Mode,
    RequestPrepared,
    RequestSent,
    ResponseEnded,
    ResponseOpened,
    Seq,
)
from lockstitch.dialects.base import Wire
from lockstitch.gateway.keeping.exchanges import Kept, giver
from lockstitch.ledgers import Ledger


class ChainUnknown(LockstitchError):
    """Not all of what stands before a request is known."""


class Chain:
    """The exchanges of one path, oldest first."""

    def __init__(self) -> None:
        self.ledger = Ledger("responses")
        self._parent: Seq = START
        self._sent: tuple[Seq, ...] = ()
        self.last: str | None = None
        """The response that it ends with."""

    def __repr__(self) -> str:
        return f"<Chain to {self.last or 'nothing'}, {len(self.ledger)} facts>"

    @classmethod
    def of(cls, path: Sequence[Kept]) -> Chain:
        """The chain of these exchanges, each of which goes on from the one before it."""
        chain = cls()
        for one in path:
            if one.asked.base != chain.last:
                raise ChainUnknown(
                    f"Response {one.id} continues {one.asked.base or 'nothing'}, which is not in "
                    "the journal."
                )
            if one.asked.conversation is not None:
                raise ChainUnknown(
                    f"Response {one.id} belongs to conversation {one.asked.conversation}, and the "
                    "items before it are not in the journal."
                )
            if not one.continues:
                raise ChainUnknown(
                    f"Response {one.id} did not complete, so it cannot be continued."
                )
            chain.asked(one.items)
            chain.answered(one.id, one.said, one.ending or Ending.COMPLETED)
        return chain

    def asked(self, items: Sequence[bytes]) -> None:
        """These items are asked next."""
        ledger = self.ledger
        sent: list[Seq] = []
        after: Seq | None = self._parent
        for item in items:
            sent.append(ledger.append(ItemAdded(item=item, by=giver(item), after=after)))
            after = None
        self._sent = tuple(sent)

    def answered(self, id: str, said: Sequence[bytes], ending: Ending) -> None:
        """And were answered so."""
        ledger = self.ledger
        covers = self._sent[-1] if self._sent else self._parent
        request = ledger.append(
            RequestPrepared(
                mode=Mode.CHAIN,
                base=self._parent,
                covers=covers,
                sent=self._sent,
                anchor=self.last,
            )
        )
        ledger.append(RequestSent(request=request))
        ledger.append(ResponseOpened(request=request, id=id))
        for item in said:
            ledger.append(ItemCompleted(request=request, item=item))
        ledger.append(ResponseEnded(request=request, ending=ending))
        self._parent, self._sent, self.last = request, (), id

    def plan(self) -> Plan:
        """How what was asked last can be sent without an anchor: a proven `Replay`, or why not."""
        if self.last is not None and self.last not in self.ledger.lost_anchors:
            self.ledger.append(AnchorLost(anchor=self.last))
        plan = self.ledger.plan(Mode.CHAIN)
        if isinstance(plan, Refuse) and plan.reason is Reason.NOTHING_NEW and self.last is not None:
            # Whoever was only warmed up, or went on without a word: what there was is all.
            tip = self._parent
            return Replay(
                mode=Mode.CHAIN, why=Why.ANCHOR_LOST, base=tip, tip=tip, items=(), anchor=None
            )
        return plan

    def items(self, plan: Continue | Replay) -> list[Wire]:
        return self.ledger.items(plan)
