"""Two that both think they own a conversation: only one of them can write."""

from __future__ import annotations

import asyncio
import random
from collections import defaultdict

import pytest

from lockstitch.store.errors import ClaimLost, ConversationBusy
from lockstitch.store.postgres import PostgresStore
from tests.store.postgres_parts import LONG_SECONDS, all_of, locked, record, waiting_backend

CONVERSATIONS = [f"conversation-{number}" for number in range(5)]


def test_a_writer_that_was_taken_over_cannot_write(postgres_url):
    async def run():
        async with (
            await PostgresStore.open(postgres_url) as ours,
            await PostgresStore.open(postgres_url) as theirs,
        ):
            old = await ours.claim("a", owner="ours", seconds=0)
            await ours.append(old, 0, [record(1)])
            new = await theirs.claim("a", owner="theirs", seconds=LONG_SECONDS)
            assert new.token > old.token
            assert new.length == 1
            for refused in (ours.append(old, 1, [record(2)]), ours.renew(old, seconds=1)):
                with pytest.raises(ClaimLost, match="taken over by theirs"):
                    await refused
            await ours.release(old)  # not an error, and not theirs to lose
            await theirs.append(new, 1, [record(2)])
            with pytest.raises(ConversationBusy, match="theirs"):
                await ours.claim("a", owner="ours", seconds=1)

    asyncio.run(run())


def test_an_append_that_waits_while_its_claim_is_taken_over_is_refused(postgres_url):
    """The token is looked at when the row is ours, not when the statement began."""

    async def run():
        async with await PostgresStore.open(postgres_url) as store:
            claim = await store.claim("a", owner="old", seconds=0)
            async with locked(postgres_url, "a") as other:
                append = asyncio.create_task(store.append(claim, 0, [record(1)]))
                await waiting_backend(other)
                await other.execute(
                    "UPDATE lockstitch.conversations"
                    " SET token = nextval('lockstitch.tokens'), owner = 'new'"
                )
            with pytest.raises(ClaimLost, match="taken over by new"):
                await append
            assert await all_of(store, "a") == []

    asyncio.run(run())


def test_a_claim_that_ran_out_writes_until_somebody_takes_over(postgres_url):
    async def run():
        async with await PostgresStore.open(postgres_url) as store:
            claim = await store.claim("a", owner="slow", seconds=0)
            await store.append(claim, 0, [record(1)])
            await store.renew(claim, seconds=LONG_SECONDS)
            with pytest.raises(ConversationBusy):
                await store.claim("a", owner="other", seconds=1)

    asyncio.run(run())


@pytest.mark.parametrize("seed", range(3))
def test_a_race_of_takeovers_leaves_one_sequence(postgres_url, seed):
    """Claims that are up at once: everybody takes from everybody, in two stores."""
    rng = random.Random(seed)
    acknowledged: dict[str, dict[int, bytes]] = defaultdict(dict)
    lost = 0

    async def write(store: PostgresStore, owner: str) -> None:
        nonlocal lost
        for _ in range(8):
            conversation = rng.choice(CONVERSATIONS)
            claim = await store.claim(conversation, owner=owner, seconds=0)
            length = claim.length
            try:
                for _ in range(rng.randrange(1, 5)):
                    count = rng.randrange(1, 4)
                    payload = b"%d %s" % (claim.token, owner.encode())
                    await store.append(
                        claim,
                        length,
                        [record(length + place, payload=payload) for place in range(1, count + 1)],
                    )
                    for _ in range(count):
                        length += 1
                        assert length not in acknowledged[conversation]
                        acknowledged[conversation][length] = payload
            except ClaimLost:
                lost += 1

    async def run():
        async with (
            await PostgresStore.open(postgres_url) as ours,
            await PostgresStore.open(postgres_url) as theirs,
        ):
            await asyncio.gather(
                *(write(ours, f"ours-{number}") for number in range(12)),
                *(write(theirs, f"theirs-{number}") for number in range(12)),
            )
            for conversation in CONVERSATIONS:
                kept = await all_of(ours, conversation)
                assert [one.seq for one in kept] == list(range(1, len(kept) + 1))
                assert {one.seq: one.payload for one in kept} == acknowledged[conversation]
                tokens = [int(one.payload.split()[0]) for one in kept]
                assert tokens == sorted(tokens)  # nobody wrote who had been taken over

    asyncio.run(run())
    assert lost > 0  # or it was no race
