"""The package itself: every name is there, and none is imported before it is used."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import lockstitch

ROOT = Path(__file__).parents[1]


def test_the_page_of_supported_systems_names_every_extra():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    page = (ROOT / "docs" / "supported-systems.md").read_text()
    (paragraph,) = [one for one in page.split("\n\n") if one.startswith("Each part has an extra")]
    every = set(extras["optional-dependencies"])
    assert set(re.findall(r"`(?:lockstitch\[)?(\w+)\]?`", paragraph)) == every
    (contained,) = extras["optional-dependencies"]["all"]
    assert set(re.findall(r"\w+", contained)[1:]) == every - {"all", "livekit"}


OLD_WORDS = re.compile(
    r"\b(said no|is no URL|thread (itself )?is whole|not be whole|are not whole|cannot go on|"
    r"is away|told from|told as|is no longer whole|nobody is let in|can be had|Say it so|gave back|"
    r"what is there is skipped|what was there before)\b",
    re.IGNORECASE,
)


def test_messages_do_not_use_the_words_that_were_replaced():
    found = []
    for path in (ROOT / "src").rglob("*.py"):
        tree = ast.parse(path.read_text())
        expressions = [node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)]
        docstrings = {id(value) for value in expressions if isinstance(value, ast.Constant)}
        for node in ast.walk(tree):
            if not isinstance(node, ast.Constant) or id(node) in docstrings:
                continue
            if isinstance(node.value, str) and OLD_WORDS.search(node.value):
                found.append((path.name, node.value))
    assert found == []


@pytest.mark.parametrize("name", lockstitch.__all__)
def test_every_public_name_is_there(name):
    assert getattr(lockstitch, name).__name__.rpartition(".")[2] == name
    assert name in dir(lockstitch)


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = lockstitch.nonsense


def test_importing_the_package_imports_nothing_else():
    code = "import sys, lockstitch; print([m for m in sys.modules if m.startswith('lockstitch.')])"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


@pytest.mark.parametrize("library", ["aiohttp", "yaml"])
@pytest.mark.parametrize("module", ["lockstitch.emulator", "lockstitch.testing.threads"])
def test_an_emulator_without_its_parts_says_what_to_install(library, module):
    code = f"import sys; sys.modules[{library!r}] = None; import {module}"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.stderr.splitlines()[-1] == (
        f"ModuleNotFoundError: The emulator needs {library}, which is not installed."
        " Run: pip install 'lockstitch[emulator]'"
    )
