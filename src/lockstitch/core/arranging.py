"""Links in order, as the items that a provider is to read: every output behind its calls.

Outputs that we settled belong to their calls and stand right behind the group; outputs that came
as items stand where they came. What may not travel is left out here, and nowhere else."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from lockstitch.core.calls import Call
from lockstitch.core.exchanges import Exchange, Standing
from lockstitch.core.facts import START, ItemCompleted, Seq
from lockstitch.core.items import Item, Part
from lockstitch.core.ledger import Ledger
from lockstitch.core.links import Beginning, Compaction, Link, Said, back

_CALL, _OUTPUT, _INPUT = Part.CALL, Part.OUTPUT, Part.INPUT
_REASONING, _COMPACTION = Part.REASONING, Part.COMPACTION

_SEVERAL = Item(Part.INPUT)
"""A message with several parts: it has no id of its own, and is no reasoning."""


class Sending(Struct, frozen=True, gc=False):
    """One item as it is sent."""

    seq: Seq
    bare: bool = False
    """Without its own id: it names something that this provider does not have, or has."""
    rekeyed: str | None = None
    """An id that joins a call to its output, and is sent with `NEW_KEY` behind it in both: the
    provider would ask for the reasoning that it knows by this id."""


NEW_KEY = "_ls"


class Arranged(Struct):
    """Entries in the order to be sent, and the calls that have no output yet."""

    entries: list[Seq]
    unsettled: list[Call]
    starts: list[int]
    """For each link: how many entries stand before its own."""


def arranged(links: Sequence[Link], waiting: Sequence[Call] = ()) -> Arranged:
    """The entries of these links; ``waiting`` are calls before them that want an output."""
    entries: list[Seq] = []
    unsettled: list[Call] = []
    starts: list[int] = []
    answered = {id_of(call) for link in links if isinstance(link, Said) for call in link.answers}

    def flush(calls: Sequence[Call]) -> None:
        placed = len(entries)
        for call in calls:
            if answered and id_of(call) in answered:
                continue
            if call.output is None:
                if call.waits_for_us:
                    unsettled.append(call)
            elif call.output not in entries[placed:]:  # one message may answer several
                entries.append(call.output)

    pending: Sequence[Call] = waiting
    for link in links:
        if isinstance(link, Said):
            if pending and not link.answers:
                flush(pending)
                pending = ()
            starts.append(len(entries))
            entries.append(link.seq)
            if link.calls:
                pending = [*pending, *link.calls]
        elif isinstance(link, Exchange):
            accepted = link.standing is Standing.ACCEPTED
            if not (accepted or link.kept):
                starts.append(len(entries))
                continue
            flush(pending)
            starts.append(len(entries))
            entries += link.said
            pending = link.open if accepted else link.unanswered()
        else:
            starts.append(len(entries))
            if isinstance(link, Compaction):
                entries += link.replaced
    flush(pending)
    return Arranged(entries, unsettled, starts)


def waiting_at(ledger: Ledger, seq: Seq) -> list[Call]:
    """The calls that want their outputs right behind this link."""
    waiting: list[Call] = []
    answered: set[tuple[Seq, int]] = set()
    link = ledger.link(seq)
    while not isinstance(link, Beginning):
        if isinstance(link, Said):
            answered |= {id_of(call) for call in link.answers}
            waiting[:0] = link.calls
            if not link.answers:
                break  # what waited before it was answered before it
        elif isinstance(link, Exchange):
            accepted = link.standing is Standing.ACCEPTED
            if accepted or link.kept:
                waiting[:0] = link.open if accepted else link.unanswered()
                break
        link = ledger.links[link.parent]
    return [call for call in waiting if id_of(call) not in answered]


def id_of(call: Call) -> tuple[Seq, int]:
    """What tells a call from every other: where it stands."""
    return call.seq, call.item.slot


def travelling(ledger: Ledger, entries: Iterable[Seq]) -> list[Sending]:
    """The entries as they may be sent to a provider that may have kept nothing of them.

    Reasoning without its content is only a reference, so it stays behind, and what the model
    said with it goes without ids: a provider that knows the id would ask for the reasoning. Of
    several entries with one id, all but the first go without it. What the provider compacted is
    not sent again, if it is whole by itself."""
    sendings: list[Sending] = []
    rekeyed: set[str] = set()
    dangling = 0
    bare = False
    for seq in entries:
        parts = ledger.parts(seq)
        item = parts[0] if len(parts) == 1 else _SEVERAL
        part = item.part
        if part is _REASONING:
            if item.carried:
                dangling += 1
                sendings.append(Sending(seq, _repeated(ledger, seq, item.id)))
            else:
                bare = True
            continue
        if part is _INPUT or part is _OUTPUT:
            if bare and not isinstance(ledger.fact(seq), ItemCompleted):
                bare = False
            if dangling:
                del sendings[-dangling:]  # what it led to was never said
        elif part is _COMPACTION and _is_whole(ledger, sendings):
            sendings.clear()
        dangling = 0
        stripped = item.id is not None and (bare or _repeated(ledger, seq, item.id))
        new_key = None
        if bare and item.joining_id is not None:
            new_key = item.joining_id
            rekeyed.add(new_key)
        elif rekeyed and part is _OUTPUT and item.key in rekeyed:
            new_key = item.key
        sendings.append(Sending(seq, stripped, new_key))
    if dangling:
        del sendings[-dangling:]
    return sendings


def _repeated(ledger: Ledger, seq: Seq, id: str | None) -> bool:
    if id is None:
        return False
    entries = ledger.entries_with_id(id)
    return len(entries) > 1 and entries[0] != seq


def _is_whole(ledger: Ledger, sendings: Iterable[Sending]) -> bool:
    """Has each call among these its output here, and each output its call?"""
    waiting: set[str] = set()
    for sending in sendings:
        for item in ledger.parts(sending.seq):
            if item.key is None or item.lone:
                continue
            if item.part is _CALL:
                waiting.add(item.key)
            elif item.part is _OUTPUT:
                if item.key not in waiting:
                    return False
                waiting.discard(item.key)
    return not waiting


def sent_parts(ledger: Ledger, sending: Sending) -> Sequence[Item]:
    """The core items of an item as it is sent."""
    parts = ledger.parts(sending.seq)
    if sending.bare:
        return [replace(item, id=None) for item in parts]
    if sending.rekeyed is not None:
        return [_rekeyed(item, sending.rekeyed) for item in parts]
    return parts


def _rekeyed(item: Item, old: str) -> Item:
    def new(key: str | None) -> str | None:
        return old + NEW_KEY if key == old else key

    joining_id = new(item.joining_id)
    return replace(item, key=new(item.key), alias=new(item.alias), joining_id=joining_id)


def context(ledger: Ledger, base: Seq) -> list[Seq]:
    """Everything that the provider had when the answer of ``base`` ended, as it was sent."""
    pieces: list[Sequence[Seq]] = []
    while base != START:
        exchange = ledger.links[base]
        if not isinstance(exchange, Exchange):
            break  # adopted: what is before it, only the provider knows
        pieces += (exchange.said, exchange.sent)
        base = exchange.base
    return [seq for piece in reversed(pieces) for seq in piece]


def history(ledger: Ledger, tip: Seq | None = None) -> list[Seq]:
    """The conversation on the path to ``tip``, as it was said here."""
    end = ledger.link(ledger.tip if tip is None else tip)
    links = [link for link, _ in back(ledger.links, end.seq)]
    return arranged(links[::-1]).entries
