"""The program: help, usage, exit codes; and never a traceback."""

from __future__ import annotations

import re
import subprocess
import sys
from types import ModuleType

import pytest

from lockstitch import __version__
from lockstitch.cli import main
from tests.cli.commands import PROGRAM, lockstitch, program
from tests.sessions.rollouts import call, legacy, user
from tests.sessions.written import jsonl


@pytest.mark.parametrize("arguments", [["--help"], ["check", "--help"], ["mend", "-h"], []])
def test_help_is_printed(arguments):
    ran = program(*arguments)
    assert ran.returncode in (0, 2) if not arguments else ran.returncode == 0
    assert b"Usage: lockstitch" in ran.stdout + ran.stderr


@pytest.mark.parametrize("group", [[], ["store"]])
def test_what_a_command_does_fits_into_a_line_of_80_columns(group, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    _, out, _ = lockstitch(*group, "--help")
    options, _, commands = out.partition("Show this message and exit.\n")
    listed = re.findall(r"^  [a-z]+ +(.+)$", commands.partition("Example")[0], re.MULTILINE)
    assert options.startswith("Usage: lockstitch")
    assert len(listed) >= 7
    assert [line for line in listed if not line.endswith(".") or "..." in line] == []


def test_the_version_is_printed():
    assert lockstitch("--version") == (0, f"lockstitch {__version__}\n", "")


@pytest.mark.parametrize(
    "arguments",
    [
        ["nonsense"],
        ["check"],
        ["check", "--output", "xml", "x"],
        ["check", "--select", "LS9", "x"],
        ["check", "--explain", "LS9"],
        ["mend"],
        ["mend", "x", "--in-place", "-o", "y"],
        ["mend", "x", "--in-place", "--diff"],
        ["check", "missing.jsonl"],
        ["mend", "missing.jsonl"],
    ],
)
def test_a_mistake_gets_a_message_and_exit_code_2(arguments, tmp_path):
    ran = program(*arguments, cwd=tmp_path)
    assert ran.returncode == 2
    assert ran.stderr.strip()
    assert b"Traceback" not in ran.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["serve", "--port", "99999"], "99999 is out of range: it must be from 0 to 65535."),
        (["serve", "--workers", "0"], "0 is out of range: it must be from 1 to 256."),
        (["check", "--jobs", "0"], "0 is out of range: it must be at least 1."),
        (["check", "--jobs", "two"], "'two' is not a whole number."),
        (["emulate", "--pace", "-1"], "-1 is out of range: it must be at least 0."),
        (["emulate", "--pace", "nan"], "'nan' is not a number."),
        (["emulate", "--connection-minutes", "0"], "0 is out of range: it must be at least 0.01."),
    ],
)
def test_a_number_out_of_range_gets_the_range(arguments, says):
    ran = lockstitch(*arguments)
    assert ran.code == 2
    assert says in " ".join(ran.err.split())


@pytest.mark.parametrize(
    "command",
    ["check", "mend", "serve", "key", "store", "emulate", "chat", "demo", "completion"],
)
def test_the_help_of_a_command_fits_into_80_columns(command, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert [line for line in lockstitch(command, "--help").out.splitlines() if len(line) > 80] == []


def test_it_also_runs_as_a_module(tmp_path):
    (tmp_path / "r.jsonl").write_bytes(jsonl(legacy([user(), call()])))
    ran = subprocess.run(
        [sys.executable, "-m", "lockstitch", "check", "r.jsonl"],
        cwd=tmp_path,
        capture_output=True,
        check=False,
    )
    assert ran.returncode == 1
    assert ran.stdout.startswith(b"r.jsonl:3: LS001 call_a (exec_command) has no output\n")


def test_a_reader_that_has_seen_enough_is_no_error(tmp_path):
    lines = [user()] + [call(f"call_{n}") for n in range(3000)]
    (tmp_path / "r.jsonl").write_bytes(jsonl(legacy(lines)))
    shell = f"('{PROGRAM}' check r.jsonl; echo $? >&2) | head -n 1"
    ran = subprocess.run(
        ["sh", "-c", shell], cwd=tmp_path, capture_output=True, timeout=60, check=False
    )
    assert ran.stdout.count(b"\n") == 1
    assert ran.stderr == b"2\n"  # not that of findings: not all of them were told


@pytest.mark.parametrize("arguments", [["serve"], ["key", "alice"]])
def test_a_missing_library_names_the_command_that_needs_it(arguments):
    code = (
        "import sys; sys.modules['structlog'] = None; from lockstitch.cli.app import run;"
        f"sys.exit(run({arguments}))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.returncode == 2
    assert ran.stderr == (
        f"lockstitch: {arguments[0]} needs structlog, which is not installed. Run: pip install"
        " 'lockstitch[gateway]'\n"
    )


def test_help_imports_no_readers():
    code = (
        "import sys; from lockstitch.cli.app import run; run(['--help']);"
        "slow = ('lockstitch.sessions', 'msgspec', 'rich');"
        "print([name for name in sys.modules if name.startswith(slow)])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.endswith("[]\n")


def test_a_fault_of_our_own_is_told_without_a_traceback(tmp_path, monkeypatch):
    def broken(*args, **kwargs):
        raise ZeroDivisionError("oops")

    (tmp_path / "r.jsonl").write_bytes(jsonl(legacy([user()])))
    monkeypatch.setattr("lockstitch.cli.checking.check_file", broken)
    ran = lockstitch("check", tmp_path / "r.jsonl")
    assert ran.code == 2
    assert "internal error: ZeroDivisionError: oops" in ran.err
    monkeypatch.setenv("LOCKSTITCH_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        lockstitch("check", tmp_path / "r.jsonl")


@pytest.mark.parametrize(
    "arguments",
    [
        ["--version"],
        ["check", "r.jsonl"],
        ["check", "r.jsonl", "--output", "json"],
        ["mend", "r.jsonl", "--dry-run"],
        ["mend", "r.jsonl", "-o", "-"],
        ["mend", "r.jsonl", "-o", "/dev/stdout"],
        ["store", "export", "sqlite:///s.db"],
    ],
)
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_standard_output_that_takes_nothing_is_told_and_is_no_fault_of_ours(
    tmp_path, monkeypatch, arguments, unbuffered
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    lines = [user()] + [call(f"call_{n}") for n in range(1000)]
    (tmp_path / "r.jsonl").write_bytes(jsonl(legacy(lines)))
    lockstitch("store", "migrate", "sqlite:///s.db")
    with open("/dev/full", "wb") as full:
        ran = subprocess.run(
            [PROGRAM, *arguments], stdout=full, stderr=subprocess.PIPE, timeout=60, check=False
        )
    assert ran.returncode == 2
    full = b"lockstitch: Standard output cannot be written: No space left on device.\n"
    assert ran.stderr.endswith(full)
    assert b"ignored" not in ran.stderr


def test_a_path_that_the_system_refuses_is_no_fault_of_ours(tmp_path):
    name = "x" * 300 + ".jsonl"
    (tmp_path / "r.jsonl").write_bytes(jsonl(legacy([user()])))
    for arguments in (["check", name], ["mend", name], ["mend", "r.jsonl", "-o", name]):
        ran = program(*arguments, cwd=tmp_path)
        assert ran.returncode == 2
        assert b"internal error" not in ran.stderr
    assert b"cannot be read: File name too long." in program("check", name, cwd=tmp_path).stderr


def test_an_interrupt_while_everything_is_imported_is_no_traceback(monkeypatch):
    class Interrupted(ModuleType):
        def __getattr__(self, name):
            raise KeyboardInterrupt

    monkeypatch.setitem(sys.modules, "lockstitch.cli.app", Interrupted("app"))
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 130
