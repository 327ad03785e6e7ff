"""Items that can be referred to by their id alone: those of responses and of conversations.

An item stays when its response or its conversation is deleted; the oldest fall out in the end."""

from collections import OrderedDict
from collections.abc import Iterable

from lockstitch.emulator.limits import MOST_REMEMBERED_ITEM_IDS
from lockstitch.emulator.responses.context import Item
from lockstitch.emulator.responses.pairs import BORROWED_IDS


class KeptItems:
    """The newest so many items, by id."""

    __slots__ = ("_items",)

    def __init__(self) -> None:
        self._items: OrderedDict[str, Item] = OrderedDict()

    def remember(self, items: Iterable[Item]) -> None:
        for item in items:
            if item.get("id") and item["type"] not in BORROWED_IDS:
                self._items[item["id"]] = item
        while len(self._items) > MOST_REMEMBERED_ITEM_IDS:
            self._items.popitem(last=False)

    def get(self, id: str) -> Item | None:
        return self._items.get(id)

    def clear(self) -> None:
        self._items.clear()

    def __contains__(self, id: str) -> bool:
        return id in self._items

    def __repr__(self) -> str:
        return f"<KeptItems {len(self._items)}>"
