"""Carrying out a plan of edits, one wire item after the other.

Only wire items that an edit names are touched. An output that moves forward is carried along; one
that moves back must be known beforehand, because its new place is passed first (`captured`)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from lockstitch.core.items import Place
from lockstitch.core.mending import Drop, Edit, Move, Rekey, Retype, Reword, Settle, StripId
from lockstitch.dialects.base import Answers, Dialect, Wire


class Rewritten(NamedTuple):
    """What stands in place of one wire item."""

    left: Wire | None
    """The item itself: the same object if nothing changed it, None if it is gone."""
    arrivals: list[Wire]
    """New wire items behind it."""
    ahead: list[Wire]
    """New wire items before it."""


class Rewriter:
    """A plan, indexed by position. Feed it positions in order."""

    def __init__(
        self,
        dialect: Dialect,
        edits: Iterable[Edit],
        captured: Mapping[Place, Wire],
        *,
        stays: int | None = 0,
    ) -> None:
        """``stays`` is a position whose wire item does not go, even if nothing is left of it."""
        self._dialect = dialect
        self._stays = stays
        self._carried: dict[Place, Wire] = dict(captured)
        self._changes: defaultdict[int, list[Edit]] = defaultdict(list)
        self._arrivals: defaultdict[int, list[Settle | Move]] = defaultdict(list)
        self._into: defaultdict[int, list[Settle | Move]] = defaultdict(list)
        self._beside: defaultdict[int, list[Settle | Move]] = defaultdict(list)
        self._ahead: defaultdict[int, list[Settle | Move]] = defaultdict(list)
        self.removed: list[tuple[Edit, Wire]] = []
        """What was dropped or written over, as it was, for the report."""
        for edit in edits:
            if not isinstance(edit, Settle):
                self._changes[edit.place.at].append(edit)
            if isinstance(edit, Settle | Move):
                self._expect(edit)

    def _expect(self, edit: Settle | Move) -> None:
        family = edit.family if isinstance(edit, Settle) else edit.reason.family
        if family is not None and self._dialect.beside(family, edit.after):
            self._beside[edit.after.at].append(edit)
        elif edit.into is not None and self._dialect.answers is Answers.IN_TURN:
            self._into[edit.into].append(edit)
        elif edit.into is not None and self._dialect.answers is Answers.BEFORE_TURN:
            self._ahead[edit.into].append(edit)
        else:
            self._arrivals[edit.after.at].append(edit)

    def positions(self) -> set[int]:
        """Every position that the plan says anything about."""
        return {*self._changes, *self._arrivals, *self._into, *self._beside, *self._ahead}

    def rewrite(self, at: int, wire: Wire) -> Rewritten:
        """Carry out what the plan says about one wire item."""
        dialect = self._dialect
        left: Wire | None = self._changed(at, wire)
        gone = {
            edit.place.slot: edit
            for edit in self._changes.get(at, ())
            if isinstance(edit, Drop | Move)
        }
        beside = sorted(self._beside.get(at, ()), key=lambda edit: -edit.after.slot)
        was = left or wire
        taken: list[Wire] = []
        dropped: list[tuple[Edit, Wire]] = []
        if gone:
            left, taken = dialect.take(was, set(gone))
        for slot, piece in zip(sorted(gone), taken, strict=True):
            why = gone[slot]
            if isinstance(why, Drop):
                dropped.append((why, piece))
            else:
                self._carried.setdefault(why.place, piece)
        for edit in beside:
            slot = edit.after.slot - sum(one < edit.after.slot for one in gone)
            assert left is not None, "the call of an output that is written stays"
            left = dialect.put_beside(left, slot, self._arrival(edit))
        if at in self._into:
            outputs = [self._arrival(edit) for edit in _real_first(self._into[at])]
            holder = left if left is not None else {**wire, dialect.parts: []}
            left = dialect.put_into(holder, outputs)
        if left is None and at == self._stays:
            left = dialect.emptied(wire)
        if left is None and _held_more(was, taken, dialect.parts):
            dropped = [(gone[min(gone)], was)]
        self.removed += dropped
        return Rewritten(left, self._made(self._arrivals, at, wire), self._made(self._ahead, at))

    def _made(
        self, waiting: dict[int, list[Settle | Move]], at: int, neighbour: Wire | None = None
    ) -> list[Wire]:
        outputs = [self._arrival(edit, neighbour) for edit in _real_first(waiting.get(at, ()))]
        return self._dialect.put(outputs) if outputs else []

    def _changed(self, at: int, wire: Wire) -> Wire:
        dialect = self._dialect
        for edit in self._changes.get(at, ()):
            match edit:
                case Retype():
                    self.removed.append((edit, wire))
                    wire = dialect.retype(wire, edit.place.slot, edit.family, edit.reason.name)
                case Reword():
                    self.removed.append((edit, wire))
                    wire = dialect.reword(wire, edit.place.slot, edit.settlement)
                case Rekey():
                    wire = dialect.rekey(wire, edit.place.slot, edit.old, edit.new)
                case StripId():
                    wire = dialect.strip_id(wire, edit.place.slot, edit.nth)
        return wire

    def _arrival(self, edit: Settle | Move, neighbour: Wire | None = None) -> Wire:
        if isinstance(edit, Settle):
            said, name = edit.settlement, edit.reason.name
            output = self._dialect.output(edit.family, edit.key, said, name)
            return output if neighbour is None else self._dialect.timed(output, neighbour)
        return self._carried[edit.place]


def _held_more(wire: Wire, pieces: list[Wire], parts: str) -> bool:
    """Is anything in this wire item but its role and these pieces?"""
    if any(piece is wire for piece in pieces):
        return False
    held = wire.get(parts)
    fields = {"role", "type", "kind", parts}
    return not (fields.issuperset(wire) and isinstance(held, list) and len(held) == len(pieces))


def _real_first(edits: Iterable[Settle | Move]) -> list[Settle | Move]:
    """Where a name joins outputs to calls, their order counts: the outputs that came answer the
    first calls, the ones that are made up answer those that are left."""
    return sorted(edits, key=lambda edit: isinstance(edit, Settle) and edit.family.by_name)


def rewrite_all(
    dialect: Dialect, history: list[Wire], edits: Iterable[Edit]
) -> tuple[list[Wire], list[int | None], list[tuple[Edit, Wire]]]:
    """A whole history with the edits carried out; for each of its items the position where it
    stood before, or None if it is new or changed; and what was removed or written over."""
    result, sources, removed = rewrite_sources(dialect, history, edits)
    origins = [
        at if at is not None and history[at] is wire else None
        for wire, at in zip(result, sources, strict=True)
    ]
    return result, origins, removed


def rewrite_sources(
    dialect: Dialect, history: list[Wire], edits: Iterable[Edit]
) -> tuple[list[Wire], list[int | None], list[tuple[Edit, Wire]]]:
    """As `rewrite_all`, but with the position of items that were changed, too."""
    edits = list(edits)
    rewriter = Rewriter(dialect, edits, capture(dialect, edits, lambda at: history[at]))
    result: list[Wire] = []
    origins: list[int | None] = []
    busy = rewriter.positions()
    for at, wire in enumerate(history):
        if at not in busy:
            result.append(wire)
            origins.append(at)
            continue
        left, arrivals, ahead = rewriter.rewrite(at, wire)
        result += ahead
        origins += [None] * len(ahead)
        if left is not None:
            result.append(left)
            origins.append(at)
        result += arrivals
        origins += [None] * len(arrivals)
    return result, origins, rewriter.removed


def capture(
    dialect: Dialect, edits: Iterable[Edit], fetch: Callable[[int], Wire]
) -> dict[Place, Wire]:
    """The outputs that these edits move, as they are now."""
    return {
        edit.place: output_at(dialect, fetch(edit.place.at), edit.place.slot)
        for edit in edits
        if isinstance(edit, Move)
    }


def output_at(dialect: Dialect, wire: Wire, slot: int) -> Wire:
    """The output in one slot of a wire item, to be kept until it is put elsewhere."""
    _, (output,) = dialect.take(wire, {slot})
    return output
