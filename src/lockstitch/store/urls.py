"""URLs of stores, and the passwords in them: a URL without them, and they alone. Pure.

No driver is needed for that: who shows a URL need not be who opens it (`opening`)."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import unquote

# From the first colon behind the scheme to the last @: a password may hold what it should not.
_PASSWORD: Final = re.compile(r"^(\w+://[^:/?#@]*):(.*)@", re.DOTALL)
_PASSWORD_OPTION: Final = re.compile(r"(?<=[?&])(?:ssl)?password=([^&]*)&?", re.IGNORECASE)


def public_url(url: str) -> str:
    """The URL without its passwords."""
    return _PASSWORD_OPTION.sub("", _PASSWORD.sub(r"\1@", url)).rstrip("?&")


def passwords_in(url: str) -> tuple[str, ...]:
    """The passwords of the URL, each as it is written there and as it is meant."""
    found = _PASSWORD.match(url)
    written = [] if found is None else [found[2]]
    written += [option[1] for option in _PASSWORD_OPTION.finditer(url)]
    every = (form for one in written for form in (one, unquote(one)))
    return tuple(dict.fromkeys(one for one in every if one))
