"""What a plan is made of: edits, and what was left alone and why. Plain data.

How an edit gets from here to its acknowledgement is in `flight`."""

from __future__ import annotations

from enum import Enum
from typing import Any, Final, TypeAlias

from msgspec import Struct

ROOT: Final = "root"
"""The provider's word for the place before the first item."""


class Create(Struct, frozen=True, kw_only=True, gc=False):
    """Add this item behind `previous_item_id`."""

    event_id: str
    item: dict[str, Any]
    previous_item_id: str | None
    """An id, `ROOT`, or None: at the end, for a provider that does not link."""
    needs: str | None = None
    """Not sent before the edit with this event id is acknowledged; dropped if that one fails."""
    group: str | None = None
    """What it belongs to: deletes that need the group wait for all of its creates."""
    copy_of: str | None = None
    """The item whose place it takes."""
    calls: str | None = None
    """The key of the call that it is."""
    answers: str | None = None
    """The key of the call that it is the output of."""

    @property
    def item_id(self) -> str:
        return str(self.item["id"])

    def client_event(self) -> dict[str, Any]:
        if self.previous_item_id is None:
            return {
                "type": "conversation.item.create",
                "event_id": self.event_id,
                "item": self.item,
            }
        return {
            "type": "conversation.item.create",
            "event_id": self.event_id,
            "item": self.item,
            "previous_item_id": self.previous_item_id,
        }


class Delete(Struct, frozen=True, kw_only=True, gc=False):
    """Remove this item."""

    event_id: str
    item_id: str
    needs: str | None = None
    """An event id, or a group: not sent before that is acknowledged, dropped if it fails."""

    def client_event(self) -> dict[str, Any]:
        return {
            "type": "conversation.item.delete",
            "event_id": self.event_id,
            "item_id": self.item_id,
        }


class Retrieve(Struct, frozen=True, kw_only=True, gc=False):
    """Ask whether this item is there: an edit of it was never answered."""

    event_id: str
    item_id: str
    needs: None = None

    def client_event(self) -> dict[str, Any]:
        return {
            "type": "conversation.item.retrieve",
            "event_id": self.event_id,
            "item_id": self.item_id,
        }


Edit: TypeAlias = Create | Delete | Retrieve


class Why(Enum):
    """Why an item stays as it is although the target says otherwise."""

    UNFINISHED = "it was not finished, or not heard, when the caller looked"
    CHANGED = "somebody has changed it since the caller looked"
    IN_FLIGHT = "a call that waits for its output"
    HALF = "the other half of its pair stays"
    FIXED = "it cannot be made again without losing something: it is not moved"
    UNLINKED = "this provider takes items at the end only: it is neither moved nor replaced"


class Kept(Struct, frozen=True, gc=False):
    """An item that the target does without, or has elsewhere, and that stays."""

    item_id: str
    why: Why


class WhyNot(Enum):
    """Why an item is not sent."""

    NO_CALL = "its call is not there"
    ANSWERED = "its call has an output"
    NOTHING_SAID = "it is speech without words, and a client cannot create that"


class Unplaceable(Struct, frozen=True, gc=False):
    """An item that the provider would refuse: an output that no call waits for, most often.
    It is reported, never sent."""

    item_id: str
    call_id: str | None
    why: WhyNot


class Plan(Struct, frozen=True, kw_only=True):
    """The edits that take the provider's context to a target, in the order to send them."""

    version: int
    """The mirror as it was; see `Mirror.commit`."""
    edits: tuple[Edit, ...] = ()
    kept: tuple[Kept, ...] = ()
    unplaceable: tuple[Unplaceable, ...] = ()
    waiting: tuple[str, ...] = ()
    """Ids in the target that can only be placed once a doubt is resolved: plan again then."""
    gone: tuple[str, ...] = ()
    """Ids that the snapshot had, the target has, and somebody has deleted since: they stay so."""

    tail: str | None = None
    """The last item that this plan puts at the end, so that the next one can go behind it."""

    def __bool__(self) -> bool:
        return bool(self.edits)
