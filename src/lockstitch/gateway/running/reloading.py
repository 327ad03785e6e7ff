"""A configuration that changes while the gateway runs: when, and how much of it can."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable
from typing import Final, TypeAlias

from msgspec import structs

from lockstitch.core.errors import LockstitchError
from lockstitch.gateway.config.errors import ConfigError
from lockstitch.gateway.config.loading import check_open, check_whole
from lockstitch.gateway.config.model import Config, Key
from lockstitch.gateway.config.tables import Problems
from lockstitch.gateway.watching import logs

CHECK_SECONDS: Final = 2.0
"""How often the files are looked at. A key that is taken out is no key at most this much later."""

Load: TypeAlias = Callable[[], Config]
"""Reads the configuration again (`config.load`)."""

SHUT: Final = (Key(name="nobody", hash=f"sha256:{'0' * 64}", expires=0.0),)
"""The keys of a gateway whose last one was taken out. A key that is revoked must not stay one, and
nobody has said that others may come in without: so there is one that nobody has, and that has
expired."""

_FIXED: Final = ("host", "port", "tls_certificate", "tls_key", "workers")


def changed(old: Config, new: Config) -> tuple[Config, list[str]]:
    """What goes on from here, and which keys will be only after a restart.

    If all keys are gone nobody is let in (`SHUT`). Raises `ConfigError` if the two do not go
    together."""
    fixed = [f"server.{name}" for name in _FIXED if _differs(old.server, new.server, name)]
    if old.store != new.store:
        fixed.append("store")
    server = structs.replace(old.server, drain_seconds=new.server.drain_seconds)
    going_on = structs.replace(new, server=server, store=old.store)
    if old.keys and not new.keys:
        going_on = structs.replace(going_on, keys=SHUT)
    problems = Problems()
    check_whole(going_on, problems)
    check_open(going_on, problems)
    if problems:
        raise ConfigError(problems.in_order(), file=new.file)
    return going_on, fixed


def _differs(old: object, new: object, name: str) -> bool:
    # Port 0 took whichever was free, which is no change.
    asked = getattr(new, name)
    return bool(getattr(old, name) != asked and not (name == "port" and asked == 0))


class Reloading:
    """The configuration as it is now, and what becomes of it when it is read again."""

    def __init__(self, config: Config, load: Load) -> None:
        self._config = config
        self._load = load
        self._seen = _stamps(config.files())

    def again(self) -> Config | None:
        """Read it again; None: it cannot be, which is logged, and the old one stays."""
        # Looked at before it is read: what changes in between is seen the next time.
        self._seen = _stamps(self._config.files())
        try:
            config, fixed = changed(self._config, read := self._load())
        except LockstitchError as problem:
            logs.went_wrong(
                "configuration not loaded",
                problems=str(problem).splitlines(),
                holds=_what_holds(self._config),
            )
            return None
        if config.keys == SHUT:
            logs.went_wrong(
                "no keys are left",
                holds="all requests are rejected, because every key was removed from the file. Add"
                " a key (lockstitch key NAME), or restart the gateway to accept requests without"
                " one.",
            )
        if fixed:
            logs.careful("configuration needs a restart", keys=fixed)
        self._config = config
        self._seen |= _stamps(set(config.files()) - set(self._seen))
        logs.happened("configuration read", keys=len(read.keys), upstreams=len(config.upstreams))
        return config

    async def watch(self, seconds: float, differs: Callable[[], None]) -> None:
        """Call when a file is another, for as long as this is awaited."""
        before = self._seen
        while True:
            await asyncio.sleep(seconds)
            now = _stamps(self._config.files())
            # One that is being written is left alone: half a file may be a file, with half of
            # the keys.
            if now == before != self._seen:
                differs()
            before = now


def _what_holds(config: Config) -> str:
    said = "the configuration from before"
    if config.keys and config.keys != SHUT:
        names = ", ".join(key.name for key in config.keys)
        said += (
            f", with its keys ({names}): one that was taken out is valid until the file is right"
        )
    return f"{said}."


_Stamp: TypeAlias = tuple[int, int, int] | None


def _stamps(paths: Iterable[str]) -> dict[str, _Stamp]:
    return {path: _stamp(path) for path in paths}


def _stamp(path: str) -> _Stamp:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
