"""What a gateway is to whoever runs it, and how one is found by its name."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from socket import socket
from ssl import SSLContext
from typing import Any, Final, Protocol, TypeAlias

from lockstitch.core.errors import LockstitchError
from lockstitch.gateway.config.model import Config
from lockstitch.store.contract import Store

GATEWAY: Final = "lockstitch.gateway.server:Gateway"
"""The class that is run, if no other is named: a module, and a name in it. By name, because a
worker is another process."""

CLEAN: Final = 0
TROUBLE: Final = 2
STOPPED_AT_ONCE: Final = 130
"""Exit codes: it ended as it should, it could not run, it was not allowed to finish."""


class CannotServe(LockstitchError):
    """The gateway cannot begin to serve, or to go on; nothing that was kept is lost."""


class Runnable(Protocol):
    """A gateway."""

    async def start(self, sockets: list[socket], ssl: SSLContext | None) -> None:
        """Accept connections. Returns when it does."""
        ...

    async def drain(self, seconds: float) -> None:
        """Accept no more, let what runs finish within ``seconds``, break off the rest, close."""
        ...

    async def reload(self, config: Config) -> None:
        """Go on with other keys, limits and upstreams; what runs is not disturbed."""
        ...


Maker: TypeAlias = Callable[[Config, Store], Runnable]


def gateway_named(name: str) -> Maker:
    """The class of that name, `module:name`."""
    module, _, attribute = name.partition(":")
    made: Any = getattr(import_module(module), attribute)
    maker: Maker = made
    return maker
