"""Samples of what the gateway takes, and the limits within which they must stay. The whole table.

What grows with every request shows as a slope after the warm-up; what is held for a client that is
gone shows when all clients are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from lockstitch.gateway.keeping.prefixes import RESPONSES_REMEMBERED
from soak.processes import Usage

RESIDENT_SLOPE_MIB_PER_MINUTE = 2.0
"""Of each worker, after the warm-up: 2,000 turns a minute that each left 1 KB behind."""
FILLING_TURNS = RESPONSES_REMEMBERED
"""Of each worker. Until then memory grows on purpose: what the last responses went on from is
remembered."""
FILLING_MIB = 40.0
"""Of each worker, at most, while that fills: see "Memory is flat" in docs/gateway.md."""
_WINDOWS = 10
"""Of each only the lowest sample counts: a large answer that passes, or connections that wait for a
busy machine, are no leak."""
FILES_SLOPE_PER_MINUTE = 4.0
"""Clients and upstreams come and go; ten a minute would be a hundred by the end."""
THREADS_GROWTH = 2
FILES_BACK = {"sqlite": 4, "postgresql": 8}
"""Of each worker, more than before the first client, when all are gone: those of the store, which
opens the connections of its pool when they are first needed. Connections over TCP are all gone."""
STORE_FACTOR = 6.0
"""The store by what clients sent and were given. Each item has facts, names and an index; a request
that is tried again has an exchange of its own."""
STORE_BASE_BYTES = 16 * 1024 * 1024
"""A journal that is empty, and the part of it that is not yet folded in."""
SHORTEST_MINUTES = 2.0
"""Of samples after the warm-up: a slope over less says nothing."""


@dataclass(frozen=True, slots=True)
class Taken:
    """One sample."""

    seconds: float
    usage: Usage
    store_bytes: int
    turns: int
    """So many had ended by then."""

    @property
    def mib(self) -> float:
        return self.usage.resident_bytes / 2**20


def after_warm_up(samples: Sequence[Taken], seconds: float, workers: int) -> list[Taken]:
    """Those of which a slope says something: after so long, and when what is kept on purpose is
    full, if the run is long enough for that."""
    warm = [one for one in samples if one.seconds >= seconds]
    full = [one for one in warm if one.turns >= FILLING_TURNS * workers]
    enough = bool(full) and full[-1].seconds - full[0].seconds >= 60 * SHORTEST_MINUTES
    return full if enough else warm


def slope_per_minute(points: Sequence[tuple[float, float]]) -> float:
    """Of the line through the points, by least squares."""
    at = fmean(x for x, _ in points)
    level = fmean(y for _, y in points)
    spread = sum((x - at) ** 2 for x, _ in points)
    return 60 * sum((x - at) * (y - level) for x, y in points) / spread if spread else 0.0


@dataclass(frozen=True, slots=True)
class Growth:
    """What became of the samples after the warm-up."""

    workers: int
    full: bool
    """What is kept on purpose was full from the first of them on."""
    first_mib: float
    last_mib: float
    mib_per_minute: float
    files_per_minute: float
    first_threads: int
    last_threads: int
    minutes: float

    @staticmethod
    def of(samples: Sequence[Taken], workers: int = 1) -> Growth:
        fifth = max(1, len(samples) // 5)
        size = max(1, len(samples) // _WINDOWS)
        windows = [samples[at : at + size] for at in range(0, len(samples), size)]
        lows = [min(window, key=lambda one: one.mib) for window in windows]
        fewest = [min(window, key=lambda one: one.usage.files) for window in windows]
        return Growth(
            workers=workers,
            full=samples[0].turns >= FILLING_TURNS * workers,
            first_mib=median(one.mib for one in samples[:fifth]),
            last_mib=median(one.mib for one in samples[-fifth:]),
            mib_per_minute=slope_per_minute([(one.seconds, one.mib) for one in lows]),
            files_per_minute=slope_per_minute([(one.seconds, one.usage.files) for one in fewest]),
            first_threads=max(one.usage.threads for one in samples[:fifth]),
            last_threads=max(one.usage.threads for one in samples[-fifth:]),
            minutes=(samples[-1].seconds - samples[0].seconds) / 60,
        )

    def problems(self) -> Iterator[str]:
        if self.minutes < SHORTEST_MINUTES:
            return
        if not self.full:
            if self.last_mib - self.first_mib > FILLING_MIB * self.workers:
                yield f"memory grows from {self.first_mib:.0f} to {self.last_mib:.0f} MiB"
        elif self.mib_per_minute > RESIDENT_SLOPE_MIB_PER_MINUTE * self.workers:
            yield (
                f"memory grows by {self.mib_per_minute:.2f} MiB a minute, from"
                f" {self.first_mib:.0f} to {self.last_mib:.0f}"
            )
        if self.files_per_minute > FILES_SLOPE_PER_MINUTE:
            yield f"open files grow by {self.files_per_minute:.1f} a minute"
        if self.last_threads > self.first_threads + THREADS_GROWTH:
            yield f"threads grow from {self.first_threads} to {self.last_threads}"


def store_problems(store_bytes: int, kept_bytes: int) -> Iterator[str]:
    limit = STORE_FACTOR * kept_bytes + STORE_BASE_BYTES
    if store_bytes > limit:
        yield (
            f"the store has {store_bytes / 2**20:.0f} MiB for {kept_bytes / 2**20:.0f} MiB of items"
        )
