"""Settings files and baselines: what they change, and what is said of a wrong one."""

from __future__ import annotations

import json
import os

import pytest

from tests.cli.commands import lockstitch, program
from tests.sessions.rollouts import assistant, call, legacy, output, user
from tests.sessions.written import jsonl

OPEN_CALL = jsonl(legacy([user(), call("call_open")]))
ORPHAN = jsonl(legacy([user(), output("call_gone")]))
VALID = jsonl(legacy([user(), call(), output(), assistant()]))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sessions" / "old").mkdir(parents=True)
    (tmp_path / "sessions" / "open.jsonl").write_bytes(OPEN_CALL)
    (tmp_path / "sessions" / "old" / "orphan.jsonl").write_bytes(ORPHAN)
    return tmp_path


def found(ran):
    """The files and codes of the findings that were printed."""
    lines = [line.split() for line in ran.out.splitlines() if ": LS" in line]
    return [(line[0].split(":")[0], line[1]) for line in lines]


BOTH = [("sessions/old/orphan.jsonl", "LS002"), ("sessions/open.jsonl", "LS001")]


def order(rows):
    return sorted(rows)


@pytest.mark.parametrize("name", ["lockstitch.toml", "pyproject.toml"])
@pytest.mark.parametrize(
    ("settings", "left"),
    [
        ("", BOTH),
        ('select = ["LS001"]', BOTH[1:]),
        ('ignore = ["ls001"]', BOTH[:1]),
        ('exclude = ["old"]', BOTH[1:]),
        ('exclude = ["sessions/*.jsonl"]', []),
        ('per-file-ignores = {"sessions/old/*" = ["LS0"]}', BOTH[1:]),
        ('per-file-ignores = {"open.jsonl" = ["LS001"]}', BOTH[:1]),
    ],
)
def test_a_settings_file_decides_what_is_reported(folder, name, settings, left):
    table = "[tool.lockstitch]\n" if name == "pyproject.toml" else ""
    (folder / name).write_text(table + settings)
    assert order(found(lockstitch("check", "sessions"))) == left
    # The same from a folder below.
    assert order(found(lockstitch("check", folder / "sessions"))) == [
        (str(folder / path), code) for path, code in left
    ]


def test_the_nearest_settings_file_counts_and_a_pyproject_without_a_table_is_passed_over(
    folder, monkeypatch
):
    (folder / "lockstitch.toml").write_text('ignore = ["LS001"]')
    (folder / "sessions" / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    monkeypatch.chdir(folder / "sessions")
    assert found(lockstitch("check", ".")) == [("old/orphan.jsonl", "LS002")]
    (folder / "sessions" / "lockstitch.toml").write_text('ignore = ["LS002"]')
    assert found(lockstitch("check", ".")) == [("open.jsonl", "LS001")]


def test_options_override_the_settings_file(folder):
    (folder / "lockstitch.toml").write_text('select = ["LS001"]\nexclude = ["old"]\n')
    assert found(lockstitch("check", "sessions", "--select", "LS002")) == []
    (folder / "other.toml").write_text('ignore = ["LS001"]')
    assert found(lockstitch("check", "sessions", "--config", "other.toml")) == BOTH[:1]
    assert order(found(lockstitch("check", "sessions", "--exclude", "open.*"))) == []


def test_select_on_the_command_line_reports_rules_that_the_settings_file_ignores(folder):
    (folder / "lockstitch.toml").write_text('ignore = ["LS001"]')
    assert found(lockstitch("check", "sessions", "--select", "LS001")) == BOTH[1:]
    both = ["--select", "LS0", "--ignore", "LS002"]
    assert found(lockstitch("check", "sessions", *both)) == BOTH[1:]
    assert order(found(lockstitch("check", "sessions", "--ignore", "LS002"))) == BOTH[1:]


def test_a_folder_in_which_everything_is_excluded_names_exclude(folder):
    (folder / "lockstitch.toml").write_text('exclude = ["old"]')
    for command in ("check", "mend"):
        code, _, err = lockstitch(command, "sessions/old")
        assert code == 2
        assert "sessions/old: no session files found. 1 file or folder is skipped by" in err
        assert "`exclude`" in err
        assert "To read one of them, name the file itself." in err
    code, _, err = lockstitch("check", "sessions", "--exclude", "*.jsonl")
    assert "2 files or folders are skipped by" in err


def test_a_file_that_is_named_is_checked_even_if_it_is_excluded(folder):
    (folder / "lockstitch.toml").write_text('exclude = ["old"]')
    assert found(lockstitch("check", "sessions/old/orphan.jsonl")) == BOTH[:1]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("slect = []", "unknown setting 'slect'. Did you mean 'select'?"),
        ("per_file_ignores = {}", "Did you mean 'per-file-ignores'?"),
        ("zzz = 1", "Known are: select, ignore, exclude, per-file-ignores, baseline."),
        ('select = "LS001"', 'select must be a list of strings, such as ["LS001"].'),
        ("exclude = [1]", 'exclude must be a list of strings, such as ["archive"].'),
        ("baseline = 1", 'baseline must be a string, such as "lockstitch-baseline.json".'),
        ("per-file-ignores = []", "per-file-ignores must be a table of patterns, such as"),
        (
            'per-file-ignores = {"old/*" = "LS001"}',
            "per-file-ignores: 'old/*' must be a list of strings, such as [\"LS001\"].",
        ),
        ('select = ["LS9"]', "There is no rule LS9."),
        ("select = [", "is not valid TOML"),
        ("\x00", "is not valid TOML"),
    ],
)
def test_a_wrong_settings_file_is_an_error_that_names_it(folder, content, says):
    (folder / "lockstitch.toml").write_text(content)
    for command in (["check", "sessions"], ["mend", "--dry-run", "sessions"]):
        code, _, err = lockstitch(*command)
        assert code == 2
        assert "lockstitch.toml: " in err
        assert says in err


def test_a_settings_file_that_is_not_there_is_an_error(folder):
    code, _, err = lockstitch("check", "sessions", "--config", "no.toml")
    assert (code, "no.toml: cannot be read: No such file" in err) == (2, True)


def test_mending_a_folder_leaves_excluded_files_alone(folder):
    (folder / "lockstitch.toml").write_text('exclude = ["old"]')
    assert lockstitch("mend", "sessions").code == 0
    assert not (folder / "sessions" / "old" / "orphan.jsonl.mended").exists()
    assert (folder / "sessions" / "open.jsonl.mended").exists()


# --- baselines ---------------------------------------------------------------------------------


def test_known_problems_are_not_reported_again_and_new_ones_are(folder):
    code, out, _ = lockstitch("check", "sessions", "--write-baseline", "known.json")
    assert (code, out) == (0, "Wrote known.json with 2 known problems.\n")
    code, out, _ = lockstitch("check", "sessions", "--baseline", "known.json")
    assert code == 0
    assert out == "All clean: 2 files, 6 records. 2 known problems not shown (baseline).\n"
    longer = legacy([user(), user(), call("call_open"), output("call_new")])
    (folder / "sessions" / "open.jsonl").write_bytes(jsonl(longer))
    ran = lockstitch("check", "sessions", "--baseline", "known.json")
    assert ran.code == 1
    assert found(ran) == [("sessions/open.jsonl", "LS002")]


def test_a_baseline_counts_so_a_second_problem_of_the_same_kind_is_new(folder):
    torn = jsonl(legacy([user()])) + b"{torn\n"
    (folder / "sessions" / "open.jsonl").write_bytes(torn)
    lockstitch("check", "sessions", "--write-baseline", "known.json")
    (folder / "sessions" / "open.jsonl").write_bytes(torn + b"{again\n")
    assert found(lockstitch("check", "sessions", "--baseline", "known.json")) == [
        ("sessions/open.jsonl", "LS101")
    ]


def test_the_settings_file_can_name_the_baseline_and_it_holds_from_any_folder(folder, monkeypatch):
    lockstitch("check", "sessions", "--write-baseline", "known.json")
    (folder / "lockstitch.toml").write_text('baseline = "known.json"')
    assert lockstitch("check", "sessions").code == 0
    monkeypatch.chdir(folder / "sessions")
    assert lockstitch("check", ".").code == 0
    assert "sessions/open.jsonl" in json.loads((folder / "known.json").read_text())["files"]


def test_fix_leaves_files_alone_whose_problems_are_all_known(folder):
    lockstitch("check", "sessions", "--write-baseline", "known.json")
    (folder / "sessions" / "new.jsonl").write_bytes(ORPHAN)
    code, out, err = lockstitch("check", "sessions", "--fix", "--baseline", "known.json")
    assert (code, err) == (0, "")
    assert out == (
        "All clean: 3 files, 8 records. Fixed 1 problem in 1 file; the originals are kept as"
        " *.bak. 2 known problems not shown (baseline).\n"
    )
    assert (folder / "sessions" / "open.jsonl").read_bytes() == OPEN_CALL
    assert (folder / "sessions" / "old" / "orphan.jsonl").read_bytes() == ORPHAN
    assert (folder / "sessions" / "new.jsonl.bak").read_bytes() == ORPHAN


def test_fix_repairs_known_problems_too_in_a_file_with_a_new_one(folder):
    lockstitch("check", "sessions", "--write-baseline", "known.json")
    longer = legacy([user(), user(), call("call_open"), output("call_new")])
    (folder / "sessions" / "open.jsonl").write_bytes(jsonl(longer))
    code, out, _ = lockstitch("check", "sessions", "--fix", "--baseline", "known.json")
    assert code == 0
    assert "Fixed 2 problems in 1 file" in out
    assert "1 known problem not shown" in out


@pytest.mark.parametrize("source", ["option", "settings"])
def test_fix_changes_nothing_if_the_baseline_cannot_be_used(folder, source):
    given = ["--baseline", "missing.json"] if source == "option" else []
    if source == "settings":
        (folder / "lockstitch.toml").write_text('baseline = "missing.json"')
    code, _, err = lockstitch("check", "sessions", "--fix", *given)
    assert (code, "missing.json: cannot be read" in err) == (2, True)
    assert (folder / "sessions" / "open.jsonl").read_bytes() == OPEN_CALL
    assert not list(folder.rglob("*.bak"))


def test_fix_and_write_baseline_exclude_each_other(folder):
    code, _, err = lockstitch("check", "sessions", "--fix", "--write-baseline", "known.json")
    assert (code, "--fix cannot be combined with --write-baseline" in err) == (2, True)
    assert not (folder / "known.json").exists()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "cannot be read: No such file or directory. Make a baseline with:"),
        ("[]", "is not a baseline"),
        ("{", "is not a baseline"),
        ('{"kind": "lockstitch-baseline", "files": {}, "version": 2}', "has version 2"),
    ],
)
def test_a_baseline_that_cannot_be_used_is_an_error(folder, content, says):
    if content is not None:
        (folder / "known.json").write_text(content)
    code, _, err = lockstitch("check", "sessions", "--baseline", "known.json")
    assert code == 2
    assert "known.json: " in err
    assert says in err


def test_no_baseline_is_written_if_a_file_could_not_be_read(folder):
    (folder / "sessions" / "wide.jsonl").write_bytes("{}".encode("utf-16"))
    code, _, err = lockstitch("check", "sessions", "--write-baseline", "known.json")
    assert code == 2
    assert err.endswith("lockstitch: No baseline was written.\n")
    assert not (folder / "known.json").exists()


def test_a_baseline_that_cannot_be_written_leaves_nothing_behind(folder):
    code, _, err = lockstitch("check", "sessions", "--write-baseline", "no/known.json")
    assert (code, "no/known.json: cannot be written" in err) == (2, True)
    assert sorted(one.name for one in folder.iterdir()) == ["sessions"]


# --- what else hands expect --------------------------------------------------------------------


def test_quiet_prints_findings_and_nothing_else(folder):
    code, out, err = lockstitch("check", "sessions", "--quiet")
    assert (code, len(out.splitlines()), err) == (1, 2, "")
    assert lockstitch("mend", "sessions", "--quiet") == (0, "", "")


def test_exit_zero_hides_findings_from_the_exit_code_but_not_errors(folder):
    assert lockstitch("check", "sessions", "--exit-zero").code == 0
    assert lockstitch("check", "missing.jsonl", "--exit-zero").code == 2


def test_standard_input_can_have_a_name(folder):
    (folder / "lockstitch.toml").write_text('per-file-ignores = {"old/*" = ["LS001"]}')
    named = ["check", "-", "--stdin-filename", "new/a.jsonl"]
    ran = program(*named, stdin=OPEN_CALL)
    assert ran.stdout.startswith(b"new/a.jsonl:3: LS001 ")
    named[-1] = "old/a.jsonl"
    assert program(*named, stdin=OPEN_CALL).returncode == 0


@pytest.mark.parametrize(
    ("arguments", "variables", "colored"),
    [
        ([], {}, False),
        ([], {"FORCE_COLOR": "1"}, True),
        ([], {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        (["--color", "always"], {"NO_COLOR": "1"}, True),
        (["--color", "never"], {"FORCE_COLOR": "1"}, False),
    ],
)
def test_colors_follow_the_option_then_the_environment_then_the_terminal(
    folder, monkeypatch, arguments, variables, colored
):
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    for command in ("check", "mend"):
        out = lockstitch(command, "sessions/open.jsonl", *arguments).out
        assert ("\x1b[31mLS001" in out) is colored


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completion_script_completes_commands_and_options(shell):
    script = program("completion", shell).stdout
    assert b"_LOCKSTITCH_COMPLETE" in script
    assert completed("check --wri") == "plain,--write-baseline"


@pytest.mark.parametrize(
    "words",
    [
        "check ses",
        "check a.jsonl ses",
        "mend ses",
        "store export sqlite:///a.db b",
        "store import sqlite:///a.db b",
    ],
)
def test_the_shell_completes_files_where_a_command_takes_files(words):
    assert completed(words) == f"file,{words.rpartition(' ')[2]}"


def completed(words):
    """What a shell is told for a command line, of which the last word is completed."""
    variables = os.environ | {
        "_LOCKSTITCH_COMPLETE": "bash_complete",
        "COMP_WORDS": f"lockstitch {words}",
        "COMP_CWORD": str(len(words.split())),
    }
    ran = program(env=variables)
    assert ran.returncode == 0
    return ran.stdout.decode().strip()
