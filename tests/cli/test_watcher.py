"""`lockstitch check --watch`: what changed is checked again, once it has come to rest."""

from __future__ import annotations

import os
import signal
import subprocess

import pytest

from lockstitch.cli.checking import Options
from lockstitch.cli.watcher import watch
from tests.cli.commands import PROGRAM, lockstitch
from tests.sessions.rollouts import call, legacy, output, user
from tests.sessions.written import jsonl

OPEN_CALL = jsonl(legacy([user(), call("call_open")]))
ANSWERED = jsonl(legacy([user(), call("call_open"), output("call_open")]))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.jsonl").write_bytes(ANSWERED)
    return tmp_path


def watched(capsys, *steps):
    """What is printed after each step, which changes files between two looks."""
    printed = []
    left = list(steps)

    def wait(_seconds):
        printed.append(capsys.readouterr().out)
        if left and (step := left.pop(0)) is not None:
            step()

    assert watch(["."], Options(), wait=wait, rounds=len(steps)) == 0
    printed.append(capsys.readouterr().out)
    return printed


def test_a_path_that_does_not_exist_at_the_start_is_an_error(folder, capsys):
    assert watch([".", "missing", "gone.jsonl"], Options(), rounds=0) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.splitlines() == [
        "lockstitch: missing: cannot be read: No such file or directory.",
        "lockstitch: gone.jsonl: cannot be read: No such file or directory.",
    ]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--watch", "-"], "--watch works on files and folders, not on standard input."),
        (["--watch", "store:memory:"], "--watch works on files and folders, not on stores."),
        (["--fix", "store:memory:"], "--fix works on files and folders, not on stores."),
        (["--fix", "-"], "not on standard input. To repair it: lockstitch mend -"),
    ],
)
def test_what_only_files_can_have_done_says_so_and_hints_at_mend_where_it_helps(arguments, says):
    ran = lockstitch("check", *arguments)
    assert ran.code == 2
    assert says in " ".join(ran.err.split())
    assert ("lockstitch mend -" in ran.err) is (arguments == ["--fix", "-"])


def test_a_file_that_breaks_is_reported_once_it_is_at_rest_and_again_when_it_is_valid(
    folder, capsys
):
    first, *rest = watched(
        capsys,
        lambda: (folder / "a.jsonl").write_bytes(OPEN_CALL),
        None,
        None,
        lambda: (folder / "a.jsonl").write_bytes(ANSWERED),
        None,
        None,
    )
    assert first == "Watching 1 file. Stop with Ctrl-C.\n"
    assert rest == [
        "",  # it changed just now
        "a.jsonl:3: LS001 call_open (exec_command) has no output\n",
        "",
        "",
        "a.jsonl: no problems any more.\n",
        "",
    ]


def test_a_new_file_is_found_and_a_deleted_one_is_forgotten(folder, capsys):
    printed = watched(
        capsys,
        lambda: (folder / "b.jsonl").write_bytes(OPEN_CALL),
        None,
        (folder / "b.jsonl").unlink,
        lambda: (folder / "b.jsonl").write_bytes(OPEN_CALL),
        None,
    )
    found = "b.jsonl:3: LS001 call_open (exec_command) has no output\n"
    assert printed[1:] == ["", found, "", "", found]


def test_a_file_that_is_broken_at_the_start_is_reported_at_once(folder, capsys):
    (folder / "a.jsonl").write_bytes(OPEN_CALL)
    (only,) = watched(capsys)
    assert only.startswith("a.jsonl:3: LS001 ")


@pytest.mark.parametrize(
    "arguments", [["--fix"], ["--output", "json"], ["--write-baseline", "x"], ["-"]]
)
def test_what_does_not_go_with_watching_is_refused(folder, arguments):
    code, _, err = lockstitch("check", "--watch", ".", *arguments)
    assert code == 2
    assert "--watch" in err


def test_an_interrupt_ends_the_program_without_a_traceback(folder):
    (folder / "a.jsonl").write_bytes(OPEN_CALL)
    with subprocess.Popen(
        [PROGRAM, "check", "--watch", "."],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        assert running.stdout.readline().startswith("a.jsonl:3: LS001 ")
        assert running.stdout.readline().startswith("Watching 1 file.")
        os.kill(running.pid, signal.SIGINT)
        _, err = running.communicate(timeout=30)
    assert (running.returncode, err) == (130, "\n")
