"""What a command says when a part is missing that only some installs have."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from lockstitch.core.errors import LockstitchError

EXTRAS: Final = {
    "aiohttp": ("emulator", "gateway"),
    "yaml": ("emulator",),
    "openai": ("openai",),
    "apsw": ("sqlite", "gateway"),
    "httptools": ("gateway",),
    "picows": ("gateway",),
    "prometheus_client": ("gateway",),
    "structlog": ("gateway",),
}
"""Which extras bring which library."""


class PartMissing(LockstitchError):
    """A library is not installed that a command needs."""


@contextmanager
def needs(command: str, *extras: str) -> Iterator[None]:
    """Import parts of ``extras`` in here. Raises `PartMissing`, which says what to install."""
    try:
        yield
    except ModuleNotFoundError as missing:
        library = (missing.name or "").partition(".")[0]
        if not set(EXTRAS.get(library, ())) & set(extras):
            raise
        raise PartMissing(
            f"{command} needs {library}, which is not installed."
            f" Run: pip install 'lockstitch[{','.join(extras)}]'"
        ) from None
