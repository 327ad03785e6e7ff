"""Where in a TOML document each key stands. Python's own reader tells what a document says, not
where it says it, and a message about a key needs its line.

For documents that `tomllib` took. One that it refuses is no error here: what was found until
there is given."""

from __future__ import annotations

import re
import tomllib
from typing import Final, TypeAlias

Path: TypeAlias = tuple[str | int, ...]
"""Names of keys, and numbers of elements of an array: `("upstreams", 0, "url")`."""

_BLANK: Final = re.compile(r"(?:[ \t\r\n]+|#[^\n]*)*")
_KEY: Final = re.compile(r"""[ \t]*([A-Za-z0-9_-]+|"(?:\\.|[^"\\\n])*"|'[^'\n]*')[ \t]*""")
_STRING: Final = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}(?!")'  # up to two quotes may stand before the three that end it
    r"|'''.*?'{3,5}(?!')"
    r'|"(?:\\.|[^"\\\n])*"'
    r"|'[^'\n]*'",
    re.DOTALL,
)
_BARE: Final = re.compile(r"[^,\]}#\n]*")
"""A number, a date, a boolean. A date may have a blank in its middle."""


def line_numbers(text: str) -> dict[Path, int]:
    """The line, from 1, in which each table, key and element is first named."""
    return _Walk(text).document()


class _Stuck(Exception):
    """The document is not TOML from here on."""


class _Walk:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._lines: dict[Path, int] = {}
        self._line = 1
        self._counted = 0
        self._arrays: dict[Path, int] = {}
        """How many tables each array of tables has so far."""

    def document(self) -> dict[Path, int]:
        table: Path = ()
        try:
            while not self._blank():
                table = self._header() if self._takes("[") else self._pair(table)
        except _Stuck:
            pass
        return self._lines

    def _header(self) -> Path:
        starts = self._at
        is_array = self._takes("[")
        names = self._names()
        if not self._takes("]" * (1 + is_array)):
            raise _Stuck
        path: Path = ()
        for number, name in enumerate(names, 1):
            path = (*path, name)
            is_last = number == len(names)
            if is_array and is_last:
                self._arrays[path] = self._arrays.get(path, 0) + 1
            self._stands(path, starts)
            if path in self._arrays:
                # `[a.b]` below `[[a]]` is about the last table of that array.
                path = (*path, self._arrays[path] - 1)
                self._stands(path, starts)
        return path

    def _pair(self, table: Path) -> Path:
        """`name.name = value`; the table in which that stands."""
        self._blank()
        starts = self._at
        path = table
        for name in self._names():
            path = (*path, name)
            self._stands(path, starts)
        if not self._takes("="):
            raise _Stuck
        self._value(path)
        return table

    def _names(self) -> list[str]:
        names: list[str] = []
        while not names or self._takes("."):
            found = _KEY.match(self._text, self._at)
            if found is None:
                raise _Stuck
            self._at = found.end()
            names.append(_plain(found[1]))
        return names

    def _value(self, path: Path) -> None:
        self._blank()
        if self._takes("["):
            number = 0
            while not self._ends("]"):
                self._stands((*path, number), self._at)
                self._value((*path, number))
                number += 1
        elif self._takes("{"):
            while not self._ends("}"):
                self._pair(path)
        else:
            whole = _STRING if self._text[self._at : self._at + 1] in {'"', "'"} else _BARE
            found = whole.match(self._text, self._at)
            if found is None or found.end() == self._at:
                raise _Stuck
            self._at = found.end()

    def _ends(self, bracket: str) -> bool:
        """Past what parts two elements; is it the end of all of them?"""
        self._blank()
        self._takes(",")
        if self._blank():
            raise _Stuck
        return self._takes(bracket)

    def _blank(self) -> bool:
        """Past blanks, ends of lines and comments; is that all there is?"""
        found = _BLANK.match(self._text, self._at)
        assert found is not None
        self._at = found.end()
        return self._at == len(self._text)

    def _takes(self, sign: str) -> bool:
        if not self._text.startswith(sign, self._at):
            return False
        self._at += len(sign)
        return True

    def _stands(self, path: Path, at: int) -> None:
        self._line += self._text.count("\n", self._counted, at)
        self._counted = max(self._counted, at)
        self._lines.setdefault(path, self._line)


def _plain(name: str) -> str:
    if name[0] not in {'"', "'"}:
        return name
    try:
        read = tomllib.loads(f"name = {name}")["name"]
    except tomllib.TOMLDecodeError:
        raise _Stuck from None
    return str(read)
