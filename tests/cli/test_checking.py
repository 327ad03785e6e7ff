"""`lockstitch check`: files, folders, standard input; what is printed, and the exit code."""

from __future__ import annotations

import errno
import gzip
import json
import shutil
from contextlib import contextmanager
from pathlib import Path

import pytest

from lockstitch.cli import checking
from lockstitch.cli.settings import Rules
from lockstitch.cli.targets import Target
from lockstitch.sessions.formats import HEAD_BYTES
from tests.cli.commands import lockstitch, program
from tests.sessions.rollouts import assistant, call, ended, legacy, output, user
from tests.sessions.written import CAPTURES, COMPRESSIONS, jsonl

EXAMPLES = Path(__file__).parents[2] / "examples"

BROKEN = jsonl(legacy([user(), call("call_G1"), ended("call_G1"), output("call_b")]))
WHOLE = jsonl(legacy([user(), call(), output(), assistant()]))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken.jsonl").write_bytes(BROKEN)
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / "deep" / "er" / "whole.jsonl").write_bytes(WHOLE)
    (tmp_path / "deep" / "package.json").write_text('{"name": "not a session"}')
    (tmp_path / "notes.txt").write_text("not looked at")
    return tmp_path


def test_a_finding_is_one_line_like_a_linter_prints_it(folder):
    code, out, err = lockstitch("check", "broken.jsonl")
    assert code == 1
    assert out.splitlines() == [
        "broken.jsonl:3: LS001 call_G1 (exec_command) has no output;"
        " it finished with exit code 0 (line 4)",
        "broken.jsonl:5: LS002 output for call_b has no call",
        "Found 2 problems in 1 of 1 file (5 records). Repair with: lockstitch mend PATH",
    ]
    assert err == ""


def test_a_clean_file_gives_exit_code_0(folder):
    assert lockstitch("check", "deep/er/whole.jsonl") == (
        0,
        "All clean: 1 file, 5 records.\n",
        "",
    )


def test_a_folder_is_searched_and_other_files_are_passed_over(folder):
    code, out, err = lockstitch("check", ".")
    assert (code, err) == (1, "")
    assert out.splitlines()[-1].startswith("Found 2 problems in 1 of 2 files")


def test_a_file_that_is_named_must_be_a_session(folder):
    code, _, err = lockstitch("check", "deep/package.json", "broken.jsonl")
    assert code == 2
    assert "deep/package.json: is JSON, but holds no list of items" in err


def test_a_folder_without_sessions_is_told_so(folder):
    (folder / "empty").mkdir()
    code, _, err = lockstitch("check", "empty")
    assert code == 2
    assert err.startswith(
        "lockstitch: empty: no session files found. In a folder, files named *.db"
    )
    assert "*.jsonl" in err


def test_a_file_that_may_not_be_looked_at_does_not_hide_the_others(folder, monkeypatch):
    """In a folder that may be listed and not entered, even a look at a file is refused."""
    hidden = folder / "hidden.jsonl"
    hidden.write_bytes(b"{}")
    (folder / "gone.jsonl").symlink_to("nowhere")
    look = Path.stat

    def refused(path, **options):
        if path == hidden:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return look(path, **options)

    monkeypatch.setattr(Path, "stat", refused)
    ran = lockstitch("check", folder)
    assert ran.code == 2
    assert "LS001" in ran.out
    assert f"{hidden}: cannot be read: Permission denied." in ran.err
    assert "gone.jsonl" not in ran.err


def test_a_fault_of_our_own_in_one_file_does_not_hide_the_others(folder, monkeypatch):
    real = checking.check_file

    def faulty(source, **options):
        if source.name.endswith("whole.jsonl"):
            raise ZeroDivisionError("oops")
        return real(source, **options)

    monkeypatch.setattr(checking, "check_file", faulty)
    ran = lockstitch("check", folder)
    assert ran.code == 2
    assert "LS001" in ran.out
    assert "whole.jsonl: internal error: ZeroDivisionError: oops." in ran.err


def test_links_to_folders_do_not_make_a_loop(folder):
    (folder / "deep" / "back").symlink_to(folder)
    code, out, _ = lockstitch("check", "deep")
    assert (code, out) == (0, "All clean: 1 file, 5 records.\n")


@pytest.mark.parametrize("suffix", COMPRESSIONS)
def test_standard_input_is_read(suffix):
    pack, _ = COMPRESSIONS[suffix]
    ran = program("check", "-", stdin=pack(BROKEN))
    assert ran.returncode == 1
    assert ran.stdout.startswith(b"<stdin>:3: LS001 call_G1")


@pytest.mark.parametrize(
    ("options", "codes"),
    [
        (["--select", "LS001"], ["LS001"]),
        (["--select", "ls001,LS1"], ["LS001"]),
        (["--ignore", "LS001"], ["LS002"]),
        (["--select", "LS0", "--ignore", "LS002"], ["LS001"]),
        (["--ignore", "LS"], []),
    ],
)
def test_codes_are_selected_and_ignored(folder, options, codes):
    code, out, _ = lockstitch("check", "broken.jsonl", "--output", "json", *options)
    assert [row["code"] for row in json.loads(out)["files"][0]["findings"]] == codes
    assert code == (1 if codes else 0)


def test_statistics_count_each_code(folder):
    shutil.copy("broken.jsonl", "again.jsonl")
    _, out, _ = lockstitch("check", ".", "--statistics")
    assert "     2  LS001  A call has no output." in out.splitlines()


def test_an_anchored_delta_is_checked_as_one(folder):
    (folder / "delta.jsonl").write_bytes(jsonl([output()["payload"]]))
    assert lockstitch("check", "delta.jsonl").code == 1
    assert lockstitch("check", "delta.jsonl", "--anchored").code == 0


def test_what_cannot_be_read_wins_over_what_was_found(folder):
    (folder / "windows.jsonl").write_bytes("{}".encode("utf-16"))
    code, out, err = lockstitch("check", ".")
    assert code == 2
    assert "broken.jsonl:3: LS001" in out
    assert "windows.jsonl: is UTF-16" in err
    assert out.splitlines()[-1].startswith("Found ")
    assert " 1 file could not be read. Repair with: " in out


@pytest.mark.parametrize(
    "nothing",
    [b"", b" \n\r\n", b"\xef\xbb\xbf", gzip.compress(b"")],
    ids=["no byte", "white space", "a mark", "nothing, compressed"],
)
def test_an_empty_file_in_a_folder_is_told_and_is_no_error(folder, nothing):
    (folder / "deep" / "nothing.jsonl").write_bytes(nothing)
    code, out, err = lockstitch("check", "deep")
    assert (code, out) == (0, "All clean: 1 file, 5 records.\n")
    assert err == "lockstitch: deep/nothing.jsonl: skipped, the file is empty.\n"
    files = json.loads(lockstitch("check", "deep", "--output", "json").out)["files"]
    assert [file["path"] for file in files] == ["deep/er/whole.jsonl"]


def test_an_empty_file_that_is_named_cannot_be_checked_and_not_be_mended(folder):
    (folder / "nothing.jsonl").touch()
    for command in ("check", "mend"):
        code, _, err = lockstitch(command, "nothing.jsonl")
        assert code == 2
        assert "nothing.jsonl: is empty. There is nothing in it to check or to mend." in err


def test_a_folder_of_empty_files_has_no_sessions(folder):
    (folder / "hollow").mkdir()
    (folder / "hollow" / "nothing.jsonl").touch()
    code, _, err = lockstitch("check", "hollow")
    assert code == 2
    assert "hollow/nothing.jsonl: skipped, the file is empty" in err
    assert "hollow: no session files found." in err


def test_a_file_that_only_begins_with_nothing_is_read(folder):
    """Codex's own padding, and ours, is spaces."""
    (folder / "padded.jsonl").write_bytes(b" " * HEAD_BYTES + b"\n" + BROKEN)
    code, out, _ = lockstitch("check", "padded.jsonl")
    assert code == 1
    assert "padded.jsonl:4: LS001 call_G1" in out


def test_many_files_are_checked_by_several_processes(folder, monkeypatch):
    monkeypatch.setattr(checking, "PARALLEL_BYTES", 1)
    for n in range(12):
        shutil.copy("broken.jsonl", f"copy{n}.jsonl")
    (folder / "empty.jsonl").touch()
    (folder / "windows.jsonl").write_bytes("{}".encode("utf-16"))
    alone = lockstitch("check", ".", "--jobs", "1")
    together = lockstitch("check", ".", "--jobs", "2")
    assert together == alone
    assert alone.code == 2


def test_control_characters_of_a_file_do_not_reach_the_terminal(folder):
    evil = "call_\x1b]0;owned\x07"
    (folder / "evil.jsonl").write_bytes(jsonl(legacy([user(), call(evil)])))
    _, out, _ = lockstitch("check", "evil.jsonl")
    assert "\x1b" not in out
    assert "call_\\x1b]0;owned\\x07" in out


def test_a_progress_bar_is_for_terminals_only(folder, monkeypatch):
    monkeypatch.setattr(checking, "SHOW_PROGRESS_FILES", 1)
    assert lockstitch("check", ".").err == ""


@pytest.mark.parametrize("jobs", [1, 2])
def test_the_progress_bar_counts_bytes_so_that_one_large_file_moves(folder, monkeypatch, jobs):
    monkeypatch.setattr(checking, "PARALLEL_BYTES", 1)
    monkeypatch.setattr(checking, "SHOW_PROGRESS_BYTES", 1)
    seen = []

    @contextmanager
    def progress(counter, size):
        add = checking._add
        monkeypatch.setattr(checking, "_add", lambda c, n: (add(c, n), seen.append(c.value)))
        yield
        seen.append(("end", counter.value, size))

    monkeypatch.setattr(checking, "_progress", progress)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    (folder / "large.jsonl").write_bytes(WHOLE * 2000)
    shutil.copy("large.jsonl", "second.jsonl")
    options = checking.Options(jobs=jobs)
    targets = [Target(folder / name, name, named=True) for name in ("large.jsonl", "second.jsonl")]
    checking.check_targets(targets, options, Rules())
    *steps, (_, counted, size) = seen
    assert counted == size == 2 * len(WHOLE) * 2000
    if jobs == 1:
        assert len({step for step in steps if step < size / 2}) > 3
        assert steps == sorted(steps)


def test_the_captured_sessions_of_codex_give_what_their_names_say():
    code, out, _ = lockstitch("check", CAPTURES, "--statistics")
    assert code == 1
    assert out.splitlines()[-1].startswith("Found 12 problems in 9 of 30 files")


@pytest.mark.parametrize("dialect", ["responses", "chat", "messages", "realtime"])
@pytest.mark.parametrize(
    "name", ["responses-request.json", "chat-interrupted.jsonl", "messages-request.json"]
)
def test_no_dialect_makes_a_broken_file_look_clean(name, dialect):
    path = EXAMPLES / name
    plain = lockstitch("check", path)
    assert plain.code == 1
    assert lockstitch("check", path, "--dialect", dialect) == plain
    mended = lockstitch("mend", path, "--dry-run")
    assert lockstitch("mend", path, "--dry-run", "--dialect", dialect) == mended
