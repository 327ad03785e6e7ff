"""Who holds a claim, and whether that process still runs: with `/proc`, and as on macOS without."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from lockstitch.ledgers import item_added
from lockstitch.store import Journal, open_store, owners
from lockstitch.store.errors import ConversationBusy
from lockstitch.store.memory import MemoryStore
from lockstitch.store.owners import describe_owner, is_gone, new_owner

NO_PROC = Path("/there/is/no/proc")

HOLDER = """
import asyncio, pathlib, sys
from lockstitch.ledgers import item_added
from lockstitch.store import Journal, open_store, owners

async def main(url, proc):
    owners._PROC = pathlib.Path(proc)
    async with open_store(url) as store:
        journal = await Journal.open(store, "thread", seconds=1_000)
        await journal.append(item_added("hello"))
        print(journal._claim.owner, flush=True)
        await asyncio.sleep(1_000)

asyncio.run(main(*sys.argv[1:]))
"""
"""A process that holds a conversation until it is killed."""

NAMED = """
import pathlib, sys
from lockstitch.store import owners
owners._PROC = pathlib.Path(sys.argv[1])
print(owners.new_owner())
"""


@pytest.fixture(autouse=True)
def temporary_folder(tmp_path, monkeypatch):
    """A temporary folder of its own for this test and the processes it starts."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setattr(owners, "_this", None)
    return folder


@pytest.fixture(params=["with /proc", "without /proc"])
def proc(request, monkeypatch) -> Path:
    """Without it everything is as on macOS."""
    if request.param == "without /proc":
        monkeypatch.setattr(owners, "_PROC", NO_PROC)
        return NO_PROC
    if not Path("/proc/self/stat").exists():
        pytest.skip("this system has no /proc")
    return Path("/proc")


@contextmanager
def holder(url: str, proc: Path):
    """A process that holds the conversation "thread", and the owner of its claim."""
    command = [sys.executable, "-c", HOLDER, url, str(proc)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process, process.stdout.readline().strip()
        finally:
            process.kill()


def owner_that_ended(proc: Path = Path("/proc")) -> str:
    command = [sys.executable, "-c", NAMED, str(proc)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def lock_files(temporary_folder: Path) -> list[Path]:
    return sorted((temporary_folder / f"lockstitch-{os.getuid()}").iterdir())


# --- after kill -9 -----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_after_kill_9_another_process_continues_at_once(kind, proc, tmp_path, request):
    url = f"sqlite:///{tmp_path}/store.db"
    if kind == "postgres":
        url = request.getfixturevalue("postgres_url")

    async def goes_on() -> int:
        async with open_store(url) as store, await Journal.open(store, "thread") as journal:
            return await journal.append(item_added("again"))

    with holder(url, proc) as (process, owner):
        with pytest.raises(ConversationBusy, match=f"process {process.pid} on "):
            asyncio.run(goes_on())
        assert not is_gone(owner)
        process.send_signal(signal.SIGKILL)
        process.wait()
        began = time.monotonic()
        assert asyncio.run(goes_on()) == 3
        assert time.monotonic() - began < 20  # the claim was for 1,000 seconds


def test_a_killed_process_that_nobody_has_waited_for_is_gone(tmp_path, monkeypatch):
    """A zombie still has its process id; `/proc` and `kill(pid, 0)` both find it."""
    with holder(f"sqlite:///{tmp_path}/store.db", NO_PROC) as (process, owner):
        process.send_signal(signal.SIGKILL)
        patience_ends = time.monotonic() + 20
        while not is_gone(owner):
            assert time.monotonic() < patience_ends
            time.sleep(0.01)


def test_a_process_that_ended_normally_leaves_no_lock_file(temporary_folder):
    owner_that_ended()
    assert lock_files(temporary_folder) == []


def test_old_lock_files_of_killed_processes_are_removed_and_held_ones_are_not(
    temporary_folder, tmp_path
):
    url = f"sqlite:///{tmp_path}/store.db"
    with holder(url, NO_PROC) as (process, _):
        (held,) = lock_files(temporary_folder)
        os.utime(held, (0, 0))
        killed, fresh = held.with_name("aaaa"), held.with_name("bbbb")
        for path in (killed, fresh):
            path.touch()
        os.utime(killed, (0, 0))
        owner_that_ended()
        assert lock_files(temporary_folder) == sorted([held, fresh])
        process.kill()


# --- what is certain, and what is not ----------------------------------------------------------


def test_a_process_that_runs_is_not_gone(proc):
    owner = new_owner()
    for _ in range(3):  # asking must not release our own lock
        assert not is_gone(owner)
    command = [sys.executable, "-c", "import sys; from lockstitch.store import owners, owners as o"]
    command[-1] += "; print(o.is_gone(sys.argv[1]))"
    asked = subprocess.run([*command, owner], check=True, capture_output=True, text=True)
    assert asked.stdout == "False\n"


def test_an_id_that_is_used_again_is_another_process():
    owner = owner_that_ended()
    pid = owner.split(":")[1]
    assert is_gone(owner.replace(f":{pid}:", f":{os.getpid()}:"))


def test_without_proc_a_process_id_alone_proves_nothing(monkeypatch):
    """Its lock file is gone with its exit, and its id may belong to another process by now."""
    monkeypatch.setattr(owners, "_PROC", NO_PROC)
    assert not is_gone(owner_that_ended(NO_PROC))


def test_a_process_with_another_temporary_folder_is_respected_until_its_claim_runs_out(
    tmp_path, monkeypatch
):
    """So are containers that share a store, but neither process ids nor a temporary folder."""
    with holder(f"sqlite:///{tmp_path}/store.db", NO_PROC) as (process, owner):
        monkeypatch.setattr(owners, "_PROC", NO_PROC)
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
        assert not is_gone(owner)
        process.kill()
        process.wait()
        assert not is_gone(owner)


def test_a_lock_file_of_another_host_proves_nothing(tmp_path, monkeypatch):
    """A temporary folder on a network file system may have locks that other hosts do not see."""
    with holder(f"sqlite:///{tmp_path}/store.db", NO_PROC) as (process, owner):
        process.kill()
        process.wait()
        assert is_gone(owner)
        assert not is_gone(f"elsewhere{owner}")


@pytest.mark.parametrize("spoil", ["link", "open to all", "a file"])
def test_a_folder_that_others_can_change_is_not_trusted(temporary_folder, monkeypatch, spoil):
    folder = temporary_folder / f"lockstitch-{os.getuid()}"
    if spoil == "link":
        folder.symlink_to(temporary_folder)
    elif spoil == "a file":
        folder.touch()
    else:
        folder.mkdir()
        folder.chmod(0o777)
    monkeypatch.setattr(owners, "_PROC", NO_PROC)
    owner = new_owner()
    assert owners._this is not None
    assert owners._this.held is None
    assert not is_gone(owner)


def test_lock_files_are_private(temporary_folder):
    new_owner()
    (path,) = lock_files(temporary_folder)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_where_there_are_no_locks_a_claim_is_respected(monkeypatch):
    """As on Windows."""
    monkeypatch.setattr(owners, "fcntl", None)
    monkeypatch.setattr(owners, "_PROC", NO_PROC)
    assert not is_gone(new_owner())
    assert not is_gone(owner_that_ended(NO_PROC))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_process_is_an_owner_of_its_own_and_keeps_no_lock_of_its_parent(monkeypatch):
    code = """
import os, sys, time
from lockstitch.store import owners
mine = owners.new_owner()
if os.fork() == 0:
    print(owners.new_owner(), owners.is_gone(mine), flush=True)
    time.sleep(1_000)
time.sleep(0.5)
print(mine, flush=True)
os.kill(os.getpid(), 9)
"""
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        child, seen = process.stdout.readline().split()
        parent = process.stdout.readline().strip()
        process.wait()
        try:
            assert (seen, child.split(":")[1] != parent.split(":")[1]) == ("False", True)
            monkeypatch.setattr(owners, "_PROC", NO_PROC)
            assert is_gone(parent)
            assert not is_gone(child)
        finally:
            os.kill(int(child.split(":")[1]), signal.SIGKILL)


@pytest.mark.parametrize(
    "owner",
    ["", "bench", "a:b:c:d:e", "elsewhere:1:12345678.9:5:aa-0", "\0", "::::", "h:1:-:-:../../x-0"],
)
def test_of_what_is_not_a_process_here_nothing_is_certain(owner):
    assert not is_gone(owner)
    assert describe_owner(owner) in (owner, "process 1 on elsewhere")


def test_no_two_owners_are_the_same():
    assert new_owner() != new_owner()


# --- journals ----------------------------------------------------------------------------------


def test_the_claim_of_a_process_that_ended_is_taken_over_at_once():
    async def run():
        store = MemoryStore()
        await store.claim("c", owner=owner_that_ended(), seconds=1_000)
        async with await Journal.open(store, "c") as journal:
            return journal.conversation

    assert asyncio.run(run()) == "c"


def test_the_claim_of_a_process_that_runs_is_respected(proc):
    async def run():
        store = MemoryStore()
        await store.claim("c", owner=new_owner(), seconds=1_000)
        with pytest.raises(ConversationBusy, match=f"held by process {os.getpid()} on "):
            await Journal.open(store, "c")

    asyncio.run(run())
