"""Edits on their way: from a committed plan to an acknowledgement, a rejection, or a doubt.

Nothing is assumed here: an edit counts once the provider says so. Time is an argument."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from itertools import chain
from typing import Final

from msgspec import Struct

from lockstitch.mirror.edits import Create, Delete, Edit, Retrieve
from lockstitch.mirror.remembering import Recent

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
    REJECTED = "rejected by the provider"
    DROPPED = "never sent: what it needed failed, or it had nothing left to do"

    __hash__ = object.__hash__  # an enum hashes the name of its member, in Python, at every look


# Bound once: members of an enum are slow to look up, and these are for every edit.
_PLANNED: Final = Standing.PLANNED
_SENT: Final = Standing.SENT
_ACKNOWLEDGED: Final = Standing.ACKNOWLEDGED

OPEN: Final = frozenset({_PLANNED, _SENT, Standing.IN_DOUBT})
"""How an edit can stand that has not ended."""


class Tracked(Struct, eq=False, gc=False):
    """One edit and how far it is."""

    edit: Edit
    standing: Standing = _PLANNED
    sent_at: float = 0.0
    turn: int = 0
    """The provider takes edits in the order in which they are sent."""


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
        self._calls: dict[str, Tracked] = {}
        """Creates of calls that are not answered so far, by key."""
        self._outputs: dict[str, Tracked] = {}
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

    @property
    def deletes(self) -> Mapping[str, Tracked]:
        """The deletes that are not answered so far, by item."""
        return self._deletes

    def deleting(self, item_id: str) -> Tracked | None:
        return self._deletes.get(item_id)

    def retrieving(self, item_id: str) -> Tracked | None:
        return self._retrieves.get(item_id)

    def calling(self, key: str) -> Tracked | None:
        """The create of a call with this key that is not answered so far."""
        return self._calls.get(key)

    def answering(self, key: str) -> Tracked | None:
        """The create of an output for this key that is not answered so far."""
        return self._outputs.get(key)

    def oldest_delete(self) -> Tracked | None:
        """The delete that a provider answers next that does not say which it answers."""
        unanswered = chain(self._doubtful.values(), self._sent.values())
        return next((one for one in unanswered if isinstance(one.edit, Delete)), None)

    def open(self) -> Iterator[Edit]:
        """The edits that have not ended, in the order in which they were committed."""
        return (one.edit for one in self._by_event.values() if one.standing in OPEN)

    def in_doubt(self) -> list[str]:
        """The items whose edits are in doubt."""
        return [tracked.edit.item_id for tracked in self._doubtful.values()]

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
        """An edit stands behind the one that it needs, or behind all creates of the group."""
        by_event, ready = self._by_event, self._ready
        creates, deletes = self._creates, self._deletes
        for edit in edits:
            tracked = by_event[edit.event_id] = Tracked(edit)
            if isinstance(edit, Delete):
                deletes[edit.item_id] = tracked
            elif isinstance(edit, Create):
                creates[edit.item["id"]] = tracked
                if edit.group is not None:
                    self._join(edit.group)
                if edit.calls is not None:
                    self._calls[edit.calls] = tracked
                elif edit.answers is not None:
                    self._outputs[edit.answers] = tracked
            else:
                self._retrieves[edit.item_id] = tracked
            if edit.needs is None:
                ready.append(tracked)
            else:
                self._wait(tracked, edit.needs)

    def _join(self, name: str) -> None:
        group = self._groups.get(name)
        if group is None:
            group = self._groups[name] = _Group()
        group.open += 1

    def _wait(self, tracked: Tracked, need: str) -> None:
        others = self._waiting.get(need)
        if others is not None:
            others.append(tracked)
            return
        met = self._is_met(need)
        if met is None:
            self._waiting[need] = [tracked]
        elif met:
            self._ready.append(tracked)
        else:
            self._close(tracked, Standing.DROPPED)

    def due(self, at: float) -> Iterator[Edit]:
        """What can be sent now. Each counts as sent, ``at`` this time, once it is taken."""
        ready, sent = self._ready, self._sent
        while ready:
            tracked = ready.popleft()
            if tracked.standing is not _PLANNED:
                continue  # it had nothing left to do: somebody else was quicker
            edit = tracked.edit
            self._turns += 1
            tracked.standing, tracked.sent_at, tracked.turn = _SENT, at, self._turns
            sent[edit.event_id] = tracked
            if isinstance(edit, Retrieve):
                self._ask(edit.item_id, tracked.turn)
            yield edit

    def _ask(self, item_id: str, turn: int) -> None:
        self._asked.setdefault(item_id, deque()).append(turn)
        if len(self._asked) > MOST_ITEMS_ASKED_ABOUT:
            self._asked.popitem(last=False)

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
        self._close(tracked, _ACKNOWLEDGED)

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
            forgotten = self._ended.add(edit.event_id)
            if forgotten is not None:
                del self._by_event[forgotten]
            done = how is _ACKNOWLEDGED
            closing += self._release(edit.event_id, done)
            if isinstance(edit, Create):
                if edit.calls is not None and self._calls.get(edit.calls) is one:
                    del self._calls[edit.calls]
                if edit.answers is not None and self._outputs.get(edit.answers) is one:
                    del self._outputs[edit.answers]
                if edit.group is not None:
                    closing += self._leave(edit.group, done)

    def _leave(self, name: str, done: bool) -> list[tuple[Tracked, Standing]]:
        """One create of a group has ended. Gives who is dropped for it."""
        group = self._groups[name]
        group.open -= 1
        group.failed = group.failed or not done
        if not group.open:
            del self._groups[name]
        return self._release(name, not group.failed) if group.failed or not group.open else []

    def _release(self, need: str, met: bool) -> list[tuple[Tracked, Standing]]:
        waiting = self._waiting.pop(need, [])
        if met:
            self._ready.extend(waiting)
            return []
        return [(tracked, Standing.DROPPED) for tracked in waiting]

    def _is_met(self, need: str) -> bool | None:
        """None while it is open: a group is there as long as one of its creates is."""
        needed = self._by_event.get(need)
        if needed is not None:
            return None if needed.standing in OPEN else needed.standing is _ACKNOWLEDGED
        group = self._groups.get(need)
        return None if group is not None and not group.failed else False

    def _named(self, edit: Edit) -> dict[str, Tracked]:
        if isinstance(edit, Create):
            return self._creates
        return self._deletes if isinstance(edit, Delete) else self._retrieves
