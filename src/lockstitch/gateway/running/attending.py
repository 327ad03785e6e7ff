"""One gateway in this process: from its store to its end, as it is ordered."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from socket import socket
from ssl import SSLContext
from typing import Any, Final

from lockstitch.gateway.config.loading import default_store
from lockstitch.gateway.config.model import Config
from lockstitch.gateway.running.contract import (
    CLEAN,
    STOPPED_AT_ONCE,
    TROUBLE,
    CannotServe,
    Runnable,
    gateway_named,
)
from lockstitch.gateway.running.orders import Drain, Orders, Reload, Stop
from lockstitch.gateway.running.tls import renew, tls_context
from lockstitch.gateway.watching import logs
from lockstitch.store.contract import Store
from lockstitch.store.data_folder import data_folder, made
from lockstitch.store.opening import open_store

OVERDUE_SECONDS: Final = 5.0
"""Behind the end of draining: to break off what is left, and to close."""
CLOSE_SECONDS: Final = 1.0
"""For the store to close when there is no time. What it has acknowledged is on the disk anyway."""


async def attend(
    config: Config,
    sockets: list[socket],
    orders: Orders,
    *,
    gateway: str,
    ready: Callable[[], None],
) -> int:
    """Run a gateway until it is ordered to end; the exit code. Raises `LockstitchError` where it
    cannot begin."""
    asyncio.get_running_loop().set_exception_handler(_unhandled)
    make = gateway_named(gateway)
    context = tls_context(config.server)
    store = await opened_store(config)
    try:
        running = make(config, store)
        await running.start(sockets, context)
        ready()
        return await _obey(running, config, context, orders)
    finally:
        await _close(store)


async def opened_store(config: Config) -> Store:
    """The store; where it is the default one, with its folder."""
    if config.store == default_store(os.environ):
        made(data_folder(os.environ))
    return await open_store(config.store)


async def _obey(
    running: Runnable, config: Config, context: SSLContext | None, orders: Orders
) -> int:
    draining: asyncio.Task[int] | None = None
    while True:
        order = await _next(orders, draining)
        match order:
            case None:
                assert draining is not None
                logs.happened("stopped")
                return draining.result()
            case Reload(config=new):
                config = new
                await _reload(running, config, context)
            case Drain() if draining is None:
                seconds = config.server.drain_seconds
                logs.happened("draining", seconds=seconds)
                draining = asyncio.create_task(_drain(running, seconds))
            case Stop():
                if draining is not None:
                    draining.cancel()
                logs.careful("stopped at once")
                return STOPPED_AT_ONCE


async def _next(orders: Orders, draining: asyncio.Task[int] | None) -> Drain | Reload | Stop | None:
    """The next order; None: draining has ended."""
    if draining is None:
        return await orders.get()
    getting = asyncio.create_task(orders.get())
    try:
        await asyncio.wait({getting, draining}, return_when=asyncio.FIRST_COMPLETED)
        return getting.result() if getting.done() and not draining.done() else None
    finally:
        getting.cancel()


async def _drain(running: Runnable, seconds: float) -> int:
    try:
        async with asyncio.timeout(seconds + OVERDUE_SECONDS):
            await running.drain(seconds)
    except TimeoutError:
        logs.careful("draining took too long", seconds=seconds)
    except Exception as error:
        logs.went_wrong("draining failed", error)
        return TROUBLE
    return CLEAN


async def _reload(running: Runnable, config: Config, context: SSLContext | None) -> None:
    logs.configure(config.log, hide=config.secrets())
    try:
        if context is not None:
            renew(context, config.server)
    except CannotServe as problem:
        logs.went_wrong("certificate refused", problem=str(problem))
    try:
        await running.reload(config)
    except Exception as error:
        logs.went_wrong("reloading failed", error)


async def _close(store: Store) -> None:
    try:
        async with asyncio.timeout(CLOSE_SECONDS):
            await store.close()
    except TimeoutError:
        logs.careful("the store did not close in time", seconds=CLOSE_SECONDS)


def _unhandled(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """A mistake of our own that nobody waited for: to the log, in its form."""
    error = context.get("exception")
    if isinstance(error, asyncio.CancelledError):
        return  # what was still running at the end was told to stop, and did
    logs.went_wrong("unhandled", error, message=context.get("message", ""))
