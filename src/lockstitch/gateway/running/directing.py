"""Where the orders of a gateway come from: signals, and files that change."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from lockstitch.gateway.running.orders import Drain, Orders, Reload, Stop
from lockstitch.gateway.running.reloading import CHECK_SECONDS, Reloading


@asynccontextmanager
async def directed(
    reloading: Reloading | None, *, seconds: float = CHECK_SECONDS
) -> AsyncIterator[Orders]:
    """Orders, for as long as this is open. SIGTERM and SIGINT: drain, and the second time stop. A
    changed file: reload. SIGHUP: reload in a service, drain in a terminal, where it means that the
    terminal was closed. If SIGHUP is ignored (nohup), it stays ignored."""
    orders: Orders = asyncio.Queue()
    told = False

    def end() -> None:
        nonlocal told
        orders.put_nowait(Stop() if told else Drain())
        told = True

    def reload() -> None:
        config = None if reloading is None else reloading.again()
        if config is not None:
            orders.put_nowait(Reload(config))

    loop = asyncio.get_running_loop()
    handled = {signal.SIGINT: end, signal.SIGTERM: end}
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        handled[signal.SIGHUP] = end if has_terminal() else reload
    for number, handler in handled.items():
        with suppress(NotImplementedError):  # Windows
            loop.add_signal_handler(number, handler)
    watching = None
    if reloading is not None:
        watching = asyncio.create_task(reloading.watch(seconds, reload))
    try:
        yield orders
    finally:
        if watching is not None:
            watching.cancel()
        for number in handled:
            with suppress(NotImplementedError):
                loop.remove_signal_handler(number)


def has_terminal() -> bool:
    """Does this process have a controlling terminal?"""
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return False
    return True
