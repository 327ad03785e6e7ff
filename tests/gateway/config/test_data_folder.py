"""Where a user's data is kept, on each kind of system."""

from __future__ import annotations

from pathlib import Path

import pytest

from lockstitch.gateway.config.data_folder import data_folder

HOME = {"HOME": "/home/anna"}


@pytest.mark.parametrize(
    ("environment", "platform", "folder"),
    [
        (HOME, "linux", "/home/anna/.local/share/lockstitch"),
        (HOME | {"XDG_DATA_HOME": "/data"}, "linux", "/data/lockstitch"),
        (HOME | {"XDG_DATA_HOME": "data"}, "linux", "/home/anna/.local/share/lockstitch"),
        (HOME | {"XDG_DATA_HOME": ""}, "linux", "/home/anna/.local/share/lockstitch"),
        (HOME, "darwin", "/home/anna/Library/Application Support/lockstitch"),
        (HOME, "win32", "/home/anna/AppData/Local/lockstitch"),
        (HOME | {"LOCALAPPDATA": "/local"}, "win32", "/local/lockstitch"),
    ],
)
def test_the_data_folder(environment, platform, folder):
    assert data_folder(environment, platform=platform) == Path(folder)
