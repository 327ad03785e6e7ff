"""The PostgreSQL that tests start: it works for root too, changes nothing and leaves nothing."""

from __future__ import annotations

import os
import stat
import subprocess
import tempfile
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests import postgres
from tests.postgres import NOT_SYNCED, PACKAGE, running_postgres

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root runs the server as another user")


def around() -> dict[str, object]:
    """What a server could change outside its own folder."""
    temporary = Path(tempfile.gettempdir())
    package = find_spec(PACKAGE)
    assert package is not None
    assert package.origin is not None
    site = Path(package.origin).parent
    folders = {temporary, *temporary.parents, *site.parents, site, site / postgres.INSTALLED}
    return {
        **{str(one): (stat.S_IMODE(one.stat().st_mode), one.stat().st_uid) for one in folders},
        "users": Path("/etc/passwd").read_bytes(),
        "groups": Path("/etc/group").read_bytes(),
    }


def processes_in(folder: Path) -> str:
    listed = subprocess.run(["ps", "-ewwo", "args"], check=True, capture_output=True, text=True)
    return "\n".join(line for line in listed.stdout.splitlines() if str(folder) in line)


def test_a_server_changes_no_folder_and_no_user_and_leaves_nothing():
    before = around()
    with running_postgres(NOT_SYNCED) as server:
        folder = server.sockets
        assert server.execute("SELECT 1 AS one")[0]["one"] == 1
        assert processes_in(folder)
        assert folder.parent == Path(tempfile.gettempdir())
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert not folder.exists()
    assert not processes_in(folder)
    assert around() == before


def test_a_server_leaves_nothing_when_a_test_fails():
    seen: list[Path] = []

    def failing_test() -> None:
        with running_postgres(NOT_SYNCED) as server:
            seen.append(server.sockets)
            pytest.fail("on purpose")

    with pytest.raises(pytest.fail.Exception):
        failing_test()
    (folder,) = seen
    assert not folder.exists()
    assert not processes_in(folder)


def test_a_server_that_does_not_start_says_why_and_leaves_nothing(monkeypatch):
    made: list[str] = []
    mkdtemp = tempfile.mkdtemp

    def noted(*args, **options):
        made.append(mkdtemp(*args, **options))
        return made[-1]

    monkeypatch.setattr(tempfile, "mkdtemp", noted)
    wrong = {"max_connections": "many"}
    with pytest.raises(RuntimeError, match="max_connections"), running_postgres(wrong):
        pass
    assert len(made) == 1
    assert not Path(made[0]).exists()


@as_root
def test_root_runs_the_server_as_another_user():
    with running_postgres(NOT_SYNCED) as server:
        pid = (server.sockets / "data" / "postmaster.pid").read_text().splitlines()[0]
        command = ["ps", "-o", "user=", "-p", pid]
        ran_by = subprocess.run(command, check=True, capture_output=True, text=True)
    assert ran_by.stdout.strip() == postgres.UNPRIVILEGED_USER


@as_root
def test_programs_that_the_other_user_cannot_reach_are_copied(tmp_path, monkeypatch):
    found = find_spec(PACKAGE)
    assert found is not None
    assert found.origin is not None
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    (closed / PACKAGE).symlink_to(Path(found.origin).parent)
    spec = ModuleSpec(PACKAGE, None, origin=str(closed / PACKAGE / "__init__.py"))
    monkeypatch.setattr(postgres, "find_spec", lambda name: spec)
    with running_postgres(NOT_SYNCED) as server:
        folder = server.sockets
        assert (folder / "programs").is_dir()
        assert server.execute("SELECT 1 AS one")[0]["one"] == 1
    assert not folder.exists()
    assert stat.S_IMODE(closed.stat().st_mode) == 0o700
