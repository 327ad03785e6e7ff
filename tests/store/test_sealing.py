"""Encryption: nothing legible is kept, only the right key opens, and nothing can be moved."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from lockstitch.core.records import SEALED, Name, Naming, Record, UnreadableRecord, decoded
from lockstitch.store.errors import Damaged, WrongKey
from lockstitch.store.memory import MemoryStore
from lockstitch.store.sealing import Sealed
from lockstitch.store.sqlite import SqliteStore
from tests.store.kept import LARGE, a_key, held, keep, odd_records, some_keys

SECRET = Record(1, b'{"fact":"secret"}', b'{"text":"hush"}', (Name(Naming.CALL, "call_1"),))


def run(check, *keys):
    """Run a check on an encrypted store in memory, and the bare one inside it."""

    async def checked():
        async with MemoryStore() as inner:
            await check(inner, Sealed(inner, some_keys(*(keys or (1,)))))

    asyncio.run(checked())


def test_what_is_kept_tells_nothing_but_its_names_and_times():
    async def check(inner, store):
        await keep(store, "a", SECRET)
        (kept,) = (await held(inner))["a"]
        assert kept.payload.startswith(SEALED)
        assert b"secret" not in kept.payload
        assert b"hush" not in kept.body
        assert kept.names == SECRET.names
        (opened,) = (await held(store))["a"]
        assert opened == msgspec.structs.replace(SECRET, at=kept.at)

    run(check)


def test_nothing_legible_is_in_the_file(tmp_path):
    async def check():
        async with await SqliteStore.open(tmp_path / "store.db") as inner:
            large = Record(2, b"{}", b"hush" * 10_000)
            await keep(Sealed(inner, some_keys(1)), "a", SECRET, large)
            files = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
        assert any(b"call_1" in content for content in files.values())
        assert not any(b"hush" in content for content in files.values())
        assert not any(b'"secret"' in content for content in files.values())

    asyncio.run(check())


def test_an_equal_large_body_is_one_in_a_conversation_and_another_elsewhere():
    async def check(inner, store):
        for conversation in ("a", "b"):
            await keep(store, conversation, Record(1, b"{}", LARGE), Record(2, b"{}", LARGE))
        kept = await held(inner)
        assert kept["a"][0].body == kept["a"][1].body
        assert kept["a"][0].body != kept["b"][0].body
        assert kept["a"][0].payload != kept["a"][1].payload
        assert (await store.stats()).bodies == 2

    run(check)


def test_plain_records_are_read_as_they_are_and_new_ones_are_sealed():
    async def check(inner, store):
        await keep(inner, "a", SECRET)
        await keep(store, "a", Record(2, b'{"n":2}'))
        assert [one.payload for one in (await held(store))["a"]] == [SECRET.payload, b'{"n":2}']
        plain, sealed = (await held(inner))["a"]
        assert plain.payload == SECRET.payload
        assert sealed.payload.startswith(SEALED)

    run(check)


def test_any_of_the_keys_opens_and_the_first_seals():
    async def check(inner, store):
        await keep(store, "a", SECRET)
        both = Sealed(inner, some_keys(2, 1))
        await keep(both, "a", Record(2, b"{}"))
        assert [one.payload for one in (await held(both))["a"]] == [SECRET.payload, b"{}"]
        with pytest.raises(WrongKey, match="Entry 2 of 'a' in memory:"):
            await held(store)

    run(check)


def test_the_wrong_key_is_told_with_the_ids_of_both():
    async def check(inner, store):
        await keep(store, "a", SECRET)
        with pytest.raises(WrongKey) as refused:
            await held(Sealed(inner, some_keys(2)))
        told = str(refused.value)
        assert a_key(1).id.hex() in told
        assert a_key(2).id.hex() in told
        assert "Add that key after the first one" in told

    run(check)


def test_a_reader_without_keys_is_told_that_one_is_needed():
    async def check(inner, store):
        await keep(store, "a", SECRET)
        (kept,) = (await held(inner))["a"]
        with pytest.raises(UnreadableRecord, match=r"is encrypted.*LOCKSTITCH_STORE_KEY"):
            decoded(kept)

    run(check)


def test_a_seal_of_a_later_kind_is_refused():
    async def check(inner, store):
        await keep(inner, "a", Record(1, SEALED + b"\x09" + bytes(40)))
        with pytest.raises(WrongKey, match="Upgrade"):
            await held(store)

    run(check)


@pytest.mark.parametrize("seq", [1, 2])
@pytest.mark.parametrize("part", ["payload", "body"])
def test_a_changed_byte_is_noticed(part, seq):
    async def check(inner, store):
        await keep(store, "a", SECRET, Record(2, b"{}", LARGE))
        kept = (await held(inner))["a"][seq - 1]
        content = getattr(kept, part)
        for place in (-1, len(content) // 2, 20):
            changed = bytearray(content)
            changed[place] ^= 1
            await inner.replace("a", [msgspec.structs.replace(kept, **{part: bytes(changed)})])
            with pytest.raises(Damaged, match=f"Entry {seq} of 'a'.*Restore the store"):
                await held(store)

    run(check)


def test_a_cut_record_is_noticed():
    async def check(inner, store):
        await keep(store, "a", SECRET)
        (kept,) = (await held(inner))["a"]
        for length in range(len(SEALED) + 9, len(kept.payload)):
            await inner.replace("a", [msgspec.structs.replace(kept, payload=kept.payload[:length])])
            with pytest.raises((Damaged, WrongKey)):
                await held(store)

    run(check)


def test_a_record_cannot_be_put_in_the_place_of_another():
    async def check(inner, store):
        await keep(store, "a", SECRET, Record(2, b'{"n":2}', b"other"))
        await keep(store, "b", SECRET)
        first, second = (await held(inner))["a"]
        swapped = msgspec.structs.replace(first, seq=2)
        body_of_second = msgspec.structs.replace(first, body=second.body)
        no_body = msgspec.structs.replace(first, body=None)
        for conversation, moved in [
            ("a", swapped),
            ("a", body_of_second),
            ("a", no_body),
            ("b", first),
        ]:
            before = (await held(inner))[conversation]
            await inner.replace(conversation, [moved])
            with pytest.raises(Damaged):
                _ = [one async for one in store.read(conversation)]
            await inner.replace(conversation, before)

    run(check)


def test_odd_bytes_come_back():
    async def check(inner, store):
        await keep(store, "a", *odd_records())
        assert (await held(store))["a"] == odd_records()

    run(check)


def test_it_is_closed_with_the_one_inside():
    async def check(inner, store):
        async with store as entered:
            assert entered is store
            assert repr(store) == "<Sealed <MemoryStore 0 conversations>>"
        assert repr(inner) == "<MemoryStore closed>"

    run(check)
