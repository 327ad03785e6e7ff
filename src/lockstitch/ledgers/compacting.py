"""A new chain: the oldest part of a conversation goes, and nothing is torn apart."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lockstitch.core.compacting import cut_behind
from lockstitch.core.errors import CannotTrim
from lockstitch.core.exchanges import Exchange
from lockstitch.core.facts import START, AnyFact, By, ItemsRemoved, Removal, Seq
from lockstitch.core.links import back
from lockstitch.ledgers.ledger import Ledger
from lockstitch.ledgers.making import item_added, several


def compacted(
    of: Ledger,
    *,
    max_items: int | None = None,
    max_bytes: int | None = None,
    replaced: Sequence[Mapping[str, Any]] = (),
) -> list[AnyFact]:
    """The facts that the oldest part of the conversation went, so that the rest fits; no pair,
    no group of calls and no reasoning is torn apart. ``replaced`` stands for what went.

    Without limits everything goes, as after the provider's own compaction. No facts: it fits."""
    limits: list[tuple[Callable[[Seq], int], int]] = []
    if max_items is not None:
        limits.append((lambda seq: 1, max_items))
    if max_bytes is not None:
        limits.append((lambda seq: len(of.item(seq)), max_bytes))
    waiting = of.unsettled()
    if waiting and not limits:
        named = ", ".join(call.named for call in waiting)
        raise CannotTrim(f"Calls that have no output cannot go: {named}. Settle them first.")
    links = [link for link, _ in back(of.links, of.tip)]
    for link in links:
        if isinstance(link, Exchange) and link.in_flight:
            raise CannotTrim(
                f"Request {link.seq} is {link.standing.value}: an answer may still come. Record "
                "what became of it first."
            )
    if not links:
        return []
    # The tip may be an earlier compaction, which stands before what it kept.
    to = cut_behind(of, limits) if limits else links[0].seq
    if to == START:
        return []
    summary: list[AnyFact] = [item_added(item, By.REWRITE) for item in several(replaced)]
    entries = tuple(range(len(of) + 1, len(of) + 1 + len(summary)))
    return [*summary, ItemsRemoved(by=Removal.COMPACTION, to=to, replaced=entries)]
