"""What must not be seen: a value that hides itself, and the last net for text on its way out."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final

from msgspec import Struct

HIDDEN: Final = "[hidden]"
"""What stands where a secret was."""

SHORTEST_HIDDEN_CHARACTERS: Final = 8
"""One that is shorter (`any`, `none`) is a word, and would be hidden in the middle of others."""


class Secret(Struct, frozen=True):
    """A text that only `reveal` shows."""

    _text: str

    def reveal(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return HIDDEN

    __str__ = __repr__


_SHAPES: Final = (
    # A provider's key. Behind a letter it takes more to look like one: `task-force` is a word.
    r"sk-[A-Za-z0-9_-]{16,}",
    r"(?<![A-Za-z0-9])sk-[A-Za-z0-9_-]{4,}",
    # A key of this gateway.
    r"lsk_[A-Za-z0-9_-]{4,}",
    # Whatever came in an Authorization header.
    r"(?i:bearer)\s+[^\s\"',;]+",
)


def redacted(text: str) -> str:
    """The text, without anything that looks like a key."""
    return _REDACT(text)


def redactor(known: Iterable[str] = ()) -> Callable[[str], str]:
    """The same for a text that also may hold these secrets, whatever they look like."""
    exact = sorted(
        (re.escape(one) for one in known if len(one) >= SHORTEST_HIDDEN_CHARACTERS),
        key=len,
        reverse=True,
    )
    shape = re.compile("|".join((*exact, *_SHAPES)))
    return lambda text: shape.sub(HIDDEN, text)


_REDACT: Final = redactor()
