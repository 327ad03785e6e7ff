"""Where a user's data is kept, on each kind of system."""

from __future__ import annotations

from pathlib import Path

import pytest

from lockstitch.store.data_folder import data_folder, made
from lockstitch.store.errors import CannotOpen

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


def test_a_folder_is_made_for_its_owner_alone(tmp_path):
    folder = tmp_path / "a" / "b"
    assert made(folder) == made(folder) == folder
    assert folder.stat().st_mode & 0o777 == 0o700


def test_a_folder_that_cannot_be_made_is_told_with_what_to_do(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CannotOpen, match=r"/file/b cannot be made: Not a directory\. .*--store"):
        made(tmp_path / "file" / "b")
