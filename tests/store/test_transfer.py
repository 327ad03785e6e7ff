"""Export and import: nothing is lost, nothing is mixed up, and a torn file does no harm."""

from __future__ import annotations

import asyncio
import io
import json
import tracemalloc

import pytest

from lockstitch.core.records import Record
from lockstitch.store.errors import CannotWrite, NotAnExport, StoreError, WrongKey
from lockstitch.store.memory import MemoryStore
from lockstitch.store.opening import open_store
from lockstitch.store.sealing import Sealed
from lockstitch.store.sqlite import SqliteStore
from lockstitch.store.transfer import Exported, Imported, export_store, import_store, transfer
from lockstitch.store.transfer import spools as transfer_spools
from tests.store.kept import held, keep, odd_records, some_keys


async def exported(store, **which) -> bytes:
    file = io.BytesIO()
    await export_store(store, file, **which)
    return file.getvalue()


async def imported(store, content: bytes, **how) -> Imported:
    return await import_store(store, io.BytesIO(content), name="store.jsonl", **how)


async def filled() -> MemoryStore:
    store = MemoryStore()
    await keep(store, "a", *odd_records())
    await keep(store, "b \0\u2028", Record(1, b"{}", at=1.0))
    await keep(store, "c", *odd_records()[:3])
    return store


def test_what_was_exported_comes_back_to_the_byte():
    async def check():
        store = await filled()
        content = await exported(store)
        async with MemoryStore() as other:
            assert await imported(other, content) == Imported(3, 11, 0, ())
            assert await held(other) == await held(store)
            assert await exported(other) == content

    asyncio.run(check())


def test_an_export_is_lines_that_people_can_read():
    async def check():
        async with MemoryStore() as store:
            await keep(store, "a", Record(1, b'{"fact":"opened"}', b'{"text":"hi"}', at=1.5))
            await keep(store, "b", Record(1, b"\xff", at=2.0))
            lines = [json.loads(line) for line in (await exported(store)).splitlines()]
        assert lines == [
            {"line": "lockstitch store", "version": 1},
            {
                "line": "record",
                "conversation": "a",
                "seq": 1,
                "at": 1.5,
                "names": [],
                "payload": '{"fact":"opened"}',
                "body": '{"text":"hi"}',
            },
            {"line": "whole", "conversation": "a", "length": 1},
            {
                "line": "record",
                "conversation": "b",
                "seq": 1,
                "at": 2.0,
                "names": [],
                "payload": {"base64": "/w=="},
                "body": None,
            },
            {"line": "whole", "conversation": "b", "length": 1},
            {"line": "end", "conversations": 2, "records": 2},
        ]

    asyncio.run(check())


def test_an_export_that_a_json_tool_wrote_anew_is_the_same():
    async def check():
        store = await filled()
        content = await exported(store)
        anew = "".join(json.dumps(json.loads(line)) + "\r\n" for line in content.splitlines())
        async with MemoryStore() as other:
            await imported(other, anew.encode())
            assert await held(other) == await held(store)

    asyncio.run(check())


def test_some_conversations_may_be_named():
    async def check():
        store = await filled()
        file = io.BytesIO()
        assert await export_store(store, file, conversations=["c"]) == Exported(1, 3)
        async with MemoryStore() as other:
            await imported(other, file.getvalue())
            assert list(await held(other)) == ["c"]
        with pytest.raises(StoreError, match="there is no conversation 'nobody'"):
            await exported(store, conversations=["a", "nobody"])

    asyncio.run(check())


def test_progress_is_told_in_records_and_in_bytes():
    async def check():
        store = await filled()
        records: list[int] = []
        content = await exported(store, advance=records.append)
        assert sum(records) == 11
        sizes: list[int] = []
        async with MemoryStore() as other:
            await imported(other, content, advance=sizes.append)
        assert sum(sizes) == len(content)

    asyncio.run(check())


def test_an_encrypted_store_is_exported_in_plain_text_and_goes_into_another():
    async def check():
        plain = await filled()
        content = await exported(plain)
        async with MemoryStore() as inner:
            store = Sealed(inner, some_keys(1))
            await imported(store, content)
            assert await exported(store) == content
            with pytest.raises(WrongKey, match=r"is encrypted.*LOCKSTITCH_STORE_KEY"):
                await exported(inner)

    asyncio.run(check())


def test_nothing_is_lost_from_sqlite_to_postgres_and_back(tmp_path, postgres_url):
    async def check():
        memory = await filled()
        content = await exported(memory)
        for url in (f"sqlite:///{tmp_path}/one.db", postgres_url, f"sqlite:///{tmp_path}/two.db"):
            async with open_store(url) as store:
                assert (await imported(store, content)).records == 11
                assert await held(store) == await held(memory)
                assert (await imported(store, content)).skipped == 3
                content = await exported(store)
        assert content == await exported(memory)

    asyncio.run(check())


# --- what is there already ---------------------------------------------------------------------


def test_what_is_there_is_skipped():
    async def check():
        store = await filled()
        content = await exported(store)
        assert await imported(store, content) == Imported(0, 0, 3, ())
        await keep(store, "a", Record(8, b"{}"))
        assert await imported(store, content) == Imported(0, 0, 3, ())

    asyncio.run(check())


def test_what_is_there_in_part_goes_on():
    async def check():
        store = await filled()
        async with MemoryStore() as other:
            await keep(other, "a", *odd_records()[:3])
            assert await imported(other, await exported(store)) == Imported(3, 8, 0, ())
            assert await held(other) == await held(store)

    asyncio.run(check())


@pytest.mark.parametrize(
    "difference", ["payload", "body", "names", "at"], ids=lambda what: f"another {what}"
)
def test_what_differs_is_refused_by_name_and_left_as_it_is(difference):
    other_value = {"payload": b"!", "body": b"!", "names": (), "at": 0.5}[difference]

    async def check():
        store = await filled()
        mine = odd_records()[:3]
        fields = {name: getattr(mine[1], name) for name in ("payload", "body", "names", "at")}
        mine[1] = Record(2, **{**fields, difference: other_value})
        async with MemoryStore() as other:
            await keep(other, "a", *mine)
            done = await imported(other, await exported(store))
            assert done == Imported(2, 4, 0, ("a",))
            assert (await held(other))["a"] == mine
            assert list(await held(other)) == list(await held(store))

    asyncio.run(check())


def test_an_import_that_failed_is_finished_by_another(monkeypatch):
    monkeypatch.setattr(transfer, "BATCH_RECORDS", 2)

    class Failing(MemoryStore):
        left = 0

        async def append(self, claim, after, records, **how):
            self.left -= 1
            if self.left == 0:
                raise CannotWrite("the disk is full")
            await super().append(claim, after, records, **how)

    async def failed_at(nth: int, store: MemoryStore, content: bytes) -> bool:
        async with Failing() as other:
            other.left = nth
            try:
                await imported(other, content)
            except CannotWrite:
                failed = True
                assert (await imported(other, content)).refused == ()
            else:
                failed = False
            assert await held(other) == await held(store)
            return failed

    async def check():
        store = await filled()
        content = await exported(store)
        nth = 1
        while await failed_at(nth, store, content):
            nth += 1
        assert nth > 5

    asyncio.run(check())


# --- files that are not right ------------------------------------------------------------------


def test_a_file_cut_anywhere_leaves_whole_conversations_and_is_told():
    async def check():
        store = await filled()
        content = await exported(store)
        whole = await held(store)
        lines = content.splitlines(keepends=True)
        for count, line in enumerate(lines):
            before = b"".join(lines[:count])
            for cut in (before, before + line[:-1], before + line[: len(line) // 2]):
                if cut == content[:-1]:
                    continue  # only its last line end is missing
                async with MemoryStore() as other:
                    with pytest.raises(NotAnExport, match=r"store\.jsonl"):
                        await imported(other, cut)
                    there = await held(other)
                    assert all(whole[name] == records for name, records in there.items())
                    assert len(there) == before.count(b'"line":"whole"') + (
                        cut == before + line[:-1] and b'"line":"whole"' in line
                    )

    asyncio.run(check())


WHOLE_A = (
    b'{"line":"record","conversation":"a","seq":1,"at":1.0,"names":[],"payload":"{}","body":null}\n'
    b'{"line":"whole","conversation":"a","length":1}\n'
)
HEAD = b'{"line":"lockstitch store","version":1}\n'
RECORD = (
    b'{"line":"record","conversation":"%s","seq":%d,"at":1,"names":[],"payload":"","body":"x"}\n'
)


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (b"not json\n", "line 4: is torn, or is none of an export"),
        (b"\n", "line 4: is torn"),
        (RECORD % (b"\xff", 1), "line 4: is torn, or is none of an export"),
        (b'{"line":"other"}\n', "line 4: is torn, or is none of an export"),
        (b"[" * 100_000 + b"\n", "line 4: is torn"),
        (RECORD % (b"b", 2), "line 4: has record 2 where 1 should be"),
        (RECORD % (b"b", 1) + RECORD % (b"b", 1), "line 5: has record 1 where 2 should be"),
        (RECORD % (b"b", 1) + RECORD % (b"c", 1), "line 5: begins 'c' inside 'b'"),
        (RECORD.replace(b',"body":"x"', b"") % (b"b", 1), "line 4: is torn, or is none"),
        (RECORD.replace(b'"x"', b'{"base64":"*"}') % (b"b", 1), "line 4: is torn, or is none"),
        (RECORD.replace(b'"x"', b'"x","new":1') % (b"b", 1), "line 4: is torn, or is none"),
        (b'{"line":"whole","conversation":"b","length":0}\n', "line 4: closes 'b', which is not"),
        (
            RECORD % (b"b", 1) + b'{"line":"whole","conversation":"b","length":2}\n',
            "line 5: tells of 2 records, and 1 are above",
        ),
        (
            RECORD % (b"b", 1) + b'{"line":"end","conversations":1,"records":1}\n',
            "line 5: ends the export inside 'b'",
        ),
        (
            b'{"line":"end","conversations":2,"records":2}\n',
            "line 4: tells of 2 conversations with 2 records, and 1 with 1 are above",
        ),
        (
            b'{"line":"end","conversations":1,"records":1}\n' + RECORD % (b"b", 1),
            "line 5: comes after the end",
        ),
        (HEAD, "line 4: is the head of another export"),
        (b"", "is incomplete: it stops after line 3"),
    ],
)
def test_a_wrong_line_is_told_and_what_was_complete_is_kept(lines, told):
    async def check():
        async with MemoryStore() as store:
            with pytest.raises(NotAnExport) as refused:
                await imported(store, HEAD + WHOLE_A + lines)
            assert told in str(refused.value)
            assert "complete" in str(refused.value)
            assert list(await held(store)) == ["a"]

    asyncio.run(check())


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "is empty"),
        (b"\x00\xff\n", "is no export of a store"),
        (b'{"type":"session_meta"}\n', "is no export of a store"),
        (b'{"line":"lockstitch \xff"}\n', "is no export of a store"),
        (WHOLE_A, "is no export of a store"),
        (b'{"line":"lockstitch store","version":2}\n', "of version 2, and this"),
    ],
)
def test_a_file_that_is_no_export_is_told_so(content, told):
    async def check():
        async with MemoryStore() as store:
            with pytest.raises(NotAnExport, match=told):
                await imported(store, content)

    asyncio.run(check())


# --- while others write ------------------------------------------------------------------------


def test_a_conversation_is_exported_as_it_was_when_its_turn_came():
    async def check():
        async with MemoryStore() as store:
            await keep(store, "a", Record(1, b"{}"), Record(2, b"{}"))
            original = store.read

            async def grown(conversation, *, after=0):
                await keep(store, "a", Record(3, b"{}"))
                async for record in original(conversation, after=after):
                    yield record

            store.read = grown
            file = io.BytesIO()
            assert await export_store(store, file) == Exported(1, 2)

    asyncio.run(check())


def test_a_conversation_that_is_deleted_meanwhile_is_not_half_there():
    async def check():
        store = await filled()
        original = store.read

        async def cut(conversation, *, after=0):
            async for record in original(conversation, after=after):
                if conversation == "a" and record.seq == 3:
                    return
                yield record

        store.read = cut
        content = await exported(store)
        async with MemoryStore() as other:
            assert await imported(other, content) == Imported(2, 4, 0, ())
            assert list(await held(other)) == ["b \0\u2028", "c"]

    asyncio.run(check())


# --- size --------------------------------------------------------------------------------------


def test_memory_does_not_grow_with_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr(transfer_spools, "SPOOL_BYTES", 500_000)
    monkeypatch.setattr(transfer, "BATCH_BYTES", 500_000)
    body, records = b"x" * 100_000, 200
    one, other = tmp_path / "one.jsonl", tmp_path / "other.jsonl"

    async def peak(work) -> int:
        async with await SqliteStore.open(tmp_path / "store.db") as store:
            tracemalloc.start()
            try:
                await work(store)
                return tracemalloc.get_traced_memory()[1]
            finally:
                tracemalloc.stop()

    async def taken_in(store):
        with one.open("rb") as file:
            assert (await import_store(store, file)).records == records

    async def given_out(store):
        with other.open("wb") as file:
            assert (await export_store(store, file)).records == records

    with one.open("wb") as file:
        file.write(HEAD)
        for n in range(1, records + 1):
            file.write(RECORD.replace(b'"x"', b'"%d%s"' % (n, body)) % (b"a", n))
        file.write(b'{"line":"whole","conversation":"a","length":%d}\n' % records)
        file.write(b'{"line":"end","conversations":1,"records":%d}\n' % records)
    assert one.stat().st_size > 20_000_000
    assert asyncio.run(peak(taken_in)) < 5_000_000
    assert asyncio.run(peak(given_out)) < 5_000_000
