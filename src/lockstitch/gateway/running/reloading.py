"""A configuration that changes while the gateway runs: when, and how much of it can."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable
from typing import Final, TypeAlias

from msgspec import structs

from lockstitch.core.errors import LockstitchError
from lockstitch.gateway.config.errors import ConfigError
from lockstitch.gateway.config.loading import check_whole
from lockstitch.gateway.config.model import Config
from lockstitch.gateway.config.tables import Problems
from lockstitch.gateway.watching import logs

CHECK_SECONDS: Final = 2.0
"""How often the files are looked at. A key that is taken out is no key at most this much later."""

Load: TypeAlias = Callable[[], Config]

_FIXED: Final = ("host", "port", "tls_certificate", "tls_key", "workers")


def changed(old: Config, new: Config) -> tuple[Config, list[str]]:
    """What goes on from here, and which keys will be only after a restart.

    Raises `ConfigError` if the two do not go together."""
    fixed = [f"server.{name}" for name in _FIXED if _differs(old.server, new.server, name)]
    if old.store != new.store:
        fixed.append("store")
    server = structs.replace(old.server, drain_seconds=new.server.drain_seconds)
    going_on = structs.replace(new, server=server, store=old.store)
    problems = Problems()
    check_whole(going_on, problems)
    if old.keys and not new.keys:
        problems.add(
            ("keys",),
            "all of them are gone, so that anybody here could use the gateway. If that is meant,"
            " start it again; to shut everybody out, stop it.",
        )
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
            config, fixed = changed(self._config, self._load())
        except LockstitchError as problem:
            logs.went_wrong("configuration refused", problems=str(problem).splitlines())
            return None
        if fixed:
            logs.careful("configuration needs a restart", keys=fixed)
        self._config = config
        self._seen |= _stamps(set(config.files()) - set(self._seen))
        logs.happened("configuration read", keys=len(config.keys), upstreams=len(config.upstreams))
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


_Stamp: TypeAlias = tuple[int, int, int] | None


def _stamps(paths: Iterable[str]) -> dict[str, _Stamp]:
    return {path: _stamp(path) for path in paths}


def _stamp(path: str) -> _Stamp:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
