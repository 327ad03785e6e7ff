"""The package itself: every name is there, and none is imported before it is used."""

from __future__ import annotations

import subprocess
import sys

import pytest

import lockstitch


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
