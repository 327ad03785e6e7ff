"""The folder in which a user's programs keep what must last."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path


def data_folder(environment: Mapping[str, str], *, platform: str = sys.platform) -> Path:
    """Ours in it; it may not be there yet."""
    return _every_program(environment, platform) / "lockstitch"


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
