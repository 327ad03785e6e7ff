"""The provider's items in its own order: a linked chain in which deleted items leave tombstones.

An item that names a tombstone is linked behind it, and so stands behind the nearest item in front
of it that lives. One that names an item nobody has seen stands last until that one comes. A
snapshot that lives finds everything here that it shows; beyond that, only so much is kept."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

from lockstitch.core.items import Item, Part
from lockstitch.dialects.base import Wire
from lockstitch.mirror.moments import Moments

MOST_TOMBSTONES = 4096
"""Beyond those that a snapshot shows. An event about a deleted item comes soon after, or not."""

MOST_ORPHANS = 1024
"""An item waits for its place until so many younger ones do, too; then it stays where it is."""


class Record:
    """One item, or the tombstone that is left of it. Versions are those of the mirror."""

    __slots__ = (
        "added_at",
        "before",
        "behind",
        "copy_of",
        "former",
        "gone_at",
        "id",
        "index",
        "item",
        "known_at",
        "partner",
        "response",
        "since",
        "spoken",
        "truncated",
        "unheard",
        "wire",
    )

    def __init__(self, id: str, item: Item, wire: Wire, version: int) -> None:
        self.id = id
        self.item = item
        self.wire = wire
        """What it says. Wires are replaced, never changed: snapshots share them."""
        self.since = version
        self.former: tuple[tuple[int, int, Wire], ...] = ()
        """What it said before, from when until when; only what a snapshot shows that lives."""
        self.added_at = version
        self.gone_at: int | None = None
        self.known_at: int | None = None
        """When it was finished and heard: from then on a caller can have decided about it."""
        self.spoken = False
        """It holds speech."""
        self.unheard = False
        """It holds speech whose words are still to come."""
        self.truncated = False
        self.response: str | None = None
        """The response that made it, while that one goes on."""
        self.copy_of: str | None = None
        self.partner: Record | None = None
        """The other half of its pair; see `pairs`."""
        self.index = -1
        self.before: Record = self
        self.behind: Record = self

    def __repr__(self) -> str:
        return f"<Record {self.id}{'' if self.gone_at is None else ' (tombstone)'}>"

    @property
    def lives(self) -> bool:
        return self.gone_at is None

    def wire_at(self, version: int) -> Wire:
        """What it said then; a snapshot of this version must live, and show it."""
        if self.since <= version:
            return self.wire
        return next(wire for since, until, wire in self.former if since <= version < until)

    def rewrite(self, wire: Wire, version: int, moments: Moments) -> None:
        former = (*self.former, (self.since, version, self.wire))
        self.former = tuple(one for one in former if moments.any_in(one[0], one[1]))
        self.since, self.wire = version, wire


class Chain:
    """The records by id and in order, from the root around to the root again."""

    def __init__(self, moments: Moments) -> None:
        self._moments = moments
        self._root = Record("", Item(Part.OTHER), {}, 0)
        self._by_id: dict[str, Record] = {}
        self._orphans: dict[str, list[Record]] = {}
        """Records that stand last because nobody has seen what they follow, by its id."""
        self._waiting: deque[tuple[str, Record]] = deque()
        """The same, in the order in which they came."""
        self._follows: dict[str, str] = {}
        """What each record behind an orphan was linked behind: they go where it goes."""
        self._order: list[Record] | None = []
        self._wires: list[Wire] | None = []
        self._tombstones: deque[Record] = deque()
        self._worded: deque[Record] = deque()
        """Tombstones that still say something, because a snapshot shows it."""
        self.living = 0

    def __repr__(self) -> str:
        return f"<Chain {self.living} items, {len(self._tombstones)} tombstones>"

    def get(self, id: str) -> Record | None:
        """The record, living or not."""
        return self._by_id.get(id)

    def alive(self, id: str) -> Record | None:
        record = self._by_id.get(id)
        return record if record is not None and record.gone_at is None else None

    def lives(self, id: str) -> bool:
        record = self._by_id.get(id)
        return record is not None and record.gone_at is None

    def all_alive(self, ids: Iterable[str]) -> list[Record | None]:
        """`alive` for each of these."""
        found: list[Record | None] = list(map(self._by_id.get, ids))
        if not self._tombstones:
            return found
        return [one if one is not None and one.gone_at is None else None for one in found]

    def last(self) -> Record | None:
        """The last item that lives."""
        last = self.nearest(self._root.before)
        return None if last is None else self._by_id[last]

    def nearest(self, record: Record) -> str | None:
        """This item if it lives, or the nearest one before it that does; None at the head."""
        while record is not self._root:
            if record.gone_at is None:
                return record.id
            record = record.before
        return None

    def has_place(self, record: Record) -> bool:
        """Do neither it nor the tombstones in front of it wait for an item nobody has seen?"""
        while record is not self._root:
            awaited = self._follows.get(record.id)
            if awaited is not None and awaited not in self._by_id:
                return False
            record = record.before
            if record.gone_at is None:
                break
        return True

    def order(self) -> list[Record]:
        """The items that live, in order, each with its index. Not to be changed."""
        if self._order is None:
            self._order = [record for record in self._all() if record.gone_at is None]
            for index, record in enumerate(self._order):
                record.index = index
        return self._order

    def wires(self) -> list[Wire]:
        """What the items say that live, in order. Not to be changed."""
        if self._wires is None:
            self._wires = [record.wire for record in self.order()]
        return self._wires

    def at_version(self, version: int) -> list[Record]:
        """The items that lived then, in order; a snapshot of this version must live."""
        return [
            record
            for record in self._all()
            if record.added_at <= version and (record.gone_at is None or record.gone_at > version)
        ]

    def _all(self) -> Iterator[Record]:
        record = self._root.behind
        while record is not self._root:
            yield record
            record = record.behind

    # --- changes -------------------------------------------------------------------------------

    def append(self, record: Record) -> None:
        self._enter(record, self._root.before)

    def put_first(self, record: Record) -> None:
        self._enter(record, self._root)

    def put_behind(self, record: Record, previous: str) -> None:
        """Behind this item or its tombstone; last, for now, if nobody has seen it."""
        found = self._by_id.get(previous)
        if found is None or found is record:
            self._enter(record, self._root.before)
            self._wait(record, previous)
            return
        if previous in self._follows:
            self._follows[record.id] = previous
        self._enter(record, found)

    def rewrite(self, record: Record, wire: Wire, version: int) -> None:
        """The item says something else now."""
        record.rewrite(wire, version, self._moments)
        self._wires = None

    def bury(self, record: Record, version: int) -> None:
        """The item is gone; its place stays."""
        record.gone_at = version
        self.living -= 1
        self._order = self._wires = None
        self._tombstones.append(record)
        self._worded.append(record)
        # Two at a time: so nothing piles up behind a snapshot that lived long and is over.
        for _ in range(2):
            self._silence_oldest()
            self._forget_oldest()

    def tombstone(self, record: Record, version: int) -> None:
        """Of an item that was deleted before anything else was heard of it."""
        waiting = self._orphans.get(record.id)
        behind = waiting[0].before if waiting else self._root.before
        self._enter(record, behind)
        self.bury(record, version)

    def _enter(self, record: Record, after: Record) -> None:
        at_end = after is self._root.before
        self._link(record, after)
        self._by_id[record.id] = record  # an id that is used again: its tombstone goes nameless
        self.living += 1
        if at_end and self._order is not None:
            record.index = len(self._order)
            self._order.append(record)
            if self._wires is not None:
                self._wires.append(record.wire)
        else:
            self._order = self._wires = None
        orphans = self._orphans.pop(record.id, None)
        if orphans:
            self._put_right(record, orphans)

    @staticmethod
    def _link(record: Record, after: Record) -> None:
        record.before, record.behind = after, after.behind
        after.behind.before = record
        after.behind = record

    @staticmethod
    def _unlink(record: Record) -> None:
        record.before.behind = record.behind
        record.behind.before = record.before

    # --- orphans -------------------------------------------------------------------------------

    def _wait(self, record: Record, previous: str) -> None:
        self._orphans.setdefault(previous, []).append(record)
        self._follows[record.id] = previous
        self._waiting.append((previous, record))
        if len(self._waiting) > MOST_ORPHANS:
            awaited, oldest = self._waiting.popleft()
            others = self._orphans.get(awaited, [])
            if oldest in others:
                others.remove(oldest)
                if not others:
                    del self._orphans[awaited]

    def _put_right(self, found: Record, orphans: list[Record]) -> None:
        # The one that came last stands nearest, as it would if they had come in their order.
        for orphan in orphans:
            if self._by_id.get(orphan.id) is not orphan:
                continue
            run = [orphan]
            members = {orphan.id}
            following = orphan.behind
            while following is not self._root and self._follows.get(following.id) in members:
                members.add(following.id)
                run.append(following)
                following = following.behind
            if found in run:
                continue  # two items that name each other: they stay where they are
            after = found
            for record in run:
                self._unlink(record)
                self._link(record, after)
                after = record
            if found.id not in self._follows:
                for member in members:
                    self._follows.pop(member, None)
        self._order = self._wires = None

    # --- what nobody can need ------------------------------------------------------------------

    def _silence_oldest(self) -> None:
        """Let go of what a tombstone said; if a snapshot shows it, its turn comes again."""
        if not self._worded:
            return
        record = self._worded.popleft()
        if self._is_shown(record):
            self._worded.append(record)
        else:
            record.wire, record.former = {}, ()

    def _forget_oldest(self) -> None:
        if len(self._tombstones) <= MOST_TOMBSTONES:
            return
        record = self._tombstones.popleft()
        if self._is_shown(record):
            self._tombstones.append(record)
            return
        self._unlink(record)
        if self._by_id.get(record.id) is record:
            del self._by_id[record.id]
            self._follows.pop(record.id, None)

    def _is_shown(self, record: Record) -> bool:
        gone_at = record.gone_at
        return gone_at is not None and self._moments.any_in(record.added_at, gone_at)
