"""What a caller wants changed, and what came of it: an edit as data, for any line of a session.

A change is planned anew for each try, from what is there then. Carrying it out is the session's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

from msgspec import Struct

from lockstitch.core import families
from lockstitch.dialects.base import Wire
from lockstitch.mirror import (
    ROOT,
    Create,
    Delete,
    Edit,
    Kept,
    Mirror,
    Plan,
    Retrieve,
    Snapshot,
    Standing,
    Unplaceable,
)
from lockstitch.mirror.drafting import NewId
from lockstitch.mirror.hearing import MISPLACED
from lockstitch.mirror.saying import awaits_words
from lockstitch.realtime.line import Line
from lockstitch.realtime.rebasing import current, is_superseded, left_over, rebased

_OUTPUT: Final = families.FUNCTION.output_type


class Seen(Struct, frozen=True):
    """What a caller could see at one moment. It holds over a lost connection."""

    snapshot: Snapshot
    line: Line

    @property
    def items(self) -> tuple[Wire, ...]:
        """The items, in order; also those that are not finished. Not to be changed."""
        return self.snapshot.items

    @property
    def decided(self) -> list[Wire]:
        """Those that a caller can have decided about: finished, and heard."""
        return [
            wire
            for wire in self.items
            if wire.get("status") != "in_progress"
            and not (self.line.transcribes and awaits_words(wire))
        ]


class Change(Protocol):
    """Something to be changed."""

    def plan(self, line: Line, names: Mapping[str, str], new_id: NewId) -> Plan: ...


class Target(Struct, frozen=True):
    """The whole context, as the caller wants it."""

    items: Sequence[Wire]
    base: Seen

    def plan(self, line: Line, names: Mapping[str, str], new_id: NewId) -> Plan:
        mirror = line.mirror
        if self.base.line is line:
            return mirror.plan(self.items, base=self.base.snapshot, new_id=new_id)
        base = self.base
        decided = {wire["id"] for wire in base.decided}
        target = rebased(self.items, base.items, decided, mirror.items, names)
        return mirror.plan(target, base=mirror.snapshot(), new_id=new_id)


class Changes(Struct, frozen=True, kw_only=True):
    """What is to be added, put between others, changed and removed."""

    base: Seen
    added: Sequence[Wire] = ()
    inserted: Mapping[str, Sequence[Wire]] = {}
    changed: Sequence[Wire] = ()
    removed: Sequence[str] = ()

    def plan(self, line: Line, names: Mapping[str, str], new_id: NewId) -> Plan:
        mirror = line.mirror
        same = self.base.line is line
        decided = frozenset() if same else {wire["id"] for wire in self.base.decided}
        inserted: dict[str, list[Wire]] = {}
        added: list[Wire] = []
        for behind, wires in self.inserted.items():
            there = behind if same else _there(mirror, behind, names)
            if there is None:
                added += wires  # what they were to stand behind is gone
            else:
                inserted.setdefault(there, []).extend(wires)
        for before, wires in self._runs(mirror):
            if before is None:
                added += wires
            else:
                inserted.setdefault(mirror.before(before) or ROOT, []).extend(wires)
        changed, removed = self.changed, self.removed
        if not same:
            given = [wire["id"] for wire in changed]
            changed = [
                wire | {"id": current(wire["id"], names)}
                for wire in changed
                if not is_superseded(wire["id"], given, names)
            ]
            removed = [current(gone, names) for gone in removed if gone in decided]
            removed += left_over(given, {wire["id"] for wire in mirror.items}, names)
        return mirror.plan_changes(
            base=self.base.snapshot if same else mirror.snapshot(),
            new_id=new_id,
            added=added,
            inserted=inserted,
            changed=changed,
            removed=removed,
        )

    def _runs(self, mirror: Mirror) -> list[tuple[str | None, list[Wire]]]:
        """What is added and not there, in runs, each with the item of this edit that it belongs in
        front of: new items are sent last first, and the rest may have been cut off."""
        # An output stands behind its call, and nothing belongs in front of it.
        placed = [wire for wire in self.added if wire.get("type") != _OUTPUT]
        mine = {wire["id"] for wire in placed if wire["id"] in mirror}
        if mine:
            mine.difference_update(wire["id"] for wire in self.base.items)
        runs: list[tuple[str | None, list[Wire]]] = []
        run: list[Wire] = []
        for wire in self.added:
            if wire["id"] in mine:
                runs.append((wire["id"], run))
                run = []
            else:
                run.append(wire)
        return [(before, wires) for before, wires in [*runs, (None, run)] if wires]


class Outputs(Struct, frozen=True):
    """Outputs of calls, each behind its call, if it is not there."""

    items: Sequence[Wire]

    def plan(self, line: Line, names: Mapping[str, str], new_id: NewId) -> Plan:
        snapshot = line.mirror.snapshot()
        return line.mirror.plan_changes(base=snapshot, new_id=new_id, added=self.items)


def _there(mirror: Mirror, id: str, names: Mapping[str, str]) -> str | None:
    """What an item is called on another line; None if it is not there."""
    name = current(id, names)
    return name if name == ROOT or mirror.get(name) is not None else None


class Refusal(Struct, frozen=True):
    """An edit that the provider did not take, in its own words."""

    item_id: str
    message: str
    code: str | None = None


class Edited(Struct, frozen=True, kw_only=True):
    """What came of an edit. The mirror is true in every case; a later edit repairs the rest."""

    done: tuple[str, ...] = ()
    """Ids of the items that were created or deleted."""
    rejected: tuple[Refusal, ...] = ()
    in_doubt: tuple[str, ...] = ()
    """Ids of the items of which the provider did not say what became of them, though asked; and of
    those that were to stand behind one of these, or behind one that nobody knows."""
    kept: tuple[Kept, ...] = ()
    """Items that stay although the caller did without them, and why."""
    unplaceable: tuple[Unplaceable, ...] = ()
    """Items that were not sent, because the provider would refuse them."""
    gone: tuple[str, ...] = ()
    """Ids that the caller kept, and that somebody else has deleted."""

    def __bool__(self) -> bool:
        """Is everything as it was asked for?"""
        return not (self.rejected or self.in_doubt or self.kept or self.unplaceable)


class Account:
    """What came of the plans of one edit, one after the other, on one line after the other."""

    def __init__(self) -> None:
        self._done: dict[str, None] = {}
        self._rejected: dict[tuple[type[Edit], str], Refusal] = {}
        """By what was to be done, and to which item; a copy is made for the item that it copies."""
        self._under_way: list[Edit] = []
        self._plan = Plan(version=0)
        self._copies: list[Create] = []

    def __repr__(self) -> str:
        return f"<Account {len(self._done)} done, {len(self._under_way)} under way>"

    @property
    def copies(self) -> dict[str, str]:
        """Items that took the place of others in the last plan, by the ids of those."""
        return {one.copy_of: one.item_id for one in self._copies if one.copy_of is not None}

    def begin(self, plan: Plan, line: Line) -> None:
        """A plan is about to be carried out: its edits are followed from here on."""
        self._plan = plan
        self._under_way += plan.edits
        line.following.begin(edit.event_id for edit in plan.edits)

    def take(self, line: Line) -> bool:
        """Note what came of the plan; True if another one could do more."""
        plan = self._plan
        again = bool(plan.waiting) or any(isinstance(one, Retrieve) for one in plan.edits)
        known = set(self._rejected)
        self._close(line)
        fresh = [one for aim, one in self._rejected.items() if aim not in known]
        return again or bool(self._under_way) or any(one.code in MISPLACED for one in fresh)

    def lose(self, line: Line) -> None:
        """The line ended: what was not answered on it is void, and was not carried out."""
        self._close(line)
        self.leave(line)
        # The copy of a call whose output was not copied takes no place: the thread leaves it out.
        halves = {edit.needs for edit in self._under_way if isinstance(edit, Create)}
        self._copies = [one for one in self._copies if one.event_id not in halves]
        self._under_way.clear()

    def leave(self, line: Line) -> None:
        """Nobody follows on this line what is still under way."""
        line.following.end(edit.event_id for edit in self._under_way)

    def _close(self, line: Line) -> None:
        """Sort the edits that are no longer under way."""
        self._copies = []
        left: list[Edit] = []
        for edit in self._under_way:
            if not self._is_over(edit, line):
                left.append(edit)
                continue
            line.following.end([edit.event_id])
        self._under_way = left

    def _is_over(self, edit: Edit, line: Line) -> bool:
        """Note how an edit ended, if it did. A question ends with its plan: the next asks again."""
        if isinstance(edit, Retrieve):
            return True
        match line.standing(edit.event_id):
            case Standing.ACKNOWLEDGED:
                self._done[edit.item_id] = None
                self._rejected.pop(_aim(edit), None)
                if isinstance(edit, Create) and edit.copy_of is not None:
                    self._copies.append(edit)
                return True
            case Standing.REJECTED:
                followed = line.following.get(edit.event_id)
                said = None if followed is None else followed.refusal
                self._rejected[_aim(edit)] = _refusal(edit.item_id, said or _NOT_THERE)
                return True
            case Standing.DROPPED:
                return True
        return False

    def result(self) -> Edited:
        plan = self._plan
        # What stands behind a doubt, its own or that of an earlier edit, shares it.
        doubtful = [*(edit.item_id for edit in self._under_way), *plan.waiting]
        return Edited(
            done=tuple(self._done),
            rejected=tuple(self._rejected.values()),
            in_doubt=tuple(dict.fromkeys(doubtful)),
            kept=plan.kept,
            unplaceable=plan.unplaceable,
            gone=plan.gone,
        )


_NOT_THERE: Final = {"message": "It was not there when asked."}


def _aim(edit: Create | Delete) -> tuple[type[Edit], str]:
    copied = edit.copy_of if isinstance(edit, Create) else None
    return type(edit), copied or edit.item_id


def _refusal(item_id: str, error: Mapping[str, Any]) -> Refusal:
    code = error.get("code")
    return Refusal(item_id, str(error.get("message")), code if isinstance(code, str) else None)
