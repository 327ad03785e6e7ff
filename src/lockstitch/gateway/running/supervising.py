"""Several workers, each a process of its own with its own sockets, and a parent that keeps them
running. The parent serves nothing itself."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from socket import socket
from typing import Final

from prometheus_client.multiprocess import mark_process_dead

from lockstitch.gateway.config.model import Config
from lockstitch.gateway.running.attending import OVERDUE_SECONDS
from lockstitch.gateway.running.contract import CLEAN, STOPPED_AT_ONCE, TROUBLE, CannotServe
from lockstitch.gateway.running.orders import (
    Begin,
    Drain,
    Order,
    Orders,
    Reload,
    Stop,
    written,
)
from lockstitch.gateway.running.shared_allowance import FILE_VARIABLE as ALLOWANCE_VARIABLE
from lockstitch.gateway.running.shared_allowance import PLACE_VARIABLE, SharedAllowance
from lockstitch.gateway.running.sockets import close
from lockstitch.gateway.running.worker import READY
from lockstitch.gateway.watching import logs
from lockstitch.gateway.watching.metrics import FOLDER_VARIABLE as METRICS_VARIABLE

CRASHES_ALLOWED: Final = 10
CRASHES_SECONDS: Final = 60.0
"""So many workers may die in so much time, all together. One that dies now and then is replaced; if
there is no end to it, whoever runs the gateway must know."""
RESTART_SECONDS: Final = 0.2
"""Before a worker that died is replaced, so that a crash loop does not eat a core."""
KILL_SECONDS: Final = 2.0
"""Behind the last moment for a worker to end by itself."""


async def supervise(
    config: Config,
    sockets: list[list[socket]],
    orders: Orders,
    *,
    gateway: str,
    ready: Callable[[], None],
) -> int:
    """Run one worker for each set of sockets until ordered to end; the exit code. Raises
    `CannotServe` where a worker cannot begin, or workers die again and again."""
    with tempfile.TemporaryDirectory(prefix="lockstitch-workers-") as folder:
        parent = _Parent(config, sockets, gateway=gateway, ready=ready, folder=folder)
        return await parent.run(orders)


class _Parent:
    def __init__(
        self,
        config: Config,
        sockets: list[list[socket]],
        *,
        gateway: str,
        ready: Callable[[], None],
        folder: str,
    ) -> None:
        self._config = config
        self._sockets = sockets
        self._gateway = gateway
        self._ready = ready
        self._folder = folder
        workers = len(sockets)
        self._allowance_file = str(Path(folder, "allowance"))
        self._allowance = SharedAllowance(self._allowance_file, place=0, workers=workers)
        self._processes: dict[int, asyncio.subprocess.Process] = {}
        self._were_ready: set[int] = set()
        self._crashes: deque[float] = deque()
        self._ending: Order | None = None
        """The order that ended it."""
        self._failure: CannotServe | None = None

    async def run(self, orders: Orders) -> int:
        kept = {asyncio.create_task(self._keep(place)) for place in range(len(self._sockets))}
        obeying = asyncio.create_task(self._obey(orders))
        codes: list[int] = []
        try:
            while kept:
                await asyncio.wait({*kept, obeying}, return_when=asyncio.FIRST_COMPLETED)
                if obeying.done():
                    obeying.result()  # it only ends by a mistake
                ended = {task for task in kept if task.done()}
                kept -= ended
                codes += map(self._ended, ended)
        finally:
            obeying.cancel()
            self._kill()
            self._allowance.close()
        if self._failure is not None:
            raise self._failure
        if isinstance(self._ending, Stop):
            return STOPPED_AT_ONCE
        return TROUBLE if any(codes) else CLEAN

    def _ended(self, task: asyncio.Task[int]) -> int:
        try:
            return task.result()
        except CannotServe as failure:
            self._failure = self._failure or failure
            self._end(Drain())
            return TROUBLE

    async def _obey(self, orders: Orders) -> None:
        while True:
            order = await orders.get()
            if isinstance(order, Reload):
                self._config = order.config
                logs.configure(order.config.log, hide=order.config.secrets())
                self._tell(order)
            else:
                self._end(order)

    def _end(self, order: Order) -> None:
        if isinstance(self._ending, Stop) or type(order) is type(self._ending):
            return
        logs.happened("ending", how=type(order).__name__.lower(), workers=len(self._processes))
        self._ending = order
        # The workers close theirs; while these were open, the system would go on accepting.
        for one in self._sockets:
            close(one)
        self._tell(order)
        drains = isinstance(order, Drain)
        patience = self._config.server.drain_seconds + OVERDUE_SECONDS if drains else 0
        asyncio.get_running_loop().call_later(patience + KILL_SECONDS, self._kill)

    def _tell(self, order: Order) -> None:
        for process in self._processes.values():
            _write(process, order)

    def _kill(self) -> None:
        for process in self._processes.values():
            with suppress(ProcessLookupError):
                process.kill()

    # One worker after the other, in one place

    async def _keep(self, place: int) -> int:
        """Keep a worker running; its exit code, when it was to end."""
        while True:
            code = await self._lived(place)
            if self._ending is not None:
                return code
            if code != CLEAN:
                await asyncio.sleep(RESTART_SECONDS)
            if self._ending is not None:
                return CLEAN  # there was none to end

    async def _lived(self, place: int) -> int:
        """One worker from its beginning to its end; its exit code."""
        try:
            process = await self._started(place)
        except OSError as problem:  # no memory, or too many processes: it may pass
            self._crashed(f"the system, which cannot start it ({problem.strerror})")
            return TROUBLE
        code = await self._watched(place, process)
        if self._ending is not None or code == CLEAN:
            return code
        if code == TROUBLE and place not in self._were_ready:
            raise CannotServe("A worker could not begin; what it said is above.")
        self._crashed(signal.Signals(-code).name if code < 0 else f"exit code {code}", process.pid)
        return code

    async def _started(self, place: int) -> asyncio.subprocess.Process:
        numbers = [one.fileno() for one in self._sockets[place]]
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            # Not what lies in the working folder: it may be called like a module.
            "-P",
            "-m",
            "lockstitch.gateway.running.worker",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            pass_fds=numbers,
            env=os.environ
            | {
                METRICS_VARIABLE: self._folder,
                ALLOWANCE_VARIABLE: self._allowance_file,
                PLACE_VARIABLE: f"{place}/{len(self._sockets)}",
            },
            # Ctrl-C in a terminal would reach it otherwise, and it is the parent who decides.
            start_new_session=True,
        )
        self._processes[place] = process
        _write(process, Begin(config=self._config, gateway=self._gateway, sockets=numbers))
        if self._ending is not None:
            _write(process, self._ending)
        return process

    async def _watched(self, place: int, process: asyncio.subprocess.Process) -> int:
        assert process.stdout is not None
        said = await process.stdout.readline()
        if said == READY:
            logs.happened("worker serves", worker=place, process=process.pid)
            self._were_ready.add(place)
            if len(self._were_ready) == len(self._sockets):
                self._all_ready()
        code = await process.wait()
        del self._processes[place]
        mark_process_dead(process.pid, self._folder)  # type: ignore[no-untyped-call]
        self._allowance.forget_worker(place)
        return code

    def _all_ready(self) -> None:
        ready, self._ready = self._ready, lambda: None
        ready()

    def _crashed(self, how: str, process: int | None = None) -> None:
        logs.went_wrong("worker died", how=how, process=process)
        now = time.monotonic()
        self._crashes.append(now)
        while self._crashes and self._crashes[0] < now - CRASHES_SECONDS:
            self._crashes.popleft()
        if len(self._crashes) > CRASHES_ALLOWED:
            raise CannotServe(
                f"{len(self._crashes)} workers died within {CRASHES_SECONDS:g} seconds, the last"
                f" one by {how}. That will not get better by itself: see the log."
            )


def _write(process: asyncio.subprocess.Process, order: Begin | Order) -> None:
    assert process.stdin is not None
    # One that has just died is replaced, and its successor begins with the newest configuration.
    with suppress(ConnectionError, RuntimeError):
        process.stdin.write(written(order))
