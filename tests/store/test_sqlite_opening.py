"""Which files are opened as a SQLite store, and what is said of those that are not."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import shutil
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from lockstitch.store.errors import CannotOpen, Damaged, SchemaTooNew, StoreError
from lockstitch.store.sqlite import SqliteStore
from lockstitch.store.sqlite import opening as sqlite_opening
from lockstitch.testing.store_contract.opened import contents, filled, several

NOBODY = 65_534


async def opened(path: Path) -> None:
    await (await SqliteStore.open(path)).close()


async def fill(path: Path) -> None:
    async with await SqliteStore.open(path) as store:
        await store.release(await filled(store, "kept", 40))


async def read(path: Path) -> None:
    async with await SqliteStore.open(path) as store:
        assert await contents(store, "kept") == several(1, 40)


@pytest.fixture
def path(tmp_path) -> Path:
    """A store with something in it."""
    asyncio.run(fill(tmp_path / "store.db"))
    return tmp_path / "store.db"


def changed(path: Path, statements: str) -> None:
    connection = apsw.Connection(str(path))
    connection.execute(statements)
    connection.close()


@contextlib.contextmanager
def without_privileges() -> Iterator[None]:
    """As a user for whom permissions count."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


@pytest.fixture
def public(path) -> Iterator[Path]:
    """A copy of the store that everybody may read and write, in a folder of its own."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o777)
        shutil.copy(path, folder / "store.db")
        (folder / "store.db").chmod(0o666)
        yield folder / "store.db"
        folder.chmod(0o777)


def test_a_folder_that_is_not_there_is_said(tmp_path):
    with pytest.raises(CannotOpen, match=r"no folder .*missing. Create it"):
        asyncio.run(opened(tmp_path / "missing" / "store.db"))
    assert list(tmp_path.iterdir()) == []


def test_a_folder_in_which_no_file_can_be_made_is_told_with_what_to_do(tmp_path, monkeypatch):
    def refusing(path, flags, mode=0o777):
        raise FileNotFoundError(errno.ENOENT, "No such file or directory")  # as in /proc

    monkeypatch.setattr(sqlite_opening.os, "open", refusing)
    with pytest.raises(CannotOpen, match=r"cannot be created \(No such .* Name a file in another"):
        asyncio.run(opened(tmp_path / "store.db"))


def test_a_folder_is_no_store(tmp_path):
    with pytest.raises(CannotOpen, match="it is a folder"):
        asyncio.run(opened(tmp_path))


def test_an_empty_file_becomes_a_store(tmp_path):
    (tmp_path / "store.db").touch()
    asyncio.run(fill(tmp_path / "store.db"))
    asyncio.run(read(tmp_path / "store.db"))


@pytest.mark.parametrize(
    "statements",
    [
        "CREATE TABLE notes (text)",
        "PRAGMA user_version = 1",
        "PRAGMA application_id = 7; CREATE TABLE notes (text)",
    ],
)
def test_the_database_of_another_application_is_refused_and_left_alone(tmp_path, statements):
    other = tmp_path / "other.db"
    changed(other, statements)
    before = other.read_bytes()
    with pytest.raises(CannotOpen, match="another application; nothing was changed"):
        asyncio.run(opened(other))
    assert other.read_bytes() == before


def test_a_newer_schema_is_refused_and_left_alone(path):
    newer = sqlite_opening.SCHEMA + 2
    changed(path, f"PRAGMA user_version = {newer}")
    before = path.read_bytes()
    with pytest.raises(
        SchemaTooNew,
        match=rf"newer Lockstitch \(schema {newer}, this one knows {newer - 2}\)\. Upgrade",
    ):
        asyncio.run(opened(path))
    assert path.read_bytes() == before


@pytest.fixture
def next_schema(monkeypatch) -> list[str]:
    """As if this were a later version, with one more migration."""
    migrations = [
        *sqlite_opening.MIGRATIONS,
        "CREATE TABLE later (x); INSERT INTO later VALUES (1)",
    ]
    monkeypatch.setattr(sqlite_opening, "MIGRATIONS", migrations)
    monkeypatch.setattr(sqlite_opening, "SCHEMA", len(migrations))
    return migrations


def test_an_older_schema_is_migrated_once_and_keeps_what_it_has(path, next_schema):
    for _ in range(2):
        asyncio.run(read(path))
    connection = apsw.Connection(str(path))
    assert connection.pragma("user_version") == len(next_schema)
    assert connection.execute("SELECT count(*) FROM later").get == 1
    connection.close()


def test_a_migration_that_fails_changes_nothing(path, next_schema, monkeypatch):
    next_schema[-1] = "CREATE TABLE later (x); INSERT INTO nowhere VALUES (1)"
    with pytest.raises(CannotOpen, match="nowhere"):
        asyncio.run(opened(path))
    monkeypatch.undo()
    asyncio.run(read(path))
    connection = apsw.Connection(str(path))
    assert connection.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'later'").get == 0
    connection.close()


def test_several_may_begin_one_store_at_once(tmp_path):
    async def open_all() -> None:
        await asyncio.gather(*(opened(tmp_path / "store.db") for _ in range(8)))

    asyncio.run(open_all())


@pytest.mark.parametrize("version", ["3.40.1", "3.51.2"])
def test_a_sqlite_that_can_corrupt_a_file_is_refused(tmp_path, monkeypatch, version):
    monkeypatch.setattr(apsw, "sqlite_lib_version", lambda: version)
    with pytest.raises(CannotOpen, match=rf"SQLite {version} .*3\.51\.3 or newer.*Upgrade .*apsw"):
        asyncio.run(opened(tmp_path / "store.db"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("version", ["3.51.3", "3.100.0", "4.0.0"])
def test_a_newer_sqlite_is_taken(version):
    sqlite_opening.check_version(version)


def test_a_file_that_is_locked_for_too_long_is_said(path, monkeypatch):
    monkeypatch.setattr(sqlite_opening, "BUSY_SECONDS", 0.05)
    other = apsw.Connection(str(path))
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(CannotOpen, match="another process has it locked"):
        asyncio.run(opened(path))
    other.close()
    asyncio.run(read(path))


@pytest.mark.parametrize("what", ["file", "folder"])
def test_what_is_read_only_is_not_opened_and_stays_as_it_was(public, what):
    target = public if what == "file" else public.parent
    writable = target.stat().st_mode
    target.chmod(writable & 0o555)
    with without_privileges(), pytest.raises(CannotOpen, match=f"the {what} .*is read-only"):
        asyncio.run(opened(public))
    target.chmod(writable)
    assert list(public.parent.iterdir()) == [public]
    with without_privileges():
        asyncio.run(read(public))


def test_a_store_cannot_begin_in_a_folder_that_is_read_only(public):
    public.parent.chmod(0o555)
    with without_privileges(), pytest.raises(CannotOpen, match=r"the folder .* is read-only"):
        asyncio.run(opened(public.with_name("new.db")))


def test_a_store_whose_name_is_too_long_for_the_disk_is_said(tmp_path):
    with pytest.raises(CannotOpen, match="cannot be"):
        asyncio.run(opened(tmp_path / ("x" * 300)))


def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path):
    file = tmp_path / "store.db"
    file.write_bytes(b"Dear diary, today I kept a conversation whole. " * 100)
    before = file.read_bytes()
    with pytest.raises(Damaged, match=r"not a SQLite database.*Restore it from a backup"):
        asyncio.run(opened(file))
    assert file.read_bytes() == before


def test_a_file_that_was_cut_off_is_refused_with_what_to_do(path):
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2)
    before = path.read_bytes()
    with pytest.raises(Damaged, match=r"backup.*`lockstitch store export`"):
        asyncio.run(read(path))
    assert path.read_bytes() == before


def test_damage_in_any_page_is_met_as_damage_and_never_as_other_records(path):
    whole = path.read_bytes()
    pages = len(whole) // sqlite_opening.PAGE_BYTES
    met = 0
    for page in range(pages):
        start = page * sqlite_opening.PAGE_BYTES
        path.write_bytes(
            whole[:start] + b"\xa5" * 512 + whole[start + 512 :]  # its header, and more
        )
        try:
            asyncio.run(read(path))
        except StoreError as error:
            assert isinstance(error, Damaged)  # noqa: PT017
            met += 1
        for beside in ("-wal", "-shm"):
            path.with_name(path.name + beside).unlink(missing_ok=True)
    assert met >= 4  # the schema, the conversations, the records and their index


def test_an_append_that_meets_damage_says_so_and_writes_nothing(path):
    async def append() -> None:
        async with await SqliteStore.open(path) as store:
            claim = await store.claim("kept", owner="x", seconds=60)
            await store.append(claim, 40, several(41, 41))

    connection = apsw.Connection(str(path))
    root = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'records'").get
    connection.close()
    with path.open("r+b") as file:
        file.seek((root - 1) * sqlite_opening.PAGE_BYTES)
        file.write(b"\xa5" * 512)
    with pytest.raises(Damaged, match="Nothing was changed"):
        asyncio.run(append())


@pytest.mark.parametrize(
    ("damage", "what"),
    [
        ("DELETE FROM records WHERE seq = 20", "record 20 is missing"),
        ("DELETE FROM records WHERE seq = 1", "record 1 is missing"),
        ("UPDATE records SET names = x'7b' WHERE seq = 7", "Expected `array`"),
        ("""UPDATE records SET names = x'5b5b2263616c6c222c22ff225d5d' WHERE seq = 7""", "utf-8"),
        ("UPDATE records SET body = NULL, large = 9 WHERE seq = 7", "record 7 has lost its body"),
    ],
)
def test_damage_that_sqlite_does_not_see_is_seen(path, damage, what):
    changed(path, damage)
    with pytest.raises(Damaged, match=f"{what}.*backup"):
        asyncio.run(read(path))


def test_a_name_that_is_no_text_is_damage_for_whoever_lists_or_claims_it(path):
    changed(path, "UPDATE conversations SET name = CAST(x'6bff' AS TEXT), until = NULL")

    async def list_them() -> None:
        async with await SqliteStore.open(path) as store:
            assert [one async for one in store.conversations()]

    with pytest.raises(Damaged, match=r"utf-8.*backup"):
        asyncio.run(list_them())
    changed(path, "UPDATE conversations SET name = 'kept', owner = CAST(x'ff' AS TEXT)")

    async def claim() -> None:
        async with await SqliteStore.open(path) as store:
            await store.claim("kept", owner="x", seconds=60)

    with pytest.raises(Damaged, match=r"utf-8.*backup"):
        asyncio.run(claim())


def test_opening_that_is_cancelled_lets_go_of_the_file(tmp_path):
    async def cancel() -> None:
        opening = asyncio.create_task(SqliteStore.open(tmp_path / "store.db"))
        await asyncio.sleep(0)
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
        while any(one.name.startswith("lockstitch") for one in threading.enumerate()):
            await asyncio.sleep(0.001)

    asyncio.run(asyncio.wait_for(cancel(), timeout=30))
