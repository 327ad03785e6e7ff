"""The peers, put into a cache of the bench's own (`.bench-cache`, or `LOCKSTITCH_BENCH_CACHE`).

Nothing is installed into the system. What cannot be had is `NotMeasured`, with the reason."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from bench.gateway.processes import ROOT

LITELLM = "litellm[proxy]==1.106.2"
UVLOOP = "uvloop>=0.22"


class NotMeasured(Exception):
    """A relay could not be installed or started; the message says why."""


def cache() -> Path:
    folder = Path(os.environ.get("LOCKSTITCH_BENCH_CACHE") or ROOT / ".bench-cache").absolute()
    folder.mkdir(parents=True, exist_ok=True)
    # Neither git nor ruff looks into it.
    (folder / ".gitignore").write_text("*\n")
    return folder


def packages() -> Path | None:
    """Where the bench's own processes find uvloop, unless it is installed anyway."""
    if find_spec("uvloop") is not None:
        return None
    folder = cache() / "packages"
    if not (folder / "uvloop").is_dir():
        _run([sys.executable, "-m", "pip", "install", "--quiet", "--target", folder, UVLOOP])
    return folder


def nginx() -> Path:
    """The machine's own, or Debian's package, unpacked."""
    if found := shutil.which(
        "nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin"
    ):
        return Path(found)
    folder = cache() / "nginx"
    program = folder / "usr/sbin/nginx"
    if not program.exists():
        if shutil.which("apt-get") is None or shutil.which("dpkg") is None:
            raise NotMeasured("there is no nginx here and no apt-get to fetch it: install nginx")
        folder.mkdir(exist_ok=True)
        _fetch_package("nginx", folder)
        for package in folder.glob("*.deb"):
            _run(["dpkg", "-x", package, folder])
    _run([program, "-v"])
    return program


def litellm() -> Path:
    """Its command, in a virtual environment of its own."""
    folder = cache() / "litellm"
    ready = folder / ".ready"
    if not ready.exists() or ready.read_text() != LITELLM:
        print(f"  installing {LITELLM} into {folder}: a minute or two, once", flush=True)
        _run([sys.executable, "-m", "venv", "--clear", folder])
        _run([folder / "bin/python", "-m", "pip", "install", "--quiet", LITELLM])
        ready.write_text(LITELLM)
    return folder / "bin/litellm"


def _fetch_package(name: str, folder: Path) -> None:
    try:
        _run(["apt-get", "download", name], folder)
    except NotMeasured:
        # A fresh image has no lists of packages yet; only root may fetch them.
        _run(["apt-get", "update"])
        _run(["apt-get", "download", name], folder)


def _run(command: Sequence[str | Path], folder: Path | None = None) -> None:
    try:
        subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as failure:
        said = getattr(failure, "stderr", None) or str(failure)
        said = " ".join(said.split())[-300:]
        raise NotMeasured(f"`{' '.join(map(str, command))}` failed: {said}") from failure
