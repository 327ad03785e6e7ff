"""Who made the items of a line that were not written down so far.

An item that is written down has its maker in the ledger, and is forgotten here."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from lockstitch.dialects.base import Wire
from lockstitch.mirror import Create, Edit
from lockstitch.mirror.remembering import Recent
from lockstitch.realtime.limits import MOST_ITEMS_UNWRITTEN


class Origins:
    """What is said here to be neither the client's nor the model's came from the user."""

    def __init__(self) -> None:
        self._created: dict[str, Create] = {}
        self._sent = Recent(MOST_ITEMS_UNWRITTEN)
        self._spoken = Recent(MOST_ITEMS_UNWRITTEN)

    def __repr__(self) -> str:
        return f"<Origins of {len(self)} items>"

    def __len__(self) -> int:
        return len(self._created) + len(self._sent) + len(self._spoken)

    def creates(self, edits: Iterable[Edit]) -> None:
        """These edits of the client are carried out."""
        self._created.update((one.item_id, one) for one in edits if isinstance(one, Create))

    def sends(self, item_id: str) -> None:
        """The client has created an item by hand: no edit of it is followed."""
        self._sent.add(item_id)

    def speaks(self, item_id: str) -> None:
        """A response tells of this item."""
        self._spoken.add(item_id)

    # --- who made it ---------------------------------------------------------------------------

    def is_ours(self, item_id: str) -> bool:
        """Has the client created it?"""
        return item_id in self._created or item_id in self._sent

    def is_copy(self, item_id: str) -> bool:
        """Has the client created it in the place of another?"""
        create = self._created.get(item_id)
        return create is not None and create.copy_of is not None

    def is_spoken(self, item_id: str) -> bool:
        """Is it the model's? Of these alone calls are run."""
        return item_id in self._spoken

    # --- what can no longer matter -------------------------------------------------------------

    def written(self, items: Iterable[Wire]) -> None:
        """These are in the context, and what is to be known of the finished ones is in the
        ledger."""
        if self._created:
            for wire in items:
                if wire.get("status") != "in_progress":
                    self._created.pop(wire["id"], None)

    def keep(self, may_come: Callable[[Create], bool]) -> None:
        """Forget what was to be created and will not be."""
        self._created = {name: one for name, one in self._created.items() if may_come(one)}
