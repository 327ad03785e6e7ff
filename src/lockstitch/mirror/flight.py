"""Edits on their way: from a committed plan to an acknowledgement, a rejection, or a doubt.

Nothing is assumed here: an edit counts once the provider says so. Time is an argument."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator
from enum import Enum
from itertools import chain
from typing import Final

from msgspec import Struct

from lockstitch.core.items import Part
from lockstitch.mirror.edits import Create, Delete, Edit, Retrieve
from lockstitch.mirror.remembering import Recent
from lockstitch.mirror.saying import read

MOST_ENDED_EDITS_REMEMBERED = 4096
"""How far an edit came is asked soon after, or not."""

MOST_ITEMS_ASKED_ABOUT = 1024
"""An answer that never came is waited for until so many other items were asked about."""


class Standing(Enum):
    """How far an edit is."""

    PLANNED = "to be sent, now or once what it needs is acknowledged"
    SENT = "sent, and not answered so far"
    IN_DOUBT = "sent, and not answered in time: a Retrieve tells"
    ACKNOWLEDGED = "carried out"
    REJECTED = "not carried out: the provider said no"
    DROPPED = "never sent: what it needed failed, or it had nothing left to do"


OPEN: Final = frozenset({Standing.PLANNED, Standing.SENT, Standing.IN_DOUBT})
"""How an edit can stand that has not ended."""


class Tracked(Struct, eq=False):
    """One edit and how far it is."""

    edit: Edit
    standing: Standing = Standing.PLANNED
    sent_at: float = 0.0
    turn: int = 0
    """The provider takes edits in the order in which they are sent."""
    key: tuple[Part, str] | None = None
    """The call that it creates, or the output."""


class _Group(Struct, eq=False):
    """Creates that deletes wait for."""

    open: int = 0
    failed: bool = False


class Flight:
    """All edits of committed plans."""

    def __init__(self) -> None:
        self._by_event: dict[str, Tracked] = {}
        self._ended = Recent(MOST_ENDED_EDITS_REMEMBERED)
        self._creates: dict[str, Tracked] = {}
        self._deletes: dict[str, Tracked] = {}
        self._retrieves: dict[str, Tracked] = {}
        self._keyed: dict[tuple[Part, str], Tracked] = {}
        """Creates of calls and outputs that are not answered so far."""
        self._ready: deque[Tracked] = deque()
        self._waiting: dict[str, list[Tracked]] = {}
        self._groups: dict[str, _Group] = {}
        self._sent: OrderedDict[str, Tracked] = OrderedDict()
        self._doubtful: dict[str, Tracked] = {}
        self._turns = 0
        self._asked: OrderedDict[str, deque[int]] = OrderedDict()
        """The turns of questions about each item that were not answered so far, in time or not:
        an answer does not say which it answers, and the first is to the oldest."""

    def __repr__(self) -> str:
        return f"<Flight {len(self._sent)} sent, {len(self._doubtful)} in doubt>"

    def standing(self, event_id: str) -> Standing | None:
        tracked = self._by_event.get(event_id)
        return None if tracked is None else tracked.standing

    def tracked(self, event_id: str) -> Tracked | None:
        return self._by_event.get(event_id)

    def creating(self, item_id: str) -> Tracked | None:
        """The create of this item that is not answered so far."""
        return self._creates.get(item_id)

    def deleting(self, item_id: str) -> Tracked | None:
        return self._deletes.get(item_id)

    def retrieving(self, item_id: str) -> Tracked | None:
        return self._retrieves.get(item_id)

    def calling(self, key: str) -> Tracked | None:
        """The create of a call with this key that is not answered so far."""
        return self._keyed.get((Part.CALL, key))

    def answering(self, key: str) -> Tracked | None:
        """The create of an output for this key that is not answered so far."""
        return self._keyed.get((Part.OUTPUT, key))

    def oldest_delete(self) -> Tracked | None:
        """The delete that a provider answers next that does not say which it answers."""
        unanswered = chain(self._doubtful.values(), self._sent.values())
        return next((one for one in unanswered if isinstance(one.edit, Delete)), None)

    def in_doubt(self) -> Iterator[Edit]:
        return (tracked.edit for tracked in self._doubtful.values())

    def idle(self) -> bool:
        """Is nothing under way, and nothing in doubt?"""
        return not (self._ready or self._sent or self._doubtful)

    def answered(self, item_id: str) -> int:
        """A question about this item was answered. Gives the turn in which it was asked; 0 if
        nobody knows."""
        turns = self._asked.get(item_id)
        if not turns:
            return 0
        turn = turns[0]
        self._settle(item_id, turn)
        retrieve = self._retrieves.get(item_id)
        if retrieve is not None and retrieve.turn == turn:
            self.acknowledge(retrieve)
        return turn

    def refused(self, retrieve: Tracked) -> None:
        """This very question was answered with a refusal, and so were all before it."""
        self._settle(retrieve.edit.item_id, retrieve.turn)

    def _settle(self, item_id: str, turn: int) -> None:
        turns = self._asked.get(item_id, deque())
        while turns and turns[0] <= turn:
            turns.popleft()
        if not turns:
            self._asked.pop(item_id, None)

    @staticmethod
    def tells(turn: int, edit: Tracked) -> bool:
        """Does a question that was asked in this turn tell what became of an edit in doubt? Not if
        it was asked before the edit was sent."""
        return edit.standing is Standing.IN_DOUBT and turn > edit.turn

    # --- on the way ----------------------------------------------------------------------------

    def commit(self, edits: Iterable[Edit]) -> None:
        by_event, creates, deletes = self._by_event, self._creates, self._deletes
        followed: list[Tracked] = []
        for edit in edits:
            tracked = by_event[edit.event_id] = Tracked(edit)
            followed.append(tracked)
            if isinstance(edit, Create):
                creates[edit.item["id"]] = tracked
                self._follow(tracked, edit)
            elif isinstance(edit, Delete):
                deletes[edit.item_id] = tracked
            else:
                self._retrieves[edit.item_id] = tracked
        for tracked in followed:
            needs = tracked.edit.needs
            if needs is None:
                self._ready.append(tracked)
            elif self._failed(needs):
                self._close(tracked, Standing.DROPPED)
            elif self._met(needs):
                self._ready.append(tracked)
            else:
                self._waiting.setdefault(needs, []).append(tracked)

    def _follow(self, tracked: Tracked, create: Create) -> None:
        if create.group is not None:
            self._groups.setdefault(create.group, _Group()).open += 1
        if create.item.get("type", "message") == "message":
            return
        item = read(create.item)
        if item.key is not None and item.part in {Part.CALL, Part.OUTPUT}:
            tracked.key = (item.part, item.key)
            self._keyed[tracked.key] = tracked

    def due(self) -> Iterator[Tracked]:
        """What can be sent now. The caller says of each that it was `sent`, or closes it."""
        while self._ready:
            tracked = self._ready.popleft()
            if tracked.standing is Standing.PLANNED:
                yield tracked

    def sent(self, tracked: Tracked, at: float) -> None:
        tracked.standing = Standing.SENT
        tracked.sent_at = at
        self._turns += 1
        tracked.turn = self._turns
        if isinstance(tracked.edit, Retrieve):
            self._asked.setdefault(tracked.edit.item_id, deque()).append(tracked.turn)
            if len(self._asked) > MOST_ITEMS_ASKED_ABOUT:
                self._asked.popitem(last=False)
        self._sent[tracked.edit.event_id] = tracked

    def expire(self, sent_before: float) -> list[Tracked]:
        """What was sent before then and never answered is in doubt from now on."""
        late: list[Tracked] = []
        while self._sent:
            tracked = next(iter(self._sent.values()))
            if tracked.sent_at >= sent_before:
                break
            del self._sent[tracked.edit.event_id]
            late.append(tracked)
            if isinstance(tracked.edit, Retrieve):
                self._close(tracked, Standing.DROPPED)  # the next plan asks again
            else:
                tracked.standing = Standing.IN_DOUBT
                self._doubtful[tracked.edit.event_id] = tracked
        return late

    def acknowledge(self, tracked: Tracked) -> None:
        self._close(tracked, Standing.ACKNOWLEDGED)

    def reject(self, tracked: Tracked) -> None:
        self._close(tracked, Standing.REJECTED)

    def doubt(self, tracked: Tracked) -> None:
        """The provider's answer leaves open what is there."""
        tracked.standing = Standing.IN_DOUBT
        self._sent.pop(tracked.edit.event_id, None)
        self._doubtful[tracked.edit.event_id] = tracked

    # --- the end of an edit, and who waited for it ---------------------------------------------

    def _close(self, tracked: Tracked, standing: Standing) -> None:
        closing = [(tracked, standing)]
        while closing:
            one, how = closing.pop()
            if one.standing not in OPEN:
                continue
            edit = one.edit
            one.standing = how
            self._sent.pop(edit.event_id, None)
            self._doubtful.pop(edit.event_id, None)
            named = self._named(edit)
            if named.get(edit.item_id) is one:
                del named[edit.item_id]
            if one.key is not None and self._keyed.get(one.key) is one:
                del self._keyed[one.key]
            forgotten = self._ended.add(edit.event_id)
            if forgotten is not None:
                del self._by_event[forgotten]
            done = how is Standing.ACKNOWLEDGED
            closing += self._release(edit.event_id, done)
            if isinstance(edit, Create) and edit.group is not None:
                group = self._groups[edit.group]
                group.open -= 1
                group.failed = group.failed or not done
                if group.failed or not group.open:
                    closing += self._release(edit.group, not group.failed)
                if not group.open:
                    del self._groups[edit.group]

    def _release(self, need: str, met: bool) -> list[tuple[Tracked, Standing]]:
        waiting = self._waiting.pop(need, [])
        if met:
            self._ready.extend(waiting)
            return []
        return [(tracked, Standing.DROPPED) for tracked in waiting]

    def _met(self, need: str) -> bool:
        if need in self._groups:
            return not self._groups[need].open
        return self.standing(need) is Standing.ACKNOWLEDGED

    def _failed(self, need: str) -> bool:
        if need in self._groups:
            return self._groups[need].failed
        return self.standing(need) in {Standing.REJECTED, Standing.DROPPED, None}

    def _named(self, edit: Edit) -> dict[str, Tracked]:
        if isinstance(edit, Create):
            return self._creates
        return self._deletes if isinstance(edit, Delete) else self._retrieves
