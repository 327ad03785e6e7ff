"""Which files the paths on a command line stand for."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from msgspec import Struct

from lockstitch.core.terminal import printable
from lockstitch.sessions.source import standard_input

SESSION_SUFFIXES: Final = frozenset({".jsonl", ".json", ".db", ".sqlite", ".sqlite3"})
"""What is read in a folder, compressed or not. A file that is named is always read."""
COMPRESSED_SUFFIXES: Final = frozenset({".gz", ".zst"})


class Target(Struct, frozen=True):
    """A file to work on."""

    path: Path
    name: str
    """As it is shown to people."""
    named: bool
    """The user named it, so it is an error if it is not a session file."""

    @property
    def size(self) -> int:
        try:
            return self.path.stat().st_size
        except OSError:
            return 0


class Unreadable(Struct, frozen=True):
    """A folder that could not be searched."""

    path: str
    error: str


class Found(Struct, frozen=True):
    """What the paths on a command line lead to."""

    targets: list[Target] = []
    unreadable: list[Unreadable] = []
    excluded: list[Path] = []
    """Files and folders that the settings or --exclude skip."""


def find_targets(
    paths: Iterable[str],
    stack: ExitStack,
    *,
    excludes: Callable[[Path], bool],
    stdin_name: str | None = None,
) -> Found:
    """The files to work on, in the order of ``paths``. Standard input is copied into a file that
    lives as long as ``stack``."""
    found = Found()
    for given in paths:
        if given == "-":
            source = stack.enter_context(standard_input())
            found.targets.append(Target(source.path, stdin_name or source.name, named=True))
        elif os.path.isdir(given):  # unlike `Path.is_dir`, it never raises
            _search(Path(given), found, excludes)
        else:
            found.targets.append(Target(Path(given), given, named=True))
    return found


def _search(folder: Path, found: Found, excludes: Callable[[Path], bool]) -> None:
    """Add the session files below a folder. Links to folders are not followed, so nothing loops."""

    def trouble(error: OSError) -> None:
        name = os.fsdecode(error.filename)
        found.unreadable.append(Unreadable(name, f"{name}: cannot be read: {error.strerror}."))

    def included(path: Path) -> bool:
        if excludes(path):
            found.excluded.append(path)
            return False
        return True

    for root, folders, names in os.walk(folder, onerror=trouble):
        folders[:] = sorted(
            name
            for name in folders
            if not name.startswith(".lockstitch-") and included(Path(root, name))
        )
        for name in sorted(names):
            path = Path(root, name)
            if _looks_like_a_session(path) and _is_file(path) and included(path):
                found.targets.append(Target(path, str(path), named=False))


def _looks_like_a_session(path: Path) -> bool:
    suffixes = path.suffixes[-2:]
    if suffixes and suffixes[-1] in COMPRESSED_SUFFIXES:
        suffixes.pop()
    return bool(suffixes) and suffixes[-1] in SESSION_SUFFIXES


def _is_file(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):  # a dead link, or the file was just deleted
        return False
    except OSError:
        return True  # reading it will say why it cannot be read


def nothing_found(paths: Iterable[str], found: Found) -> str:
    """The message for paths that lead to no session file."""
    where = ", ".join(map(printable, paths))
    if found.excluded:
        skipped = "1 file or folder is"
        if len(found.excluded) > 1:
            skipped = f"{len(found.excluded):,} files or folders are"
        return (
            f"{where}: no session files found. {skipped} skipped by `exclude` in the settings or"
            " --exclude. To read one of them, name the file itself."
        )
    names = ", ".join(f"*{suffix}" for suffix in sorted(SESSION_SUFFIXES))
    packed = " or ".join(sorted(COMPRESSED_SUFFIXES))
    return (
        f"{where}: no session files found. In a folder, files named {names} are read, also with"
        f" {packed} appended. To read a file with another name, name the file itself."
    )
