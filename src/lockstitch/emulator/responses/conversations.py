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
from lockstitch.emulator.responses.kept_items import KeptItems
from lockstitch.emulator.responses.pairs import BORROWED_IDS

# An item is kept under its id; one whose id is borrowed, and may come again, under a number.
Key = str | int


class Conversation:
    """One conversation. `items` are in the conversation's order."""

    __slots__ = (
        "_borrowed",
        "_compactions",
        "_context",
        "created_at",
        "id",
        "items",
        "locked",
        "metadata",
    )

    def __init__(self, id: str, created_at: int, metadata: dict[str, Any]) -> None:
        self.id = id
        self.created_at = created_at
        self.metadata = metadata
        self.items: dict[Key, Item] = {}
        self.locked = False
        self._borrowed = 0
        # The compactions that responses made here: what came before them is not seen any more.
        self._compactions: list[str] = []
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
        """The context its items make; None if it must be made anew, of those that are seen."""
        return self._context

    def keep(self, context: Context) -> None:
        self._context = context

    def seen(self) -> list[Item]:
        """The items that a response sees: from the last compaction on."""
        items = list(self.items.values())
        last = next((made for made in reversed(self._compactions) if made in self.items), None)
        return items if last is None else items[list(self.items).index(last) :]

    def check(self, items: Sequence[Item], more: int = 0) -> None:
        """Refuse items that are here already, and those for which, with `more`, is no room."""
        added: set[str] = set()
        for item in items:
            if item["type"] in BORROWED_IDS:
                continue
            own = str(item["id"])
            if own in self.items or own in added:
                raise refusals.duplicate_item(own)
            added.add(own)
        count = len(self.items) + len(items) + more
        if count > MOST_ITEMS_IN_CONVERSATION:
            raise refusals.too_many("items", MOST_ITEMS_IN_CONVERSATION, count)

    def add(self, items: Sequence[Item]) -> None:
        """Items at the end, which were checked."""
        for item in items:
            self.items[self._key(item)] = item
        if items:
            self._context = None

    def end(self, input: Sequence[Item], output: Sequence[Item], after: Context) -> None:
        """A response completed: what it was sent and what it made is added, and this is seen."""
        self.add([*input, *output])
        self._compactions += [str(made["id"]) for made in output if made["type"] == "compaction"]
        self._context = after

    def get(self, id: str) -> Item:
        return self.items[self._named(id)]

    def remove(self, id: str) -> None:
        del self.items[self._named(id)]
        self._context = None

    def _named(self, id: str) -> Key:
        """The item whose own id it is; if there is none, the newest that borrows it."""
        if id in self.items:
            return id
        for key in reversed(self.items):
            if self.items[key]["id"] == id:
                return key
        raise refusals.not_found("Item", id, "item_id")

    def _key(self, item: Item) -> Key:
        if item["type"] not in BORROWED_IDS:
            return str(item["id"])
        self._borrowed += 1
        return self._borrowed

    def __repr__(self) -> str:
        return f"<Conversation {self.id} {len(self.items)} items{' locked' * self.locked}>"


class Conversations:
    """All conversations; beyond a limit the oldest is forgotten.

    `kept` are all items that can be referred to: they outlive their conversation."""

    def __init__(self, ids: Ids) -> None:
        self.kept = KeptItems()
        self._ids = ids
        self._all: OrderedDict[str, Conversation] = OrderedDict()

    def create(self, now: float, metadata: dict[str, Any], items: Sequence[Item]) -> Conversation:
        check_count(items)
        made = Conversation(self._ids.draw("conv"), int(now), metadata)
        self.add(made, items)
        self._all[made.id] = made
        if len(self._all) > MOST_CONVERSATIONS:
            self._all.popitem(last=False)
        return made

    def add(self, conversation: Conversation, items: Sequence[Item]) -> None:
        """Items of a client, at the end: all of them, or none if one is refused."""
        conversation.check(items)
        conversation.add(items)
        self.kept.remember(items)

    def get(self, id: str) -> Conversation:
        found = self._all.get(id)
        if found is None:
            raise refusals.not_found("Conversation", id, "conversation")
        return found

    def delete(self, id: str) -> None:
        """The conversation goes; its items can still be referred to."""
        self.get(id)
        del self._all[id]

    def clear(self) -> None:
        self._all.clear()
        self.kept.clear()

    def all(self) -> list[Conversation]:
        return list(self._all.values())


def check_count(items: Sequence[Any]) -> None:
    if len(items) > MOST_CONVERSATION_ITEMS_AT_ONCE:
        raise refusals.too_many("items", MOST_CONVERSATION_ITEMS_AT_ONCE, len(items))
