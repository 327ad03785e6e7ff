"""`lockstitch mend`: copies, backups, diffs, reports."""

from __future__ import annotations

import errno
import json
import os
import socket
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.cli.commands import PROGRAM, lockstitch, program
from tests.sessions.rollouts import assistant, call, ended, legacy, output, user
from tests.sessions.written import COMPRESSIONS, jsonl

BROKEN = jsonl(legacy([user(), call(), ended(), output("call_b", "x" * 300), assistant()]))
WHOLE = jsonl(legacy([user(), call(), output(), assistant()]))


@pytest.fixture
def session(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "s.jsonl"
    path.write_bytes(BROKEN)
    return path


def names(path):
    return sorted(one.name for one in path.parent.iterdir())


def test_a_whole_copy_is_written_beside_the_file(session):
    code, out, err = lockstitch("mend", "s.jsonl")
    assert (code, err) == (0, "")
    first, second, removed, wrote = out.splitlines()
    assert first == (
        "s.jsonl:3: LS001 call_a (exec_command) has no output; it finished with exit code 0"
        " (line 4): added an output for call_a (finished)"
    )
    assert second == "s.jsonl:5: LS002 output for call_b has no call: removed it"
    assert removed.startswith("    removed: {")
    assert removed.endswith("…")
    assert wrote == "Wrote s.jsonl.mended."
    assert session.read_bytes() == BROKEN
    assert lockstitch("check", "s.jsonl.mended").code == 0


def test_mending_it_again_changes_nothing(session):
    lockstitch("mend", "s.jsonl", "--in-place")
    once = session.read_bytes()
    assert lockstitch("mend", "s.jsonl", "--in-place") == (0, "s.jsonl: nothing to repair.\n", "")
    assert session.read_bytes() == once
    assert names(session) == ["s.jsonl", "s.jsonl.bak"]


def test_in_place_keeps_a_backup_and_follows_a_link(session):
    link = session.with_name("link.jsonl")
    link.symlink_to(session)
    code, out, _ = lockstitch("mend", "link.jsonl", "--in-place")
    assert code == 0
    assert out.splitlines()[-1] == "Wrote link.jsonl; the original is kept as s.jsonl.bak."
    assert link.is_symlink()
    assert session.with_name("s.jsonl.bak").read_bytes() == BROKEN
    assert lockstitch("check", "s.jsonl").code == 0


def test_a_diff_shows_what_would_change_and_writes_nothing(session):
    code, out, _ = lockstitch("mend", "s.jsonl", "--diff")
    assert code == 0
    lines = out.splitlines()
    assert lines[:2] == ["--- s.jsonl", "+++ s.jsonl.mended"]
    assert sum(line.startswith("+{") for line in lines) == 1
    assert sum(line.startswith("-{") for line in lines) == 1
    assert names(session) == ["s.jsonl"]


def test_a_dry_run_says_what_would_be_done_and_writes_nothing(session):
    code, out, err = lockstitch("mend", "s.jsonl", "--dry-run")
    assert (code, err) == (0, "")
    heading, *told, last = out.splitlines()
    assert heading == "Repairing s.jsonl would do this:"
    assert last == "Nothing was written: this was a dry run."
    assert names(session) == ["s.jsonl"]
    assert told == lockstitch("mend", "s.jsonl").out.splitlines()[:-1]


def test_a_dry_run_that_has_nothing_to_do_promises_nothing(session):
    lockstitch("mend", "s.jsonl", "--in-place")
    assert lockstitch("mend", "s.jsonl", "--dry-run").out.splitlines() == [
        "s.jsonl: nothing to repair.",
        "Nothing was written: this was a dry run.",
    ]


def test_a_diff_of_a_dry_run_is_a_diff_and_nothing_else(session):
    assert lockstitch("mend", "s.jsonl", "--diff", "--dry-run") == lockstitch(
        "mend", "s.jsonl", "--diff"
    )


@pytest.mark.parametrize("suffix", COMPRESSIONS)
def test_the_copy_has_a_name_that_no_client_takes_for_a_session(session, suffix):
    name = f"a.v1.jsonl{suffix}"
    session.with_name(name).write_bytes(COMPRESSIONS[suffix][0](BROKEN))
    assert lockstitch("mend", name).out.splitlines()[-1] == f"Wrote {name}.mended."
    assert lockstitch("check", f"{name}.mended").code == 0
    assert lockstitch("check", ".").out.count(".mended:") == 0


def test_nothing_is_overwritten_unasked(session):
    session.with_name("out.jsonl").write_bytes(b"precious")
    code, _, err = lockstitch("mend", "s.jsonl", "-o", "out.jsonl")
    assert code == 2
    assert "exists already. Use --force" in err
    assert session.with_name("out.jsonl").read_bytes() == b"precious"
    assert lockstitch("mend", "s.jsonl", "-o", "out.jsonl", "--force").code == 0
    assert lockstitch("check", "out.jsonl").code == 0


def test_the_file_itself_is_no_place_for_the_copy(session):
    code, _, err = lockstitch("mend", "s.jsonl", "-o", "./s.jsonl", "--force")
    assert code == 2
    assert "Use --in-place" in err
    assert session.read_bytes() == BROKEN


def test_a_clean_file_is_copied_only_if_asked_for(session):
    session.write_bytes(WHOLE)
    assert lockstitch("mend", "s.jsonl").out == "s.jsonl: nothing to repair.\n"
    assert names(session) == ["s.jsonl"]
    assert lockstitch("mend", "s.jsonl", "-o", "copy.jsonl").code == 0
    assert session.with_name("copy.jsonl").read_bytes() == WHOLE


@pytest.mark.parametrize("arguments", [["-"], ["s.jsonl", "-o", "-"]])
def test_a_pipe_gets_the_session_and_nothing_else(session, arguments):
    ran = program("mend", *arguments, stdin=BROKEN, cwd=session.parent)
    assert ran.returncode == 0
    assert all(json.loads(line) for line in ran.stdout.splitlines())
    assert b"added an output for call_a (finished)" in ran.stderr
    assert program("check", "-", stdin=ran.stdout).returncode == 0
    assert names(session) == ["s.jsonl"]


def test_a_report_holds_all_that_was_removed(session):
    lockstitch("mend", "s.jsonl", "--report", "report.json")
    report = json.loads(session.with_name("report.json").read_text())
    removed = [change for change in report["files"][0]["changes"] if change["removed"]]
    assert [change["code"] for change in removed] == ["LS002"]
    assert "x" * 300 in removed[0]["before"][0]


def test_what_the_policy_leaves_is_told_and_gives_exit_code_1(session):
    code, out, _ = lockstitch("mend", "s.jsonl", "--no-drop-orphans")
    assert code == 1
    assert "not repaired: LS002 output for call_b has no call" in out


def test_the_last_of_two_outputs_can_be_kept(session):
    session.write_bytes(jsonl(legacy([call(), output(text="one"), output(text="two")])))
    lockstitch("mend", "s.jsonl", "--in-place", "--keep", "last")
    assert b'"two"' in session.read_bytes()
    assert b'"one"' not in session.read_bytes()


def test_a_file_that_cannot_be_mended_is_left_alone(session):
    session.write_bytes(b"\x00\x01")
    code, _, err = lockstitch("mend", "s.jsonl", "--in-place")
    assert code == 2
    assert "is a binary file" in err
    assert names(session) == ["s.jsonl"]


def test_a_store_is_not_mended_and_its_password_not_shown():
    code, out, err = lockstitch("mend", "store:postgresql://me:hunter2@host/database")
    assert (code, out) == (2, "")
    assert err.startswith("lockstitch: A store cannot be repaired: it holds what happened. ")
    assert "hunter2" not in err


def test_a_folder_that_is_not_there_is_told_so(session):
    code, _, err = lockstitch("mend", "s.jsonl", "-o", "missing/out.jsonl")
    assert code == 2
    assert "missing: cannot be written: No such file or directory" in err


def test_a_folder_is_no_place_for_the_copy(session):
    session.with_name("folder").mkdir()
    code, _, err = lockstitch("mend", "s.jsonl", "-o", "folder", "--force")
    assert (code, err) == (2, "lockstitch: folder: is a folder. Name a file.\n")
    assert names(session) == ["folder", "s.jsonl"]


@pytest.mark.parametrize("how", [[], ["--force"], ["--in-place"], ["--in-place", "--force"]])
@pytest.mark.parametrize("name", ["s.jsonl", "./s.jsonl", "soft", "hard"])
def test_a_report_is_never_written_over_the_session(session, how, name):
    session.with_name("soft").symlink_to(session)
    session.with_name("hard").hardlink_to(session)
    before = names(session)
    code, _, err = lockstitch("mend", "s.jsonl", "--report", name, *how)
    assert code == 2
    assert f"{Path(name)}: is the session itself. Name another place for the report." in err
    assert session.read_bytes() == BROKEN
    assert names(session) == before


@pytest.mark.parametrize(
    ("how", "name"),
    [
        ([], "s.jsonl.mended"),
        (["--force"], "s.jsonl.mended"),
        (["-o", "out.jsonl"], "./out.jsonl"),
        (["--in-place"], "s.jsonl.bak"),
    ],
)
def test_a_report_is_never_written_over_what_mending_writes(session, how, name):
    code, _, err = lockstitch("mend", "s.jsonl", "--report", name, *how)
    assert code == 2
    assert f"{Path(name)}: is where the session goes." in err
    assert names(session) == ["s.jsonl"]
    assert session.read_bytes() == BROKEN


def test_a_report_takes_the_place_of_another_file_only_if_forced(session):
    session.with_name("report.json").write_bytes(b"precious")
    code, _, err = lockstitch("mend", "s.jsonl", "--report", "report.json")
    assert code == 2
    assert "report.json: exists already. Use --force" in err
    assert session.with_name("report.json").read_bytes() == b"precious"
    assert names(session) == ["report.json", "s.jsonl"]
    assert lockstitch("mend", "s.jsonl", "--report", "report.json", "--force").code == 0
    assert json.loads(session.with_name("report.json").read_text())["files"][0]["file"] == "s.jsonl"
    assert names(session) == ["report.json", "s.jsonl", "s.jsonl.mended"]


@pytest.mark.parametrize("how", ["--dry-run", "--diff"])
def test_what_writes_nothing_writes_no_report_either(session, how):
    code, _, err = lockstitch("mend", "s.jsonl", how, "--report", "report.json", "--force")
    assert code == 2
    assert "write no files, and so no report. Use --dry-run --report -" in err
    assert names(session) == ["s.jsonl"]


def test_a_report_can_go_to_standard_output_alone(session):
    ran = program("mend", "s.jsonl", "--dry-run", "--report", "-", cwd=session.parent)
    assert ran.returncode == 0
    (file,) = json.loads(ran.stdout)["files"]
    assert [change["code"] for change in file["changes"]] == ["LS001", "LS002"]
    assert b"added an output for call_a (finished)" in ran.stderr
    assert names(session) == ["s.jsonl"]


@pytest.mark.parametrize(
    "arguments", [["-"], ["s.jsonl", "-o", "-"], ["s.jsonl", "-o", "/dev/stdout"]]
)
def test_standard_output_gets_the_session_or_the_report_never_both(session, arguments):
    ran = program("mend", *arguments, "--report", "-", stdin=BROKEN, cwd=session.parent)
    assert (ran.returncode, ran.stdout) == (2, b"")
    assert b"Standard output gets the repaired session. Name a file for the report." in ran.stderr


def test_standard_output_gets_the_diff_or_the_report_never_both(session):
    code, out, err = lockstitch("mend", "s.jsonl", "--diff", "--report", "-")
    assert (code, out) == (2, "")
    assert "Standard output gets the diff. For the report, use --dry-run." in err


def test_nothing_is_mended_whose_report_cannot_be_written(session):
    how = ["--in-place", "--report", "missing/report.json"]
    code, _, err = lockstitch("mend", "s.jsonl", *how)
    assert code == 2
    assert "missing/report.json: cannot be written: No such file or directory." in err
    assert session.read_bytes() == BROKEN
    assert names(session) == ["s.jsonl"]


def test_a_report_on_a_read_only_disk_is_told_by_its_own_name(session, monkeypatch):
    def read_only(*_, **__):
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(Path, "write_bytes", read_only)
    monkeypatch.setattr(Path, "unlink", read_only)
    code, _, err = lockstitch("mend", "s.jsonl", "--in-place", "--report", "report.json")
    assert code == 2
    assert "report.json: cannot be written: Read-only file system. Nothing was changed." in err


@pytest.mark.parametrize("session_is", [BROKEN, WHOLE])
@pytest.mark.parametrize("force", [[], ["--force"]])
def test_a_pipe_with_a_name_is_written_into_and_stays_one(session, session_is, force):
    session.write_bytes(session_is)
    pipe = session.with_name("pipe")
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as reader:
        read = reader.submit(pipe.read_bytes)
        code, out, _ = lockstitch("mend", "s.jsonl", "-o", "pipe", *force)
        came = read.result(timeout=30)
    assert (code, out.splitlines()[-1]) == (0, "Wrote into pipe.")
    assert pipe.is_fifo()
    session.write_bytes(came)
    assert lockstitch("check", "s.jsonl").code == 0


@pytest.mark.parametrize("what", ["-o", "--report"])
def test_a_device_is_written_into_and_stays_one(session, what):
    link = session.with_name("null")
    link.symlink_to("/dev/null")
    assert lockstitch("mend", "s.jsonl", what, "null", "--force").code == 0
    assert link.is_symlink()
    assert link.is_char_device()


def test_a_socket_is_refused(session):
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("sock")
        code, _, err = lockstitch("mend", "s.jsonl", "-o", "sock", "--force")
    assert code == 2
    assert "sock: is neither a file nor a pipe. Use - for standard output." in err
    assert session.with_name("sock").is_socket()


@pytest.mark.parametrize("there", [True, False])
def test_a_link_is_followed_not_replaced(session, there):
    target = session.with_name("target.jsonl")
    if there:
        target.write_bytes(b"old")
    link = session.with_name("link.jsonl")
    link.symlink_to("target.jsonl")
    assert lockstitch("mend", "s.jsonl", "-o", "link.jsonl", "--force").code == 0
    assert link.is_symlink()
    assert lockstitch("check", "target.jsonl").code == 0


def test_a_link_that_leads_to_itself_is_refused(session):
    session.with_name("loop").symlink_to("loop")
    code, _, err = lockstitch("mend", "s.jsonl", "-o", "loop", "--force")
    assert code == 2
    assert "loop: cannot be written: " in err
    assert session.with_name("loop").is_symlink()


def test_a_file_that_is_standard_output_is_written_into(session):
    out = session.with_name("out.jsonl")
    with out.open("wb") as stdout:
        ran = subprocess.run(
            [PROGRAM, "mend", "s.jsonl", "-o", "/dev/stdout"],
            stdout=stdout,
            stderr=subprocess.PIPE,
            cwd=session.parent,
            timeout=60,
            check=False,
        )
    assert (ran.returncode, b"added an output for call_a (finished)" in ran.stderr) == (0, True)
    assert lockstitch("check", "out.jsonl").code == 0


# --- several files -----------------------------------------------------------------------------


@pytest.fixture
def folder(session):
    (session.parent / "deep").mkdir()
    (session.parent / "deep" / "broken.jsonl").write_bytes(BROKEN)
    (session.parent / "deep" / "whole.jsonl").write_bytes(WHOLE)
    (session.parent / "deep" / "package.json").write_text('{"name": "not a session"}')
    return session.parent


def test_files_and_folders_are_repaired_each_to_its_own_copy(folder):
    code, out, err = lockstitch("mend", "s.jsonl", "deep")
    assert (code, err) == (0, "")
    assert "Wrote s.jsonl.mended." in out
    assert "Wrote deep/broken.jsonl.mended." in out
    assert out.splitlines()[-1] == "Repaired 2 files; 1 needed no repair."
    assert sorted(os.listdir("deep")) == [
        "broken.jsonl",
        "broken.jsonl.mended",
        "package.json",
        "whole.jsonl",
    ]


def test_a_second_run_finds_its_copies_up_to_date(folder):
    lockstitch("mend", ".")
    before = (folder / "s.jsonl.mended").stat()
    code, out, err = lockstitch("mend", ".")
    assert (code, err) == (0, "")
    assert "s.jsonl.mended is up to date." in out
    assert out.splitlines()[-1] == "Repaired 0 files; 2 repaired before; 1 needed no repair."
    assert (folder / "s.jsonl.mended").stat().st_mtime_ns == before.st_mtime_ns


def test_a_file_that_cannot_be_repaired_does_not_keep_the_others_from_it(folder):
    (folder / "s.jsonl.mended").write_text("somebody else's")
    code, out, err = lockstitch("mend", ".")
    assert code == 2
    assert "s.jsonl.mended: exists already" in err
    assert (folder / "s.jsonl.mended").read_text() == "somebody else's"
    assert "Wrote deep/broken.jsonl.mended." in out
    assert out.splitlines()[-1].endswith("1 could not be repaired.")


def test_one_report_tells_of_all_files_and_is_written_before_any_of_them(folder):
    assert lockstitch("mend", ".", "--in-place", "--report", "report.json").code == 0
    report = json.loads((folder / "report.json").read_text())
    assert [file["file"] for file in report["files"]] == [
        "s.jsonl",
        "deep/broken.jsonl",
        "deep/whole.jsonl",
    ]
    (folder / "s.jsonl").write_bytes(BROKEN)
    assert lockstitch("mend", ".", "--in-place", "--report", "no/report.json").code == 2
    assert (folder / "s.jsonl").read_bytes() == BROKEN


@pytest.mark.parametrize("paths", [["s.jsonl", "deep"], ["deep"]])
def test_several_files_have_no_single_place_for_a_copy(folder, paths):
    code, _, err = lockstitch("mend", *paths, "-o", "copy.jsonl")
    assert (code, "-o takes a single file" in err) == (2, True)
    assert not (folder / "copy.jsonl").exists()


def test_standard_input_goes_with_no_other_path(folder):
    code, _, err = lockstitch("mend", "-", "s.jsonl")
    assert (code, "cannot be combined" in err) == (2, True)


def test_a_folder_without_sessions_is_told_so(folder):
    (folder / "empty").mkdir()
    code, _, err = lockstitch("mend", "empty")
    assert (code, "empty: no session files found." in err) == (2, True)


def test_check_can_fix_in_place_and_keeps_a_backup(folder):
    code, out, err = lockstitch("check", ".", "--fix")
    assert (code, err) == (0, "")
    assert out == (
        "All clean: 3 files, 17 records. Fixed 4 problems in 2 files; the originals are kept as"
        " *.bak.\n"
    )
    assert (folder / "s.jsonl.bak").read_bytes() == BROKEN
    assert (folder / "deep" / "whole.jsonl").read_bytes() == WHOLE
    assert not (folder / "deep" / "whole.jsonl.bak").exists()


def test_check_fixes_only_files_whose_problems_are_reported(folder):
    assert lockstitch("check", ".", "--fix", "--select", "LS1").code == 0
    assert (folder / "s.jsonl").read_bytes() == BROKEN


def test_what_cannot_be_fixed_is_an_error_and_the_rest_is_fixed(folder):
    (folder / "orphan.jsonl").write_bytes(jsonl([{"type": "function_call_output", "call_id": "x"}]))
    code, _, err = lockstitch("check", ".", "--fix")
    assert code == 2
    assert "orphan.jsonl: nothing of it would be left" in err
    assert (folder / "s.jsonl.bak").exists()
