"""The pre-commit hook and the GitHub action, as far as they can be tried without a network."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
PROGRAMS = Path(sys.executable).parent
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
(HOOK,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())


@pytest.fixture
def folder(tmp_path):
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    return tmp_path


def run(command, folder, **variables):
    path = f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        command,
        cwd=folder,
        env=os.environ | {"PATH": path} | variables,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_hook_takes_session_files_and_finds_what_is_broken(folder):
    files = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    wanted, unwanted = re.compile(HOOK["files"]), re.compile(HOOK["exclude"])
    taken = [name for name in files if wanted.search(name) and not unwanted.search(name)]
    assert "examples/codex-killed.jsonl" in taken
    assert "examples/README.md" not in taken
    ran = run([*HOOK["entry"].split(), *taken], folder)
    assert ran.returncode == 1
    assert "examples/codex-killed.jsonl:10: LS001 call_G1" in ran.stdout
    assert run([*HOOK["entry"].split(), "examples/codex-clean.jsonl"], folder).returncode == 0


@pytest.mark.parametrize(
    ("name", "taken"),
    [
        ("a/s.jsonl", True),
        ("s.json.gz", True),
        ("agent.sqlite3", True),
        ("package.json", False),
        ("web/tsconfig.base.json", False),
        ("notes.md", False),
    ],
)
def test_the_hook_passes_over_other_files(name, taken):
    found = re.search(HOOK["files"], name) and not re.search(HOOK["exclude"], name)
    assert bool(found) is taken


def check_step(folder, **inputs):
    given = {name: one["default"] for name, one in ACTION["inputs"].items()} | inputs
    step = ACTION["runs"]["steps"][-1]
    variables = {
        name: given[re.fullmatch(r"\$\{\{ inputs\.([\w-]+) \}\}", value)[1]]
        for name, value in step["env"].items()
    }
    return run(["bash", "-eo", "pipefail", "-c", step["run"]], folder, **variables)


def test_the_action_annotates_findings_and_fails(folder):
    ran = check_step(folder, paths="examples\n")
    assert ran.returncode == 1
    assert "::error file=examples/codex-killed.jsonl,line=10,title=LS001" in ran.stdout
    assert check_step(folder, paths="examples/codex-clean.jsonl").returncode == 0
    assert check_step(folder, args="--select=LS103\n", paths="examples").returncode == 0


def test_an_input_of_the_action_is_never_run(folder):
    ran = check_step(folder, paths='$(touch owned)"; touch owned; "\n`touch owned`\n-h')
    assert ran.returncode == 2
    assert not (folder / "owned").exists()
    assert "Usage:" not in ran.stdout


def test_no_step_of_the_action_puts_an_input_into_a_script():
    for step in ACTION["runs"]["steps"]:
        assert "${{" not in step.get("run", "")
