"""The items of a Realtime conversation, in the server's order: a linked list with tombstones.

A deleted item keeps its place in the chain, unseen, because a response that started before the
deletion still names it as the predecessor of its own items."""

from collections import deque
from collections.abc import Iterator
from typing import Any

from lockstitch.emulator.limits import MOST_REALTIME_ITEMS, MOST_REALTIME_TOMBSTONES
from lockstitch.emulator.realtime import refusals as realtime_refusals

Item = dict[str, Any]
# Before the first item of every conversation; a client may name it, and no item has it.
ROOT = "root"


class Place:
    """One item in the chain, or the tombstone that is left of it."""

    __slots__ = ("audio", "deleted", "following", "heard", "item", "milliseconds", "preceding")

    def __init__(self, item: Item) -> None:
        self.item = item
        self.deleted = False
        # What the model heard in the audio, and the audio as it can be retrieved.
        self.heard = ""
        self.audio = b""
        self.milliseconds = 0
        self.preceding = self.following = self

    @property
    def id(self) -> str:
        return str(self.item["id"])

    def __repr__(self) -> str:
        return f"<Place {'(deleted) ' if self.deleted else ''}{self.id}>"


class Items:
    """The chain, from the root around to the root again."""

    def __init__(self) -> None:
        self._root = Place({"id": ROOT, "type": ROOT})
        self._places: dict[str, Place] = {}
        self._tombstones: deque[Place] = deque()
        self._living = 0

    def __len__(self) -> int:
        return self._living

    def __iter__(self) -> Iterator[Place]:
        place = self._root.following
        while place is not self._root:
            if not place.deleted:
                yield place
            place = place.following

    def backwards(self) -> Iterator[Place]:
        place = self._root.preceding
        while place is not self._root:
            if not place.deleted:
                yield place
            place = place.preceding

    def get(self, id: str) -> Place | None:
        place = self._places.get(id)
        return None if place is None or place.deleted else place

    def last(self) -> str | None:
        """The id of the last item."""
        return next((place.id for place in self.backwards()), None)

    def check_room(self) -> None:
        if self._living >= MOST_REALTIME_ITEMS:
            raise realtime_refusals.conversation_full(MOST_REALTIME_ITEMS)

    def check_new(self, id: str) -> None:
        if id == ROOT or self.get(id) is not None:
            raise realtime_refusals.item_exists(id)

    def add(self, item: Item, previous: str | None) -> tuple[Place, str | None]:
        """Where a client wants it: at the end, at the head, or after an item that is there.

        Gives the id of the item that it follows. An `Items` that raised is as it was before."""
        self.check_room()
        self.check_new(item["id"])
        if not previous:
            # After the last item that lives, not after its tombstones: where the client is told.
            previous = self.last() or ROOT
        if previous == ROOT:
            return self._link(item, self._root), None
        after = self.get(previous)
        if after is None:
            raise realtime_refusals.unknown_previous_item(previous)
        return self._link(item, after), previous

    def place(self, item: Item, previous: str | None) -> Place:
        """Where a response's start put it: after `previous`, which may be deleted by now."""
        if previous is None:
            return self._link(item, self._root)
        after = self._places.get(previous)
        return self._link(item, self._root.preceding if after is None else after)

    def delete(self, id: str) -> Place | None:
        """What was deleted; None if there is no such item."""
        place = self.get(id)
        if place is None:
            return None
        place.deleted = True
        self._living -= 1
        self._tombstones.append(place)
        if len(self._tombstones) > MOST_REALTIME_TOMBSTONES:
            self._forget(self._tombstones.popleft())
        return place

    def calls(self, call_id: str) -> bool:
        """Whether one of the items is the function call with this id."""
        return any(is_call(place.item, call_id) for place in self.backwards())

    def _link(self, item: Item, after: Place) -> Place:
        place = Place(item)
        place.preceding, place.following = after, after.following
        after.following.preceding = place
        after.following = place
        # An id that is used again takes the name from its tombstone.
        forgotten = self._places.get(place.id)
        self._places[place.id] = place
        if forgotten is not None:
            self._unlink(forgotten)
        self._living += 1
        return place

    def _forget(self, tombstone: Place) -> None:
        if self._places.get(tombstone.id) is tombstone:
            del self._places[tombstone.id]
            self._unlink(tombstone)

    @staticmethod
    def _unlink(place: Place) -> None:
        place.preceding.following = place.following
        place.following.preceding = place.preceding

    def __repr__(self) -> str:
        return f"<Items {self._living}, {len(self._tombstones)} tombstones>"


def is_call(item: Item, call_id: str) -> bool:
    return item["type"] == "function_call" and item.get("call_id") == call_id
