"""Checks of what changes or goes: other bytes for a record, deletions, and the space they free."""

from __future__ import annotations

import msgspec

from lockstitch.core.records import Name, Naming, Record
from lockstitch.store.contract import Store
from lockstitch.store.errors import ClaimLost, OutOfStep
from lockstitch.testing.store_contract.opened import (
    LONG_SECONDS,
    Opened,
    claimed,
    contents,
    filled,
    record,
    refused,
    several,
)

LARGE_BODY = b"large" * 20_000


async def other_bytes_take_the_place_of_a_record(opened: Opened) -> None:
    name = Name(Naming.CALL, "call_1")
    async with opened() as store:
        claim = await claimed(store, "a")
        await store.append(claim, 0, [record(1), record(2, body=b"old", names=[name]), record(3)])
        before = [one async for one in store.read("a")]
        changed = msgspec.structs.replace(before[1], payload=b"new payload", body=b"new body")
        await store.replace("a", [changed])
        assert [one async for one in store.read("a")] == [before[0], changed, before[2]]
        assert [one.seq for one in await store.find(name)] == [2]
        await store.append(claim, 3, several(4, 4))


async def a_body_may_grow_large_shrink_and_go(opened: Opened) -> None:
    bodies = [LARGE_BODY, LARGE_BODY, b"small", None]
    async with opened() as store:
        claim = await claimed(store, "a")
        await store.append(claim, 0, [record(n, body=b) for n, b in enumerate(bodies, start=1)])
        turned = [record(n, body=b) for n, b in enumerate(reversed(bodies), start=1)]
        await store.replace("a", turned)
        assert await contents(store, "a") == turned
        await store.replace("a", [record(n, body=b"small") for n in range(1, 5)])
        await store.vacuum()
        assert (await store.stats()).bodies == 0


async def what_is_not_there_is_not_replaced(opened: Opened) -> None:
    async with opened() as store:
        await filled(store, "a", 2)
        await refused(OutOfStep, store.replace("a", [record(1, body=b"new"), record(3)]))
        await refused(OutOfStep, store.replace("nobody", [record(1)]))
        assert await contents(store, "a") == several(1, 2)


async def a_deleted_conversation_is_gone_whole(opened: Opened) -> None:
    name = Name(Naming.CALL, "call_1")
    async with opened() as store:
        await _with_name(store, "a", name)
        await _with_name(store, "b", name)
        assert await store.delete("a") is True
        assert await store.delete("a") is False
        assert await contents(store, "a") == []
        assert [one.conversation async for one in store.conversations()] == ["b"]
        assert [one.conversation for one in await store.find(name)] == ["b"]
        stats = await store.stats()
        assert (stats.conversations, stats.records) == (1, 2)


async def a_deletion_takes_the_claim_with_it(opened: Opened) -> None:
    async with opened() as store:
        claim = await filled(store, "a", 1)
        await store.delete("a")
        await refused(ClaimLost, store.append(claim, 1, several(2, 2)))
        await refused(ClaimLost, store.renew(claim, seconds=LONG_SECONDS))
        await store.release(claim)
        assert [one async for one in store.conversations()] == []


async def a_deleted_conversation_may_begin_again(opened: Opened) -> None:
    async with opened() as store:
        await filled(store, "a", 3)
        await store.delete("a")
        claim = await claimed(store, "a")
        assert claim.length == 0
        await store.append(claim, 0, several(1, 1))
        assert await contents(store, "a") == several(1, 1)


async def large_bodies_go_with_their_conversation(opened: Opened) -> None:
    async with opened() as store:
        for conversation in ("a", "b"):
            claim = await claimed(store, conversation)
            await store.append(claim, 0, [record(1, body=LARGE_BODY)])
        await store.delete("a")
        await store.vacuum()
        assert [one.body for one in await contents(store, "b")] == [LARGE_BODY]
        await store.delete("b")
        await store.vacuum()
        assert (await store.stats()).bodies == 0


async def what_was_not_written_to_since_is_forgotten(opened: Opened) -> None:
    async with opened() as store:
        await filled(store, "old", 1)
        await filled(store, "older", 1)
        claim = await filled(store, "used", 1)
        kept = await _changed_after_all_others(store, claim.conversation)
        assert await store.delete_unchanged_since(kept) == 2
        assert await store.delete_unchanged_since(kept) == 0
        assert [one.conversation async for one in store.conversations()] == ["used"]
        assert await store.delete_unchanged_since(kept + 1) == 1
        assert (await store.stats()).records == 0


async def vacuuming_keeps_what_is_there(opened: Opened) -> None:
    async with opened() as store:
        claim = await filled(store, "a", 3)
        await filled(store, "b", 3)
        await store.delete("b")
        await store.vacuum()
        await store.append(claim, 3, several(4, 4))
        assert await contents(store, "a") == several(1, 4)


async def _with_name(store: Store, conversation: str, name: Name) -> None:
    records: list[Record] = [record(1, names=[name]), record(2)]
    await store.append(await claimed(store, conversation), 0, records)


async def _changed_after_all_others(store: Store, conversation: str) -> float:
    """Write to it until the clock has moved on; when it was changed."""
    while True:
        changed = {one.conversation: one async for one in store.conversations()}
        own = changed.pop(conversation)
        if all(one.changed < own.changed for one in changed.values()):
            return own.changed
        await store.delete(conversation)
        await filled(store, conversation, 1)
