"""Serves as a configuration says: in this process, or in several workers."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress

from msgspec import structs

from lockstitch.gateway.config.model import Config
from lockstitch.gateway.running.attending import attend, opened_store
from lockstitch.gateway.running.contract import GATEWAY, CannotServe
from lockstitch.gateway.running.directing import directed
from lockstitch.gateway.running.first_look import first_look
from lockstitch.gateway.running.reloading import CHECK_SECONDS, Load, Reloading
from lockstitch.gateway.running.sockets import bound, close, port_of
from lockstitch.gateway.running.tls import tls_context
from lockstitch.gateway.watching import logs


async def serve(
    config: Config,
    *,
    load: Load | None = None,
    ready: Callable[[Config], None] = lambda config: None,
    gateway: str = GATEWAY,
    check_seconds: float = CHECK_SECONDS,
) -> int:
    """Serve until SIGTERM or SIGINT; the exit code. ``load`` reads the configuration again, on
    SIGHUP and when one of its files has changed. ``ready`` is called with the configuration, and
    the port that was taken, once connections are accepted.

    Raises `LockstitchError` where it cannot begin: nothing was served then."""
    logs.configure(config.log, hide=config.secrets())
    _allow_many_files()
    workers = config.server.workers
    if workers > 1 and os.name != "posix":
        raise CannotServe("There can be one worker only on this system. Leave --workers out.")
    # What can be wrong is told before anything is started.
    tls_context(config.server)
    sockets = bound(config.server, sets=workers)
    try:
        config = _with_port(config, port_of(sockets[0]))
        reloading = None if load is None else Reloading(config, load)
        async with (
            directed(reloading, seconds=check_seconds) as orders,
            first_look(config.upstreams) as look,
        ):

            def serves() -> None:
                ready(config)
                look()

            if workers == 1:
                return await attend(config, sockets[0], orders, gateway=gateway, ready=serves)
            await _try_store(config)
            # Imported here: one process needs no part of it.
            from lockstitch.gateway.running.supervising import supervise  # noqa: PLC0415

            return await supervise(config, sockets, orders, gateway=gateway, ready=serves)
    finally:
        for one in sockets:
            close(one)


def _with_port(config: Config, port: int) -> Config:
    return structs.replace(config, server=structs.replace(config.server, port=port))


async def _try_store(config: Config) -> None:
    """Once, before each worker opens it: so that it is made, or refused, by one alone."""
    store = await opened_store(config)
    await store.close()


def _allow_many_files() -> None:
    """Each connection is an open file, and a streamed answer two. Systems allow more than they
    give at first."""
    with suppress(ImportError, ValueError, OSError):
        import resource  # noqa: PLC0415  (there is none on Windows)

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft != hard:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
