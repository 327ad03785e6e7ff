"""A process that writes until it is killed. It says what was acknowledged, on a pipe."""

from __future__ import annotations

import asyncio
from multiprocessing.connection import Connection

from lockstitch.core.records import Record
from lockstitch.store.bodies import LARGE_BODY_BYTES
from lockstitch.store.contract import Claim
from lockstitch.store.postgres import PostgresStore
from tests.store.postgres_parts import LONG_SECONDS, full_record

WRITERS = 4
"""Conversations at once, so that there are groups."""

assert LARGE_BODY_BYTES < 10_000  # or the records below would be no small matter


def batch(conversation: str, after: int) -> list[Record]:
    """What is appended behind ``after``: one, two or three records."""
    return [full_record(after + 1 + place, conversation) for place in range(after % 3 + 1)]


def write_until_killed(url: str, conversations: list[str], said: Connection) -> None:
    async def write(store: PostgresStore, claim: Claim) -> None:
        after = 0
        while True:
            records = batch(claim.conversation, after)
            await store.append(claim, after, records)
            after += len(records)
            said.send((claim.conversation, after))

    async def run() -> None:
        async with await PostgresStore.open(url) as store:
            claims = [
                await store.claim(name, owner="writer", seconds=LONG_SECONDS)
                for name in conversations
            ]
            await asyncio.gather(*(write(store, claim) for claim in claims))

    asyncio.run(run())
