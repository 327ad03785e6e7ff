"""Standard streams that are closed, full or narrow: no command takes that for its own fault."""

from __future__ import annotations

import os
import subprocess

import pytest

from tests.cli.commands import PROGRAM
from tests.sessions.rollouts import call, legacy, user
from tests.sessions.written import jsonl

BROKEN = jsonl(legacy([user(), call()]))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    (tmp_path / "r.jsonl").write_bytes(BROKEN)
    return tmp_path


def shell(command: str, **more: str) -> subprocess.CompletedProcess:
    """A command line in a shell, which alone can close a stream."""
    return subprocess.run(
        ["sh", "-c", command.replace("lockstitch", f"'{PROGRAM}'", 1)],
        capture_output=True,
        timeout=60,
        check=False,
        env={**os.environ, **more},
    )


def test_closed_standard_input_holds_nothing(folder):
    for command in ("check -", "mend -"):
        ran = shell(f"lockstitch {command} <&-")
        assert (ran.returncode, ran.stdout[:0]) == (2, b"")
        assert b"<stdin>: is empty." in ran.stderr


@pytest.mark.parametrize(
    "command", ["check r.jsonl", "mend r.jsonl", "mend --diff r.jsonl", "mend r.jsonl -o -"]
)
def test_closed_standard_output_takes_nothing(folder, command):
    ran = shell(f"lockstitch {command} >&-")
    assert ran.returncode == 2
    said = b"lockstitch: Standard output cannot be written: Bad file descriptor.\n"
    assert ran.stderr.endswith(said)
    assert os.listdir() == ["r.jsonl"]


@pytest.mark.parametrize(
    ("closed", "code"),
    [("check r.jsonl 2>&-", 1), ("check missing 2>&-", 2), ("check --nonsense 2>&-", 2)],
)
def test_without_standard_error_the_exit_code_still_tells(folder, closed, code):
    assert shell(f"lockstitch {closed}").returncode == code
    assert shell(f"lockstitch {closed.replace('&-', '/dev/full')}").returncode == code


def test_nothing_is_mended_if_nobody_can_be_told_what_was_done(folder):
    for place in ("> /dev/full", ">&-"):
        ran = shell(f"lockstitch mend --in-place r.jsonl {place}")
        assert ran.returncode == 2
        assert b"Standard output cannot be written" in ran.stderr
        assert os.listdir() == ["r.jsonl"]
        assert (folder / "r.jsonl").read_bytes() == BROKEN


@pytest.mark.parametrize(
    "command",
    [
        *(f"check n.jsonl --output {kind}" for kind in ("text", "json", "sarif", "github")),
        *("mend --dry-run n.jsonl", "mend --diff n.jsonl", "mend --dry-run --report - n.jsonl"),
    ],
)
@pytest.mark.parametrize("key", ["call_\u4e2d", "call_\ud83d"])
def test_what_an_encoding_cannot_say_is_escaped(folder, command, key):
    written = key.encode("ascii", "backslashreplace")
    (folder / "n.jsonl").write_bytes(b'{"type":"function_call","call_id":"%b"}\n' % written)
    ran = shell(f"lockstitch {command}", PYTHONIOENCODING="ascii")
    assert (ran.returncode, b"internal error" in ran.stderr) == (command.startswith("check"), False)
    assert written.removeprefix(b"call_\\u") in ran.stdout
