"""Conversations in the store: held by one at a time, durable, and whole after a crash."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from lockstitch.core.errors import NotAnItem
from lockstitch.core.records import Name, Naming
from lockstitch.gateway.deciding.listing import PREFIXES, NoSuchItem
from lockstitch.gateway.keeping.conversations import (
    ConversationLocked,
    Conversations,
    ConversationUnknown,
)
from lockstitch.gateway.keeping.journal import Exchanges, name_of
from lockstitch.store import open_store
from lockstitch.store.contract import Store
from lockstitch.store.errors import CannotWrite, StoreError
from lockstitch.store.memory import MemoryStore
from tests.gateway.doors.serving import run


def raw(**item) -> bytes:
    return json.dumps(item).encode()


HI = raw(role="user", content="Hi.")


@asynccontextmanager
async def opened(kind: str, folder: Path) -> AsyncIterator[Store]:
    if kind == "memory":
        yield MemoryStore()
        return
    async with await open_store(f"sqlite:///{folder}/journal.db") as store:
        yield store


stores = pytest.mark.parametrize("kind", ["memory", "sqlite"])


@stores
def test_a_conversation_is_what_was_done_to_it(kind, tmp_path):
    async def play():
        async with opened(kind, tmp_path) as store:
            conversations = Conversations(store)
            made = await conversations.begin(
                "anna", created=1_700_000_000.9, metadata={"a": "b"}, items=[HI]
            )
            assert (made.upstream, made.created_at) == ("", 1_700_000_000)
            async with conversations.held("anna", made.id) as held:
                assert [item["content"] for item in held.items] == ["Hi."]
                await held.add([raw(type="reasoning", summary=[]), HI])
                kept = held.raw_items[1:]
                assert [json.loads(item)["id"].split("_")[0] for item in kept] == ["rs", "msg"]
                await held.set_metadata({})
                await held.remove(held.items[0]["id"])
                with pytest.raises(NoSuchItem):
                    await held.remove("msg_1")
                now = held.conversation
            found = await conversations.read("anna", made.id)
            assert found == now
            assert (found.metadata, found.raw_items) == ({}, kept)
            await conversations.delete("anna", made.id)
            assert await conversations.read("anna", made.id) is None
            left = [record async for record in store.read(name_of("anna", "conversation", made.id))]
            assert left == []

    run(play())


@stores
def test_one_at_a_time_holds_it(kind, tmp_path):
    async def play():
        async with opened(kind, tmp_path) as store:
            conversations, others = Conversations(store), Conversations(store)
            made = await conversations.begin("anna", created=0.0)
            async with conversations.held("anna", made.id):
                with pytest.raises(ConversationLocked) as raised:
                    async with others.held("anna", made.id):
                        raise AssertionError
                refusal = raised.value.refusal
                assert (refusal.status, refusal.type) == (400, "invalid_request_error")
                assert (refusal.param, refusal.code) == ("conversation", "conversation_locked")
                assert await others.read("anna", made.id) == made
            async with others.held("anna", made.id) as held:
                await held.add([HI])

    run(play())


def test_nobody_holds_what_is_not_there():
    async def play():
        store = MemoryStore()
        conversations = Conversations(store)
        made = await conversations.begin("anna", created=0.0)
        for tenant, named in (
            ("anna", "conv_1"),
            ("bert", made.id),
            ("anna", ""),
            ("anna", "a" * 999),
        ):
            assert await conversations.read(tenant, named) is None
            assert await conversations.made(tenant, named) is None
            with pytest.raises(ConversationUnknown) as raised:
                async with conversations.held(tenant, named):
                    raise AssertionError
            assert raised.value.refusal.status == 404
        assert [one.conversation async for one in store.conversations()] == [
            name_of("anna", "conversation", made.id)
        ]

    run(play())


def test_one_that_is_deleted_while_it_is_waited_for_is_not_begun_again():
    class Slow(MemoryStore):
        async def claim(self, conversation, **told):
            await self.delete(conversation)
            return await super().claim(conversation, **told)

    async def play():
        store = MemoryStore()
        made = await Conversations(store).begin("anna", created=0.0)
        slow = Slow()
        slow.__dict__ |= store.__dict__
        with pytest.raises(ConversationUnknown):
            async with Conversations(slow).held("anna", made.id):
                raise AssertionError
        assert [one async for one in store.conversations()] == []

    run(play())


def test_the_owner_of_a_conversation_of_an_upstream_is_found():
    async def play():
        store = MemoryStore()
        conversations, exchanges = Conversations(store), Exchanges(store)
        made = await conversations.begin("anna", "conv_1", upstream="one", created=0.0)
        assert made.upstream == "one"
        assert (await conversations.made("anna", "conv_1")).upstream == "one"
        one, two = Name(Naming.CONVERSATION, "conv_1"), Name(Naming.CONVERSATION, "conv_2")
        assert await exchanges.is_anothers("bert", one)
        assert not await exchanges.is_anothers("anna", one)
        assert not await exchanges.is_anothers("bert", two)
        # An upstream that gives an id again means the newer.
        again = await conversations.begin("anna", "conv_1", upstream="two", created=0.0)
        assert again.upstream == "two"

    run(play())


def test_what_is_no_item_is_not_added_and_nothing_with_it():
    async def play():
        conversations = Conversations(MemoryStore())
        made = await conversations.begin("anna", created=0.0)
        async with conversations.held("anna", made.id) as held:
            for wrong in (b"1", b"{", b"[]"):
                with pytest.raises(NotAnItem):
                    await held.add([HI, wrong])
            await held.add([HI])
        assert len((await conversations.read("anna", made.id)).items) == 1

    run(play())


@pytest.mark.parametrize("type", [*PREFIXES, "of_tomorrow"])
def test_an_item_without_an_id_gets_one_of_its_type(type):
    async def play():
        conversations = Conversations(MemoryStore())
        made = await conversations.begin("anna", created=0.0, items=[raw(type=type)])
        [item] = made.items
        [listed] = made.listed()
        prefix = PREFIXES.get(type, "item")
        if type == "local_shell_call_output":
            assert "id" not in item  # it would be that of its call
        else:
            assert item["id"].startswith(f"{prefix}_")
            assert listed.id == item["id"]
        assert made.listed() == [listed]

    run(play())


def test_every_write_that_fails_leaves_what_was_there():
    """Fail the first append, the second, … until none fails."""

    class Failing(MemoryStore):
        left = 0

        async def append(self, claim, after, records, **how):
            self.left -= 1
            if self.left == 0:
                raise CannotWrite("The disk is full.")
            await super().append(claim, after, records, **how)

    async def play(fails_at: int) -> bool:
        store = Failing()
        conversations = Conversations(store)
        made = await conversations.begin("anna", created=0.0)
        store.left = fails_at
        acknowledged = []
        failed = False
        try:
            async with conversations.held("anna", made.id) as held:
                for n in range(3):
                    await held.add([raw(role="user", content=f"{n}")])
                    acknowledged.append(f"{n}")
        except StoreError:
            failed = True
        store.left = 0
        found = await conversations.read("anna", made.id)
        assert [item["content"] for item in found.items] == acknowledged
        async with conversations.held("anna", made.id) as held:
            await held.add([HI])
        return failed

    results = [run(play(at)) for at in range(1, 5)]
    assert results == [True, True, True, False]


def test_one_whose_holder_was_killed_is_free_and_has_what_was_acknowledged(tmp_path):
    url = f"sqlite:///{tmp_path}/journal.db"
    program = f"""
import asyncio, os, signal
from lockstitch.gateway.keeping.conversations import Conversations
from lockstitch.store import open_store

async def main():
    store = await open_store({url!r})
    conversations = Conversations(store)
    made = await conversations.begin("anna", created=0.0)
    async with conversations.held("anna", made.id) as held:
        await held.add([b'{{"role":"user","content":"Hi."}}'])
        print(made.id, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=os.environ, check=False
    )
    assert done.returncode == -9, done.stderr

    async def play():
        async with (
            await open_store(url) as store,
            Conversations(store).held("anna", done.stdout.strip()) as held,
        ):
            assert [item["content"] for item in held.items] == ["Hi."]
            await held.add([HI])

    run(play())
