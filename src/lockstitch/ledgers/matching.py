"""A history that a client resends in full: matched against the ledger, and only its end added.

Both sides are walked in order, by occurrence: the second equal message is a second message.
A client may leave reasoning out. Where the two part ways the conversation forks: nothing that the
ledger holds is changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from lockstitch.core.arranging import Arranged, arranged, entries_of, last_said
from lockstitch.core.facts import (
    START,
    AnyFact,
    By,
    ItemAdded,
    ItemsRemoved,
    Removal,
    Seq,
)
from lockstitch.core.items import Part
from lockstitch.core.links import Beginning, Compaction, Link, back
from lockstitch.dialects.likeness import likeness
from lockstitch.dialects.reading import decoded
from lockstitch.ledgers.ledger import Ledger
from lockstitch.ledgers.making import encoded, several

_GIVEN_FROM_OUTSIDE = frozenset({Part.INPUT, Part.OUTPUT})


class Position(Struct, frozen=True):
    """How far a resent history and the ledger are the same."""

    link: Seq = START
    """Everything through this link was resent,"""
    outputs: int = 0
    """and so many of the outputs that stand behind it,"""
    items: int = 0
    """in the first so many items of the history."""
    whole: bool = False
    """That is everything the ledger has."""


class Follower:
    """Takes a client's history again and again, and costs only what is new in it.

    It holds the items that it was given last. An item that is still the same object is taken to
    say the same: do not change items in place."""

    def __init__(self, of: Ledger) -> None:
        self._of = of
        self._given: list[Any] = []
        self._position = Position()

    def __repr__(self) -> str:
        return f"<Follower of {self._of!r} at item {self._position.items}>"

    def resent(self, history: Sequence[Mapping[str, Any]]) -> list[AnyFact]:
        """The facts that bring the ledger up to this history. Append them before asking again."""
        history = several(history)
        of, given, position = self._of, self._given, self._position
        known = bool(given) and position.link in of.links and of.on_path(position.link, of.tip)
        # What is new goes behind what was given before. If that makes the history, it begins as
        # before: two lists of the same objects are compared without looking into one of them.
        given += history[len(given) :]
        if given != history:
            known, self._given = False, list(history)
        position = matched(of, history, since=position if known else None)
        facts = _added(of, history, position)
        added = len(of) + len(facts)
        if position.items < len(history):
            self._position = Position(added, 0, len(history), whole=True)
        else:
            # Not behind an answer that may still be found: what it says would be passed over.
            said = last_said(of, position.link)
            self._position = replace(position, link=START if said is None else said.seq)
        return facts


def resent(of: Ledger, history: Sequence[Mapping[str, Any]]) -> list[AnyFact]:
    """The facts that bring the ledger up to a history that a client sent in full."""
    history = several(history)
    return _added(of, history, matched(of, history))


def _added(of: Ledger, history: Sequence[Mapping[str, Any]], position: Position) -> list[AnyFact]:
    facts: list[AnyFact] = []
    if not position.whole and (position.link != of.tip or isinstance(of.link(of.tip), Compaction)):
        facts = _gone_back(of, position.link)
    for one in history[position.items :]:
        item = encoded(one)
        facts.append(ItemAdded(item=item, by=_given_by(of, item)))
    return facts


def _given_by(of: Ledger, item: bytes) -> By:
    for part in of.reading.read(item):
        if part.part not in _GIVEN_FROM_OUTSIDE:
            return By.IMPORT
    return By.USER


def _gone_back(of: Ledger, link: Seq) -> list[AnyFact]:
    """The facts that make a link the tip again; what was compacted before it stays so."""
    compaction = None
    restarted = True
    for each, behind in back(of.links, of.tip):
        if each.seq == link:
            restarted = behind
        if isinstance(each, Compaction):
            compaction = each
    if compaction is None or link == START or not restarted:
        return [ItemsRemoved(by=Removal.ROLLBACK, to=link)]
    cut: Link = compaction
    while isinstance(cut, Compaction):  # one may have taken an earlier one away
        cut = of.links[cut.to]
    return [
        ItemsRemoved(by=Removal.ROLLBACK, to=cut.seq if link == compaction.seq else link),
        ItemsRemoved(by=Removal.COMPACTION, to=cut.seq, replaced=compaction.replaced),
    ]


def matched(
    of: Ledger,
    history: Sequence[Mapping[str, Any]],
    *,
    tip: Seq | None = None,
    since: Position | None = None,
) -> Position:
    """How far a resent history is the conversation on the path to ``tip``.

    ``since`` is what is already known to be the same: only what lies behind it is looked at."""
    tip = of.tip if tip is None else of.link(tip).seq
    if since is None:
        since = Position()
        links = [link for link, _ in back(of.links, tip)][::-1]
    else:
        links = _links_behind(of, since.link, tip)
    found = arranged(links, last_said(of, since.link))
    own = {seq for link in links for seq in entries_of(link)}
    at = since.items
    reached = [at] * (since.outputs + 1)
    """For each number of entries that were resent: where the history stands then."""
    for seq in found.entries[since.outputs :]:
        same = at < len(history) and _same(of, seq, history[at])
        # Clients drop reasoning, and never saw an output that was settled here.
        if not same and seq in own and not _is_reasoning(of, seq):
            break
        at += same
        reached.append(at)
    if len(reached) > len(found.entries):
        # All of it. The tip may be a compaction, which stands before what it kept.
        end = found.starts[-1] + len(entries_of(links[-1])) if links else 0
        return Position(tip, len(found.entries) - end, reached[-1], whole=True)
    return _position(since, links, found, reached)


def _links_behind(of: Ledger, seq: Seq, tip: Seq) -> list[Link]:
    """The links between these two. What was cut away meanwhile, the client does not know of."""
    links: list[Link] = []
    link = of.links[tip]
    while link.seq != seq and not isinstance(link, Beginning):
        if not isinstance(link, Compaction):
            links.append(link)
        link = of.links[link.parent]
    return links[::-1]


def _position(
    since: Position, links: Sequence[Link], found: Arranged, reached: Sequence[int]
) -> Position:
    """The last link that was resent whole, and what behind it was."""
    most = len(reached) - 1
    link, end = since.link, 0
    next_start = found.starts[0] if links else len(found.entries)
    for n, each in enumerate(links):
        own_end = found.starts[n] + len(entries_of(each))
        if own_end > most:
            break
        link, end = each.seq, own_end
        next_start = found.starts[n + 1] if n + 1 < len(links) else len(found.entries)
    entries = min(most, next_start)
    return Position(link, entries - end, reached[entries])


def _wire(item: Mapping[str, Any] | str) -> Mapping[str, Any]:
    return item if isinstance(item, Mapping) else decoded(encoded(item))


def _same(of: Ledger, seq: Seq, item: Mapping[str, Any] | str) -> bool:
    """Does an item say what this entry says? The same bytes do, and need not be read."""
    return encoded(item) == of.item(seq) or likeness(_wire(item)) == likeness(of.wire(seq))


def _is_reasoning(of: Ledger, seq: Seq) -> bool:
    parts = of.parts[seq]
    return bool(parts) and all(item.part is Part.REASONING for item in parts)
