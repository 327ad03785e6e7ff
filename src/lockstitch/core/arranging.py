"""Links in order, as the items that a provider is to read: every output behind its calls.

Outputs that we settled belong to their calls and stand right behind the group; outputs that came
as items stand where they came. What may not travel is left out here, and nowhere else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from lockstitch.core.calls import Call, id_of
from lockstitch.core.exchanges import Exchange
from lockstitch.core.facts import START, Seq
from lockstitch.core.items import Item, Part
from lockstitch.core.ledger import Ledger
from lockstitch.core.links import Beginning, Compaction, Link, Said, back, counts

_OUTPUT, _INPUT, _REASONING = Part.OUTPUT, Part.INPUT, Part.REASONING

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


def arranged(links: Sequence[Link], behind: Said | Exchange | None = None) -> Arranged:
    """The entries of these links; the calls of ``behind``, before them, want their outputs."""
    found = Arranged([], [], [])
    entries = found.entries
    until = _held_over(links) if links else {}
    asking, since = behind, -1
    for n, link in enumerate(links):
        if counts(link):
            if asking is not None:
                _answer(found, asking, since, until)
            asking, since = link, n
        found.starts.append(len(entries))
        if isinstance(link, Said):
            entries.append(link.seq)
        else:
            entries += _entries_here(links, n, behind)
    if asking is not None:
        _answer(found, asking, since, until)
    return found


def _answer(
    found: Arranged, asking: Said | Exchange, n: int, until: Mapping[tuple[Seq, int], int]
) -> None:
    """Put the outputs behind the nth link, whose calls they answer."""
    entries = found.entries
    first = len(entries)
    for call in asking.waiting:
        if until and until.get(id_of(call), n) > n:
            continue
        if call.output is None:
            if asking.wants(call):
                found.unsettled.append(call)
        elif len(entries) == first or call.output not in entries[first:]:
            entries.append(call.output)  # once: one message may answer several


def entries_of(link: Link) -> Sequence[Seq]:
    """The entries that a link brings, apart from the outputs behind it."""
    if isinstance(link, Said):
        return (link.seq,)
    if isinstance(link, Compaction):
        return link.replaced
    if isinstance(link, Exchange) and link.counts:
        return link.said
    return ()


def _entries_here(links: Sequence[Link], n: int, behind: Said | Exchange | None) -> Sequence[Seq]:
    """The entries of the nth link, but for outputs that the provider gave to calls that are not
    here: a compaction took them away."""
    link = links[n]
    entries = entries_of(link)
    if not isinstance(link, Exchange) or not link.answers:
        return entries
    here = {one.seq for one in links[:n]}
    held = [] if behind is None else [id_of(call) for call in behind.waiting]
    stray = {
        seq
        for call, seq in zip(link.answers, link.answering, strict=True)
        if call.link not in here and id_of(call) not in held
    }
    return [seq for seq in entries if seq not in stray]


def _held_over(links: Sequence[Link]) -> dict[tuple[Seq, int], int]:
    """For calls whose output does not stand behind the link that made them: the last of these
    links behind which it does not. The provider still ran them there; or it stands among these
    links as an item, and behind none."""
    until: dict[tuple[Seq, int], int] = {}
    for n, link in enumerate(links):
        if not counts(link):
            continue
        if isinstance(link, Exchange):
            for call in link.waiting:
                if call.by_server:
                    until[id_of(call)] = max(n, until.get(id_of(call), n))
        for call in link.answers:
            until[id_of(call)] = len(links)
    return until


def last_said(ledger: Ledger, seq: Seq) -> Said | Exchange | None:
    """The last link through this one at which something was said."""
    link = ledger.link(seq)
    while not isinstance(link, Beginning):
        if counts(link):
            return link
        link = ledger.links[link.parent]
    return None


def travelling(ledger: Ledger, entries: Iterable[Seq], held: Sequence[Call] = ()) -> list[Sending]:
    """The entries as they may be sent to a provider that may have kept nothing of them, but for
    the calls in ``held``.

    Reasoning without its content is only a reference, so it stays behind, and what the model
    said with it goes without ids. Of several entries with one id, all but the first go without
    it. Reasoning that led to nothing stays behind, too."""
    sendings: list[Sending] = []
    dangling = 0
    for seq in entries:
        parts = ledger.parts[seq]
        item = parts[0] if len(parts) == 1 else _SEVERAL
        part = item.part
        if part is _REASONING:
            if item.carried:
                dangling += 1
                sendings.append(Sending(seq, _repeated(ledger, seq, item.id)))
            continue
        if dangling:
            if part is _INPUT or part is _OUTPUT:
                del sendings[-dangling:]
            dangling = 0
        shadowed = seq in ledger.shadowed
        bare = item.id is not None and (shadowed or _repeated(ledger, seq, item.id))
        rekeyed = None
        if shadowed:
            rekeyed = item.joining_id
        elif part is _OUTPUT and ledger.shadowed:
            rekeyed = _new_key(ledger, seq, item, held)
        sendings.append(Sending(seq, bare, rekeyed))
    if dangling:
        del sendings[-dangling:]
    return sendings


def _new_key(ledger: Ledger, seq: Seq, output: Item, held: Sequence[Call]) -> str | None:
    """The id that an output must name otherwise, as the call that is sent with it does."""
    for call in ledger.answered_by(seq):
        if call.seq in ledger.shadowed and call.item.joining_id == output.key and call not in held:
            return output.key
    return None


def _repeated(ledger: Ledger, seq: Seq, id: str | None) -> bool:
    if id is None:
        return False
    entries = ledger.entries_with_id(id)
    return len(entries) > 1 and entries[0] != seq


def sent_parts(ledger: Ledger, sending: Sending) -> Sequence[Item]:
    """The core items of an item as it is sent."""
    parts = ledger.parts[sending.seq]
    if ledger.provider_runs_calls:
        parts = [_running(ledger, sending.seq, item) for item in parts]
    if sending.bare:
        parts = [replace(item, id=None) for item in parts]
    if sending.rekeyed is not None:
        parts = [_rekeyed(item, sending.rekeyed) for item in parts]
    return parts


def _running(ledger: Ledger, seq: Seq, item: Item) -> Item:
    """What the provider runs may stand without an output as long as it does."""
    call = ledger.calls.get((seq, item.slot))
    return replace(item, lone=True) if call is not None and runs(ledger, call) else item


def runs(ledger: Ledger, call: Call) -> bool:
    """Does the provider run this call, and wait for others that it made meanwhile?"""
    link = ledger.links[call.link]
    return isinstance(link, Exchange) and link.runs(call)


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
        if exchange.begins is not None:
            pieces.append(exchange.said[exchange.begins :])
            break
        pieces += (exchange.said, exchange.sent)
        base = exchange.base
    return [seq for piece in reversed(pieces) for seq in piece]


def history(ledger: Ledger, tip: Seq | None = None) -> list[Seq]:
    """The conversation on the path to ``tip``, as it was said here."""
    end = ledger.link(ledger.tip if tip is None else tip)
    links = [link for link, _ in back(ledger.links, end.seq)]
    return arranged(links[::-1]).entries
