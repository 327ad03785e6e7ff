"""Export to JSONL, and back: every byte, name and time as it was.

What a line looks like is in `lines`; how a file is read is in `spools`. Memory
holds some records, not the file. An export is plain text, also that of an encrypted store."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator
from typing import BinaryIO

from msgspec import Struct

from lockstitch.core.records import Record
from lockstitch.store.contract import Claim, Store, Summary
from lockstitch.store.errors import StoreError
from lockstitch.store.keys import checked_plain
from lockstitch.store.transfer.lines import VERSION, End, Gone, Head, Whole, encoded, entry
from lockstitch.store.transfer.spools import Spool, spools

BATCH_RECORDS = 500
BATCH_BYTES = 4 * 1024 * 1024
"""One append of an import holds no more than this, or one record: all of it is in memory."""

CLAIM_SECONDS = 60.0
"""How long an import that was killed keeps others out of the conversation it was at."""


class Exported(Struct, frozen=True):
    """What an export wrote."""

    conversations: int
    records: int


class Imported(Struct, frozen=True):
    """What an import did."""

    conversations: int
    """Those that are new, or go on from what was there."""
    records: int
    skipped: int
    """Conversations that were there already."""
    refused: tuple[str, ...]
    """Conversations that are there with other records; they are as they were."""


async def export_store(
    store: Store,
    file: BinaryIO,
    *,
    conversations: Collection[str] | None = None,
    advance: Callable[[int], None] | None = None,
) -> Exported:
    """Write a store, or some conversations of it, as JSONL; ``advance`` is told of records.

    Each conversation is as it was when its turn came; others may write meanwhile. One without
    records holds nothing, and is left out. Raises `WrongKey`, and `StoreError` if a conversation
    that was named is not there."""
    file.write(encoded(Head(version=VERSION)))
    exported = records = 0
    async for summary in _wanted(store, conversations):
        written = 0
        async for record in store.read(summary.conversation):
            if written == summary.length:
                break  # the rest was added since
            checked_plain(record, summary.conversation, store.url)
            file.write(encoded(entry(summary.conversation, record)))
            written += 1
            if advance is not None:
                advance(1)
        if written == summary.length:
            exported += 1
            records += written
            file.write(encoded(Whole(conversation=summary.conversation, length=written)))
        elif written:
            file.write(encoded(Gone(conversation=summary.conversation)))
    file.write(encoded(End(conversations=exported, records=records)))
    return Exported(exported, records)


async def _wanted(store: Store, names: Collection[str] | None) -> AsyncIterator[Summary]:
    missing = dict.fromkeys(names or ())
    async for summary in store.conversations():
        if names is None or summary.conversation in missing:
            missing.pop(summary.conversation, None)
            if summary.length:
                yield summary
    if missing:
        raise StoreError(
            f"In {store.url} there is no conversation {', '.join(map(repr, missing))}."
            " The export is not complete."
        )


async def import_store(
    store: Store,
    file: BinaryIO,
    *,
    name: str = "The file",
    advance: Callable[[int], None] | None = None,
) -> Imported:
    """Read JSONL that `export_store` wrote into a store; ``advance`` is told of bytes.

    A conversation that is there with the same records is skipped, and one of which only the
    beginning is there goes on: an import that was stopped may be run again. One that differs is
    refused, and left as it is. Raises `NotAnExport` with the line that is wrong; what was complete
    before it is kept."""
    conversations = records = skipped = 0
    refused: list[str] = []
    for spool in spools(file, name, advance):
        added = await _brought_in(store, spool)
        if added is None:
            refused.append(spool.conversation)
        elif added == 0:
            skipped += 1
        else:
            conversations += 1
            records += added
    return Imported(conversations, records, skipped, tuple(refused))


async def _brought_in(store: Store, spool: Spool) -> int | None:
    """Write what is not there yet; how many records that were. None if others are there."""
    there = await _agreeing(store, spool)
    if there is None or there == spool.length:
        return None if there is None else 0
    owner = f"lockstitch import on {socket.gethostname()}, process {os.getpid()}"
    claim = await store.claim(spool.conversation, owner=owner, seconds=CLAIM_SECONDS)
    try:
        if claim.length != there:
            return None  # somebody wrote to it since it was compared
        await _append(store, claim, spool)
    finally:
        await store.release(claim)
    return spool.length - there


async def _agreeing(store: Store, spool: Spool) -> int | None:
    """How many of the records are there already; None if one that is there differs."""
    count = 0
    given = spool.records()
    async for kept in store.read(spool.conversation):
        ours = next(given, None)
        if ours is None:
            break  # it has gone on since it was exported
        if kept != ours:
            return None
        count += 1
    return count


async def _append(store: Store, claim: Claim, spool: Spool) -> None:
    now = asyncio.get_running_loop().time
    renewed, after = now(), claim.length
    for batch in _batches(record for record in spool.records() if record.seq > claim.length):
        if now() - renewed > CLAIM_SECONDS / 3:
            await store.renew(claim, seconds=CLAIM_SECONDS)
            renewed = now()
        await store.append(claim, after, batch)
        after += len(batch)


def _batches(records: Iterable[Record]) -> Iterator[list[Record]]:
    batch: list[Record] = []
    size = 0
    for record in records:
        own = len(record.payload) + len(record.body or b"")
        if batch and (len(batch) >= BATCH_RECORDS or size + own > BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(record)
        size += own
    if batch:
        yield batch
