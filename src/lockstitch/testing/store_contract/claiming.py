"""Checks of who may write: one claim at a time, respected while it lasts, fenced by its token."""

from __future__ import annotations

import asyncio

from lockstitch.store.errors import ClaimLost, ConversationBusy
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


async def a_claim_tells_how_long_the_conversation_is(opened: Opened) -> None:
    async with opened() as store:
        await store.release(await filled(store, "a", 3))
        claim = await store.claim("a", owner="next", seconds=LONG_SECONDS)
        assert (claim.conversation, claim.owner, claim.length) == ("a", "next", 3)


async def a_claim_is_respected_and_its_owner_named(opened: Opened) -> None:
    async with opened() as store:
        await claimed(store, "a", owner="host 1, process 7")
        busy = await refused(ConversationBusy, claimed(store, "a", owner="other"))
        assert "host 1, process 7" in str(busy)
        assert "'a'" in str(busy)


async def an_owner_is_a_word_for_people_and_opens_no_door(opened: Opened) -> None:
    async with opened() as store:
        await claimed(store, "a", owner="twin")
        await refused(ConversationBusy, claimed(store, "a", owner="twin"))


async def claims_of_two_conversations_do_not_meet(opened: Opened) -> None:
    async with opened() as store:
        await filled(store, "a", 2)
        await filled(store, "b", 3)
        assert await contents(store, "a") == several(1, 2)
        assert await contents(store, "b") == several(1, 3)


async def a_claim_that_was_released_is_free_at_once(opened: Opened) -> None:
    async with opened() as store:
        first = await claimed(store, "a")
        await store.release(first)
        second = await claimed(store, "a")
        await refused(ClaimLost, store.append(first, 0, several(1, 1)))
        await store.append(second, 0, several(1, 1))


async def a_claim_that_was_released_and_not_taken_cannot_write(opened: Opened) -> None:
    async with opened() as store:
        claim = await filled(store, "a", 1)
        await store.release(claim)
        await refused(ClaimLost, store.append(claim, 1, several(2, 2)))
        await refused(ClaimLost, store.renew(claim, seconds=LONG_SECONDS))
        assert await contents(store, "a") == several(1, 1)


async def a_claim_that_ran_out_is_taken_over_by_who_waits(opened: Opened) -> None:
    async with opened() as store:
        first = await store.claim("a", owner="first", seconds=BRIEF_SECONDS)
        second = await store.claim("a", owner="second", seconds=LONG_SECONDS, wait=LONG_SECONDS)
        assert second.token > first.token


async def who_was_taken_over_can_write_nothing(opened: Opened) -> None:
    async with opened() as store:
        first = await store.claim("a", owner="first", seconds=BRIEF_SECONDS)
        await store.append(first, 0, several(1, 2))
        second = await store.claim("a", owner="second", seconds=LONG_SECONDS, wait=LONG_SECONDS)
        assert second.length == 2
        await refused(ClaimLost, store.append(first, 2, several(3, 3)))
        await refused(ClaimLost, store.renew(first, seconds=LONG_SECONDS))
        await store.release(first)
        await store.append(second, 2, several(3, 4))
        assert await contents(store, "a") == several(1, 4)


async def a_claim_that_ran_out_writes_on_while_nobody_took_it(opened: Opened) -> None:
    async with opened() as store:
        claim = await store.claim("a", owner="slow", seconds=0.001)
        await asyncio.sleep(0.01)
        await store.append(claim, 0, several(1, 1))
        await store.renew(claim, seconds=LONG_SECONDS)
        await refused(ConversationBusy, claimed(store, "a"))


async def a_claim_that_is_renewed_is_kept_for_longer(opened: Opened) -> None:
    async with opened() as store:
        claim = await store.claim("a", owner="first", seconds=BRIEF_SECONDS)
        await store.renew(claim, seconds=LONG_SECONDS)
        await refused(
            ConversationBusy,
            store.claim("a", owner="second", seconds=LONG_SECONDS, wait=3 * BRIEF_SECONDS),
        )
        await store.append(claim, 0, several(1, 1))


async def renewing_can_shorten_a_claim(opened: Opened) -> None:
    async with opened() as store:
        claim = await claimed(store, "a")
        await store.renew(claim, seconds=0)
        await claimed(store, "a")


async def tokens_grow_with_every_claim(opened: Opened) -> None:
    async with opened() as store:
        tokens = []
        for _ in range(4):
            claim = await claimed(store, "a")
            tokens.append(claim.token)
            await store.release(claim)
        assert tokens == sorted(set(tokens))


async def tokens_grow_across_a_deletion(opened: Opened) -> None:
    """Else a writer from before it would fit the new conversation of the same name."""
    async with opened() as store:
        old = await claimed(store, "a")
        await store.delete("a")
        new = await claimed(store, "a")
        assert new.token > old.token
        await refused(ClaimLost, store.append(old, 0, several(1, 1)))
        await store.append(new, 0, several(1, 1))


async def who_waits_is_let_in_when_the_claim_is_released(opened: Opened) -> None:
    async with opened() as store:
        first = await claimed(store, "a")
        waiting = asyncio.create_task(
            store.claim("a", owner="second", seconds=LONG_SECONDS, wait=LONG_SECONDS)
        )
        while not waiting.done():
            await asyncio.sleep(0)
            await store.release(first)
        assert (await waiting).token > first.token


async def of_many_who_wait_one_is_let_in_at_a_time(opened: Opened) -> None:
    inside: list[str] = []
    most_inside = 0

    async with opened() as store:

        async def come(owner: str) -> None:
            nonlocal most_inside
            claim = await store.claim("a", owner=owner, seconds=LONG_SECONDS, wait=LONG_SECONDS)
            inside.append(owner)
            most_inside = max(most_inside, len(inside))
            await store.append(claim, claim.length, several(claim.length + 1, claim.length + 1))
            inside.remove(owner)
            await store.release(claim)

        await asyncio.gather(*(come(f"owner {n}") for n in range(8)))
        assert most_inside == 1
        assert await contents(store, "a") == several(1, 8)


async def patience_ends(opened: Opened) -> None:
    async with opened() as store:
        await claimed(store, "a")
        loop = asyncio.get_running_loop()
        began = loop.time()
        await refused(
            ConversationBusy,
            store.claim("a", owner="second", seconds=LONG_SECONDS, wait=BRIEF_SECONDS),
        )
        assert BRIEF_SECONDS * 0.9 <= loop.time() - began < LONG_SECONDS


async def who_stopped_waiting_is_not_let_in(opened: Opened) -> None:
    async with opened() as store:
        first = await claimed(store, "a")
        waiting = asyncio.create_task(
            store.claim("a", owner="second", seconds=LONG_SECONDS, wait=LONG_SECONDS)
        )
        await asyncio.sleep(BRIEF_SECONDS)
        waiting.cancel()
        await asyncio.wait([waiting])
        await store.release(first)
        await claimed(store, "a", owner="third")
