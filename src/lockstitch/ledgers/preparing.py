"""From a plan to a request: what is sent is recorded as sent, rewritten or not.

Input filters, hand-offs and redaction may change the planned items. The position moves all the
same; a rewrite that would break a pair is refused, with the pair named."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from operator import attrgetter
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
from lockstitch.ledgers.ledger import Ledger, nothing_to_send
from lockstitch.ledgers.making import item_added, several

_encoder = msgspec.json.Encoder(order="deterministic")
_seq = attrgetter("seq")


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
    if not isinstance(plan, Continue) and not isinstance(plan, Replay):
        raise nothing_to_send(plan)
    facts: list[AnyFact] = []
    if items is not None:
        base, sent = _rewritten(of, plan, items, facts)
    else:
        base, sent = plan.base, tuple(map(_seq, plan.items))
    if conversation is not None and not (
        isinstance(plan, Replay) and plan.mode is Mode.CONVERSATION
    ):
        raise IllegalFact(
            "Only a full history can go to a new conversation; this plan continues its own anchor."
        )
    anchor = conversation or plan.anchor
    prepared = RequestPrepared(mode=plan.mode, base=base, covers=plan.tip, sent=sent, anchor=anchor)
    facts.append(prepared)
    return facts


def _rewritten(
    of: Ledger, plan: Continue | Replay, items: Sequence[Mapping[str, Any]], facts: list[AnyFact]
) -> tuple[Seq, tuple[Seq, ...]]:
    """What a rewritten request is based on, and the entries it sends; new ones go to ``facts``."""
    items = several(items)
    planned = of.sendings(plan)
    places = _places([_same(of.rendered(sending)) for sending in planned], [*map(_same, items)])
    sent: list[Seq] = []
    parts: list[Sequence[Item]] = []
    for item, place in zip(items, places, strict=True):
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
            f"The rewritten items would not be valid: {broken}. Keep or drop a call together with "
            "its output. Nothing was recorded."
        )


def _places(planned: Sequence[bytes], given: Sequence[bytes]) -> list[int | None]:
    """For each item that was given: which of the planned ones it is, in order; None if it is new.

    Filters mostly leave the beginning and the end as they are, so those are matched first."""
    first = 0
    while first < min(len(planned), len(given)) and planned[first] == given[first]:
        first += 1
    last = 0
    most = min(len(planned), len(given)) - first
    while last < most and planned[-1 - last] == given[-1 - last]:
        last += 1
    places: list[int | None] = [None] * len(given)
    places[:first] = range(first)
    if last:
        places[-last:] = range(len(planned) - last, len(planned))
    between = SequenceMatcher(
        None, planned[first : len(planned) - last], given[first : len(given) - last], autojunk=False
    )
    for block in between.get_matching_blocks():
        for n in range(block.size):
            places[first + block.b + n] = first + block.a + n
    return places


def _same(item: Mapping[str, Any]) -> bytes:
    """Bytes that are equal for equal items."""
    try:
        return _encoder.encode(item)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise NotAnItem(f"A rewritten item cannot be written as JSON: {error}.") from None
