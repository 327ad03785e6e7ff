"""Carrying out a plan of edits, one wire item after the other.

Only wire items that an edit names are touched. An output that moves forward is carried along; one
that moves back must be known beforehand, because its new place is passed first (`captured`)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping

from lockstitch.core.items import Place
from lockstitch.core.mending import Drop, Edit, Move, Rekey, Retype, Reword, Settle, StripId
from lockstitch.dialects.base import Dialect, Wire


class Rewriter:
    """A plan, indexed by position. Feed it positions in order."""

    def __init__(
        self, dialect: Dialect, edits: Iterable[Edit], captured: Mapping[Place, Wire]
    ) -> None:
        self._dialect = dialect
        self._carried: dict[Place, Wire] = dict(captured)
        self._changes: defaultdict[int, list[Edit]] = defaultdict(list)
        self._arrivals: defaultdict[int, list[Settle | Move]] = defaultdict(list)
        self._into: defaultdict[int, list[Settle | Move]] = defaultdict(list)
        self._beside: defaultdict[int, list[Settle]] = defaultdict(list)
        for edit in edits:
            if isinstance(edit, Settle):
                if edit.family.by_server:
                    self._beside[edit.after.at].append(edit)
                    continue
            else:
                self._changes[edit.place.at].append(edit)
            if isinstance(edit, Settle | Move):
                if edit.into is not None and dialect.order.name == "NEXT_TURN":
                    self._into[edit.into].append(edit)
                else:
                    self._arrivals[edit.after.at].append(edit)
        self.removed: list[tuple[Edit, Wire]] = []
        """What was dropped or written over, as it was, for the report."""

    def touches(self, at: int) -> bool:
        """Does the plan say anything about this position?"""
        return at in self._changes or at in self._arrivals or at in self._into or at in self._beside

    def rewrite(self, at: int, wire: Wire) -> list[Wire]:
        """The wire items that stand in place of this one."""
        dialect = self._dialect
        left: Wire | None = wire
        for settle in sorted(self._beside.get(at, ()), key=lambda edit: -edit.after.slot):
            beside = dialect.put_beside(wire, settle.after, self._settlement(settle))
            if beside is None:
                self._arrivals[at].append(settle)
            else:
                left = wire = beside
        gone: dict[int, Drop | Move] = {}
        for edit in self._changes.get(at, ()):
            match edit:
                case Drop() | Move():
                    gone[edit.place.slot] = edit
                case Retype():
                    self.removed.append((edit, wire))
                    left = wire = dialect.retype(wire, edit.place.slot, edit.family)
                case Rekey():
                    left = wire = dialect.rekey(wire, edit.place.slot, edit.old, edit.new)
                case StripId():
                    left = wire = dialect.strip_id(wire)
                case Reword():
                    self.removed.append((edit, wire))
                    left = wire = dialect.reword(wire, edit.place.slot, edit.text, edit.outcome)
        if gone:
            left, taken = dialect.take(wire, set(gone))
            for slot, piece in zip(sorted(gone), taken, strict=True):
                why = gone[slot]
                if isinstance(why, Drop):
                    self.removed.append((why, piece))
                else:
                    self._carried.setdefault(why.place, piece)
        if at in self._into:
            outputs = [self._arrival(edit) for edit in self._into[at]]
            left = dialect.put_into(left if left is not None else {**wire, "content": []}, outputs)
        result = [] if left is None else [left]
        if at in self._arrivals:
            result += dialect.put([self._arrival(edit) for edit in self._arrivals[at]])
        return result

    def _settlement(self, edit: Settle) -> Wire:
        return self._dialect.output(edit.family, edit.key, edit.text, edit.outcome)

    def _arrival(self, edit: Settle | Move) -> Wire:
        if isinstance(edit, Settle):
            return self._settlement(edit)
        return self._carried[edit.place]


def rewrite_all(
    dialect: Dialect, history: list[Wire], edits: Iterable[Edit]
) -> tuple[list[Wire], list[int | None], list[tuple[Edit, Wire]]]:
    """A whole history with the edits carried out; for each of its items the position where it
    stood before, or None if it is new or changed; and what was removed or written over."""
    edits = list(edits)
    rewriter = Rewriter(dialect, edits, capture(dialect, edits, lambda at: history[at]))
    result: list[Wire] = []
    origins: list[int | None] = []
    for at, wire in enumerate(history):
        if not rewriter.touches(at):
            result.append(wire)
            origins.append(at)
            continue
        for written in rewriter.rewrite(at, wire):
            result.append(written)
            origins.append(at if written is wire else None)
    return result, origins, rewriter.removed


def capture(
    dialect: Dialect, edits: Iterable[Edit], fetch: Callable[[int], Wire]
) -> dict[Place, Wire]:
    """The outputs that these edits move, as they are now."""
    captured: dict[Place, Wire] = {}
    for edit in edits:
        if isinstance(edit, Move):
            _, (piece,) = dialect.take(fetch(edit.place.at), {edit.place.slot})
            captured[edit.place] = piece
    return captured
