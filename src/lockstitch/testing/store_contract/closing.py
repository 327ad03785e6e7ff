"""Checks of the end: what was begun is finished, and what comes after is refused."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from lockstitch.core.records import Name, Naming, Record
from lockstitch.store.contract import Claim, Store, Summary
from lockstitch.store.errors import StoreError
from lockstitch.testing.store_contract.opened import (
    LONG_SECONDS,
    Opened,
    claimed,
    contents,
    filled,
    refused,
    several,
)


async def closing_twice_is_no_error(opened: Opened) -> None:
    async with opened() as store:
        await filled(store, "a", 1)
        await store.close()
        await store.close()


async def a_closed_store_refuses_everything(opened: Opened) -> None:
    async with opened() as store:
        claim = await filled(store, "a", 1)
        await store.close()
        for use in _USES:
            await refused(StoreError, use(store, claim))


async def closing_finishes_what_was_begun(opened: Opened) -> None:
    async with opened() as store:
        claim = await claimed(store, "a")
        sent = [
            asyncio.create_task(store.append(claim, after, several(after + 1, after + 1)))
            for after in range(20)
        ]
        await asyncio.sleep(0)
        await store.close()
        results = await asyncio.gather(*sent, return_exceptions=True)
    assert results == [None] * 20


async def closing_lets_those_go_who_wait_for_a_claim(opened: Opened) -> None:
    async with opened() as store:
        await claimed(store, "a")
        waiting = asyncio.create_task(
            store.claim("a", owner="second", seconds=LONG_SECONDS, wait=LONG_SECONDS)
        )
        await asyncio.sleep(0)
        await store.close()
        async with asyncio.timeout(LONG_SECONDS / 2):
            await refused(StoreError, waiting)


async def _read(store: Store, claim: Claim) -> list[Record]:
    return await contents(store, claim.conversation)


async def _list(store: Store, claim: Claim) -> list[Summary]:
    return [one async for one in store.conversations()]


_USES: tuple[Callable[[Store, Claim], Awaitable[object]], ...] = (
    lambda store, claim: store.claim("b", owner="late", seconds=1),
    lambda store, claim: store.begin("b", several(1, 1), owner="late", seconds=1),
    lambda store, claim: store.renew(claim, seconds=1),
    lambda store, claim: store.release(claim),
    lambda store, claim: store.append(claim, 1, several(2, 2)),
    _read,
    lambda store, claim: store.find(Name(Naming.CALL, "call_1")),
    _list,
    lambda store, claim: store.replace("a", several(1, 1)),
    lambda store, claim: store.delete("a"),
    lambda store, claim: store.delete_unchanged_since(0),
    lambda store, claim: store.vacuum(),
    lambda store, claim: store.stats(),
)
