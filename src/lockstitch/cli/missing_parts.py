"""Turns a missing optional library into an error message that says what to install."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from lockstitch.core.errors import LockstitchError

EXTRAS: Final[dict[str, frozenset[str]]] = {
    "anthropic": frozenset({"anthropic"}),
    "emulator": frozenset({"aiohttp", "yaml"}),
    "encryption": frozenset({"cryptography"}),
    "gateway": frozenset(
        {"aiohttp", "apsw", "httptools", "picows", "prometheus_client", "structlog", "uvloop"}
    ),
    "livekit": frozenset({"livekit"}),
    "openai": frozenset({"openai"}),
    "postgres": frozenset({"asyncpg"}),
    "realtime": frozenset({"aiohttp"}),
    "sqlite": frozenset({"apsw"}),
}
"""The libraries, by the names they are imported by, that each extra of pyproject.toml installs."""

DEMO: Final = ("emulator", "gateway", "openai", "sqlite")
"""The extras that `demo` contains, besides rich."""

LIBRARIES: Final = frozenset({"rich"}).union(*EXTRAS.values())
"""Every library that only some installs have."""


class PartMissing(LockstitchError):
    """A command needs a library that is not installed."""


@contextmanager
def needs(command: str, *extras: str) -> Iterator[None]:
    """Import optional libraries inside this block. Raises `PartMissing` if one is not installed.

    ``extras``: what the message says to install. A library that no extra has is a broken install,
    and its `ModuleNotFoundError` is left as it is."""
    try:
        yield
    except ModuleNotFoundError as missing:
        library = (missing.name or "").partition(".")[0]
        if library not in LIBRARIES:
            raise
        raise PartMissing(
            f"{command} needs {library}, which is not installed."
            f" Run: pip install 'lockstitch[{','.join(_install(library, extras))}]'"
        ) from None


def _install(library: str, extras: tuple[str, ...]) -> list[str]:
    """The extras to install: those given, and if none of them has the library, one that does."""
    brought = {name for extra in extras for name in _libraries(extra)}
    if library in brought:
        return list(extras)
    if library == "rich":
        return ["demo"]
    (*_, fewest) = sorted(
        (extra for extra in EXTRAS if library in EXTRAS[extra]), key=lambda one: -len(EXTRAS[one])
    )
    return [*extras, fewest]


def _libraries(extra: str) -> frozenset[str]:
    if extra == "demo":
        return frozenset({"rich"}).union(*(EXTRAS[one] for one in DEMO))
    if extra == "all":
        return LIBRARIES - EXTRAS["livekit"]
    return EXTRAS[extra]
