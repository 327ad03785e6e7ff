"""Measuring side by side: the same work, ours and a peer's, interleaved and repeated.

CPU seconds of this process, not the clock on the wall: on a shared machine the wall clock
measures the neighbours. Only ratios are reported as results."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

REPEATS = 7


@dataclass(frozen=True, slots=True)
class Result:
    """One line of the table."""

    name: str
    ours: float
    peer: float
    target: float
    """The ratio must not be above this."""
    unit: str = "s"
    peer_is: str = ""

    @property
    def ratio(self) -> float:
        return self.ours / self.peer

    @property
    def ok(self) -> bool:
        return self.ratio <= self.target


def compare(
    name: str,
    *,
    ours: Callable[[], object],
    peer: Callable[[], object],
    target: float,
    peer_is: str,
    repeats: int = REPEATS,
) -> Result:
    """Run both in turn, after one warm-up each; medians."""
    ours()
    peer()
    our_times: list[float] = []
    peer_times: list[float] = []
    for _ in range(repeats):
        peer_times.append(cpu(peer))
        our_times.append(cpu(ours))
    return Result(
        name=name,
        ours=statistics.median(our_times),
        peer=statistics.median(peer_times),
        target=target,
        peer_is=peer_is,
    )


def cpu(work: Callable[[], object]) -> float:
    """The CPU seconds of this process that some work takes, without the garbage of the last, and
    without taking apart what it made."""
    gc.collect()
    start = time.process_time()
    made = work()
    spent = time.process_time() - start
    del made
    return spent
