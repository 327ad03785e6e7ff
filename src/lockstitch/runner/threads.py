"""Threads for tools that are plain functions, apart from all others.

A thread cannot be stopped. So these are not the event loop's own (a stuck tool must not hold up
name lookups and files), their number has a bound, and none of them keeps the program from ending:
they are daemons, which is why this is no `ThreadPoolExecutor`."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from msgspec import Struct

MOST_THREADS = 64
"""Plain functions that run at once, in the whole process; more wait their turn. They mostly wait
for others, so it is more than there are cores; each costs a stack."""


class Ended(Struct, frozen=True):
    """How a function ended. An error is data here: not every error can be put into a future."""

    value: Any = None
    error: BaseException | None = None
    interrupted: bool = False
    """A signal raised the error, and not the function: the program is to end."""


class Job:
    """One function on its way through a thread."""

    def __init__(self, function: Callable[[], Any]) -> None:
        self._function = function
        self._variables = contextvars.copy_context()
        self._loop = asyncio.get_running_loop()
        self.future: asyncio.Future[Ended] = self._loop.create_future()
        """Done when the function has ended, cancelled if it never began."""
        self.begun = False

    def run(self) -> None:
        try:
            ended = Ended(self._variables.run(self._function))
        except BaseException as error:
            ended = Ended(error=error)
        with suppress(RuntimeError):  # the loop is closed, and nobody waits
            self._loop.call_soon_threadsafe(self._deliver, ended)

    def _deliver(self, ended: Ended) -> None:
        if not self.future.done():
            self.future.set_result(ended)


class Threads:
    """As many threads as there is work for, up to a bound."""

    def __init__(self, most: int = MOST_THREADS) -> None:
        self.most = most
        self._lock = threading.Lock()
        self._waiting: deque[Job] = deque()
        self._running = 0

    def start(self, function: Callable[[], Any]) -> Job:
        """Run a function in a thread, with the context variables of the caller, now or as soon as
        one is free. Raises `RuntimeError` if the system gives no thread; then it will not run."""
        job = Job(function)
        with self._lock:
            self._waiting.append(job)
            if self._running >= self.most:
                return job
            self._running += 1
        try:
            threading.Thread(target=self._work, daemon=True, name="lockstitch tool").start()
        except RuntimeError:
            with self._lock:
                self._running -= 1
            if self.withdraw(job):
                raise
        return job

    def withdraw(self, job: Job) -> bool:
        """Take a job back that has not begun. False if it has."""
        with self._lock:
            try:
                self._waiting.remove(job)
            except ValueError:
                return False
        job.future.cancel()
        return True

    def _work(self) -> None:
        while (job := self._next()) is not None:
            job.run()
            del job  # what a tool gave back must not live as long as the thread

    def _next(self) -> Job | None:
        with self._lock:
            if not self._waiting:
                self._running -= 1
                return None
            job = self._waiting.popleft()
            job.begun = True
            return job

    def __repr__(self) -> str:
        return f"<Threads {self._running} of {self.most}, {len(self._waiting)} waiting>"
