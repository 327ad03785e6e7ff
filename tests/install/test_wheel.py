"""The built package, installed into new environments: each extra alone does what it is for, and a
command whose extra is missing says what to install. `make test-install` runs this; it downloads."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PATIENCE_SECONDS = 600

pytestmark = pytest.mark.skipif(
    not os.environ.get("LOCKSTITCH_TEST_INSTALL"), reason="make test-install runs it"
)

WORKS = {
    "": ["import lockstitch; assert lockstitch.check([]) == []"],
    "emulator": ["from lockstitch.testing import EmulatorThread\nwith EmulatorThread(): pass"],
    "gateway": ["import lockstitch.gateway.server, lockstitch.cli.serving"],
    "sqlite": ["import lockstitch.store.sqlite"],
    "postgres": ["import lockstitch.store.postgres"],
    "openai": ["import lockstitch, openai; lockstitch.Runner"],
    "anthropic": ["import lockstitch, anthropic; lockstitch.Runner"],
    "realtime": ["import lockstitch.realtime; lockstitch.realtime.Session"],
    "encryption": ["import lockstitch.store.sealing, cryptography"],
    "demo": ["import lockstitch.cli.demonstrating, lockstitch.cli.chatting"],
    "all": ["import lockstitch.gateway.server, lockstitch.store.postgres, lockstitch.cli.chatting"],
}
"""What must run with each extra alone."""

MISSING = {
    ("serve",): "lockstitch[gateway]",
    ("key", "alice"): "lockstitch[gateway]",
    ("emulate",): "lockstitch[emulator]",
    ("demo",): "lockstitch[demo]",
    ("chat",): "lockstitch[demo]",
    ("store", "migrate", "sqlite:///x.db"): "lockstitch[sqlite]",
    ("store", "list", "postgresql://me@127.0.0.1/x"): "lockstitch[postgres]",
}
"""What each command says to install, where there are no extras."""


def ran(*command, cwd):
    plain = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=plain,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )


@pytest.fixture(scope="session")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    built = ran(*pip, "--wheel-dir", folder, ROOT, cwd=folder)
    assert built.returncode == 0, built.stderr
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="session")
def constraints(tmp_path_factory):
    """The versions of the lock file, so that a new release elsewhere breaks nothing here."""
    pins = re.findall(
        r"^([A-Za-z0-9_.-]+==[^ \\;]+)", (ROOT / "requirements.lock").read_text(), re.M
    )
    file = tmp_path_factory.mktemp("constraints") / "constraints.txt"
    file.write_text("" if os.environ.get("LATEST") else "\n".join(pins))
    return file


def installed(wheel, constraints, folder, extra=""):
    """A new environment with the package and this extra; its folder of programs."""
    assert ran(sys.executable, "-m", "venv", folder / "venv", cwd=folder).returncode == 0
    programs = folder / "venv" / "bin"
    what = f"{wheel}[{extra}]" if extra else str(wheel)
    pip = [programs / "pip", "install", "--quiet", "--disable-pip-version-check"]
    done = ran(*pip, "--constraint", constraints, what, cwd=folder)
    assert done.returncode == 0, done.stderr
    return programs


@pytest.mark.parametrize("extra", WORKS, ids=lambda extra: extra or "base")
def test_each_extra_alone_does_what_it_is_for(wheel, constraints, tmp_path, extra):
    programs = installed(wheel, constraints, tmp_path, extra)
    for code in WORKS[extra]:
        done = ran(programs / "python", "-c", code, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    helped = ran(programs / "lockstitch", "--help", cwd=tmp_path)
    assert (helped.returncode, helped.stderr) == (0, "")


def test_the_base_install_is_light_and_says_what_is_missing(wheel, constraints, tmp_path):
    programs = installed(wheel, constraints, tmp_path)
    listed = ran(programs / "pip", "list", "--format=freeze", cwd=tmp_path).stdout
    packages = {line.partition("==")[0].lower() for line in listed.splitlines()}
    wanted = {"lockstitch", "msgspec", "click", "backports.zstd", "typing-extensions"}
    assert packages - {"pip", "setuptools"} <= wanted
    (tmp_path / "s.jsonl").write_text('{"type": "function_call", "call_id": "c", "name": "n"}\n')
    assert ran(programs / "lockstitch", "check", "s.jsonl", cwd=tmp_path).returncode == 1
    assert ran(programs / "lockstitch", "check", "--explain", "LS001", cwd=tmp_path).returncode == 0
    for command, extra in MISSING.items():
        done = ran(programs / "lockstitch", *command, cwd=tmp_path)
        assert done.returncode == 2, command
        assert f"pip install '{extra}'" in done.stderr, done.stderr
        assert "Traceback" not in done.stderr
        assert "internal error" not in done.stderr


def test_the_long_description_has_no_link_into_the_repository(wheel):
    with zipfile.ZipFile(wheel) as package:
        (name,) = [one for one in package.namelist() if one.endswith("METADATA")]
        text = package.read(name).decode()
    links = re.findall(
        r"\]\(([^)\s]+)\)", re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.DOTALL)
    )
    assert [link for link in links if not link.startswith(("https://", "http://", "#"))] == []
