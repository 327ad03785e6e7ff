"""Halves of characters in JSON.

A model can say one (an emoji that was cut in two), and some servers write it as it is (`\\ud83d`),
which RFC 8259 allows and most readers do not."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, TypeVar

from lockstitch.dialects.reading import UNREADABLE

Read = TypeVar("Read")

_ESCAPES: Final = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    rb"|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)
"""Every escape of a JSON text: a pair of surrogates, one that is alone, or any other."""


def whole_characters(data: bytes) -> bytes:
    """JSON with U+FFFD, the sign for what cannot be shown, in place of halves: no UTF-8 has them,
    no ledger can keep them, and no provider takes them back."""
    return _ESCAPES.sub(lambda escape: b"\\ufffd" if escape[1] else escape[0], data)


def read_whole(decode: Callable[[bytes], Read], data: bytes) -> Read:
    """What this JSON says; if it cannot be read as it came, with whole characters. Raises what is
    `UNREADABLE`."""
    try:
        return decode(data)
    except UNREADABLE:
        return decode(whole_characters(data))
