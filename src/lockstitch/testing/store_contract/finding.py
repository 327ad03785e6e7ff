"""Checks of how a name is found: every kind of it, where it stands, the newest first."""

from __future__ import annotations

from lockstitch.core.records import Name, Naming
from lockstitch.store.contract import Found
from lockstitch.testing.store_contract.opened import ODD_TEXTS, Opened, claimed, record


async def a_name_is_found_by_its_kind(opened: Opened) -> None:
    async with opened() as store:
        names = [Name(naming, "same") for naming in Naming]
        records = [record(seq, names=[name]) for seq, name in enumerate(names, start=1)]
        await store.append(await claimed(store, "a"), 0, records)
        for seq, name in enumerate(names, start=1):
            assert await store.find(name) == [Found("a", seq)]


async def a_name_that_nobody_has_is_found_nowhere(opened: Opened) -> None:
    async with opened() as store:
        name = Name(Naming.CALL, "call_1")
        await store.append(await claimed(store, "a"), 0, [record(1, names=[name])])
        assert await store.find(Name(Naming.CALL, "call_")) == []
        assert await store.find(Name(Naming.CALL, "CALL_1")) == []
        assert await store.find(Name(Naming.ITEM, "call_1")) == []


async def an_odd_name_is_found_and_no_other(opened: Opened) -> None:
    async with opened() as store:
        records = [
            record(seq, names=[Name(Naming.ITEM, text)])
            for seq, text in enumerate(ODD_TEXTS, start=1)
        ]
        await store.append(await claimed(store, "a"), 0, records)
        for seq, text in enumerate(ODD_TEXTS, start=1):
            assert await store.find(Name(Naming.ITEM, text)) == [Found("a", seq)]


async def the_newest_is_found_first(opened: Opened) -> None:
    name = Name(Naming.RESPONSE, "resp_1")
    async with opened() as store:
        one, other = await claimed(store, "b"), await claimed(store, "a")
        await store.append(one, 0, [record(1, names=[name]), record(2, names=[name])])
        await store.append(other, 0, [record(1), record(2, names=[name])])
        await store.append(one, 2, [record(3), record(4), record(5, names=[name])])
        assert await store.find(name) == [
            Found("b", 5),
            Found("a", 2),
            Found("b", 2),
            Found("b", 1),
        ]


async def every_name_of_a_record_leads_to_it(opened: Opened) -> None:
    async with opened() as store:
        names = [Name(Naming.CALL, f"call_{n}") for n in range(20)]
        await store.append(await claimed(store, "a"), 0, [record(1, names=names)])
        for name in names:
            assert await store.find(name) == [Found("a", 1)]
