"""What a docstring says to a model: its first paragraph, and a text for each parameter.

Google's, NumPy's and Sphinx's ways to describe parameters are read where they are plain; whatever
is not understood is left out, never guessed."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

from msgspec import Struct

_GOOGLE = re.compile(r"(?:Args|Arguments|Parameters):\s*")
_NUMPY = re.compile(r"(?:Other )?Parameters\s*")
_RULE = re.compile(r"-{3,}\s*")
_SPHINX = re.compile(r":(?:param|parameter|arg|argument)\s+(?:[^:]*\s)?\*{0,2}(\w+)\s*:\s*(.*)")
_SPHINX_OTHER = re.compile(r":\w+[^:]*:")
_ENTRY = re.compile(r"\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)")
_NUMPY_ENTRY = re.compile(r"\*{0,2}(\w+)\s*(?::.*)?")


class Described(Struct, frozen=True):
    """What a docstring says."""

    summary: str
    parameters: dict[str, str]


def described(docstring: str | None) -> Described:
    """Read a docstring. None and an empty one say nothing."""
    lines = inspect.cleandoc(docstring or "").splitlines()
    return Described(_summary(lines), dict(_parameters(lines)))


def _summary(lines: list[str]) -> str:
    said: list[str] = []
    for line in lines:
        if not line.strip() or _GOOGLE.fullmatch(line) or _SPHINX_OTHER.match(line):
            break
        said.append(line.strip())
    if len(said) > 1 and _RULE.fullmatch(said[1]):
        return ""  # it begins with a NumPy section
    return " ".join(said)


def _parameters(lines: list[str]) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(lines):
        below = lines[number + 1 :]
        if _GOOGLE.fullmatch(line):
            # Below the very first line everything has lost its indentation.
            yield from _google(_deeper(below, 0 if number else -1, blank=True))
        elif _NUMPY.fullmatch(line) and below and _RULE.fullmatch(below[0]):
            yield from _numpy(below[1:])
        elif found := _SPHINX.fullmatch(line):
            yield found[1], _joined(found[2], _deeper(below, 0))


def _google(section: list[str]) -> Iterator[tuple[str, str]]:
    """``name (type): text``, indented below the heading."""
    depth = min((_depth(line) for line in section if line.strip()), default=0)
    for number, line in enumerate(section):
        if _depth(line) == depth and (found := _ENTRY.fullmatch(line.strip())):
            yield found[1], _joined(found[2], _deeper(section[number + 1 :], depth))


def _numpy(lines: list[str]) -> Iterator[tuple[str, str]]:
    """``name : type``, and the text indented below; the next heading has a rule below it."""
    for number, line in enumerate(lines):
        if number + 1 < len(lines) and _RULE.fullmatch(lines[number + 1]):
            return
        if line and _depth(line) == 0 and (found := _NUMPY_ENTRY.fullmatch(line)):
            yield found[1], _joined("", _deeper(lines[number + 1 :], 0))


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())


def _deeper(lines: list[str], depth: int, *, blank: bool = False) -> list[str]:
    """The lines in front of the first that is not indented more than this."""
    taken: list[str] = []
    for line in lines:
        if (line.strip() and _depth(line) <= depth) or (not line.strip() and not blank):
            break
        taken.append(line)
    return taken


def _joined(first: str, more: list[str]) -> str:
    return " ".join(filter(None, (first.strip(), *(line.strip() for line in more))))
