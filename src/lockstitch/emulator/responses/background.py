"""Responses in the background: a task for each, which lives as long as the response does.

What runs there is told to nobody but the response's own log. Those who follow it read that."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from lockstitch.emulator.faults import FINISHING, FIRST, Fault
from lockstitch.emulator.responses.run import Run
from lockstitch.emulator.responses.store import Responses

log = logging.getLogger("lockstitch.emulator")

# The faults that can strike an answer that is one body.
_OF_A_BODY = frozenset({"cut", "close", "stall"})


class Background:
    """The tasks of the responses that run."""

    def __init__(self, responses: Responses) -> None:
        self._responses = responses
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self, run: Run, tell: Callable[[], Awaitable[object]]) -> None:
        """Tell the response to its end, or until somebody stops it."""
        task = asyncio.get_running_loop().create_task(self._told(run, tell))
        self._tasks.add(task)

        def look() -> None:
            if run.stopped:
                task.cancel()

        def done(_: asyncio.Task[None]) -> None:
            self._tasks.discard(task)
            run.watchers.remove(look)

        run.watchers.append(look)
        task.add_done_callback(done)

    async def _told(self, run: Run, tell: Callable[[], Awaitable[object]]) -> None:
        try:
            await tell()
            self._responses.commit(run)
        except Exception:
            log.exception("the emulator failed at a response in the background")
            self._responses.fail(run)
        finally:
            self._responses.abandon(run)

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


def strikes_the_run(fault: Fault) -> bool:
    """Whether a fault of the create strikes the response itself: it ends in another way, or takes
    its time. All others strike what the client hears of it."""
    if fault.name == "stall":
        return fault.point is not None and fault.point.event != FIRST
    return fault.name in FINISHING


def strikes_a_body(fault: Fault) -> bool:
    return fault.name in _OF_A_BODY
