"""Checks of what is done in one write: a conversation begun with its first records, and an append
that lets go of it."""

from __future__ import annotations

import asyncio

from lockstitch.core.records import Name, Naming, Record
from lockstitch.store.contract import Claim, Store
from lockstitch.store.errors import ClaimLost, ConversationBusy, OutOfStep
from lockstitch.testing.store_contract.opened import (
    LONG_SECONDS,
    ODD_TEXTS,
    Opened,
    claimed,
    contents,
    filled,
    record,
    refused,
    several,
)


async def _begun(
    store: Store, conversation: str, records: list[Record], *, release: bool = False
) -> Claim | None:
    return await store.begin(
        conversation, records, owner="beginner", seconds=LONG_SECONDS, release=release
    )


async def a_conversation_is_begun_with_its_first_records_and_is_held(opened: Opened) -> None:
    async with opened() as store:
        claim = await _begun(store, "a", several(1, 3))
        assert claim is not None
        assert (claim.conversation, claim.owner, claim.length) == ("a", "beginner", 0)
        busy = await refused(ConversationBusy, claimed(store, "a"))
        assert "beginner" in str(busy)
        await store.append(claim, 3, several(4, 4))
        assert await contents(store, "a") == several(1, 4)
        await store.renew(claim, seconds=LONG_SECONDS)
        await store.release(claim)
        assert (await claimed(store, "a")).length == 4


async def one_that_is_begun_and_released_is_free_at_once(opened: Opened) -> None:
    async with opened() as store:
        claim = await _begun(store, "a", several(1, 2), release=True)
        assert claim is not None
        await refused(ClaimLost, store.append(claim, 2, several(3, 3)))
        next_one = await claimed(store, "a")
        assert next_one.length == 2
        assert next_one.token > claim.token
        assert await contents(store, "a") == several(1, 2)


async def one_that_is_there_is_not_begun_again(opened: Opened) -> None:
    async with opened() as store:
        held = await filled(store, "held", 2)
        await store.release(await filled(store, "free", 2))
        empty = await claimed(store, "empty")
        for conversation in ("held", "free", "empty"):
            for release in (False, True):
                assert await _begun(store, conversation, several(1, 3), release=release) is None
        await store.append(held, 2, several(3, 3))
        await store.append(empty, 0, several(1, 1))
        assert await contents(store, "held") == several(1, 3)
        assert await contents(store, "free") == several(1, 2)
        assert await contents(store, "empty") == several(1, 1)
        await claimed(store, "free")


async def a_beginning_is_whole_or_not_at_all(opened: Opened) -> None:
    async with opened() as store:
        for records in ([record(1), record(3)], several(2, 3), [record(1), record(1)]):
            await refused(OutOfStep, _begun(store, "a", records))
        assert [one async for one in store.conversations()] == []
        assert await _begun(store, "a", []) is not None
        assert await contents(store, "a") == []


async def what_it_begins_with_is_kept_as_by_an_append(opened: Opened) -> None:
    body = bytes(range(256)) * 400
    names = tuple(Name(Naming.CALL, text) for text in ODD_TEXTS)
    given = [record(1, body=body, names=names), record(2, body=body, at=1 / 3), record(3, body=b"")]
    async with opened() as store:
        for text in ODD_TEXTS:
            assert await _begun(store, text, given) is not None
        for text in ODD_TEXTS:
            first, second, third = [one async for one in store.read(text)]
            assert (first.body, first.names, second.body) == (body, names, body)
            assert (second.at, third.body) == (1 / 3, b"")
            assert first.at is not None
            assert first.at > 1
        assert (await store.stats()).bodies == len(ODD_TEXTS)
        for name in names:
            found = {one.conversation for one in await store.find(name)}
            assert found == set(ODD_TEXTS)
        (first_listed, *_) = [one async for one in store.conversations()]
        assert first_listed.created <= first_listed.changed


async def a_token_of_a_beginning_grows_across_a_deletion(opened: Opened) -> None:
    async with opened() as store:
        old = await _begun(store, "a", several(1, 1))
        await store.delete("a")
        new = await _begun(store, "a", several(1, 1))
        assert old is not None
        assert new is not None
        assert new.token > old.token
        await refused(ClaimLost, store.append(old, 1, several(2, 2)))
        await store.append(new, 1, several(2, 2))


async def of_many_who_begin_one_conversation_one_does(opened: Opened) -> None:
    async with opened() as store:
        found = await asyncio.gather(*(_begun(store, "a", several(1, 2)) for _ in range(8)))
        begun = [claim for claim in found if claim is not None]
        assert len(begun) == 1
        await store.append(begun[0], 2, several(3, 3))
        assert await contents(store, "a") == several(1, 3)


async def many_conversations_are_begun_and_appended_to_together(opened: Opened) -> None:
    async with opened() as store:

        async def write(conversation: str) -> None:
            claim = await _begun(store, conversation, several(1, 2))
            assert claim is not None
            await store.append(claim, 2, several(3, 3))
            await store.append(claim, 3, several(4, 5), release=True)
            await refused(ClaimLost, store.append(claim, 5, several(6, 6)))

        conversations = [f"conversation {n}" for n in range(32)]
        await asyncio.gather(*map(write, conversations))
        for conversation in conversations:
            assert await contents(store, conversation) == several(1, 5)
            await claimed(store, conversation)


async def a_beginning_that_nobody_waits_for_keeps_nobody_out(opened: Opened) -> None:
    async with opened() as store:
        begun = asyncio.create_task(_begun(store, "a", several(1, 2)))
        await asyncio.sleep(0)
        begun.cancel()
        await asyncio.wait([begun])
        if not begun.cancelled():  # it was there before that
            claim = begun.result()
            assert claim is not None
            await store.release(claim)
        claim = await store.claim("a", owner="next", seconds=LONG_SECONDS, wait=LONG_SECONDS / 2)
        assert claim.length in (0, 2)
        assert await contents(store, "a") == several(1, claim.length)


async def an_append_can_be_the_last_of_its_claim(opened: Opened) -> None:
    async with opened() as store:
        claim = await filled(store, "a", 1)
        await store.append(claim, 1, several(2, 3), release=True)
        await refused(ClaimLost, store.append(claim, 3, several(4, 4)))
        await refused(ClaimLost, store.renew(claim, seconds=LONG_SECONDS))
        await store.release(claim)
        assert (await claimed(store, "a")).length == 3
        assert await contents(store, "a") == several(1, 3)


async def a_last_append_lets_those_in_who_wait(opened: Opened) -> None:
    async with opened() as store:
        first = await claimed(store, "a")
        waiting = asyncio.create_task(
            store.claim("a", owner="second", seconds=LONG_SECONDS, wait=LONG_SECONDS)
        )
        await asyncio.sleep(0)
        await store.append(first, 0, several(1, 1), release=True)
        async with asyncio.timeout(LONG_SECONDS / 2):
            assert (await waiting).length == 1


async def a_last_append_that_is_refused_releases_nothing(opened: Opened) -> None:
    async with opened() as store:
        claim = await filled(store, "a", 2)
        await refused(OutOfStep, store.append(claim, 1, several(2, 2), release=True))
        await refused(OutOfStep, store.append(claim, 2, [record(4)], release=True))
        await refused(ConversationBusy, claimed(store, "a"))
        await store.append(claim, 2, several(3, 3))


async def who_was_taken_over_releases_nothing_with_an_append(opened: Opened) -> None:
    async with opened() as store:
        first = await filled(store, "a", 1)
        await store.renew(first, seconds=0)
        second = await claimed(store, "a")
        await refused(ClaimLost, store.append(first, 1, several(2, 2), release=True))
        await store.append(second, 1, several(2, 2))


async def what_is_sent_behind_a_last_append_is_refused(opened: Opened) -> None:
    async with opened() as store:
        claim = await claimed(store, "a")
        results = await asyncio.gather(
            store.append(claim, 0, several(1, 1)),
            store.append(claim, 1, several(2, 2), release=True),
            store.append(claim, 2, several(3, 3)),
            return_exceptions=True,
        )
        assert [type(one) for one in results] == [type(None), type(None), ClaimLost]
        assert await contents(store, "a") == several(1, 2)
        await claimed(store, "a")
