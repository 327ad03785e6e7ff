"""The links of the tree: what a conversation is made of, each behind the one it follows.

An `Exchange` (a request with its answer) is a link too. Links name their parents by position, so
a fork is another link with the same parent, and nothing is copied."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias, TypeGuard

from msgspec import Struct

from lockstitch.core.calls import Call
from lockstitch.core.exchanges import Exchange
from lockstitch.core.facts import Mode, Seq


class Said(Struct, eq=False, gc=False):
    """An item that somebody gave."""

    seq: Seq
    parent: Seq
    depth: int
    calls: tuple[Call, ...] = ()
    """The calls it holds, where it was imported."""
    answers: tuple[Call, ...] = ()
    """The calls on its path that it is the output of."""

    @property
    def waiting(self) -> tuple[Call, ...]:
        """The calls that want their output behind it."""
        return self.calls

    def wants(self, call: Call) -> bool:
        """Must the output of this call come from us?"""
        return call.output is None and not call.by_server


class Compaction(Struct, eq=False, gc=False):
    """Where a new chain begins: everything through `to` went, and `replaced` stands for it."""

    seq: Seq
    parent: Seq
    depth: int
    to: Seq
    replaced: tuple[Seq, ...]


class Adoption(Struct, eq=False, gc=False):
    """Something at the provider that we never saw, and continue from."""

    seq: Seq
    parent: Seq
    depth: int
    mode: Mode
    anchor: str
    last_item: str | None = None


class Beginning(Struct, eq=False, gc=False):
    """Before anything was said."""

    seq: Seq = 0
    parent: Seq = 0
    depth: int = 0


Link: TypeAlias = Said | Exchange | Compaction | Adoption | Beginning


def counts(link: Link) -> TypeGuard[Said | Exchange]:
    """Was something said there that is part of the conversation?"""
    return isinstance(link, Said) or (isinstance(link, Exchange) and link.counts)


def back(links: Mapping[Seq, Link], tip: Seq) -> Iterator[tuple[Link, bool]]:
    """The links from the tip back to where the conversation, as it now is, begins.

    Each comes with whether a new chain has begun behind it. A compaction comes last, where what
    it replaced by others would stand."""
    ends: dict[Seq, Compaction] = {}
    """Where the kept part of a compaction ends."""
    link = links[tip]
    while not isinstance(link, Beginning):
        compaction = ends.get(link.seq)
        if isinstance(link, Compaction):
            # It stands before what it kept. One that took it away as well stands there instead.
            ends[link.to] = compaction or link
        elif compaction is not None:
            yield compaction, True
            return
        else:
            yield link, bool(ends)
        link = links[link.parent]
