"""What a caller wants changed, and what came of it: an edit as data, for any line of a session.

A change is planned anew for each try, from what is there then. Carrying it out is the session's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

from msgspec import Struct

from lockstitch.dialects.base import Wire
from lockstitch.mirror import (
    ROOT,
    Create,
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
from lockstitch.mirror.saying import awaits_words
from lockstitch.realtime.line import Line
from lockstitch.realtime.rebasing import current, rebased

REPAIRABLE: Final = frozenset({"item_create_invalid_previous_item_id", "invalid_tool_call_id"})
"""Refusals for what had changed before the edit arrived: the next plan is another one."""


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
        target = rebased(self.items, self.base.decided, mirror.items, names)
        return mirror.plan(target, base=mirror.snapshot(), new_id=new_id)


class Changes(Struct, frozen=True, kw_only=True):
    """What is to be added, put between others, changed and removed."""

    base: Seen
    added: Sequence[Wire] = ()
    inserted: Mapping[str, Sequence[Wire]] = {}
    changed: Sequence[Wire] = ()
    removed: Sequence[str] = ()

    def plan(self, line: Line, names: Mapping[str, str], new_id: NewId) -> Plan:
        if self.base.line is line:
            return line.mirror.plan_changes(
                base=self.base.snapshot,
                new_id=new_id,
                added=self.added,
                inserted=self.inserted,
                changed=self.changed,
                removed=self.removed,
            )
        mirror, decided = line.mirror, {wire["id"] for wire in self.base.decided}
        inserted: dict[str, Sequence[Wire]] = {}
        added: list[Wire] = []
        for behind, wires in self.inserted.items():
            there = _there(mirror, behind, names)
            if there is None:
                added += wires  # what they were to stand behind is gone
            else:
                inserted[there] = wires
        return mirror.plan_changes(
            base=mirror.snapshot(),
            new_id=new_id,
            added=[*added, *self.added],
            inserted=inserted,
            changed=[wire | {"id": current(wire["id"], names)} for wire in self.changed],
            removed=[current(gone, names) for gone in self.removed if gone in decided],
        )


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
    """Ids of the items of which the provider did not say what became of them, though asked."""
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
        self._rejected: dict[str, Refusal] = {}
        self._under_way: list[Edit] = []
        self._plan = Plan(version=0)
        self.copies: dict[str, str] = {}
        """Items that took the place of others, by the ids of those."""

    def take(self, plan: Plan, line: Line) -> bool:
        """Note what came of a plan; True if another one could do more."""
        again = bool(plan.waiting) or any(isinstance(one, Retrieve) for one in plan.edits)
        self._under_way += plan.edits
        self._plan = plan
        known = set(self._rejected)
        self._close(line)
        fresh = [one for one in self._rejected.values() if one.item_id not in known]
        return again or bool(self._under_way) or any(one.code in REPAIRABLE for one in fresh)

    def lose(self, line: Line) -> None:
        """The line ended: what was not answered on it is void, and was not carried out."""
        self._close(line)
        self._under_way.clear()

    def _close(self, line: Line) -> None:
        """Sort the edits that are no longer under way."""
        left: list[Edit] = []
        for edit in self._under_way:
            standing = line.standing(edit.event_id)
            if isinstance(edit, Retrieve):
                continue
            if standing is Standing.ACKNOWLEDGED:
                self._done[edit.item_id] = None
                self._rejected.pop(edit.item_id, None)
                if isinstance(edit, Create) and edit.copy_of is not None:
                    self.copies[edit.copy_of] = edit.item_id
            elif standing is Standing.REJECTED:
                said = line.refusals.get(edit.event_id, {"message": "It was not there when asked."})
                self._rejected[edit.item_id] = _refusal(edit.item_id, said)
            elif standing is not Standing.DROPPED:
                left.append(edit)
        self._under_way = left

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


def _refusal(item_id: str, error: Mapping[str, Any]) -> Refusal:
    code = error.get("code")
    return Refusal(item_id, str(error.get("message")), code if isinstance(code, str) else None)
