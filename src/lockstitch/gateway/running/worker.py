"""A worker: one of several processes of a gateway, started by `supervising`.

`python -m lockstitch.gateway.running.worker`; not for people. Orders come over standard input, and
`READY` goes out when it serves. Messages and logs go to standard error, as everywhere."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from typing import Final

from lockstitch.core.errors import LockstitchError
from lockstitch.core.terminal import printable
from lockstitch.gateway.running.attending import attend
from lockstitch.gateway.running.contract import CLEAN, TROUBLE
from lockstitch.gateway.running.loops import run
from lockstitch.gateway.running.orders import Begin, Drain, Orders, Stop, read
from lockstitch.gateway.watching import logs

READY: Final = b"ready\n"
FAILED: Final = 1
"""The exit code of a mistake of our own; the parent starts another worker."""


def main() -> int:
    """Serve until the parent says otherwise, or is gone."""
    # Ctrl-C in a terminal is for the parent.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "SIGHUP"):  # a closed terminal signals every process: the supervisor decides
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        return run(_work())
    except LockstitchError as problem:
        message = "\n".join(map(printable, problem.lines))
        print(f"lockstitch: {message}", file=sys.stderr, flush=True)
        return TROUBLE
    except Exception as error:
        logs.went_wrong("worker failed", error)
        return FAILED


async def _work() -> int:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin.buffer)
    begin = await read(reader)
    if not isinstance(begin, Begin):
        return CLEAN
    config = begin.config
    logs.configure(config.log, hide=config.secrets())
    orders: Orders = asyncio.Queue()
    # Also when somebody ends this worker alone: the parent starts another.
    loop.add_signal_handler(signal.SIGTERM, orders.put_nowait, Drain())
    listening = asyncio.create_task(_listen(reader, orders))
    sockets = [socket.socket(fileno=number) for number in begin.sockets]
    for one in sockets:
        one.setblocking(False)
    try:
        return await attend(config, sockets, orders, gateway=begin.gateway, ready=_tell)
    finally:
        listening.cancel()


async def _listen(reader: asyncio.StreamReader, orders: Orders) -> None:
    while True:
        order = await read(reader)
        if order is None:
            # The parent was killed. Nobody else will end this one.
            orders.put_nowait(Drain())
            return
        if not isinstance(order, Begin):
            orders.put_nowait(order)
        if isinstance(order, Stop):
            return


def _tell() -> None:
    os.write(sys.stdout.fileno(), READY)
    # Nobody reads on, and a pipe that is full would stop whoever prints.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(main())
