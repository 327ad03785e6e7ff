"""The one thread that writes to a SQLite store: it takes all that waits, and commits it once.

A piece of work is done when its group is synced to disk. One that is refused, or that SQLite will
not take, fails alone; a failure of the disk fails the whole group, of which then nothing is
there. What the work does is in `writing`."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Sequence
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeVar

from lockstitch.store.errors import StoreError
from lockstitch.store.sqlite.errors import OF_THE_FILE, TOLD, writing_failed
from lockstitch.store.sqlite.writing import Writing

GROUP = 512
"""So many pieces of work are enough for one commit: more gain nothing, and the first would wait
for the last."""

_Result = TypeVar("_Result")


class _Job(Generic[_Result]):
    """A piece of work, and who waits for it."""

    __slots__ = ("alone", "error", "future", "result", "run")

    def __init__(
        self, run: Callable[[Writing], _Result], future: asyncio.Future[_Result], alone: bool
    ) -> None:
        self.run = run
        self.future = future
        self.alone = alone
        self.result: _Result
        self.error: Exception | None = None


class Writer:
    """The owner of the connection that writes."""

    def __init__(self, writing: Writing, url: str) -> None:
        self._writing = writing
        self._url = url
        self._gathered: dict[asyncio.AbstractEventLoop, list[_Job[Any]]] = {}
        self._queue: SimpleQueue[list[_Job[Any]] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="lockstitch-write", daemon=True)
        self._thread.start()

    def do(
        self, work: Callable[[Writing], _Result], *, alone: bool = False
    ) -> asyncio.Future[_Result]:
        """Have it done, and synced. ``alone``: in no transaction but its own.

        Who is cancelled while waiting does not know whether it was done."""
        return self._asked(work, alone).future

    async def do_or_undo(
        self, work: Callable[[Writing], _Result], undo: Callable[[Writing, _Result], None]
    ) -> _Result:
        """Have it done, and synced; what is done for who is cancelled meanwhile is taken back."""
        job = self._asked(work)
        try:
            return await job.future
        except asyncio.CancelledError:
            self._asked(partial(_take_back, job, undo))
            raise

    def _asked(self, work: Callable[[Writing], _Result], alone: bool = False) -> _Job[_Result]:
        loop = asyncio.get_running_loop()
        job = _Job(work, loop.create_future(), alone)
        gathered = self._gathered.get(loop)
        if gathered is None:
            # What is asked for in one turn of the loop goes to the thread in one piece: it could
            # wake up half-way, and the other half would wait for a commit of its own.
            self._gathered[loop] = gathered = []
            loop.call_soon(self._hand_over, loop)
        gathered.append(job)
        return job

    def stop(self) -> None:
        """Do what was asked for before, then end. Blocks until then."""
        for loop in list(self._gathered):
            self._hand_over(loop)
        self._queue.put(None)
        self._thread.join()

    def _hand_over(self, loop: asyncio.AbstractEventLoop) -> None:
        if gathered := self._gathered.pop(loop, None):
            self._queue.put(gathered)

    def _work(self) -> None:
        going_on = True
        while going_on:
            group: list[_Job[Any]] = []
            jobs, going_on = self._waiting()
            for job in jobs:
                if job.alone:
                    self._commit(group)
                    group = []
                    self._do_alone(job)
                else:
                    group.append(job)
            self._commit(group)

    def _waiting(self) -> tuple[list[_Job[Any]], bool]:
        """All that waits, once there is something; and does it go on?"""
        jobs: list[_Job[Any]] = []
        handed = self._queue.get()
        while handed is not None:
            jobs += handed
            if len(jobs) >= GROUP:
                return jobs, True
            try:
                handed = self._queue.get_nowait()
            except Empty:
                return jobs, True
        return jobs, False

    def _commit(self, group: Sequence[_Job[Any]]) -> None:
        if not group:
            return
        writing = self._writing
        try:
            writing.begin()
            for job in group:
                job.error = None
                try:
                    job.result = job.run(writing)
                except StoreError as error:  # refused before it changed anything
                    job.error = error
            writing.commit()
        except Exception as error:
            writing.rollback()
            if len(group) > 1 and not isinstance(error, OF_THE_FILE):
                # Something in the work of one of them; the others shall not suffer for it.
                for job in group:
                    self._commit([job])
                return
            for job in group:
                job.error = self._told(error)
        _tell(group)

    def _do_alone(self, job: _Job[Any]) -> None:
        try:
            job.result = job.run(self._writing)
        except Exception as error:
            job.error = self._told(error)
        _tell([job])

    def _told(self, error: Exception) -> Exception:
        if not isinstance(error, TOLD):
            return error
        told = writing_failed(self._url, error)
        told.__cause__ = error
        return told


def _tell(group: Sequence[_Job[Any]]) -> None:
    """Wake who waits, with one call for each event loop."""
    by_loop: dict[asyncio.AbstractEventLoop, list[_Job[Any]]] = {}
    for job in group:
        by_loop.setdefault(job.future.get_loop(), []).append(job)
    for loop, jobs in by_loop.items():
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(_settle, jobs)


def _settle(jobs: Sequence[_Job[Any]]) -> None:
    for job in jobs:
        if job.future.done():
            continue  # cancelled
        if job.error is not None:
            job.future.set_exception(job.error)
        else:
            job.future.set_result(job.result)


def _take_back(
    job: _Job[_Result], undo: Callable[[Writing, _Result], None], writing: Writing
) -> None:
    """Runs behind the work, on the same thread: how that ended is known."""
    if job.error is None:
        undo(writing, job.result)
