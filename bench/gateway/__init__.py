"""The gateway between a client and an upstream, against nginx, a bare relay and LiteLLM's proxy.

`run` is the part `gateway` of `make bench`; `python -m bench.gateway --help` has options.
The loads are in `measuring`, what is compared in `relays`, where it comes from in `installing`."""

from __future__ import annotations

import os
import platform
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from bench.gateway import installing
from bench.gateway.installing import NotMeasured
from bench.gateway.measuring import (
    STOLEN_LIMIT,
    Field,
    Samples,
    Sizes,
    added_ms,
    cpu_us,
    delay_ms,
    wall_us,
)
from bench.gateway.processes import Spoken
from bench.gateway.relays import BARE, DIRECT, KINDS, LITELLM, NGINX, OURS, Kind, Relay, start
from bench.harness import Result

__all__ = ["LOADS", "run"]

LOADS = ("paced", "bursts", "websocket", "latency", "memory")

PACED_TARGET = 1.5
WEBSOCKET_TARGET = 2.0
LITELLM_PACED_TARGET = 1 / 5
LITELLM_BURST_TARGET = 1 / 50
THROUGHPUT_TARGET = 1 / 0.6
"""At least 60 % of the bare relay's."""
ADDED_LIMIT_MS = 0.5
FLAT_TARGET = 1.1
"""Memory after all responses, compared with when it was filled: noise of the allocator allowed."""


def run(sizes: Sizes | None = None, loads: tuple[str, ...] = LOADS) -> Iterator[Result]:
    """Prints the figures of every relay as it goes. Sizes come from `LOCKSTITCH_BENCH_QUICK` and
    `LOCKSTITCH_BENCH_RESPONSES` if they are not given."""
    sizes = sizes or _sizes_of_the_environment()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    missing: dict[str, str] = {}
    with ExitStack() as running:
        folder = Path(
            running.enter_context(tempfile.TemporaryDirectory(prefix="lockstitch-bench-"))
        )
        packages = installing.packages()
        upstream = Spoken("bench.gateway.upstream", log=folder / "upstream", packages=packages)
        running.callback(upstream.stop)
        load = Spoken("bench.gateway.load", log=folder / "load", packages=packages)
        running.callback(load.stop)
        direct = Relay(DIRECT, upstream.heard(), None)
        relays: list[tuple[Kind, Relay]] = []
        field = Field(upstream, load, relays, sizes)
        for kind in KINDS:
            try:
                relay = start(kind, direct.port, folder / kind.name.replace(" ", "-"))
                assert relay.child is not None
                running.callback(relay.child.stop)
                field.warm_up(relay, kind.transports)
            except NotMeasured as failure:
                missing[kind.name] = str(failure)
                _say(f"{kind.name} is not measured: {failure}")
                continue
            relays.append((kind, relay))
        _say(_machine())
        yield from _measured(field, direct, sizes, loads)
        if "memory" in loads and OURS not in missing:
            for _, relay in relays:
                assert relay.child is not None
                _say(f"{relay.name} holds {relay.child.resident_mib():.0f} MiB after all this")
                relay.child.stop()
            # A new one: what the loads before have filled would hide what grows.
            ours = next(kind for kind in KINDS if kind.name == OURS)
            fresh = start(ours, direct.port, folder / "memory")
            assert fresh.child is not None
            running.callback(fresh.child.stop)
            yield _memory(field, fresh)
    if OURS in missing:
        raise SystemExit(f"{OURS} is not measured: {missing[OURS]}")


def _measured(
    field: Field, direct: Relay, sizes: Sizes, loads: tuple[str, ...]
) -> Iterator[Result]:
    if "paced" in loads:
        samples = field.paced("http")
        _show("HTTP, paced", samples)
        name = f"HTTP paced, {sizes.paced_streams}"
        yield from _cpu(name, samples, NGINX, PACED_TARGET)
        yield from _cpu("HTTP paced", samples, LITELLM, LITELLM_PACED_TARGET)
    if "bursts" in loads:
        samples = field.bursts()
        _show("HTTP, bursts", samples)
        yield from _cpu("HTTP bursts", samples, LITELLM, LITELLM_BURST_TARGET)
        if OURS in samples and BARE in samples:
            yield Result(
                "HTTP bursts, time",
                ours=wall_us(samples[OURS]),
                peer=wall_us(samples[BARE]),
                target=THROUGHPUT_TARGET,
                unit="µs",
                peer_is="a bare aiohttp relay that peeks; time for each event",
            )
    if "websocket" in loads:
        samples = field.paced("websocket")
        _show("WebSocket, paced", samples)
        name = f"WebSocket paced, {sizes.paced_streams}"
        yield from _cpu(name, samples, NGINX, WEBSOCKET_TARGET)
    if "latency" in loads:
        yield from _latency(field.latency(direct))


def _cpu(name: str, samples: Samples, peer: str, target: float) -> Iterator[Result]:
    if OURS not in samples or peer not in samples:
        return
    streams = samples[peer][0].streams
    fewer = f", {streams} streams" if streams != samples[OURS][0].streams else ""
    yield Result(
        name,
        ours=cpu_us(samples[OURS]),
        peer=cpu_us(samples[peer]),
        target=target,
        unit="µs",
        peer_is=f"{peer}{fewer}; CPU for each event",
    )


def _latency(samples: Samples) -> Iterator[Result]:
    _say("Idle, one stream: median from the upstream's write to the client's read")
    _say(f"  {DIRECT:<18}{delay_ms(samples[DIRECT]):8.3f} ms")
    for name in samples:
        if name != DIRECT:
            _say(f"  {name:<18}{added_ms(samples, name):+8.3f} ms")
    if OURS in samples:
        yield Result(
            "latency added, idle",
            ours=added_ms(samples, OURS),
            peer=ADDED_LIMIT_MS,
            target=1.0,
            unit="ms",
            peer_is="the limit",
        )


def _memory(field: Field, relay: Relay) -> Result:
    _say(f"Memory of {relay.name}")
    held = []
    for responses, mib in field.memory(relay):
        held.append((responses, mib))
        _say(f"  {responses:>9,} responses {mib:8.1f} MiB")
    (early, early_mib), (last, last_mib) = held[0], held[-1]
    growth = (last_mib - early_mib) * 2**20 / (last - early)
    _say(f"  growth after the first {early:,}: {growth:.0f} bytes for each response")
    return Result(
        f"memory, {last:,} responses",
        ours=last_mib,
        peer=early_mib,
        target=FLAT_TARGET,
        unit="MiB",
        peer_is=f"the same after {early:,}",
    )


def _show(title: str, samples: Samples) -> None:
    _say(title)
    for name, taken in samples.items():
        behind = ", falls behind" if any(sample.behind for sample in taken) else ""
        stolen = max(sample.stolen for sample in taken)
        disturbed = f", the host took up to {stolen:.0%}" if stolen > STOLEN_LIMIT else ""
        spread = f"{min(s.cpu_us for s in taken):.1f} to {max(s.cpu_us for s in taken):.1f}"
        _say(
            f"  {name:<18}{cpu_us(taken):8.1f} µs CPU for each event ({spread}), "
            f"{1e6 / wall_us(taken):,.0f} events/s, {taken[0].streams} streams, "
            f"{len(taken)} runs{behind}{disturbed}"
        )


def _machine() -> str:
    """A relay that has to wait for a processor finds several events at once, and looks cheap."""
    processors, waiting = os.cpu_count() or 1, os.getloadavg()[0]
    busy = ": others are busy here, so judge by another run" if waiting > processors / 2 else ""
    return f"{processors} processors, load {waiting:.1f}{busy}; Python {platform.python_version()}"


def _say(line: str) -> None:
    print(f"  {line}", flush=True)


def _sizes_of_the_environment() -> Sizes:
    sizes = Sizes.quick() if os.environ.get("LOCKSTITCH_BENCH_QUICK") else Sizes()
    if responses := os.environ.get("LOCKSTITCH_BENCH_RESPONSES"):
        sizes = replace(sizes, responses=int(responses))
    return sizes
