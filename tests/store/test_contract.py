"""Every store keeps every promise of the contract: in memory, SQLite, PostgreSQL; each sealed too.

What the promises are is in `lockstitch.testing.store_contract`, which is shipped."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from lockstitch.store.contract import Store
from lockstitch.store.memory import MemoryStore
from lockstitch.store.sealing import Sealed
from lockstitch.testing.store_contract import CHECKS, LASTING_CHECKS, Check, Opened
from lockstitch.testing.store_contract.model import StoreMachine
from tests.store.kept import some_keys


def name_of(check: Check) -> str:
    return check.__name__


def in_sqlite(path: Path) -> Opened:
    @asynccontextmanager
    async def opened() -> AsyncIterator[Store]:
        from lockstitch.store.sqlite import SqliteStore

        store = await SqliteStore.open(path)
        try:
            yield store
        finally:
            await store.close()

    return opened


def in_postgres(url: str) -> Opened:
    @asynccontextmanager
    async def opened() -> AsyncIterator[Store]:
        from lockstitch.store.postgres import PostgresStore

        store = await PostgresStore.open(url, migrate=True)
        try:
            yield store
        finally:
            await store.close()

    return opened


@pytest.fixture
def sqlite(tmp_path):
    return in_sqlite(tmp_path / "store.db")


@pytest.fixture
def postgres(postgres_url):
    return in_postgres(postgres_url)


def sealed(opened: Opened) -> Opened:
    """The same place, with an encrypted store in it."""

    @asynccontextmanager
    async def opened_and_sealed() -> AsyncIterator[Store]:
        async with opened() as store:
            yield Sealed(store, some_keys(2, 1))

    return opened_and_sealed


def plain(opened: Opened) -> Opened:
    return opened


either_way = pytest.mark.parametrize("wrapped", [plain, sealed], ids=["plain", "sealed"])


@either_way
@pytest.mark.parametrize("check", CHECKS, ids=name_of)
def test_a_store_in_memory_keeps_the_contract(check, wrapped):
    asyncio.run(check(wrapped(MemoryStore)))


@either_way
@pytest.mark.parametrize("check", CHECKS + LASTING_CHECKS, ids=name_of)
def test_sqlite_keeps_the_contract(check, wrapped, sqlite):
    asyncio.run(check(wrapped(sqlite)))


@either_way
@pytest.mark.parametrize("check", CHECKS + LASTING_CHECKS, ids=name_of)
def test_postgres_keeps_the_contract(check, wrapped, postgres):
    asyncio.run(check(wrapped(postgres)))


class MemoryMachine(StoreMachine):
    def place(self):
        return MemoryStore


class SqliteMachine(StoreMachine):
    lasts = True

    def place(self):
        self._folder = TemporaryDirectory()
        return in_sqlite(Path(self._folder.name) / "store.db")

    def teardown(self):
        super().teardown()
        self._folder.cleanup()


def test_a_store_in_memory_agrees_with_a_dictionary():
    run_state_machine_as_test(
        MemoryMachine, settings=settings(max_examples=50, stateful_step_count=30)
    )


def test_sqlite_agrees_with_a_dictionary():
    run_state_machine_as_test(
        SqliteMachine, settings=settings(max_examples=20, stateful_step_count=30)
    )
