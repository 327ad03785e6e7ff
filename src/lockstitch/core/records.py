"""How a fact is kept: a small payload, the bytes of its item or note as they came, and its names.

Stores keep records and know nothing of facts. Encoding is deterministic, and decoding gives back
an equal fact."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any

import msgspec
from msgspec import Struct

from lockstitch.core.errors import LockstitchError
from lockstitch.core.facts import (
    WITH_ITEM,
    AnchorAdopted,
    AnyFact,
    Mode,
    Noted,
    RequestPrepared,
    ResponseOpened,
    Seq,
)
from lockstitch.core.items import Item, Part


class UnreadableRecord(LockstitchError):
    """A record is not one that this version wrote."""


class Naming(Enum):
    """What a name in a record is the id of."""

    RESPONSE = "response"
    CALL = "call"
    ITEM = "item"
    CONVERSATION = "conversation"
    """The provider's conversation; ours is the ledger itself."""


class Name(Struct, frozen=True, gc=False):
    naming: Naming
    id: str


class Record(Struct, frozen=True, gc=False):
    """One fact as a store keeps it."""

    seq: Seq
    payload: bytes
    """The fact without its item or note, as JSON."""
    body: bytes | None = None
    """The item or note, as the bytes that came."""
    names: tuple[Name, ...] = ()
    """The ids it can be found by."""
    at: float | None = None
    """When it was kept, in seconds since 1970; a store fills it in where it is None."""


SEALED = b"\0LS"
"""What the payload of an encrypted record begins with: no JSON does. `lockstitch.store` seals."""

_WITH_BODY = (*WITH_ITEM, Noted)
_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[AnyFact] = msgspec.json.Decoder(AnyFact)


def encoded(seq: Seq, fact: AnyFact, parts: Sequence[Item] = ()) -> Record:
    """The record of a fact; ``parts`` are the core items of its item."""
    if isinstance(fact, WITH_ITEM):
        bare = msgspec.structs.replace(fact, item=b"")
        return Record(seq, _encoder.encode(bare), fact.item, _names(parts))
    if isinstance(fact, Noted):
        return Record(seq, _encoder.encode(msgspec.structs.replace(fact, note=b"")), fact.note)
    return Record(seq, _encoder.encode(fact), None, _own_names(fact))


def decoded(record: Record) -> AnyFact:
    """The fact of a record."""
    try:
        fact: Any = _decoder.decode(record.payload)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        if record.payload.startswith(SEALED):
            raise UnreadableRecord(
                f"Entry {record.seq} is encrypted, and the store was opened without its key. "
                "Set LOCKSTITCH_STORE_KEY or LOCKSTITCH_STORE_KEY_FILE, or pass keys."
            ) from None
        raise UnreadableRecord(
            f"Entry {record.seq} cannot be read: {error}. It was written by a newer version of "
            "Lockstitch, or is damaged. Upgrade, or restore a backup."
        ) from None
    if not isinstance(fact, _WITH_BODY):
        return fact  # type: ignore[no-any-return]
    if record.body is None:
        raise UnreadableRecord(
            f"Entry {record.seq} has lost its item. Restore the store from a backup."
        )
    if isinstance(fact, Noted):
        return msgspec.structs.replace(fact, note=record.body)
    return msgspec.structs.replace(fact, item=record.body)


def _names(parts: Sequence[Item]) -> tuple[Name, ...]:
    names: dict[Name, None] = {}
    for item in parts:
        if item.part is Part.CALL or item.part is Part.OUTPUT:
            for key in (item.key, item.alias):
                if key is not None:
                    names[Name(Naming.CALL, key)] = None
        own = item.id or item.joining_id
        if own is not None:
            names[Name(Naming.ITEM, own)] = None
    return tuple(names)


def _own_names(fact: AnyFact) -> tuple[Name, ...]:
    if isinstance(fact, ResponseOpened) and fact.id is not None:
        return (Name(Naming.RESPONSE, fact.id),)
    if isinstance(fact, RequestPrepared) and fact.mode is Mode.CONVERSATION and fact.anchor:
        return (Name(Naming.CONVERSATION, fact.anchor),)
    if isinstance(fact, AnchorAdopted):
        naming = Naming.CONVERSATION if fact.mode is Mode.CONVERSATION else Naming.RESPONSE
        return (Name(naming, fact.anchor),)
    return ()
