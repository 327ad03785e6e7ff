"""The calls of a realtime conversation, as far as one connection has heard of them.

A call is in flight from its first word until its output is there. From then on it is settled, also
if the output is deleted before the call is. So is one that was cut short."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from lockstitch.gateway.deciding.realtime_frames import CALL, OUTPUT, Item

UNFINISHED = "in_progress"
CUT_SHORT = "incomplete"


class _Call(Struct, eq=False):
    item_id: str
    key: str
    said: bool = False
    """Its arguments are complete."""
    cut_short: bool = False
    """They never will be, and nobody will carry it out."""
    answered: bool = False
    """Its output is there, or was."""
    outputs: list[str] = []
    """The items that answer it, as far as they live. A provider takes a second one, too."""

    @property
    def in_flight(self) -> bool:
        return not self.cut_short and not (self.said and self.answered)


class Calls:
    """The calls that live, and the call ids of those that do not."""

    def __init__(self) -> None:
        self._calls: dict[str, _Call] = {}
        self._by_key: dict[str, list[_Call]] = {}
        self._answers: dict[str, _Call | None] = {}
        """Each output that lives, and the call that it answers."""
        self._gone: set[str] = set()
        self._saying: dict[str, set[str]] = {}
        """The calls of each response that goes on."""

    def __repr__(self) -> str:
        waiting = sum(call.in_flight for call in self._calls.values())
        return f"<Calls {len(self._calls)}, {waiting} in flight>"

    def in_flight(self, item_id: str) -> bool:
        """Is it a call that is being said, or whose output is still to come?"""
        call = self._calls.get(item_id)
        return call is not None and call.in_flight

    def outputs_of(self, item_id: str) -> tuple[str, ...]:
        """The items that answer this call."""
        call = self._calls.get(item_id)
        return () if call is None else tuple(call.outputs)

    def is_gone(self, key: str) -> bool:
        """Was the call with this call id deleted, and is there no other?"""
        return key in self._gone

    # --- what is heard ---------------------------------------------------------------------------

    def told(self, item: Item) -> None:
        """The conversation has this item."""
        if item.id is None or item.call_id is None:
            return
        if item.type == CALL:
            if item.id not in self._calls:
                self._enter(_Call(item.id, item.call_id))
            self.told_further(item)
        elif item.type == OUTPUT and item.id not in self._answers:
            self._answer(item.id, item.call_id)

    def told_further(self, item: Item) -> None:
        """A response says this of an item; one out of band is in no conversation."""
        call = self._calls.get(item.id or "")
        if call is None:
            return
        call.said = call.said or item.status not in (UNFINISHED, CUT_SHORT)
        call.cut_short = call.cut_short or item.status == CUT_SHORT

    def is_said_by(self, response: str, item: Item) -> None:
        """This response is saying this item."""
        if item.type == CALL and item.id is not None:
            self._saying.setdefault(response, set()).add(item.id)

    def response_ended(self, response: str, output: Iterable[Item]) -> None:
        for item in output:
            self.told_further(item)
        for item_id in self._saying.pop(response, ()):
            call = self._calls.get(item_id)
            if call is not None and not call.said:
                call.cut_short = True  # whatever its status was last said to be

    def deleted(self, item_id: str) -> None:
        answered = self._answers.pop(item_id, None)
        if answered is not None:
            answered.outputs.remove(item_id)
        call = self._calls.pop(item_id, None)
        if call is None:
            return
        others = self._by_key[call.key]
        others.remove(call)
        if not others:
            del self._by_key[call.key]
            self._gone.add(call.key)

    def asked_for(self, key: str) -> None:
        """The client creates a call with this call id: whether it is there is not known."""
        self._gone.discard(key)

    def _enter(self, call: _Call) -> None:
        self._calls[call.item_id] = call
        self._by_key.setdefault(call.key, []).append(call)
        self._gone.discard(call.key)

    def _answer(self, item_id: str, key: str) -> None:
        # Models use a call id again in a later round: the first output answers the first call.
        calls = self._by_key.get(key)
        call = next((one for one in calls if not one.answered), calls[-1]) if calls else None
        self._answers[item_id] = call
        if call is not None:
            call.answered = True
            call.outputs.append(item_id)
