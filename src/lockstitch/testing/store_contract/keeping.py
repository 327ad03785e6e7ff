"""Checks of what is kept: the order, the bytes, the times, and a batch whole or not at all."""

from __future__ import annotations

from lockstitch.core.records import Name, Naming
from lockstitch.store.errors import OutOfStep
from lockstitch.testing.store_contract.opened import (
    ODD_TEXTS,
    Opened,
    claimed,
    contents,
    filled,
    record,
    refused,
    several,
)

LARGE_BODY_BYTES = 10_000_000
"""As large as a screenshot or a log that a tool gives back."""

EVERY_BYTE = bytes(range(256))


async def records_are_read_in_order(opened: Opened) -> None:
    async with opened() as store:
        claim = await claimed(store, "a")
        await store.append(claim, 0, several(1, 3))
        await store.append(claim, 3, several(4, 4))
        await store.append(claim, 4, several(5, 300))
        assert await contents(store, "a") == several(1, 300)


async def reading_begins_behind_a_position(opened: Opened) -> None:
    async with opened() as store:
        await filled(store, "a", 5)
        assert await contents(store, "a", after=3) == several(4, 5)
        assert await contents(store, "a", after=5) == []
        assert await contents(store, "a", after=99) == []


async def a_conversation_that_is_not_there_reads_as_empty(opened: Opened) -> None:
    async with opened() as store:
        assert await contents(store, "nobody") == []
        assert [one async for one in store.conversations()] == []


async def a_conversation_begins_when_it_is_claimed(opened: Opened) -> None:
    async with opened() as store:
        claim = await claimed(store, "a")
        assert claim.length == 0
        (summary,) = [one async for one in store.conversations()]
        assert (summary.conversation, summary.length) == ("a", 0)


async def bytes_come_back_as_they_came(opened: Opened) -> None:
    bodies = [None, b"", b"\0", EVERY_BYTE, b"\xff\xfe", "\u00e9\U0001f9f5".encode(), b"{}"]
    records = [
        record(seq, body=body, payload=EVERY_BYTE[seq:] + b"payload")
        for seq, body in enumerate(bodies, start=1)
    ]
    async with opened() as store:
        await store.append(await claimed(store, "a"), 0, records)
        assert await contents(store, "a") == records


async def nothing_and_an_empty_body_are_two_things(opened: Opened) -> None:
    async with opened() as store:
        claim = await claimed(store, "a")
        await store.append(claim, 0, [record(1, body=None), record(2, body=b"")])
        assert [one.body for one in await contents(store, "a")] == [None, b""]


async def a_body_of_megabytes_is_kept(opened: Opened) -> None:
    body = EVERY_BYTE * (LARGE_BODY_BYTES // len(EVERY_BYTE))
    async with opened() as store:
        await store.append(await claimed(store, "a"), 0, [record(1, body=body)])
        (kept,) = await contents(store, "a")
        assert kept.body == body


async def a_large_body_is_kept_once_in_a_conversation(opened: Opened) -> None:
    body = EVERY_BYTE * 400
    async with opened() as store:
        claim = await claimed(store, "a")
        await store.append(claim, 0, [record(seq, body=body) for seq in (1, 2)])
        await store.append(claim, 2, [record(3, body=body), record(4, body=body + b"!")])
        assert (await store.stats()).bodies == 2
        assert [one.body for one in await contents(store, "a")] == [body, body, body, body + b"!"]


async def names_are_kept_to_the_letter(opened: Opened) -> None:
    names = tuple(Name(naming, text) for naming in Naming for text in ODD_TEXTS)
    async with opened() as store:
        await store.append(await claimed(store, "a"), 0, [record(1, names=names)])
        (kept,) = await contents(store, "a")
        assert kept.names == names


async def conversations_are_listed_by_name(opened: Opened) -> None:
    async with opened() as store:
        for length, text in enumerate(ODD_TEXTS):
            await filled(store, text, length)
        listed = [(one.conversation, one.length) async for one in store.conversations()]
        assert listed == sorted((text, length) for length, text in enumerate(ODD_TEXTS))
        for length, text in enumerate(ODD_TEXTS):
            assert await contents(store, text) == several(1, length)


async def the_time_of_a_record_is_filled_in_or_kept(opened: Opened) -> None:
    given = 1_234_567_890.123456
    async with opened() as store:
        claim = await claimed(store, "a")
        await store.append(claim, 0, [record(1), record(2, at=given), record(3, at=1 / 3)])
        first, second, third = [one.at async for one in store.read("a")]
        assert first is not None
        assert first > given
        assert (second, third) == (given, 1 / 3)


async def a_summary_tells_when_it_began_and_when_it_was_written_to(opened: Opened) -> None:
    async with opened() as store:
        claim = await filled(store, "a", 1)
        (before,) = [one async for one in store.conversations()]
        await store.append(claim, 1, several(2, 2))
        (after,) = [one async for one in store.conversations()]
        assert before.created <= before.changed <= after.changed
        assert after.created == before.created
        assert (before.length, after.length) == (1, 2)


async def a_batch_is_kept_whole_or_not_at_all(opened: Opened) -> None:
    async with opened() as store:
        claim = await filled(store, "a", 2)
        gap = [record(3), record(5)]
        await refused(OutOfStep, store.append(claim, 2, gap))
        await refused(OutOfStep, store.append(claim, 2, several(2, 3)))
        await refused(OutOfStep, store.append(claim, 1, several(2, 3)))
        await refused(OutOfStep, store.append(claim, 3, several(4, 5)))
        assert await contents(store, "a") == several(1, 2)
        await store.append(claim, 2, several(3, 4))
        assert await contents(store, "a") == several(1, 4)


async def an_append_of_nothing_changes_nothing(opened: Opened) -> None:
    async with opened() as store:
        claim = await filled(store, "a", 2)
        await store.append(claim, 2, [])
        await refused(OutOfStep, store.append(claim, 1, []))
        assert await contents(store, "a") == several(1, 2)


async def stats_count_what_is_there(opened: Opened) -> None:
    async with opened() as store:
        empty = await store.stats()
        assert (empty.conversations, empty.records, empty.bodies) == (0, 0, 0)
        await filled(store, "a", 3)
        await filled(store, "b", 2)
        full = await store.stats()
        assert (full.conversations, full.records, full.bodies) == (2, 5, 0)
        assert full.size_bytes > 0
        assert full.schema == empty.schema >= 1
