from __future__ import annotations

import asyncio
import os
import subprocess
import sys

import pytest

from lockstitch.store import Journal
from lockstitch.store.errors import ConversationBusy
from lockstitch.store.memory import MemoryStore
from lockstitch.store.owners import is_gone, new_owner

OF_ANOTHER = "from lockstitch.store.owners import new_owner; print(new_owner())"


def owner_that_ended() -> str:
    command = [sys.executable, "-c", OF_ANOTHER]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def test_a_process_that_lives_is_not_gone():
    assert not is_gone(new_owner())


def test_a_process_that_ended_is_gone():
    assert is_gone(owner_that_ended())


def test_an_id_that_is_used_again_is_another_process():
    host, _, world, started, token = owner_that_ended().rsplit(":", 4)
    assert is_gone(f"{host}:{os.getpid()}:{world}:{started}:{token}")


@pytest.mark.parametrize(
    "owner", ["", "bench", "a:b:c:d:e", "elsewhere:1:12345678.9:5:aa", "\0", "::::"]
)
def test_of_what_is_not_a_process_here_nothing_is_certain(owner):
    assert not is_gone(owner)


def test_no_two_owners_are_the_same():
    assert new_owner() != new_owner()


def test_the_claim_of_a_process_that_ended_is_taken_over_at_once():
    async def run():
        store = MemoryStore()
        await store.claim("c", owner=owner_that_ended(), seconds=1_000)
        async with await Journal.open(store, "c") as journal:
            return journal.conversation

    assert asyncio.run(run()) == "c"


def test_the_claim_of_a_process_that_lives_is_respected():
    async def run():
        store = MemoryStore()
        await store.claim("c", owner=new_owner(), seconds=1_000)
        with pytest.raises(ConversationBusy):
            await Journal.open(store, "c")

    asyncio.run(run())
