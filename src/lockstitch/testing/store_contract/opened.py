"""What every check of the contract is given, and short words for claims, records and refusals.

The checks themselves are beside this file, by what they are about."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Iterable
from contextlib import AbstractAsyncContextManager
from hashlib import sha256
from typing import Any, TypeAlias

import msgspec

from lockstitch.core.records import Name, Record
from lockstitch.store.contract import Claim, Store
from lockstitch.store.errors import StoreError

Opened: TypeAlias = Callable[[], AbstractAsyncContextManager[Store]]
"""Opens the store under test, and closes it when the block ends. It is empty when a check begins.
Called again, or while it is open, it opens the same store, if that is one that lasts."""

Check: TypeAlias = Callable[[Opened], Coroutine[Any, Any, None]]
"""It returns if the store keeps what it promises, and raises if not."""

LONG_SECONDS = 60.0
"""A claim that does not run out while a check runs; no check waits for as long."""
BRIEF_SECONDS = 0.05
"""A claim that runs out while a check waits for it."""

ODD_TEXTS = (
    "plain",
    "a\0b",
    "\0",
    " space ",
    "\n\t\r",
    "\u00e9",
    "e\u0301",  # looks like the one before, and is another
    "PLAIN",
    "\U0001f9f5",
    "\ufeff",
    "\u202e",
    "\uffff",
    "'; DROP TABLE records; --",
    "100%_\\",
    # Longer than an index of PostgreSQL takes, and of nothing that could be compressed.
    "".join(sha256(str(n).encode()).hexdigest() for n in range(160)),
)
"""Ids that somebody may have. None is like another."""


def record(
    seq: int,
    *,
    payload: bytes | None = None,
    body: bytes | None = None,
    names: Iterable[Name] = (),
    at: float | None = None,
) -> Record:
    """A record of that position, unlike those of others."""
    own = b'{"n":%d}' % seq if payload is None else payload
    return Record(seq, own, body, tuple(names), at)


def several(first: int, last: int) -> list[Record]:
    """The records from one position to another, both included."""
    return [record(seq, body=b"body %d" % seq) for seq in range(first, last + 1)]


async def contents(store: Store, conversation: str, *, after: int = 0) -> list[Record]:
    """What is kept of a conversation, without the times."""
    return [untimed(one) async for one in store.read(conversation, after=after)]


def untimed(one: Record) -> Record:
    return msgspec.structs.replace(one, at=None)


async def claimed(store: Store, conversation: str, *, owner: str = "check") -> Claim:
    """A claim that lasts as long as the check."""
    return await store.claim(conversation, owner=owner, seconds=LONG_SECONDS)


async def filled(store: Store, conversation: str, records: int) -> Claim:
    """A claim of a conversation with as many records."""
    claim = await claimed(store, conversation)
    await store.append(claim, 0, several(1, records))
    return claim


async def refused(kind: type[StoreError], work: Awaitable[object]) -> StoreError:
    """The error that the work ends with, which must be of that kind."""
    try:
        result = await work
    except kind as error:
        return error
    raise AssertionError(f"{kind.__name__} was not raised; the result was {result!r}")
