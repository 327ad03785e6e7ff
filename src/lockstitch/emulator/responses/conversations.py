"""Conversations: lists of items that outlive responses, one response at a time on each.

A conversation is a list: the same items sent twice are there twice. While a response runs the
conversation is locked, and its items are added when the response completes."""

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from lockstitch.emulator import refusals
from lockstitch.emulator.ids import Ids
from lockstitch.emulator.limits import (
    MOST_CONVERSATION_ITEMS_AT_ONCE,
    MOST_CONVERSATIONS,
    MOST_ITEMS_IN_CONVERSATION,
)
from lockstitch.emulator.responses.context import Context, Item
from lockstitch.emulator.responses.pairs import BORROWED_IDS


class Conversation:
    """One conversation. `items` maps ids to items, in the conversation's order."""

    __slots__ = ("_borrowed", "_context", "created_at", "id", "items", "locked", "metadata")

    def __init__(self, id: str, created_at: int, metadata: dict[str, Any]) -> None:
        self.id = id
        self.created_at = created_at
        self.metadata = metadata
        self.items: dict[str, Item] = {}
        self.locked = False
        self._borrowed = 0
        # Where the next response begins; None after an edit, until it is asked for.
        self._context: Context | None = Context()

    def body(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "object": "conversation",
            "created_at": self.created_at,
            "metadata": self.metadata,
        }

    def context(self) -> Context | None:
        """The context its items make; None if it must be made anew."""
        return self._context

    def keep(self, context: Context) -> None:
        self._context = context

    def add(self, items: Sequence[Item]) -> None:
        """Items at the end. Those that were there before are refused, and then none is added."""
        added: dict[str, Item] = {}
        for item in items:
            key = self._key(item)
            if key in self.items or key in added:
                raise refusals.duplicate_item(key)
            added[key] = item
        if len(self.items) + len(items) > MOST_ITEMS_IN_CONVERSATION:
            raise refusals.too_many(
                "items", MOST_ITEMS_IN_CONVERSATION, len(self.items) + len(items)
            )
        self.items |= added
        if items:
            self._context = None

    def remove(self, id: str) -> None:
        if id not in self.items:
            raise refusals.not_found("Item", id, "item_id")
        del self.items[id]
        self._context = None

    def _key(self, item: Item) -> str:
        """A borrowed id can occur again and again; each is kept under a name of its own."""
        own = str(item.get("id"))
        if item["type"] not in BORROWED_IDS:
            return own
        self._borrowed += 1
        return f"{item['type']}/{own}/{self._borrowed}"

    def __repr__(self) -> str:
        return f"<Conversation {self.id} {len(self.items)} items{' locked' * self.locked}>"


class Conversations:
    """All conversations; beyond a limit the oldest is forgotten."""

    def __init__(self, ids: Ids) -> None:
        self._ids = ids
        self._all: OrderedDict[str, Conversation] = OrderedDict()

    def create(self, now: float, metadata: dict[str, Any], items: Sequence[Item]) -> Conversation:
        check_count(items)
        made = Conversation(self._ids.draw("conv"), int(now), metadata)
        made.add(items)
        self._all[made.id] = made
        if len(self._all) > MOST_CONVERSATIONS:
            self._all.popitem(last=False)
        return made

    def get(self, id: str) -> Conversation:
        found = self._all.get(id)
        if found is None:
            raise refusals.not_found("Conversation", id, "conversation")
        return found

    def delete(self, id: str) -> None:
        """The conversation goes; items of stored responses stay readable there."""
        self.get(id)
        del self._all[id]

    def clear(self) -> None:
        self._all.clear()

    def all(self) -> list[Conversation]:
        return list(self._all.values())


def check_count(items: Sequence[Any]) -> None:
    if len(items) > MOST_CONVERSATION_ITEMS_AT_ONCE:
        raise refusals.too_many("items", MOST_CONVERSATION_ITEMS_AT_ONCE, len(items))
