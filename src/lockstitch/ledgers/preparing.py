"""From a plan to a request: what is sent is recorded as sent, rewritten or not.

Input filters, hand-offs and redaction may change the planned items. The position moves all the
same; a rewrite that would break a pair is refused, with the pair named."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from lockstitch.core import continuation
from lockstitch.core.arranging import sent_parts
from lockstitch.core.continuation import Continue, Replay
from lockstitch.core.errors import BrokenPair, IllegalFact, NotAnItem
from lockstitch.core.exchanges import Exchange
from lockstitch.core.facts import START, AnyFact, By, Mode, RequestPrepared, Seq
from lockstitch.core.items import Item
from lockstitch.core.links import Adoption
from lockstitch.dialects.base import Wire
from lockstitch.ledgers.ledger import Ledger
from lockstitch.ledgers.making import item_added

_encoder = msgspec.json.Encoder(order="deterministic")


def request_prepared(
    of: Ledger,
    plan: Continue | Replay,
    *,
    items: Sequence[Mapping[str, Any]] | None = None,
    conversation: str | None = None,
) -> list[AnyFact]:
    """The facts that a plan became a request; the last of them is the request.

    ``items`` are what is really sent, where the caller rewrote what `Ledger.items` gave: they are
    recorded as sent. A rewrite that would part a call from its output raises `BrokenPair`.
    ``conversation`` is the provider's new conversation, for a replay in that mode."""
    facts: list[AnyFact] = []
    base, sent = plan.base, tuple(sending.seq for sending in plan.items)
    if items is not None:
        base, sent = _rewritten(of, plan, items, facts)
    if conversation is not None and not (
        isinstance(plan, Replay) and plan.mode is Mode.CONVERSATION
    ):
        raise IllegalFact(
            "Only a replay goes to a new conversation; this plan goes on from its own anchor."
        )
    anchor = conversation or plan.anchor
    prepared = RequestPrepared(mode=plan.mode, base=base, covers=plan.tip, sent=sent, anchor=anchor)
    return [*facts, prepared]


def _rewritten(
    of: Ledger, plan: Continue | Replay, items: Sequence[Mapping[str, Any]], facts: list[AnyFact]
) -> tuple[Seq, tuple[Seq, ...]]:
    """What a rewritten request is based on, and the entries it sends; new ones go to ``facts``."""
    planned = of.sendings(plan)
    places = _Places([of.rendered(sending) for sending in planned])
    sent: list[Seq] = []
    parts: list[Sequence[Item]] = []
    for item in items:
        place = places.next(item)
        if place is not None:
            sent.append(planned[place].seq)
            parts.append(sent_parts(of, planned[place]))
        else:
            fact = item_added(item, By.REWRITE)
            parts.append(of.reading.read(fact.item))
            facts.append(fact)
            sent.append(len(of) + len(facts))
    _check_whole(of, plan, parts)
    before = len(planned) - len(plan.items)
    if sent[:before] != [sending.seq for sending in planned[:before]]:
        return START, tuple(sent)  # what came before was rewritten too: a chain of its own
    return plan.base, tuple(sent[before:])


def _check_whole(of: Ledger, plan: Continue | Replay, parts: Sequence[Sequence[Item]]) -> None:
    base = of.links[plan.base] if isinstance(plan, Continue) else None
    behind = base if isinstance(base, Exchange | Adoption) else None
    findings = continuation.prove(of, behind, parts)
    if findings:
        broken = "; ".join(finding.message for finding in findings)
        raise BrokenPair(
            f"The rewritten items would not be whole: {broken}. Keep or drop a call together with "
            "its output. Nothing was recorded."
        )


class _Places:
    """Where each planned item stands, asked in order: the second equal item is a second item."""

    def __init__(self, wires: Sequence[Wire]) -> None:
        self._at: dict[bytes, deque[int]] = {}
        for at, wire in enumerate(wires):
            self._at.setdefault(_same(wire), deque()).append(at)
        self._from = 0

    def next(self, item: Mapping[str, Any]) -> int | None:
        """The first place of an equal item, behind those already taken."""
        places = self._at.get(_same(item))
        while places:
            place = places.popleft()
            if place >= self._from:
                self._from = place + 1
                return place
        return None


def _same(item: Mapping[str, Any]) -> bytes:
    """Bytes that are equal for equal items."""
    try:
        return _encoder.encode(item)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise NotAnItem(f"A rewritten item cannot be written as JSON: {error}.") from None
