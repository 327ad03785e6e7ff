"""The change of keys: every record that the first key did not seal is sealed again with it.

Plain records are sealed too, so this is also how a store becomes an encrypted one. It may be
stopped and begun again at any moment, and others may read and write meanwhile."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from lockstitch.core.records import Record
from lockstitch.store.errors import OutOfStep
from lockstitch.store.sealing import Sealed

BATCH_RECORDS = 500
BATCH_BYTES = 4 * 1024 * 1024
"""One replacement holds no more than this, or one record: it is one transaction, and all of it is
in memory."""


class Rotated(Struct, frozen=True):
    """What a change of keys did."""

    conversations: int
    records: int
    resealed: int


async def rotate(store: Sealed, *, advance: Callable[[int], None] | None = None) -> Rotated:
    """Seal every record with the first key of the store; ``advance`` is told of records done.

    Raises `WrongKey` at the first record that no key opens; what was done before stays done."""
    conversations = records = resealed = 0
    async for summary in store.conversations():
        conversations += 1
        batch = _Batch(store, summary.conversation)
        async for record in store.inner.read(summary.conversation):
            records += 1
            if not store.seal.is_current(record):
                resealed += await batch.add(record)
            if advance is not None:
                advance(1)
        resealed += await batch.write()
    return Rotated(conversations, records, resealed)


class _Batch:
    """Records of one conversation, opened, that wait to be sealed again."""

    def __init__(self, store: Sealed, conversation: str) -> None:
        self._store = store
        self._conversation = conversation
        self._records: list[Record] = []
        self._bytes = 0

    async def add(self, record: Record) -> int:
        """Take a record; how many were written to make room for it."""
        written = 0
        size = len(record.payload) + len(record.body or b"")
        if len(self._records) >= BATCH_RECORDS or self._bytes + size > BATCH_BYTES:
            written = await self.write()
        opened = self._store.seal.opened(self._conversation, record, self._store.url)
        self._records.append(opened)
        self._bytes += size
        return written

    async def write(self) -> int:
        records, self._records, self._bytes = self._records, [], 0
        if not records:
            return 0
        try:
            await self._store.replace(self._conversation, records)
        except OutOfStep:
            if await self._is_gone():
                return 0
            raise
        return len(records)

    async def _is_gone(self) -> bool:
        """Was the conversation deleted meanwhile? Then there is nothing left to seal."""
        async for _ in self._store.inner.read(self._conversation):
            return False
        return True
