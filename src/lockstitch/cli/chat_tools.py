"""What the model of `lockstitch chat` can do: read, list and write files, and run commands.

Files are those of one folder: no path leads out of it, whatever links are in it. A command begins
in the folder and can go anywhere, so somebody is asked first."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from lockstitch.cli.chat_shell import SHELL_SECONDS, shell
from lockstitch.core.errors import LockstitchError
from lockstitch.runner import Tool, tool

LARGEST_FILE_BYTES: Final = 256 * 1024
"""A larger file would fill the model's window; a command can read parts of it."""

MOST_NAMES: Final = 1_000
"""So many of a folder are listed."""


class Refused(Exception):
    """A tool will not do that. The model is told why."""


class UnknownTool(LockstitchError):
    """Somebody named a tool that there is not."""


class Toolbox:
    """The tools of one chat, in one folder."""

    def __init__(self, folder: Path, yes_to: Iterable[str] = ()) -> None:
        self.folder = folder.resolve()
        self._trusted: set[str] = set()
        self.tools: list[Tool] = [
            tool(effect="read")(self.read_file),
            tool(effect="read")(self.list_folder),
            tool(effect="idempotent", needs_approval=self._asks("write_file"))(self.write_file),
            tool(effect="once", needs_approval=self._asks("run_shell"))(self.run_shell),
        ]
        for name in yes_to:
            self.trust(name)

    def trust(self, name: str) -> None:
        """From here on, do not ask before this tool runs."""
        known = [one.name for one in self.tools]
        named = name.replace("-", "_")
        if named not in known:
            raise UnknownTool(f"There is no tool {name!r}. Choose of: {', '.join(known)}.")
        self._trusted.add(named)

    def _asks(self, name: str) -> Callable[[Mapping[str, Any]], bool]:
        return lambda arguments: name not in self._trusted

    def read_file(self, path: str) -> str:
        """Read a text file.

        Args:
            path: Where it is, in the working folder.
        """
        file = self._inside(path)
        if not file.is_file():  # to open a pipe would be to wait for its writer
            raise Refused(f"There is no file {path}.")
        with file.open("rb") as opened:
            content = opened.read(LARGEST_FILE_BYTES + 1)
        if len(content) > LARGEST_FILE_BYTES:
            raise Refused(f"{path} is larger than {LARGEST_FILE_BYTES:,} bytes.")
        try:
            return content.decode()
        except UnicodeDecodeError:
            raise Refused(f"{path} is not text.") from None

    def list_folder(self, path: str = ".") -> str:
        """List a folder: one name in each line, folders with a slash behind them.

        Args:
            path: Where it is, in the working folder.
        """
        folder = self._inside(path)
        if not folder.is_dir():
            raise Refused(f"There is no folder {path}.")
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        names = [entry.name + "/" * entry.is_dir(follow_symlinks=False) for entry in entries]
        if len(names) > MOST_NAMES:
            names[MOST_NAMES:] = [f"… and {len(names) - MOST_NAMES:,} more"]
        return "\n".join(names)

    def write_file(self, path: str, content: str) -> str:
        """Write a text file, in place of what is there. Folders on the way are made.

        Args:
            path: Where it goes, in the working folder.
            content: All of it.
        """
        file = self._inside(path)
        if file == self.folder or file.is_dir():
            raise Refused(f"{path} is a folder.")
        file.parent.mkdir(parents=True, exist_ok=True)
        # A new file takes the place of the old one in one step: to do that twice is to do it once.
        descriptor, scratch = tempfile.mkstemp(prefix=f".{file.name[:40]}-", dir=file.parent)
        try:
            with open(descriptor, "w", encoding="utf-8", newline="") as opened:
                opened.write(content)
            os.chmod(scratch, _permissions(file))
            os.replace(scratch, file)
        except BaseException:
            Path(scratch).unlink(missing_ok=True)
            raise
        return f"Wrote {len(content):,} characters to {path}."

    async def run_shell(self, command: str) -> str:
        """Run a command in the working folder, and see what it prints.

        Args:
            command: A line for the shell. It has no input.
        """
        return await shell(command, self.folder, SHELL_SECONDS)

    def _inside(self, path: str) -> Path:
        """Where a path leads, with all links followed. Raises `Refused` if that is outside."""
        try:
            found = (self.folder / path).resolve()
        except (OSError, RuntimeError, ValueError) as wrong:  # links in a circle, a null byte
            raise Refused(f"{path!r} leads nowhere: {wrong}") from None
        if not found.is_relative_to(self.folder):
            raise Refused(f"{path} is outside the working folder.")
        return found


def _permissions(file: Path) -> int:
    """Those of the file that is there, or what a new one gets."""
    try:
        return stat.S_IMODE(file.stat().st_mode)
    except FileNotFoundError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask
