"""Mending files: whole or as it was, whatever fails in between."""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
from pathlib import Path

import pytest

import lockstitch
from lockstitch.core import mending
from lockstitch.core.mending import Policy
from lockstitch.sessions import files
from lockstitch.sessions.codex import CodexRollout
from lockstitch.sessions.errors import CannotRead, CannotWrite
from lockstitch.sessions.files import mended, put_in_place
from lockstitch.sessions.source import Source
from tests.sessions.rollouts import assistant, call, legacy, output, user
from tests.sessions.written import findings, jsonl, mend, written

BROKEN = jsonl(legacy([user(), call(), output("call_b"), assistant()]))
WHOLE = jsonl(legacy([user(), call(), output(), assistant()]))


def test_a_clean_file_gives_no_copy(tmp_path):
    with mended(written(tmp_path / "r.jsonl", WHOLE), beside=tmp_path) as ready:
        assert ready.path is None
        assert ready.changes == []


def test_nothing_is_left_behind(tmp_path):
    with mended(written(tmp_path / "r.jsonl", BROKEN), beside=tmp_path) as ready:
        assert ready.path is not None
    assert [path.name for path in tmp_path.iterdir()] == ["r.jsonl"]


def test_a_backup_is_kept_and_never_overwritten(tmp_path):
    source = written(tmp_path / "r.jsonl", BROKEN)
    kept = []
    for _ in range(2):
        source.path.write_bytes(BROKEN)
        with mended(source, beside=tmp_path) as ready:
            kept.append(put_in_place(ready, source.path, backup=True))
    assert [path.name for path in kept] == ["r.jsonl.bak", "r.jsonl.bak2"]
    assert all(path.read_bytes() == BROKEN for path in kept)
    assert findings(Source(source.path)) == []


def test_the_mode_of_a_file_is_kept(tmp_path):
    source = written(tmp_path / "r.jsonl", BROKEN)
    source.path.chmod(0o600)
    mend(source)
    assert source.path.stat().st_mode & 0o777 == 0o600


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
@pytest.mark.parametrize("mode", [0o600, 0o664])
def test_a_session_that_root_mends_in_place_still_belongs_to_its_owner(tmp_path, mode):
    source = written(tmp_path / "r.jsonl", BROKEN)
    os.chown(source.path, 12345, 54321)
    source.path.chmod(mode)
    with mended(source, beside=tmp_path) as ready:
        kept = put_in_place(ready, source.path, backup=True)
    for path in (source.path, kept):
        there = path.stat()
        assert (there.st_uid, there.st_gid, there.st_mode & 0o777) == (12345, 54321, mode)
    assert source.path.read_bytes() != kept.read_bytes()


def test_whoever_may_not_give_files_away_mends_all_the_same(tmp_path, monkeypatch):
    def refuse(*args, **options):
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr("os.chown", refuse)
    source = written(tmp_path / "r.jsonl", BROKEN)
    with mended(source, beside=tmp_path) as ready:
        put_in_place(ready, source.path, backup=True)
    assert findings(Source(source.path)) == []


def test_a_file_that_changed_meanwhile_is_left_alone(tmp_path):
    source = written(tmp_path / "r.jsonl", BROKEN)
    with mended(source, beside=tmp_path) as ready:
        source.path.write_bytes(BROKEN + b"\n")
        with pytest.raises(CannotWrite, match="changed while it was being mended"):
            put_in_place(ready, source.path, backup=True)
    assert source.path.read_bytes() == BROKEN + b"\n"
    assert [path.name for path in tmp_path.iterdir()] == ["r.jsonl"]


def test_what_is_written_while_the_original_is_copied_is_not_lost(tmp_path, monkeypatch):
    source = written(tmp_path / "r.jsonl", BROKEN)
    copy2 = shutil.copy2

    def slow_copy(*args):
        copied = copy2(*args)
        with source.path.open("ab") as writer:
            writer.write(b"{}\n")
        return copied

    with mended(source, beside=tmp_path) as ready:
        monkeypatch.setattr(shutil, "copy2", slow_copy)
        with pytest.raises(CannotWrite, match="changed while it was being mended"):
            put_in_place(ready, source.path, backup=True)
    assert source.path.read_bytes() == BROKEN + b"{}\n"
    assert [path.name for path in tmp_path.iterdir()] == ["r.jsonl"]


@pytest.mark.parametrize("problem", [OSError(errno.ENOSPC, "No space left"), KeyboardInterrupt()])
def test_a_backup_is_whole_or_not_there(tmp_path, monkeypatch, problem):
    source = written(tmp_path / "r.jsonl", BROKEN)

    def half_a_copy(source, target):
        Path(target).write_bytes(b"half")
        raise problem

    monkeypatch.setattr(shutil, "copy2", half_a_copy)
    with mended(source, beside=tmp_path) as ready, pytest.raises((CannotWrite, KeyboardInterrupt)):
        put_in_place(ready, source.path, backup=True)
    assert [path.name for path in tmp_path.iterdir()] == ["r.jsonl"]


@pytest.mark.parametrize("renamed", [True, False])
def test_an_interrupt_between_two_renames_loses_neither_file(tmp_path, monkeypatch, renamed):
    source = written(tmp_path / "r.jsonl", BROKEN)
    replace = os.replace

    def interrupted(made, target):
        if target != source.path:
            return replace(made, target)
        if renamed:
            replace(made, target)
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with mended(source, beside=tmp_path) as ready, pytest.raises(KeyboardInterrupt):
        put_in_place(ready, source.path, backup=True)
    there = sorted(path.name for path in tmp_path.iterdir())
    assert there == (["r.jsonl", "r.jsonl.bak"] if renamed else ["r.jsonl"])
    assert (tmp_path / there[-1]).read_bytes() == BROKEN


def test_a_file_that_is_gone_meanwhile_is_told_so(tmp_path):
    source = written(tmp_path / "r.jsonl", BROKEN)
    with mended(source, beside=tmp_path) as ready:
        source.path.unlink()
        with pytest.raises(CannotWrite):
            put_in_place(ready, source.path, backup=True)


def test_a_folder_that_cannot_be_written_is_told_so(tmp_path):
    source = written(tmp_path / "r.jsonl", BROKEN)
    with (
        pytest.raises(CannotWrite, match="Name another place"),
        mended(source, beside=tmp_path / "missing"),
    ):
        pass


def test_a_history_of_outputs_alone_is_not_mended_into_nothing(tmp_path):
    lone = b'{"type":"function_call_output","call_id":"a","output":"1"}\n'
    source = written(tmp_path / "r.jsonl", lone)
    with pytest.raises(lockstitch.CannotMend, match="--anchored"):
        mend(source)
    assert source.path.read_bytes() == lone
    assert mend(source, anchored=True) == lone


def test_mending_that_never_ends_gives_up_and_changes_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(mending, "MOST_ROUNDS", 2)
    monkeypatch.setattr(mending, "SETTLED_AT_ONCE", frozenset())
    monkeypatch.setattr(files, "detect_format", lambda source, dialect: _NeverDone())
    source = written(tmp_path / "r.jsonl", BROKEN)
    with pytest.raises(lockstitch.CannotMend, match="after 2 rounds"):
        mend(source)
    assert source.path.read_bytes() == BROKEN
    assert [path.name for path in tmp_path.iterdir()] == ["r.jsonl"]


class _NeverDone:
    name = "never"

    def scan(self, source, *, anchored=False):
        return CodexRollout().scan(source)

    def write(self, source, out, scan, policy):
        out.write(BROKEN)
        return [object()]


def test_a_database_takes_the_files_beside_it_along_into_its_backup(tmp_path):
    path = tmp_path / "agent.db"
    database = sqlite3.connect(path)
    database.execute("PRAGMA journal_mode=WAL")
    database.executescript(
        "CREATE TABLE agent_sessions (session_id TEXT PRIMARY KEY, created_at, updated_at);"
        "CREATE TABLE agent_messages (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT,"
        " message_data TEXT, created_at);"
        "INSERT INTO agent_sessions VALUES ('s', 1, 1);"
    )
    text = '{"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"}'
    database.execute("INSERT INTO agent_messages VALUES (1, 's', ?, 1)", (text,))
    database.commit()
    copy = tmp_path / "crashed.db"  # as a process leaves it that was killed: with its -wal
    shutil.copy(path, copy)
    shutil.copy(f"{path}-wal", f"{copy}-wal")
    database.close()
    source = Source(copy)
    assert [code for code, _ in findings(source)] == ["LS001"]
    with mended(source, beside=tmp_path) as ready:
        kept = put_in_place(ready, copy, backup=True)
    assert not Path(f"{copy}-wal").exists()
    assert Path(f"{kept}-wal").exists()
    assert findings(Source(copy)) == []
    assert [code for code, _ in findings(Source(kept))] == ["LS001"]


# --- the fault loop ----------------------------------------------------------------------------


class Faults:
    """Fails the n-th operation on the file system, and counts how many there were."""

    OPERATIONS = (
        (os, "replace"),
        (os, "fsync"),
        (os, "open"),
        (os, "chown"),
        (shutil, "copy2"),
        (shutil, "copystat"),
        (files.tempfile, "mkdtemp"),
    )

    def __init__(self, monkeypatch, fail_at: int) -> None:
        self.fail_at = fail_at
        self.count = 0
        self.injected = False
        for module, name in self.OPERATIONS:
            monkeypatch.setattr(module, name, self._wrap(getattr(module, name)))
        monkeypatch.setattr(Path, "open", self._wrap(Path.open))
        # Tidying up is no operation: what fails there leaves litter, and nothing else.
        monkeypatch.setattr(shutil, "rmtree", self._tidy(shutil.rmtree))

    def _tidy(self, real):
        def rmtree(*args, **kwargs):
            self.count = -(10**6)
            return real(*args, **kwargs)

        return rmtree

    def _wrap(self, real):
        def operation(*args, **kwargs):
            self.count += 1
            if self.count == self.fail_at:
                self.injected = True
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return real(*args, **kwargs)

        return operation


@pytest.mark.parametrize("backup", [True, False])
def test_whatever_fails_the_file_is_as_it_was_or_whole(tmp_path, backup):
    n = 0
    while True:
        n += 1
        folder = tmp_path / str(n)
        folder.mkdir()
        path = folder / "r.jsonl"
        path.write_bytes(BROKEN)
        with pytest.MonkeyPatch.context() as patch:
            faults = Faults(patch, n)
            try:
                with mended(Source(path), beside=folder, policy=Policy()) as ready:
                    put_in_place(ready, path, backup=backup)
                failed = False
            except (CannotRead, CannotWrite) as error:
                failed = True
                assert "No space left" in str(error)  # noqa: PT017
        content = path.read_bytes()
        if failed:
            assert content == BROKEN
            assert [one.name for one in folder.iterdir()] == ["r.jsonl"]
        else:
            assert findings(Source(path)) == []
        assert not list(folder.glob(".lockstitch-*"))
        if not faults.injected:
            break
    assert n > 8


class _FullDisk:
    """A file that takes so many bytes and no more."""

    def __init__(self, raw, room: int) -> None:
        self._raw = raw
        self._room = room

    def write(self, data: bytes) -> int:
        self._room -= len(data)
        if self._room < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return self._raw.write(data)

    def __getattr__(self, name):
        return getattr(self._raw, name)


@pytest.mark.parametrize("room", [0, 10, 300, 900])
def test_a_full_disk_leaves_the_file_as_it_was(tmp_path, monkeypatch, room):
    source = written(tmp_path / "r.jsonl", BROKEN)
    monkeypatch.setattr(Source, "compressing", lambda self, raw: _FullDisk(raw, room))
    with pytest.raises(CannotWrite, match="No space left"), mended(source, beside=tmp_path):
        pass
    assert source.path.read_bytes() == BROKEN
    assert [path.name for path in tmp_path.iterdir()] == ["r.jsonl"]
