"""The measurements: the same load on every relay in turn, repeated; medians.

CPU is of the relay's whole process tree, from the first connection to the last event. An answer
that is not whole, or an upstream that was asked over another transport, is an error. A run in which
the host took the processors away is measured again, as long as there is time for that."""

from __future__ import annotations

import os
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from bench.gateway.answers import Transport
from bench.gateway.installing import NotMeasured
from bench.gateway.load import Order
from bench.gateway.processes import Spoken, stolen_seconds
from bench.gateway.relays import DIRECT, Kind, Relay

SPREAD_SECONDS = 0.5
"""In which paced streams begin: many times the pace, so that their beats spread evenly."""
LATENCY_EVENTS = 100
LATENCY_PACE_MS = 10
SHORT_EVENTS = 10
"""Of the answers that are many: memory that is not given back is kept for each answer."""
MEMORY_STEPS = 10
STOLEN_LIMIT = 0.03
"""The share of the processors' time that a host may take from a run: CPU figures grow with it."""
_TRIES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How much is measured."""

    events: int = 200
    pace_ms: int = 20
    paced_streams: int = 128
    paced_repeats: int = 5
    burst_connections: int = 32
    burst_answers: int = 10
    burst_repeats: int = 5
    latency_repeats: int = 3
    responses: int = 5_000
    """For memory, after those that fill what is kept on purpose."""
    filling: int = 12_000
    """The last 10,000 responses are remembered, and 16 MB of events; then nothing may grow."""
    again_seconds: float = 90.0
    """For runs that are measured again."""

    @classmethod
    def quick(cls) -> Sizes:
        return cls(
            events=60,
            paced_repeats=1,
            burst_answers=4,
            burst_repeats=2,
            latency_repeats=1,
            responses=1_000,
            filling=500,
            again_seconds=10.0,
        )


@dataclass(frozen=True, slots=True)
class Sample:
    """One run of a load through one relay."""

    streams: int
    events: int
    seconds: float
    cpu_seconds: float
    delays_ms: Sequence[float] = ()
    due_seconds: float = 0.0
    """How long it takes where nothing is in the way; 0 if there is no pace."""
    stolen: float = 0.0
    """The share of the processors' time that the host took."""

    @property
    def cpu_us(self) -> float:
        """CPU microseconds for each event."""
        return self.cpu_seconds / self.events * 1e6

    @property
    def wall_us(self) -> float:
        return self.seconds / self.events * 1e6

    @property
    def behind(self) -> bool:
        return bool(self.due_seconds) and self.seconds > 1.1 * self.due_seconds


Samples = dict[str, list[Sample]]
"""By the name of the relay."""


class Field:
    """Upstream, load and relays, all running."""

    def __init__(
        self, upstream: Spoken, load: Spoken, relays: Sequence[tuple[Kind, Relay]], sizes: Sizes
    ) -> None:
        self._upstream, self._load, self._relays, self._sizes = upstream, load, relays, sizes
        self._again_seconds = sizes.again_seconds

    def paced(self, transport: Transport) -> Samples:
        sizes = self._sizes

        def order(kind: Kind, relay: Relay) -> Order:
            return Order(
                port=relay.port,
                transport=transport,
                connections=min(kind.paced_streams or sizes.paced_streams, sizes.paced_streams),
                events=sizes.events,
                pace_ms=sizes.pace_ms,
                spread_seconds=SPREAD_SECONDS,
            )

        return self._in_turn(order, transport, sizes.paced_repeats)

    def bursts(self) -> Samples:
        sizes = self._sizes

        def order(kind: Kind, relay: Relay) -> Order:
            return Order(
                port=relay.port,
                connections=sizes.burst_connections,
                answers=min(kind.burst_answers or sizes.burst_answers, sizes.burst_answers),
                events=sizes.events,
            )

        return self._in_turn(order, "http", sizes.burst_repeats)

    def latency(self, direct: Relay) -> Samples:
        def order(_: Kind | None, relay: Relay) -> Order:
            return Order(
                port=relay.port,
                connections=1,
                events=LATENCY_EVENTS,
                pace_ms=LATENCY_PACE_MS,
                stamped=True,
            )

        samples: Samples = defaultdict(list)
        for _ in range(self._sizes.latency_repeats):
            for relay in (direct, *(relay for _, relay in self._relays)):
                samples[relay.name].append(self._undisturbed(order(None, relay), relay))
        return samples

    def memory(self, relay: Relay) -> Iterator[tuple[int, float]]:
        """Responses so far, and the MiB that the relay holds then; first when it is filled."""
        assert relay.child is not None
        responses = 0
        for many in (self._sizes.filling, *[self._sizes.responses // MEMORY_STEPS] * MEMORY_STEPS):
            order = Order(
                port=relay.port,
                connections=self._sizes.burst_connections,
                answers=max(1, many // self._sizes.burst_connections),
                events=SHORT_EVENTS,
                limit_seconds=1_200,
            )
            self._run(order, relay)
            responses += order.connections * order.answers
            yield responses, relay.child.resident_mib()

    def warm_up(self, relay: Relay, transports: Sequence[Transport]) -> None:
        """Raises NotMeasured if the relay does not relay."""
        for transport in transports:
            order = Order(
                port=relay.port,
                transport=transport,
                connections=8,
                answers=2,
                events=SHORT_EVENTS,
                limit_seconds=60,
            )
            try:
                self._run(order, relay)
            except RuntimeError as failure:
                raise NotMeasured(str(failure)) from failure

    def _in_turn(
        self, order: Callable[[Kind, Relay], Order], transport: Transport, repeats: int
    ) -> Samples:
        samples: Samples = defaultdict(list)
        for repeat in range(repeats):
            for kind, relay in self._relays:
                if transport in kind.transports and repeat < (kind.repeats or repeats):
                    samples[relay.name].append(self._undisturbed(order(kind, relay), relay))
        return samples

    def _undisturbed(self, order: Order, relay: Relay) -> Sample:
        """The least disturbed of a few tries."""
        best = self._run(order, relay)
        for _ in range(_TRIES - 1):
            if best.stolen <= STOLEN_LIMIT or self._again_seconds < best.seconds:
                break
            again = self._run(order, relay)
            self._again_seconds -= again.seconds
            best = min(best, again, key=lambda sample: sample.stolen)
        return best

    def _run(self, order: Order, relay: Relay) -> Sample:
        answers = order.connections * order.answers
        asked = self._asked(order.transport)
        stolen = stolen_seconds()
        before = relay.cpu_seconds()
        told = self._load.ask(order.line())
        spent = relay.cpu_seconds() - before
        if failure := told.get("failure"):
            log = relay.child.log_end() if relay.child else ""
            raise RuntimeError(f"{relay.name}, {order.transport}: {failure}\n{log}")
        if (heard := self._asked(order.transport) - asked) != answers:
            raise RuntimeError(
                f"{relay.name}: {answers} requests over {order.transport} reached the upstream as "
                f"{heard} over {order.transport}; what was measured is something else"
            )
        paced = (order.events - 1) * order.pace_ms / 1000
        return Sample(
            order.connections,
            answers * order.events,
            told["seconds"],
            spent,
            told["delays_ms"],
            paced + order.spread_seconds if paced else 0.0,
            (stolen_seconds() - stolen) / told["seconds"] / (os.cpu_count() or 1),
        )

    def _asked(self, transport: Transport) -> int:
        count: int = self._upstream.ask("")[transport]
        return count


def cpu_us(samples: Sequence[Sample]) -> float:
    return statistics.median(sample.cpu_us for sample in samples)


def wall_us(samples: Sequence[Sample]) -> float:
    return statistics.median(sample.wall_us for sample in samples)


def delay_ms(samples: Sequence[Sample]) -> float:
    return statistics.median(delay for sample in samples for delay in sample.delays_ms)


def added_ms(samples: Samples, name: str) -> float:
    return delay_ms(samples[name]) - delay_ms(samples[DIRECT])
