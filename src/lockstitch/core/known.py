"""What a ledger knows: the state that its facts add up to, and the questions it can answer.

Nothing here changes anything but an index that is filled when somebody asks; `ledger` does.
Everything is named by position."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from lockstitch.core.calls import Call, Life
from lockstitch.core.errors import NotInLedger
from lockstitch.core.exchanges import Exchange, Standing
from lockstitch.core.facts import START, WITH_ITEM, AnyFact, By, ItemAdded, Seq
from lockstitch.core.items import Item
from lockstitch.core.links import Beginning, Link, Said, back
from lockstitch.core.pairing import Order


class Reading(Struct, frozen=True):
    """What a ledger must know of the dialect of its items."""

    dialect: str
    order: Order
    read: Callable[[bytes], Sequence[Item]]
    """The core items of one wire item. Raises `NotAnItem` where the bytes hold none."""


class Known:
    """Everything that follows from the facts of a ledger. `Ledger` alone changes it."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self._read = reading.read
        self._facts: list[AnyFact] = []
        self.parts: dict[Seq, Sequence[Item]] = {}
        """The core items of every entry that holds an item."""
        self.links: dict[Seq, Link] = {START: Beginning()}
        self.tip: Seq = START
        """The link that was reached last: what comes next follows it, unless told otherwise."""
        self.calls: dict[tuple[Seq, int], Call] = {}
        """Every call, by its entry and slot."""
        self._calls_by_key: dict[str, list[Call]] = {}
        """By the id that joins them to their outputs."""
        self.provider_runs_calls = False
        """Is there any call that the provider runs itself?"""
        self._answered: dict[Seq, tuple[Call, ...]] = {}
        """The calls that an entry is the output of."""
        self._rewrites: set[Seq] = set()
        self._entries_by_id: dict[str, list[Seq]] = {}
        self._indexed: Seq = START
        """Their ids are noted through here: when somebody asks, and hardly anybody does."""
        self._exchange_by_id: dict[str, Exchange] = {}
        self.conversation: str | None = None
        """The provider's conversation that was named last."""
        self.lost_anchors: set[str] = set()
        self.adopted_anchor: str | None = None
        self.shadowed: set[Seq] = set()
        """Entries that the model said with reasoning that does not travel: a provider that knows
        their ids would ask for it."""
        self.positions: dict[str, Exchange] = {}
        """For each of the provider's conversations: the last exchange that it holds."""
        self.last_in: dict[str, Exchange] = {}
        """For each of the provider's conversations: the last exchange that went there."""

    def __repr__(self) -> str:
        name = type(self).__name__
        return f"<{name} {self.reading.dialect}, {len(self._facts)} facts, tip {self.tip}>"

    def __len__(self) -> int:
        return len(self._facts)

    @property
    def facts(self) -> Sequence[AnyFact]:
        """Every fact, in order; fact n stands at position n + 1."""
        return self._facts

    def fact(self, seq: Seq) -> AnyFact:
        if not 0 < seq <= len(self._facts):
            raise NotInLedger(f"There is no entry {seq}: the ledger has {len(self._facts)}.")
        return self._facts[seq - 1]

    def item(self, seq: Seq) -> bytes:
        """The wire item of an entry, as it came."""
        fact = self._facts[seq - 1] if seq in self.parts else self.fact(seq)
        if isinstance(fact, WITH_ITEM):
            return fact.item
        raise NotInLedger(f"Entry {seq} holds no item.")

    def exchange(self, seq: Seq) -> Exchange:
        """The exchange of a request."""
        link = self.links.get(seq)
        if not isinstance(link, Exchange):
            raise NotInLedger(f"Entry {seq} is no request.")
        return link

    def response(self, id: str) -> Exchange | None:
        """The exchange whose response has this id."""
        return self._exchange_by_id.get(id)

    def link(self, seq: Seq) -> Link:
        """The link at a position: an item, a request, a compaction, an adopted anchor."""
        link = self.links.get(seq)
        if link is None:
            raise _no_link(seq)
        return link

    def answered_by(self, seq: Seq) -> tuple[Call, ...]:
        """The calls that this entry is the output of."""
        return self._answered.get(seq, ())

    def call(self, key: str, *, at: Seq | None = None) -> Call | None:
        """The newest call with this id on the path to ``at`` (the tip)."""
        for call in reversed(self.calls_with_key(key)):
            if self.on_path(call.link, self.tip if at is None else at):
                return call
        return None

    def calls_with_key(self, key: str) -> Sequence[Call]:
        """Every call with this id, on any path, in the order they were made."""
        return self._calls_by_key.get(key, ())

    def entries_with_id(self, id: str) -> Sequence[Seq]:
        """The entries whose item has this id of its own."""
        return self._ids().get(id, ())

    def _ids(self) -> dict[str, list[Seq]]:
        """The entries by the ids of their items; what a filter wrote is none of them."""
        for seq in range(self._indexed + 1, len(self._facts) + 1):
            parts = self.parts.get(seq, ()) if seq not in self._rewrites else ()
            for item in parts:
                if item.id is not None:
                    entries = self._entries_by_id.setdefault(item.id, [])
                    if seq not in entries[-1:]:  # items of one entry may share an id
                        entries.append(seq)
        self._indexed = len(self._facts)
        return self._entries_by_id

    def on_path(self, seq: Seq, tip: Seq) -> bool:
        """Is this link the tip, or before it?"""
        links = self.links
        link, wanted = links.get(tip), links.get(seq)
        if link is None or wanted is None:
            raise _no_link(tip if link is None else seq)
        depth = wanted.depth
        while link.depth > depth:
            link = links[link.parent]
        return link is wanted

    def is_unstarted(self, call: Call) -> bool:
        """Is it known that nobody has begun with it? Not of one that was brought along: whoever had
        it before may have run it. Nor of one that the provider runs."""
        fact = self.fact(call.seq)
        brought_along = isinstance(fact, ItemAdded) and fact.by is not By.MODEL
        return not brought_along and call.life is Life.ANNOUNCED and not call.by_server

    def unsettled(self, tip: Seq | None = None) -> list[Call]:
        """Calls since the last answer on the path that have no output here, and want one of us."""
        found: list[Call] = []
        for link, _ in back(self.links, self.link(self.tip if tip is None else tip).seq):
            ended = isinstance(link, Exchange) and link.standing is Standing.ACCEPTED
            found[:0] = unsettled_of(link)
            if ended:
                break
        return found

    def doubts(self) -> list[Exchange]:
        """Requests of which it is not known how they ended: lost, or in flight when the process
        that sent them died."""
        return [
            link
            for link in self.links.values()
            if isinstance(link, Exchange) and (link.in_flight or link.standing is Standing.LOST)
        ]

    def state(self) -> bytes:
        """Everything that was derived, as bytes: equal for equal ledgers."""
        return msgspec.json.encode(
            {
                "tip": self.tip,
                "links": [_plain(link) for link in self.links.values()],
                "calls": [_plain(call) for call in self.calls.values()],
                "answered": {str(k): [c.seq for c in v] for k, v in self._answered.items()},
                "rewrites": sorted(self._rewrites),
                "conversation": self.conversation,
                "lost_anchors": sorted(self.lost_anchors),
                "adopted_anchor": self.adopted_anchor,
                "shadowed": sorted(self.shadowed),
                "positions": {k: v.seq for k, v in self.positions.items()},
                "last_in": {k: v.seq for k, v in self.last_in.items()},
                "ids": self._ids(),
                "responses": {k: v.seq for k, v in self._exchange_by_id.items()},
            }
        )


def _no_link(seq: Seq) -> NotInLedger:
    return NotInLedger(f"Entry {seq} is no link of the conversation.")


def unsettled_of(link: Link) -> list[Call]:
    """The calls that a link brings into the conversation, and that have no output of ours."""
    if isinstance(link, Said):
        return [call for call in link.calls if call.output is None]
    if isinstance(link, Exchange) and (link.counts or link.in_flight):
        return [call for call in link.waiting if link.wants(call)]
    return []


def _plain(record: Struct) -> dict[str, Any]:
    """A record as it goes into `Ledger.state`: calls by their place, not again in full."""
    plain: dict[str, Any] = {"": type(record).__name__}
    for name in record.__struct_fields__:
        value = getattr(record, name)
        if isinstance(value, list | tuple):
            value = [[v.seq, v.slot] if isinstance(v, Call) else v for v in value]
        plain[name] = value
    return plain
