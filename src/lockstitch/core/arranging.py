"""Links in order, as the items that a provider is to read: every output behind its calls.

Outputs that we settled belong to their calls and stand right behind the group; outputs that came
as items stand where they came. What may not travel is left out here, and nowhere else."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from lockstitch.core.calls import Call
from lockstitch.core.exchanges import Exchange, Standing
from lockstitch.core.facts import START, Seq
from lockstitch.core.items import Item, Part
from lockstitch.core.ledger import Ledger
from lockstitch.core.links import Compaction, Link, Said, back

_CALL, _OUTPUT, _INPUT = Part.CALL, Part.OUTPUT, Part.INPUT
_REASONING, _COMPACTION = Part.REASONING, Part.COMPACTION


class Sending(Struct, frozen=True, gc=False):
    """One item as it is sent."""

    seq: Seq
    bare: bool = False
    """Without its own id: it names something that this provider does not have, or has."""


class Arranged(Struct):
    """Entries in the order to be sent, and the calls that have no output yet."""

    entries: list[Seq]
    unsettled: list[Call]
    starts: list[int]
    """For each link: how many entries stand before its own."""


def arranged(ledger: Ledger, links: Iterable[Link], waiting: Sequence[Call] = ()) -> Arranged:
    """The entries of these links; ``waiting`` are calls before them that want an output."""
    links = list(links)
    entries: list[Seq] = []
    unsettled: list[Call] = []
    starts: list[int] = []
    answered = {id_of(call) for link in links if isinstance(link, Said) for call in link.answers}

    def flush(calls: Sequence[Call]) -> None:
        for call in calls:
            if id_of(call) in answered:
                continue
            if call.output is not None:
                entries.append(call.output)
            elif not call.runs_at_provider:
                unsettled.append(call)

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


def id_of(call: Call) -> tuple[Seq, int]:
    """What tells a call from every other: where it stands."""
    return call.seq, call.item.slot


def travelling(ledger: Ledger, entries: Iterable[Seq]) -> list[Sending]:
    """The entries as they may be sent to a provider that may have kept nothing of them.

    Reasoning without its content is only a reference, so it stays behind, and what the model
    said with it goes without ids: a provider that knows the id would ask for the reasoning. Of
    several entries with one id, all but the first go without it. What the provider compacted is
    not sent again, if no call in it is still open."""
    sendings: list[Sending] = []
    open_keys: set[str] = set()
    dangling = 0
    bare = False
    for seq in entries:
        parts = ledger.parts(seq)
        item = parts[0] if len(parts) == 1 else None
        part = item.part if item is not None else _INPUT
        if part is _REASONING:
            assert item is not None
            if not item.carried:
                bare = True
                continue
            dangling += 1
            sendings.append(Sending(seq, _repeated(ledger, seq, item)))
            continue
        if part is _COMPACTION and not open_keys:
            sendings.clear()
            dangling = 0
        for each in parts:
            if each.key is not None and not each.lone:
                (open_keys.add if each.part is _CALL else open_keys.discard)(each.key)
        if part is _INPUT or part is _OUTPUT:
            bare = False
            if dangling:
                del sendings[-dangling:]  # what it led to was never said
        dangling = 0
        own = item is not None and item.id is not None
        sendings.append(Sending(seq, own and (bare or _repeated(ledger, seq, item))))
    if dangling:
        del sendings[-dangling:]
    return sendings


def _repeated(ledger: Ledger, seq: Seq, item: Item | None) -> bool:
    if item is None or item.id is None:
        return False
    entries = ledger.entries_with_id(item.id)
    return len(entries) > 1 and entries[0] != seq


def sent_parts(ledger: Ledger, sending: Sending) -> Sequence[Item]:
    """The core items of an item as it is sent."""
    parts = ledger.parts(sending.seq)
    return [replace(item, id=None) for item in parts] if sending.bare else parts


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
    links = [link for link, _ in back(ledger.links, ledger.tip if tip is None else tip)]
    return arranged(ledger, reversed(links)).entries
