"""How much of the processor a piece of work takes, on a machine that others use too."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

RUNS = 5
"""The least of so many: what others do to the caches of a processor makes no run faster."""


def least_seconds(work: Callable[[], object]) -> float:
    """The time of this thread alone, and without the garbage of all other tests."""
    collects = gc.isenabled()
    gc.disable()
    try:
        return min(_seconds(work) for _ in range(RUNS))
    finally:
        if collects:
            gc.enable()


def _seconds(work: Callable[[], object]) -> float:
    began = time.thread_time()
    work()
    return time.thread_time() - began
