"""One conversation of a client, as the facts that are kept of it, and back.

Where an upstream keeps the conversation, only whose it is and where it is are kept here. Items are
known by their place among the facts; one that was deleted stays there, and is not shown. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct

from lockstitch.core.facts import AnchorAdopted, AnyFact, ItemAdded, Mode, Noted, Seq
from lockstitch.dialects.base import Wire
from lockstitch.dialects.reading import UNREADABLE, decoded
from lockstitch.gateway.deciding.listing import Listed, NoSuchItem, listed
from lockstitch.gateway.keeping.exchanges import giver
from lockstitch.gateway.keeping.notes import UnreadableNote

MADE: Final = "gateway.conversation"
METADATA: Final = "gateway.conversation_metadata"
REMOVED: Final = "gateway.conversation_item_removed"


class MadeNote(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where a conversation is."""

    upstream: str = ""
    """The name of the upstream that keeps it; empty where the gateway does."""
    created: float = 0.0


class _Removed(Struct, frozen=True):
    seq: Seq


class Entry(Struct, frozen=True):
    """An item of a conversation, and its place among the facts."""

    seq: Seq
    item: bytes


class Conversation(Struct, frozen=True, kw_only=True):
    """One conversation, as it is now."""

    id: str
    upstream: str
    """The name of the upstream that keeps it; empty where the gateway does."""
    created: float
    metadata: Mapping[str, str]
    entries: Sequence[Entry]

    @property
    def created_at(self) -> int:
        return int(self.created)

    @property
    def items(self) -> list[Wire]:
        return [decoded(entry.item) for entry in self.entries]

    @property
    def raw_items(self) -> list[bytes]:
        """The items as they are kept."""
        return [entry.item for entry in self.entries]

    def body(self) -> bytes:
        """The conversation as the provider shows it."""
        return msgspec.json.encode(
            {
                "id": self.id,
                "object": "conversation",
                "created_at": self.created_at,
                "metadata": self.metadata,
            }
        )

    def find(self, id: str) -> Entry:
        """The item of this id, the newest where several have it. Raises `NoSuchItem`."""
        for entry in reversed(self.entries):
            if self.shown(entry).id == id:
                return entry
        raise NoSuchItem(id, "item_id")

    def shown(self, entry: Entry) -> Listed:
        return listed(entry.item, f"{self.id}/{entry.seq}", in_conversation=True)

    def listed(self) -> list[Listed]:
        """Its items, in their order, as they are listed."""
        return [self.shown(entry) for entry in self.entries]


def begun(
    id: str, note: MadeNote, metadata: Mapping[str, str], items: Sequence[bytes]
) -> list[AnyFact]:
    """The facts of a conversation that begins."""
    facts: list[AnyFact] = [Noted(kind=MADE, note=msgspec.json.encode(note))]
    if note.upstream:
        # By this name its owner is found, whoever asks for it.
        facts.append(AnchorAdopted(mode=Mode.CONVERSATION, anchor=id))
    if metadata:
        facts.append(metadata_set(metadata))
    return [*facts, *added(items)]


def added(items: Sequence[bytes]) -> list[AnyFact]:
    """The facts that items were added. Raises `NotAnItem`."""
    return [ItemAdded(item=item, by=giver(item)) for item in items]


def metadata_set(metadata: Mapping[str, str]) -> Noted:
    return Noted(kind=METADATA, note=msgspec.json.encode(metadata))


def removed(entry: Entry) -> Noted:
    return Noted(kind=REMOVED, note=msgspec.json.encode(_Removed(entry.seq)))


def made_in(fact: AnyFact) -> MadeNote | None:
    """What this fact tells of where a conversation is: one of the first of each does."""
    if isinstance(fact, Noted) and fact.kind == MADE:
        note: MadeNote = _read(fact.note, MadeNote)
        return note
    return None


def conversation_of(id: str, facts: Sequence[AnyFact]) -> Conversation | None:
    """The conversation that these facts tell of; None where they tell of none."""
    made: MadeNote | None = None
    metadata: dict[str, str] = {}
    items: dict[Seq, bytes] = {}
    for seq, fact in enumerate(facts, 1):
        if isinstance(fact, ItemAdded):
            items[seq] = fact.item
        elif isinstance(fact, Noted):
            if fact.kind == MADE:
                made = made_in(fact)
            elif fact.kind == METADATA:
                metadata = _read(fact.note, dict[str, str])
            elif fact.kind == REMOVED:
                items.pop(_read(fact.note, _Removed).seq, None)
    if made is None:
        return None
    return Conversation(
        id=id,
        upstream=made.upstream,
        created=made.created,
        metadata=metadata,
        entries=[Entry(seq, item) for seq, item in items.items()],
    )


def _read(note: bytes, kind: Any) -> Any:
    try:
        return msgspec.json.decode(note, type=kind)
    except UNREADABLE as error:
        raise UnreadableNote(
            f"A note on a conversation cannot be read: {error}. It was written by a newer version "
            "of Lockstitch, or is damaged. Upgrade, or restore a backup."
        ) from None
