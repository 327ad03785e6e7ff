"""A URL opens a store: which kind, with which keys, and what is said where it cannot."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from pathlib import Path

import pytest

from lockstitch.core.records import Record
from lockstitch.store.errors import CannotOpen, NotAKey, StoreError, UnknownStore
from lockstitch.store.keys import new_key
from lockstitch.store.memory import MemoryStore
from lockstitch.store.opening import open_store
from lockstitch.store.sealing import Sealed
from tests.store.kept import held, keep, some_keys

OPENED_WITHOUT = """
import asyncio, sys
sys.modules[sys.argv[1]] = None
from lockstitch.store.opening import open_store
from lockstitch.store.errors import UnknownStore
try:
    asyncio.run(open_store(sys.argv[2]).__aenter__())
except UnknownStore as error:
    print(error)
"""


@pytest.fixture(autouse=True)
def no_keys(monkeypatch, tmp_path):
    monkeypatch.delenv("LOCKSTITCH_STORE_KEY", raising=False)
    monkeypatch.delenv("LOCKSTITCH_STORE_KEY_FILE", raising=False)
    monkeypatch.chdir(tmp_path)


def kept_through(url: str, **how) -> None:
    """Write by one opening and read by the next."""

    async def check():
        store = await open_store(url, migrate=True, **how)
        await keep(store, "a", Record(1, b"{}", at=1.0))
        await store.close()
        async with open_store(url, **how) as store:
            assert await held(store) == {"a": [Record(1, b"{}", at=1.0)]}

    asyncio.run(check())


def test_three_slashes_and_a_relative_path_is_a_file_of_sqlite(tmp_path):
    kept_through("sqlite:///store.db")
    assert (tmp_path / "store.db").exists()


def test_four_slashes_is_an_absolute_path(tmp_path):
    kept_through(f"sqlite:///{tmp_path}/other.db")
    assert (tmp_path / "other.db").exists()


def test_postgresql_is_a_database(postgres_url):
    kept_through(postgres_url)


def test_postgres_is_the_same(postgres_url):
    kept_through(postgres_url.replace("postgresql://", "postgres://"), keys=some_keys(1))


def test_memory_is_a_store_of_its_own_each_time():
    async def check():
        async with open_store("memory:") as store:
            assert isinstance(store, MemoryStore)
            await keep(store, "a", Record(1, b"{}"))
        with pytest.raises(StoreError, match="closed"):
            await store.stats()
        async with open_store("memory:") as store:
            assert await held(store) == {}

    asyncio.run(check())


@pytest.mark.parametrize(
    "url",
    [
        "",
        "mysql://me:hunter2@host/database",
        "sqlite:store.db",
        "sqlite://store.db",
        "sqlite:///",
        "me:hunter2@host",
        "host=database password=hunter2",
    ],
)
def test_any_other_url_is_refused_with_the_forms_and_without_its_password(url):
    async def check():
        with pytest.raises(UnknownStore) as refused:
            await open_store(url)
        assert "sqlite:///relative/path.db" in str(refused.value)
        assert "postgresql://user@host/database" in str(refused.value)
        assert "hunter2" not in str(refused.value)

    asyncio.run(check())


@pytest.mark.parametrize("path", ["agent.db", "/var/lib/agent.db", "../two-words.sqlite3"])
def test_who_names_a_file_is_told_its_url(path):
    async def check():
        with pytest.raises(UnknownStore, match=re.escape(f"write sqlite:///{path};")):
            await open_store(path)

    asyncio.run(check())


def test_a_file_that_is_not_there_is_not_begun_where_it_must_not_be(tmp_path):
    async def check():
        with pytest.raises(CannotOpen, match=r"There is no store at sqlite:///typo\.db"):
            await open_store("sqlite:///typo.db", create=False)
        assert not (tmp_path / "typo.db").exists()

    asyncio.run(check())


def test_keys_make_it_an_encrypted_one():
    kept_through("sqlite:///store.db", keys=some_keys(1))

    async def check():
        async with open_store("sqlite:///store.db") as plain:
            (kept,) = (await held(plain))["a"]
            assert kept.payload != b"{}"

    asyncio.run(check())


def test_keys_of_the_environment_are_used(monkeypatch, tmp_path):
    async def opened():
        async with open_store("memory:") as store:
            return store

    assert isinstance(asyncio.run(opened()), MemoryStore)
    monkeypatch.setenv("LOCKSTITCH_STORE_KEY", new_key())
    assert isinstance(asyncio.run(opened()), Sealed)
    monkeypatch.delenv("LOCKSTITCH_STORE_KEY")
    (tmp_path / "keys").write_text(new_key())
    monkeypatch.setenv("LOCKSTITCH_STORE_KEY_FILE", "keys")
    assert isinstance(asyncio.run(opened()), Sealed)


@pytest.mark.parametrize("url", [None, 5, Path("store.db"), b"memory:"])
def test_what_is_no_text_is_no_url(url):
    with pytest.raises(UnknownStore, match="is not a store URL"):
        asyncio.run(open_store(url).__aenter__())


def test_keys_that_are_none_are_told_before_anything_is_begun(tmp_path):
    with pytest.raises(NotAKey, match=r"Keys\.from_text"):
        asyncio.run(open_store("sqlite:///store.db", keys=new_key()).__aenter__())
    assert list(tmp_path.iterdir()) == []


def test_with_a_wrong_key_no_store_is_begun(monkeypatch, tmp_path):
    monkeypatch.setenv("LOCKSTITCH_STORE_KEY", "wrong")

    async def check():
        with pytest.raises(NotAKey):
            await open_store("sqlite:///store.db")

    asyncio.run(check())
    assert not (tmp_path / "store.db").exists()


@pytest.mark.parametrize(
    ("driver", "extra", "url", "key"),
    [
        ("apsw", "sqlite", "sqlite:///store.db", ""),
        ("asyncpg", "postgres", "postgresql://localhost/none", ""),
        ("cryptography", "encryption", "memory:", "ab" * 64),
    ],
    ids=["sqlite", "postgres", "encryption"],
)
def test_a_driver_that_is_missing_is_told_with_its_extra(driver, extra, url, key, monkeypatch):
    monkeypatch.setenv("LOCKSTITCH_STORE_KEY", key)
    ran = subprocess.run(
        [sys.executable, "-c", OPENED_WITHOUT, driver, url],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert f"needs {driver}" in ran.stdout
    assert f"pip install 'lockstitch[{extra}]'" in ran.stdout


def test_no_driver_is_imported_before_it_is_used():
    code = (
        "import sys, lockstitch.store.opening, lockstitch.store.transfer;"
        "print([name for name in ('apsw', 'asyncpg', 'cryptography') if name in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"
