"""Checks of a store that lasts: opened again, or by two at once, it is the same store."""

from __future__ import annotations

import asyncio

from lockstitch.core.records import Name, Naming
from lockstitch.store.errors import ClaimLost, ConversationBusy
from lockstitch.testing.store_contract.opened import (
    BRIEF_SECONDS,
    LONG_SECONDS,
    Opened,
    claimed,
    contents,
    filled,
    record,
    refused,
    several,
)

EVERY_BYTE = bytes(range(256))


async def what_was_written_is_there_when_it_is_opened_again(opened: Opened) -> None:
    name = Name(Naming.CALL, "call_1")
    written = [*several(1, 3), record(4, body=EVERY_BYTE * 400, names=[name])]
    async with opened() as store:
        claim = await claimed(store, "a")
        await store.append(claim, 0, written)
        times = [one.at async for one in store.read("a")]
    async with opened() as store:
        assert await contents(store, "a") == written
        assert [one.at async for one in store.read("a")] == times
        assert [(one.conversation, one.seq) for one in await store.find(name)] == [("a", 4)]


async def what_was_begun_is_there_when_it_is_opened_again(opened: Opened) -> None:
    async with opened() as store:
        held = await store.begin("a", several(1, 2), owner="one", seconds=LONG_SECONDS)
        await store.begin("b", several(1, 3), owner="one", seconds=LONG_SECONDS, release=True)
    assert held is not None
    async with opened() as store, opened() as other:
        assert await contents(store, "b") == several(1, 3)
        await refused(ConversationBusy, claimed(other, "a"))
        assert await other.begin("a", several(1, 1), owner="x", seconds=LONG_SECONDS) is None
        await store.append(held, 2, several(3, 3), release=True)
        assert (await claimed(other, "a")).length == 3


async def of_two_processes_that_begin_one_conversation_one_does(opened: Opened) -> None:
    async with opened() as one, opened() as other:
        for n in range(8):
            found = await asyncio.gather(
                one.begin(f"{n}", several(1, 2), owner="one", seconds=LONG_SECONDS),
                other.begin(f"{n}", several(1, 2), owner="other", seconds=LONG_SECONDS),
            )
            assert sum(claim is not None for claim in found) == 1
            assert await contents(one, f"{n}") == several(1, 2)


async def what_an_append_wrote_is_seen_by_others_at_once(opened: Opened) -> None:
    async with opened() as writer, opened() as reader:
        claim = await filled(writer, "a", 2)
        assert await contents(reader, "a") == several(1, 2)
        await writer.append(claim, 2, several(3, 3))
        assert await contents(reader, "a", after=2) == several(3, 3)


async def a_claim_holds_against_another_process(opened: Opened) -> None:
    async with opened() as one, opened() as other:
        first = await claimed(one, "a", owner="one")
        await refused(ConversationBusy, claimed(other, "a", owner="other"))
        await one.release(first)
        second = await claimed(other, "a", owner="other")
        await refused(ClaimLost, one.append(first, 0, several(1, 1)))
        await other.append(second, 0, several(1, 2))
        assert await contents(one, "a") == several(1, 2)


async def two_who_both_think_they_own_it_cannot_both_write(opened: Opened) -> None:
    async with opened() as one, opened() as other:
        first = await one.claim("a", owner="one", seconds=BRIEF_SECONDS)
        await one.append(first, 0, several(1, 1))
        second = await other.claim("a", owner="other", seconds=LONG_SECONDS, wait=LONG_SECONDS)
        late = asyncio.gather(
            one.append(first, 1, several(2, 2)),
            other.append(second, 1, several(2, 3)),
            return_exceptions=True,
        )
        old, new = await late
        assert isinstance(old, ClaimLost)
        assert new is None
        assert await contents(one, "a") == several(1, 3)


async def a_claim_outlives_the_one_who_closed_the_store(opened: Opened) -> None:
    """It was made for a time; a crash does not end it sooner, and closing is no different."""
    async with opened() as store:
        claim = await filled(store, "a", 1)
    async with opened() as store:
        await store.append(claim, 1, several(2, 2))
        assert await contents(store, "a") == several(1, 2)


async def what_was_begun_when_it_closed_is_there(opened: Opened) -> None:
    async with opened() as store:
        claim = await claimed(store, "a")
        sent = [
            asyncio.create_task(store.append(claim, after, several(after + 1, after + 1)))
            for after in range(20)
        ]
        await asyncio.sleep(0)
        await store.close()
        await asyncio.wait(sent)
    async with opened() as store:
        assert await contents(store, "a") == several(1, 20)
