"""The folder in which a user's programs keep what must last, and ours in it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from lockstitch.store.errors import CannotOpen


def data_folder(environment: Mapping[str, str], *, platform: str = sys.platform) -> Path:
    """Ours; it may not be there yet."""
    return _every_program(environment, platform) / "lockstitch"


def made(folder: Path) -> Path:
    """The folder, which is there now, and for nobody else. Raises `CannotOpen`."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as problem:
        raise CannotOpen(
            f"{folder} cannot be made: {problem.strerror}. Choose where to keep what must last:"
            " --store sqlite:///FILE"
        ) from None
    return folder


def _every_program(environment: Mapping[str, str], platform: str) -> Path:
    # The XDG rules: a path that is not absolute must be ignored.
    said = Path(environment.get("XDG_DATA_HOME", ""))
    if said.is_absolute():
        return said
    home = Path(environment.get("HOME") or Path.home())
    if platform == "darwin":
        return home / "Library" / "Application Support"
    if platform == "win32":
        local = environment.get("LOCALAPPDATA")
        return Path(local) if local else home / "AppData" / "Local"
    return home / ".local" / "share"
