"""Below the line there is no I/O, no clock, no randomness and no logging."""

from __future__ import annotations

import ast
import pkgutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import lockstitch
import lockstitch.core
import lockstitch.dialects
import lockstitch.ledgers
import lockstitch.mirror

FORBIDDEN = {"asyncio", "socket", "sqlite3", "logging", "random", "uuid", "time"}
ALSO_NOT_IMPORTED = {"os", "io", "pathlib", "subprocess", "threading", "datetime", "secrets"}
"""Harmless to have loaded; but nothing pure has a use for them."""

SOURCE = Path(lockstitch.__file__).parent

PURE_MODULES = sorted(
    module.name
    for package in (lockstitch.core, lockstitch.dialects, lockstitch.ledgers, lockstitch.mirror)
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
)
PURE_FILES = sorted(
    path
    for name in ("core", "dialects", "ledgers", "mirror")
    for path in (SOURCE / name).rglob("*.py")
)


def run(script, *arguments, isolated=("-I", "-S")):
    """Run a script in a fresh interpreter that has nothing but msgspec and us to import."""
    paths = [str(SOURCE.parent), sysconfig.get_paths()["platlib"]]
    done = subprocess.run(
        [sys.executable, *isolated, "-c", script, *paths, *arguments],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return set(done.stdout.split())


def imports(path):
    """The top-level names of every module that a file imports, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]


def test_the_walk_finds_every_pure_module():
    assert "lockstitch.core.pairing" in PURE_MODULES
    assert "lockstitch.dialects.messages" in PURE_MODULES
    assert len(PURE_MODULES) == len([path for path in PURE_FILES if path.name != "__init__.py"])


def test_importing_everything_pure_loads_nothing_that_acts():
    script = """
import sys
sys.path[:0] = sys.argv[1:3]
import msgspec
before = set(sys.modules)
for name in sys.argv[3:]:
    __import__(name)
print(*(set(sys.modules) - before))
"""
    loaded = run(script, *PURE_MODULES)
    assert set(PURE_MODULES) <= loaded
    assert not loaded & FORBIDDEN
    assert not {name for name in loaded if name.partition(".")[0] in FORBIDDEN}


@pytest.mark.parametrize("path", PURE_FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_pure_file_imports_anything_that_acts(path):
    assert not set(imports(path)) & (FORBIDDEN | ALSO_NOT_IMPORTED)


@pytest.mark.parametrize(
    "path",
    [*PURE_FILES, *(SOURCE / name for name in ("facts.py", "histories.py", "__init__.py"))],
    ids=lambda path: str(path.relative_to(SOURCE)),
)
def test_a_pure_file_imports_the_standard_library_msgspec_and_us(path):
    known = {*sys.stdlib_module_names, "msgspec", "lockstitch"}
    assert set(imports(path)) <= known


@pytest.mark.parametrize("path", PURE_FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_pure_file_takes_an_address_or_opens_a_file(path):
    # Founding case A: "already sent" was remembered as `id(obj)`, and the address was re-used.
    called = {
        node.func.id
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    assert not called & {"id", "open", "print", "input", "eval", "exec", "__import__"}


START = """
import sys
sys.path[:0] = sys.argv[1:3]
"""
USE_EVERYTHING = """
import lockstitch
for name in lockstitch.__all__:
    getattr(lockstitch, name)
lockstitch.trim(lockstitch.mend([{"type": "function_call", "call_id": "a"}]), max_items=1)
"""
THIRD_PARTY = """
print(*(
    name.partition(".")[0]
    for name, module in list(sys.modules.items())
    if name not in before and "site-packages" in (getattr(module, "__file__", None) or "")
))
"""


@pytest.mark.parametrize("isolated", [("-I", "-S"), ("-I",)], ids=["no site", "site"])
def test_using_lockstitch_loads_nothing_third_party_that_msgspec_does_not(isolated):
    before = "import msgspec, msgspec.json\nbefore = set(sys.modules)\n"
    script = START + before + USE_EVERYTHING + THIRD_PARTY
    assert run(script, isolated=isolated) <= {"msgspec"}


def test_importing_lockstitch_loads_nothing_third_party_but_msgspec_and_what_it_loads():
    before = "before = set(sys.modules)\n"
    script = START + before + "import lockstitch\n" + THIRD_PARTY
    msgspecs_own = run(START + before + "import msgspec\n" + THIRD_PARTY)
    assert "msgspec" in msgspecs_own
    assert run(script) <= msgspecs_own


def test_using_lockstitch_loads_neither_its_command_line_nor_its_file_formats():
    names = "print(*(name for name in sys.modules if name.startswith('lockstitch.')))\n"
    loaded = run(START + USE_EVERYTHING + names)
    own = {name.split(".")[1] for name in loaded}
    assert not own & {"cli", "demo", "emulator", "sessions", "testing"}
