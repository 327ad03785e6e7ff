"""The four ways of printing findings."""

from __future__ import annotations

import io
import json
import re
from contextlib import redirect_stdout

import pytest

from lockstitch.cli import reporting
from lockstitch.cli.app import run
from lockstitch.cli.reporting import FileReport, Look, Row, print_text
from lockstitch.core.rules import RULES
from tests.cli.commands import lockstitch
from tests.sessions.rollouts import call, legacy, user
from tests.sessions.written import jsonl


@pytest.fixture
def broken(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a,b.jsonl").write_bytes(jsonl(legacy([user(), call("100%\nsure")])))
    (tmp_path / "windows.jsonl").write_bytes("{}".encode("utf-16"))


def test_json_holds_everything(broken):
    code, out, _ = lockstitch("check", ".", "--output", "json", "--statistics")
    result = json.loads(out)
    first, second = result["files"]
    assert code == 2
    assert first["findings"] == [
        {
            "code": "LS001",
            "line": 3,
            "where": "line 3",
            "message": "100%\nsure (exec_command) has no output",
            "label": "",
            "call_id": "100%\nsure",
        }
    ]
    assert (first["format"], first["records"], first["error"]) == ("codex", 3, None)
    assert "is UTF-16" in second["error"]
    assert result["statistics"] == {"LS001": 1}


def test_github_gets_escaped_annotations(broken):
    _, out, _ = lockstitch("check", "a,b.jsonl", "--output", "github")
    assert out.splitlines()[0] == (
        "::error file=a%2Cb.jsonl,line=3,title=LS001 no-output::"
        "100%25%0Asure (exec_command) has no output"
    )


def test_a_path_is_a_uri_in_sarif(broken, tmp_path):
    name = "a b#c%20é.jsonl"
    (tmp_path / "a,b.jsonl").rename(tmp_path / name)
    _, out, _ = lockstitch("check", name, "--output", "sarif")
    (result,) = json.loads(out)["runs"][0]["results"]
    place = result["locations"][0]["physicalLocation"]["artifactLocation"]
    assert place == {"uri": "a%20b%23c%2520%C3%A9.jsonl"}


def test_sarif_has_the_form_that_scanners_read(broken):
    _, out, _ = lockstitch("check", ".", "--output", "sarif")
    sarif = json.loads(out)
    (run,) = sarif["runs"]
    assert sarif["version"] == "2.1.0"
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == list(RULES)
    (result,) = run["results"]
    assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"] == "LS001"
    place = result["locations"][0]["physicalLocation"]
    assert place == {"artifactLocation": {"uri": "a,b.jsonl"}, "region": {"startLine": 3}}
    assert run["invocations"][0]["executionSuccessful"] is False


def test_colours_are_for_terminals_only(capsys, monkeypatch):
    row = Row(code="LS001", line=1, where="line 1", message="x")
    print_text([FileReport(path="p", rows=[row])], Look())
    assert "\x1b" not in capsys.readouterr().out
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    print_text([FileReport(path="p", rows=[row])], Look())
    assert "\x1b[31mLS001\x1b[0m" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "value"), [("NO_COLOR", "1"), ("NO_COLOR", "0"), ("TERM", "dumb")]
)
@pytest.mark.parametrize("command", [["check"], ["mend", "--dry-run"], ["mend", "--diff"]])
def test_somebody_who_wants_no_colours_gets_none(broken, monkeypatch, command, name, value):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "")
    shown = []
    for _ in range(2):
        with redirect_stdout(Terminal()) as out:
            run([*command, "a,b.jsonl"])
        shown.append(out.getvalue())
        monkeypatch.setenv(name, value)
    assert "\x1b[" in shown[0]
    assert shown[1] == re.sub(r"\x1b\[\d+m", "", shown[0])


def test_what_could_not_be_read_is_told_before_how_to_mend(broken):
    assert lockstitch("check", ".").out.splitlines()[-1] == (
        "Found 1 problem in 1 of 1 file (3 records). 1 file could not be read. "
        "Repair with: lockstitch mend PATH"
    )


def test_a_finding_without_a_line_says_where_it_is():
    row = Row(code="LS001", line=None, where="row 7", message="x", label="session s")
    assert row.sentence == "x [session s, row 7]"


EVIL = "a\x1b[2J\x9b1A\u202e\n::stop-commands::x.jsonl"
"""A file name that clears the screen, moves the cursor, turns the direction of what follows, and
begins a line that GitHub would obey."""


@pytest.fixture
def evil(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "evil").mkdir()
    item = {"type": "function_call", "name": EVIL, "call_id": EVIL, "arguments": "{}"}
    bodies = [{"input": [{"role": "user", "content": EVIL}, item]}]
    (tmp_path / "evil" / EVIL.replace("/", "")).write_bytes(jsonl(bodies))
    (tmp_path / "evil" / (EVIL + ".json")).write_bytes("{}".encode("utf-16"))
    (tmp_path / "evil" / (EVIL + ".db")).write_bytes(b"")
    return tmp_path


@pytest.mark.parametrize(
    "command",
    [
        *(["check", "evil", "--output", kind] for kind in reporting.PRINTERS),
        ["check", "evil", "--write-baseline", f"{EVIL}/none"],
        ["check", "--watch", EVIL],
        *(["check", EVIL, *more] for more in ([], ["--config", EVIL], ["--baseline", EVIL])),
        *(["mend", "evil", flag] for flag in ("--diff", "--dry-run", "--in-place")),
        *(["mend", f"evil/{EVIL}", flag, f"{EVIL}/x"] for flag in ("-o", "--report")),
        ["check", f"--{EVIL}"],
        ["check", f"store:sqlite:///{EVIL}"],
        ["store", "list", f"sqlite:///{EVIL}"],
        ["store", EVIL],
        ["serve", "--config", EVIL],
        ["emulate", "--record", f"{EVIL}/none"],
        ["emulate", "--fault", EVIL],
        [EVIL],
    ],
)
def test_nothing_that_is_named_controls_the_terminal(evil, command):
    ran = lockstitch(*command)
    said = ran.out + ran.err
    assert ran.code in {1, 2}
    assert "2J" in said
    assert not re.search("[\x1b\x9b\u202e]", said)
    assert not re.search("^\\s*::stop", said, re.MULTILINE)
