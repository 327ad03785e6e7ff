"""Checks of many at once: writers, a pipeline, a cancelled append, readers among writers."""

from __future__ import annotations

import asyncio
from itertools import pairwise

from lockstitch.store.errors import ClaimLost, OutOfStep
from lockstitch.testing.store_contract.opened import (
    BRIEF_SECONDS,
    LONG_SECONDS,
    Opened,
    claimed,
    contents,
    filled,
    refused,
    several,
)


async def many_write_to_conversations_of_their_own(opened: Opened) -> None:
    async with opened() as store:

        async def write(conversation: str) -> None:
            claim = await claimed(store, conversation)
            for after in range(0, 20, 2):
                await store.append(claim, after, several(after + 1, after + 2))
            await store.release(claim)

        conversations = [f"conversation {n}" for n in range(32)]
        await asyncio.gather(*map(write, conversations))
        for conversation in conversations:
            assert await contents(store, conversation) == several(1, 20)


async def appends_of_one_claim_may_be_sent_without_waiting(opened: Opened) -> None:
    async with opened() as store:
        claim = await claimed(store, "a")
        await asyncio.gather(
            *(store.append(claim, after, several(after + 1, after + 1)) for after in range(100))
        )
        assert await contents(store, "a") == several(1, 100)


async def a_refused_append_harms_no_other(opened: Opened) -> None:
    async with opened() as store:
        lost = await store.claim("lost", owner="first", seconds=BRIEF_SECONDS)
        await store.claim("lost", owner="second", seconds=LONG_SECONDS, wait=LONG_SECONDS)
        claim, other = await claimed(store, "a"), await claimed(store, "b")
        results = await asyncio.gather(
            store.append(claim, 0, several(1, 1)),
            store.append(lost, 0, several(1, 1)),
            store.append(claim, 7, several(8, 8)),
            store.append(claim, 1, several(2, 3)),
            store.append(other, 0, several(1, 2)),
            store.append(claim, 3, several(4, 4)),
            return_exceptions=True,
        )
        kinds = [type(one) for one in results]
        nothing = type(None)
        assert kinds == [nothing, ClaimLost, OutOfStep, nothing, nothing, nothing]
        assert await contents(store, "a") == several(1, 4)
        assert await contents(store, "b") == several(1, 2)
        assert await contents(store, "lost") == []


async def a_pipeline_behind_a_refused_append_is_refused(opened: Opened) -> None:
    async with opened() as store:
        claim = await claimed(store, "a")
        results = await asyncio.gather(
            store.append(claim, 0, several(1, 2)),
            store.append(claim, 3, several(4, 4)),
            store.append(claim, 4, several(5, 5)),
            return_exceptions=True,
        )
        assert [type(one) for one in results] == [type(None), OutOfStep, OutOfStep]
        assert await contents(store, "a") == several(1, 2)


async def an_append_that_was_cancelled_is_whole_or_not_there(opened: Opened) -> None:
    async with opened() as store:
        claim = await claimed(store, "a")
        length = 0
        for turns in range(8):  # cancelled sooner and later, while it waits and while it is written
            sent = asyncio.create_task(store.append(claim, length, several(length + 1, length + 3)))
            for _ in range(turns):
                await asyncio.sleep(0)
            sent.cancel()
            await asyncio.wait([sent])
            # The next append is behind the cancelled one, so it tells what became of it.
            try:
                await store.append(claim, length, several(length + 1, length + 1))
                length += 1
            except OutOfStep:
                length += 3
            assert await contents(store, "a") == several(1, length)


async def a_cancelled_append_takes_no_other_with_it(opened: Opened) -> None:
    async with opened() as store:
        claims = [await claimed(store, f"conversation {n}") for n in range(10)]
        sent = [asyncio.create_task(store.append(claim, 0, several(1, 2))) for claim in claims]
        await asyncio.sleep(0)
        for one in sent[::3]:
            one.cancel()
        await asyncio.wait(sent)
        for n, claim in enumerate(claims):
            kept = await contents(store, claim.conversation)
            assert kept == several(1, 2) or (kept == [] and n % 3 == 0)


async def readers_see_whole_batches_while_others_write(opened: Opened) -> None:
    async with opened() as store:
        claim = await claimed(store, "a")
        done = asyncio.Event()

        async def write() -> None:
            for after in range(0, 600, 20):
                await store.append(claim, after, several(after + 1, after + 20))
            done.set()

        async def watch() -> list[int]:
            lengths = []
            while not done.is_set():
                seen = await contents(store, "a")
                assert seen == several(1, len(seen))
                lengths.append(len(seen))
                await asyncio.sleep(0)
            return lengths

        _, *watched = await asyncio.gather(write(), watch(), watch())
        for lengths in watched:
            assert all(length % 20 == 0 for length in lengths)
            assert all(earlier <= later for earlier, later in pairwise(lengths))


async def a_reading_goes_on_while_the_conversation_grows(opened: Opened) -> None:
    async with opened() as store:
        claim = await filled(store, "a", 300)
        seqs: list[int] = []
        async for one in store.read("a"):
            if one.seq == 1:
                await store.append(claim, 300, several(301, 310))
            seqs.append(one.seq)
        assert seqs in (list(range(1, 301)), list(range(1, 311)))


async def a_reading_that_is_given_up_leaves_the_store_whole(opened: Opened) -> None:
    async with opened() as store:
        claim = await filled(store, "a", 300)
        for _ in range(20):
            async for one in store.read("a"):
                assert one.seq == 1
                break
        await store.append(claim, 300, several(301, 301))
        assert await contents(store, "a", after=299) == several(300, 301)


async def a_deletion_and_an_append_at_once_end_in_one_of_two_ways(opened: Opened) -> None:
    async with opened() as store:
        for _ in range(5):
            claim = await filled(store, "a", 2)
            appended, deleted = await asyncio.gather(
                store.append(claim, 2, several(3, 4)), store.delete("a"), return_exceptions=True
            )
            assert deleted is True
            assert appended is None or isinstance(appended, ClaimLost)
            assert await contents(store, "a") == []
            await refused(ClaimLost, store.append(claim, 4, several(5, 5)))
