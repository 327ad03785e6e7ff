"""Text as PostgreSQL can keep it: it refuses the character NUL, and halves of surrogate pairs.

What it takes is kept as it is, so that people can read the tables. The rest is written behind a
character that ids do not have, and in an order that stays the same for NUL."""

from __future__ import annotations

import re
from hashlib import sha256

KEY_CHARACTERS = 500
"""An index of PostgreSQL takes no more than about 2,700 bytes, and a character may have four."""

_MARK = "\x01"

SEPARATOR = _MARK + ","
"""What stands between texts that are handed over as one: in none of them a comma follows the mark,
and none ends with it. The statement `append` has it too."""

_NOT_KEPT = re.compile("[\x00\x01\ud800-\udfff]")
_WRITTEN = re.compile(_MARK + "([0-9a-f]{4})")


def kept(text: str) -> str:
    """The text to keep; `original` gives back what it was."""
    if text.isascii() and text.isprintable():
        return text  # nearly always, and told quickly
    return _NOT_KEPT.sub(lambda found: f"{_MARK}{ord(found[0]):04x}", text)


def original(text: str) -> str:
    """The text that `kept` was given."""
    return _WRITTEN.sub(lambda found: chr(int(found[1], 16)), text)


def key(text: str) -> str:
    """What a text of any length is looked up by, in an index: longer ones end in a digest."""
    text = kept(text)
    if len(text) <= KEY_CHARACTERS:
        return text
    # No kept text has this behind the mark, so nothing else has this key.
    return f"{text[:KEY_CHARACTERS]}{_MARK}#{sha256(text.encode()).hexdigest()}"


def next_after(text: str) -> str:
    """What no kept text is smaller than that is greater than this one, in the order of bytes."""
    return text + _MARK
