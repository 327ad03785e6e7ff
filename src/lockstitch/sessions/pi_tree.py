"""The tree of a pi session: what hangs on what, and which entries pi would send.

A few numbers for each entry, whatever the entries hold. What counts is what pi itself resumes
(`buildSessionContext`): the last entry of the file and what it hangs on, step by step; and of
these, where one is a compaction, those from its first kept entry on."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from enum import IntEnum
from typing import Any, Final

from lockstitch.core.items import Place
from lockstitch.sessions.cutting import DeadRange
from lockstitch.sessions.errors import CannotRead
from lockstitch.sessions.lines import numbered_lines
from lockstitch.sessions.plain_lines import read_objects
from lockstitch.sessions.source import Source

TREE_VERSION: Final = 2
"""From this version on, entries have ids and parents. Before, each hangs on the one before it."""

_NONE: Final = -1
_HEAD: Final = re.compile(
    rb'^\{"type":"[a-z_]+"(?:,"customType":"[^"\\]*")?,"id":"([^"\\]+)","parentId":(?:"([^"\\]+)"|null),'
)
"""How pi begins an entry: of a torn line, this may be left."""
_NEWER: Final = frozenset({"leaf", "reset"})
"""Entries of OpenClaw from 2026 on, which choose what is live in ways of their own."""


class State(IntEnum):
    """What pi does with an entry."""

    LIVE = 0
    CUT = 1
    """A compaction replaced it."""
    OFF = 2
    """It is on another branch."""


class PiTree:
    """The entries of a file, in the order of its lines."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.lines = array("q")
        self._ids, self._parents = array("q"), array("q")
        self._raw = array("q")
        """The number of each entry among all that pi counts."""
        self._by_id = array("q")
        self._compactions: dict[int, tuple[int, int]] = {}
        """For each compaction, the hash of the first kept id, or (version 1) its number."""
        self._torn: list[int] = []
        self._torn_links: dict[int, int | None] = {}
        """For the id of an entry whose line is torn, its parent."""
        self.header: int | None = None
        self.first_line: int | None = None
        self.linear = False
        self.bridges: dict[int, int] = {}
        """For the line of an entry that hung on a torn line, the line that it hangs on now; 0 is
        the beginning."""
        self.path = bytearray()
        self.states = bytearray()
        self.compaction: int | None = None
        """The line of the compaction that counts."""

    @classmethod
    def read(cls, source: Source) -> PiTree:
        """Read the file once. Raises `CannotRead` for what cannot be taken for pi's tree."""
        tree = cls(source.name)
        counted = 0
        for number, record, problem in read_objects(source):
            if record is not None:
                tree._add(record, number, counted)
            elif problem != "is not an object":
                tree._torn.append(number)
                continue
            counted += 1
        tree._by_id = array("q", sorted(range(len(tree._ids)), key=tree._ids.__getitem__))
        if tree._torn and not tree.linear:
            tree._read_torn(source)
            tree._bridge()
        tree._find_path()
        return tree

    # --- reading -------------------------------------------------------------------------------

    def _add(self, record: dict[str, Any], number: int, counted: int) -> None:
        if self.first_line is None:
            self.first_line = number
            if record.get("type") == "session" and isinstance(record.get("id"), str):
                self.header = number
                self.linear = self._is_linear(record, number)
        if record.get("type") == "session":
            return
        kind, own, parent = record.get("type"), record.get("id"), record.get("parentId")
        if (isinstance(kind, str) and kind in _NEWER) or "appendMode" in record:
            raise CannotRead(
                self._name,
                f"line {number} is an entry of a newer OpenClaw, which chooses the branch to "
                "resume in a way that is not known here.",
                "Export the session from OpenClaw, or resume it there.",
            )
        n = len(self._ids)
        if self.linear:
            if isinstance(own, str) and "parentId" in record:
                raise self._strange(number, "has an id and a parent, and the header no version")
            self._ids.append(n)
            self._parents.append(n - 1)
        else:
            linked = parent is None and "parentId" in record
            if not isinstance(own, str) or not own or not (linked or isinstance(parent, str)):
                raise self._strange(number, "has no id or no parentId")
            self._ids.append(hash(own))
            self._parents.append(hash(parent) if parent else _NONE)
        self.lines.append(number)
        self._raw.append(counted)
        if kind == "compaction":
            self._add_compaction(record, n, number)

    def _is_linear(self, header: dict[str, Any], number: int) -> bool:
        version = header.get("version", 1)
        if isinstance(version, bool) or not isinstance(version, int | float):
            raise self._strange(number, "has a version that is not a number")
        return version < TREE_VERSION

    def _add_compaction(self, record: dict[str, Any], n: int, number: int) -> None:
        field = "firstKeptEntryIndex" if self.linear else "firstKeptEntryId"
        if field not in record:
            raise self._strange(number, f"is a compaction without {field}")
        kept = record[field]
        if self.linear:
            known = isinstance(kept, int | float) and not isinstance(kept, bool)
            self._compactions[n] = (int(known), int(kept) if known else 0)
        else:
            self._compactions[n] = (int(isinstance(kept, str)), hash(str(kept)))

    def _strange(self, number: int, problem: str) -> CannotRead:
        return CannotRead(
            self._name, f"line {number} {problem}.", "Is this a session that pi or OpenClaw wrote?"
        )

    def _read_torn(self, source: Source) -> None:
        """What is left of entries whose lines are torn: their ids and parents."""
        torn = set(self._torn)
        with source.open() as stream:
            for number, line in numbered_lines(stream, source.name):
                if number in torn and (head := _HEAD.match(line)) is not None:
                    own, parent = head.groups()
                    above = None if parent is None else hash(parent.decode(errors="replace"))
                    self._torn_links[hash(own.decode(errors="replace"))] = above

    # --- links ---------------------------------------------------------------------------------

    def named(self, name: str) -> int | None:
        """The entry that pi finds under an id: the last one."""
        return self._find(hash(name))

    def has(self, name: str) -> bool:
        return self.named(name) is not None

    def _find(self, hashed: int) -> int | None:
        at = bisect_right(self._by_id, hashed, key=self._ids.__getitem__) - 1
        if at < 0 or self._ids[self._by_id[at]] != hashed:
            return None
        return self._by_id[at]

    def _bridge(self) -> None:
        """What hung on a torn line hangs on what that line hung on, if it still says so, or else
        on the entry before it."""
        for n, number in enumerate(self.lines):
            parent: int | None = self._parents[n]
            if parent == _NONE or self._find(self._parents[n]) is not None:
                continue
            seen = set()
            while parent in self._torn_links and parent not in seen:
                seen.add(parent)
                parent = self._torn_links[parent]
            if parent is None:
                self._parents[n], self.bridges[number] = _NONE, 0
                continue
            above = self._find(parent)
            if above is None and self._is_torn_before(n):
                above = n - 1
                if above < 0:
                    self._parents[n], self.bridges[number] = _NONE, 0
                    continue
            if above is not None and above < n:
                self._parents[n], self.bridges[number] = self._ids[above], self.lines[above]

    def _is_torn_before(self, n: int) -> bool:
        """Is the line before entry ``n`` a torn one?"""
        before = self.lines[n - 1] if n else 0
        at = bisect_left(self._torn, before)
        return at < len(self._torn) and self._torn[at] < self.lines[n]

    def above(self, n: int) -> int | None:
        """The entry that entry ``n`` hangs on. One that is not in the file is none, as in pi.

        Raises `CannotRead` if it comes after entry ``n``: pi would never end."""
        if self.linear:
            return n - 1 if n else None
        parent = self._parents[n]
        found = None if parent == _NONE else self._find(parent)
        if found is not None and found >= n:
            raise self._strange(self.lines[n], "hangs on an entry that comes after it")
        return found

    def _upwards(self, n: int) -> Iterator[int]:
        """An entry and all that it hangs on."""
        above: int | None = n
        while above is not None:
            yield above
            above = self.above(above)

    def hangs_on(self, n: int, above: int) -> bool:
        """Does entry ``n`` hang on this one, or is it this one?"""
        for one in self._upwards(n):
            if one <= above:
                return one == above
        return False

    # --- what is live --------------------------------------------------------------------------

    def _find_path(self) -> None:
        size = len(self._ids)
        self.states = bytearray([State.OFF]) * size
        if not size:
            return
        path = list(self._upwards(size - 1))
        path.reverse()
        newest = next(
            (at for at in range(len(path) - 1, -1, -1) if path[at] in self._compactions), 0
        )
        is_cut = bool(path) and path[newest] in self._compactions
        first = 0
        if is_cut:
            self.compaction = self.lines[path[newest]]
            first = self._first_kept(path, newest)
        for at, n in enumerate(path):
            self.states[n] = State.CUT if is_cut and at < first else State.LIVE

    def _first_kept(self, path: list[int], newest: int) -> int:
        """Where in a path the part begins that its newest compaction kept."""
        known, kept = self._compactions[path[newest]]
        named = self._raw if self.linear else self._ids
        for at in range(newest if known else 0):
            if named[path[at]] == kept:
                return at
        return newest

    @property
    def leaf_line(self) -> int | None:
        """The line of the last entry, which pi goes on from."""
        return self.lines[-1] if self.lines else None

    @property
    def branched(self) -> bool:
        """Are there entries that the last one does not hang on?"""
        return State.OFF in self.states

    def is_on_path(self, name: str) -> bool:
        """Does the last entry hang on the one of this id?"""
        n = self.named(name)
        return n is not None and self.states[n] != State.OFF

    def dead_ranges(self) -> list[DeadRange]:
        """Runs of lines that pi does not send."""
        ranges: list[DeadRange] = []
        size = len(self.lines)
        n = 0
        while n < size:
            state, start = self.states[n], n
            while n < size and self.states[n] == state:
                n += 1
            if state == State.LIVE:
                continue
            end = self.lines[n] if n < size else self.lines[-1] + 1
            by = "compaction" if state == State.CUT else "rollback"
            ranges.append(DeadRange(Place(self.lines[start]), end, by))
        return ranges
