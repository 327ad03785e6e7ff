"""The docs are true: their examples run, their links lead somewhere, their tables match the code.

Conventions that make a page executable:
- a fence `jsonl CODE [NAME]` is a file (`example.jsonl`, or NAME) in which CODE is found;
- a fence `console` holds commands (`$ lockstitch ...`) and, to the letter, what they print;
- a fence `python` runs; the fence `text` right behind it is what it prints;
- a fence `python NAME` is a file of tests."""

from __future__ import annotations

import contextlib
import inspect
import io
import json
import re
import shutil
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from anthropic import Anthropic
from anthropic import BadRequestError as AnthropicBadRequest
from openai import BadRequestError, OpenAI

import lockstitch
from lockstitch.cli.app import run
from lockstitch.core import mending
from lockstitch.core.rules import RULES
from lockstitch.emulator import Emulator, refusals
from lockstitch.emulator.faults import FAULTS
from lockstitch.sessions.files import check_file
from lockstitch.sessions.source import Source
from tests.drawing import drawn

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
README = ROOT / "README.md"
ARCHITECTURE = DOCS / "architecture.md"
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "examples").glob("*.md"), *DOCS.rglob("*.md")])

HEADINGS = [
    "What it means",
    "How it comes about",
    "What a provider says",
    "Example",
    "What mending does",
    "How to prevent it",
]


class Fence(NamedTuple):
    info: str
    body: str


def fences(page: Path) -> list[Fence]:
    found = re.findall(r"^```([^\n`]*)\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE)
    return [Fence(info.strip(), body) for info, body in found]


def rule_page(code):
    return DOCS / "rules" / f"{code}.md"


def named(page):
    return str(page.relative_to(ROOT))


# --- the rules ---------------------------------------------------------------------------------


def example_of(code: str) -> tuple[str, str]:
    """The name and the text of the file that a page shows."""
    for fence in fences(rule_page(code)):
        kind, *rest = fence.info.split()
        if kind == "jsonl" and rest[:1] == [code]:
            return (rest[1] if len(rest) > 1 else "example.jsonl"), fence.body
    raise AssertionError(f"{code}.md has no fence `jsonl {code}`")


@pytest.mark.parametrize("code", RULES)
def test_every_rule_has_a_page_and_all_pages_have_the_same_headings(code):
    text = rule_page(code).read_text()
    assert text.startswith(f"# {code} {RULES[code].name}\n\n{RULES[code].summary}\n")
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == HEADINGS


def test_there_is_no_page_for_a_rule_that_does_not_exist():
    assert {page.stem for page in (DOCS / "rules").glob("LS*.md")} == set(RULES)


def test_the_table_of_rules_has_every_rule_with_its_name_and_meaning():
    page = DOCS / "rules" / "README.md"
    rows = re.findall(r"^\| \[(LS\d+)\]\((.+?)\) \| (.+?) \| (.+?) \|", page.read_text(), re.M)
    assert rows == [(code, f"{code}.md", rule.name, rule.summary) for code, rule in RULES.items()]


@pytest.mark.parametrize("code", RULES)
def test_the_example_of_a_page_gives_the_finding(code, tmp_path):
    name, text = example_of(code)
    path = tmp_path / name
    path.write_text(text)
    found = check_file(Source(path))
    assert code in {located.finding.code for located in found.findings()}
    if found.format == "jsonl" and code != "LS101":
        items = [json.loads(line) for line in text.splitlines()]
        assert code in {finding.code for finding in lockstitch.check(items)}
        assert lockstitch.check(lockstitch.mend(items)) == []


@pytest.mark.parametrize("code", RULES)
def test_the_page_of_a_rule_is_what_explain_shows(code, capsys):
    assert run(["check", "--explain", code]) == 0
    assert capsys.readouterr().out == rule_page(code).read_text().rstrip() + "\n"


def test_every_kind_of_edit_is_named_in_the_glossary():
    glossary = (DOCS / "glossary.md").read_text()
    for edit in mending.Edit.__args__:
        assert f"`{edit.__name__}`" in glossary


# --- what is shown is what happens -------------------------------------------------------------


def commands(body: str) -> list[tuple[list[str], str]]:
    """The commands of a console fence, each with what it prints."""
    found = []
    for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
        command, _, printed = part.partition("\n")
        program, *arguments = command.split()
        assert program == "lockstitch", f"a console fence runs lockstitch only: {command}"
        found.append((arguments, printed))
    return found


def with_console(pages):
    return [page for page in pages if any(fence.info == "console" for fence in fences(page))]


@pytest.mark.parametrize("page", with_console(PAGES), ids=named)
def test_commands_print_what_the_page_shows(page, tmp_path, monkeypatch, capsys):
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    for fence in fences(page):
        kind, *rest = fence.info.split() or [""]
        if kind == "jsonl" and rest:
            Path(rest[1] if len(rest) > 1 else "example.jsonl").write_text(fence.body)
        elif fence.info == "console":
            for arguments, shown in commands(fence.body):
                run(arguments)
                printed = capsys.readouterr()
                assert printed.out + printed.err == shown, " ".join(arguments)


def with_python(pages):
    return [page for page in pages if any(fence.info == "python" for fence in fences(page))]


@pytest.mark.parametrize("page", with_python(PAGES), ids=named)
def test_python_examples_run_and_print_what_the_page_shows(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shown = fences(page)
    names: dict[str, object] = {}
    for n, fence in enumerate(shown):
        if fence.info != "python":
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(fence.body, named(page), "exec"), names)
        if n + 1 < len(shown) and shown[n + 1].info == "text":
            assert printed.getvalue() == shown[n + 1].body
        else:
            assert printed.getvalue() == ""


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_option_that_a_page_names_exists(page, capsys):
    run(["check", "--help"])
    run(["mend", "--help"])
    run(["emulate", "--help"])
    run(["chat", "--help"])
    run(["demo", "--help"])
    run(["serve", "--help"])
    run(["key", "--help"])
    run(["store", "delete", "--help"])
    helped = capsys.readouterr().out
    for code in re.findall(r"`([^`\n]+)`", page.read_text()):
        if not code.startswith(("--", "lockstitch ")):
            continue
        for option in re.findall(r"(?<![\w-])--[a-z][a-z-]*", code):
            assert re.search(rf"{option}(?![\w-])", helped), option


# --- the README --------------------------------------------------------------------------------

SECTIONS = [
    "Try it",
    "Which part do I need?",
    "Repair a history before each request",
    "Run the gateway",
    "Test your agent",
    "Build an agent that survives crashes",
    "More",
]


def test_the_readme_is_short_and_its_sections_come_in_order():
    text = README.read_text()
    assert len(text.splitlines()) <= 200
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == SECTIONS
    before = text.split(f"## {SECTIONS[0]}")[0]
    order = [
        "No tool output found",
        "`tool_use` ids",
        "'tool_calls' must be",
        "makes sure",
        "![",
        "| D |",
    ]
    places = [before.index(part) for part in order]
    assert places == sorted(places)


def test_the_errors_in_the_readme_are_those_of_the_providers(emulator):
    shown = re.findall(r"^- [^:]+: (?:`` (.+) ``|`(.+)`)$", README.read_text(), re.MULTILINE)
    client = OpenAI(base_url=emulator.base_url, api_key="any")
    responses = [{"type": "function_call", "call_id": "call_1", "name": "f", "arguments": "{}"}]
    function = {"name": "f", "arguments": "{}"}
    called = [{"id": "call_1", "type": "function", "function": function}]
    chat = [{"role": "user", "content": "?"}, {"role": "assistant", "tool_calls": called}]
    used = [{"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}}]
    messages = [
        {"role": "user", "content": "?"},
        {"role": "assistant", "content": used},
        {"role": "user", "content": "!"},
    ]
    anthropic = Anthropic(base_url=emulator.url, api_key="any")
    asks = [
        lambda: client.responses.create(model="m", input=responses),
        lambda: anthropic.messages.create(model="claude", max_tokens=9, messages=messages),
        lambda: client.chat.completions.create(model="m", messages=chat),
    ]
    for (one, other), ask in zip(shown, asks, strict=True):
        with pytest.raises((BadRequestError, AnthropicBadRequest)) as refused:
            ask()
        assert (one or other).split("call_…")[0].split("toolu_…")[0] in str(refused.value.body)


def test_every_command_of_the_readme_can_be_run_twice(tmp_path, monkeypatch):
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    found = [
        one for fence in fences(README) if fence.info == "console" for one in commands(fence.body)
    ]
    first = [run(arguments) for arguments, _ in found]
    assert [run(arguments) for arguments, _ in found] == first
    assert 2 not in first


def test_the_python_examples_of_the_readme_can_be_run_twice(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    printed = []
    for _ in range(2):
        for fence in fences(README):
            if fence.info == "python":
                exec(compile(fence.body, "README.md", "exec"), {})
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1] != ""


def recipe():
    (found,) = [one.body for one in fences(README) if one.info == "python" and "mend(" in one.body]
    return found


@pytest.mark.parametrize("mends", [True, False])
def test_the_recipe_of_the_readme_makes_a_broken_history_acceptable(emulator, mends):
    names: dict[str, Any] = {}
    source = recipe() if mends else recipe().replace("lockstitch.mend(history)", "list(history)")
    exec(compile(source, "README.md", "exec"), names)
    client = OpenAI(base_url=emulator.base_url, api_key="any")
    if mends:
        assert names["ask"](client)
        assert names["ask"](client)
        emulator.expect(violations=0, requests=2)
    else:
        with pytest.raises(BadRequestError, match="No tool output found for function call call_1"):
            names["ask"](client)


NEVER_ASKS = 'def agent(client, question):\n    return "You are booked."\n'


@pytest.mark.parametrize(
    ("changed", "into", "said"),
    [
        ("", "", "1 passed"),
        ("for item in calls:", "for item in []:", "No tool output found for function call"),
        ("def test_", f"{NEVER_ASKS}\n\ndef test_", "No request reached the emulator"),
    ],
    ids=["as it is", "an agent without outputs", "an agent that never asks"],
)
def test_the_test_in_the_readme_passes_and_fails_with_a_broken_agent(tmp_path, changed, into, said):
    (fence,) = [one for one in fences(README) if one.info == "python test_agent.py"]
    assert changed in fence.body
    (tmp_path / "test_agent.py").write_text(fence.body.replace(changed, into))
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_agent.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert said in ran.stdout, ran.stdout + ran.stderr
    assert ran.returncode == (0 if said == "1 passed" else 1)


# --- links -------------------------------------------------------------------------------------


def anchors(page: Path) -> set[str]:
    """What a link may name in a page: its headings, as they are linked to on the web."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_relative_link_leads_to_a_file_and_to_a_heading_of_it(page):
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        assert not link.startswith("/"), link
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.is_relative_to(ROOT), link
        assert target.exists(), link
        if anchor:
            assert anchor in anchors(target), link


# --- the emulator ------------------------------------------------------------------------------


def first_column(heading: str) -> list[str]:
    """What a section's tables of the emulator's page list, as it is written."""
    section = (DOCS / "emulator.md").read_text().split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return re.findall(r"^\| `([^`]+)` \|", section, re.MULTILINE)


def test_the_page_of_the_emulator_has_every_fault_with_what_it_does():
    page = (DOCS / "emulator.md").read_text()
    assert first_column("Faults") == list(FAULTS)
    for kind in FAULTS.values():
        assert f"| `{kind.name}` | {kind.does} |" in page


def test_the_page_of_the_emulator_has_every_rule_of_the_responses_api():
    written = inspect.getsource(refusals)
    rules = set(re.findall(r"Refused\(\s*\"([a-z-]+)\"", written)) - {"emulator-fault"}
    listed = first_column("What it enforces")
    assert sorted(listed) == sorted(rules)


def test_the_page_of_the_emulator_has_every_path_it_serves():
    listed = first_column("What it speaks") + first_column("What it records")
    assert sorted(listed) == sorted(f"{method} {path}" for method, path in Emulator().paths())


# --- the code ----------------------------------------------------------------------------------


def contracts() -> dict[str, list[str]]:
    """The layers of each package that has some."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    return {
        container: one["layers"]
        for one in settings["tool"]["importlinter"]["contracts"]
        if one["type"] == "layers"
        for container in one["containers"]
    }


@pytest.mark.parametrize("container", contracts())
def test_the_layers_of_the_architecture_page_are_those_of_the_contract(container):
    (drawn,) = [fence for fence in fences(ARCHITECTURE) if fence.info == f"text {container}"]
    names = [re.split(r"\s{2,}", line)[0] for line in drawn.body.splitlines()]
    assert names == contracts()[container]


@pytest.mark.parametrize("table", ["calls.LIFE", "exchanges.STANDING"])
def test_the_diagrams_of_lives_are_drawn_from_their_tables(table):
    module, name = table.split(".")
    (shown,) = [fence for fence in fences(DOCS / "ledger.md") if fence.info == f"mermaid {table}"]
    assert shown.body == drawn(getattr(import_module(f"lockstitch.core.{module}"), name))


def test_every_module_has_a_line_in_the_architecture_page_and_no_other():
    package = ROOT / "src" / "lockstitch"
    modules = {
        ".".join(path.relative_to(package).with_suffix("").parts)
        for path in package.rglob("*.py")
        if path.name != "__init__.py"
    }
    section = ARCHITECTURE.read_text().split("## Modules")[1].split("\n## ")[0]
    assert set(re.findall(r"^\| `([\w.]+)` \|", section, re.MULTILINE)) == modules


def test_every_limit_in_the_architecture_page_has_the_value_it_has_in_the_code():
    section = ARCHITECTURE.read_text().split("## Limits")[1].split("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \| `([\w.]+)` \| ([\d.,]+)", section, re.MULTILINE)
    assert rows
    for name, module, value in rows:
        assert f"{getattr(import_module(f'lockstitch.{module}'), name):,}" == value, name


def test_the_changelog_has_the_version():
    changelog = (ROOT / "CHANGELOG.md").read_text()
    assert re.search(rf"^## \[?{re.escape(lockstitch.__version__)}\b", changelog, re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_make_targets_that_a_page_names_exist(page):
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"`make ([a-z-]+)", page.read_text())) <= targets
