"""One soak, from the first process to the verdict.

Warm-up, storm, calm, everybody leaves, the last orders, and what is true afterwards."""

from __future__ import annotations

import asyncio
import contextlib
import random
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp

from soak import afterwards, leaks
from soak.clients import Client, Shared, tenant_of
from soak.echoes import Plan
from soak.findings import Findings
from soak.kinds import clients
from soak.leaks import Growth, Taken
from soak.processes import (
    DRAIN_SECONDS,
    EVENTS_KEPT_BYTES,
    KEYS,
    UNREAD_SECONDS,
    Gateway,
    Upstream,
    Usage,
    lines_of_json,
)
from soak.stores import Kept, Kind, a_store
from soak.storm import LONGEST_STALL_SECONDS, Storm
from soak.talks import Point, Sample, Talk
from soak.wire import Door

SAMPLE_SECONDS = 2.0
PROGRESS_SECONDS = 10.0
WARM_UP_SECONDS = 120.0
WARM_UP_SHARE = 0.4
"""Of a run that is too short for the whole of it."""
CALM_SECONDS = 60.0
"""Within which every client gets an answer, once nothing is broken any more."""
LEAVE_SECONDS = 45.0
"""Within which nothing is left of clients that went away: idle connections to upstreams are kept
for 15 seconds, those of clients for 20, an answer whose client is gone is heard for 20."""
CHAINS_CONTINUED = 50
LAST_ORDERS = 20
"""Streams that run when the gateway is told to stop."""


@dataclass(frozen=True, slots=True)
class Options:
    minutes: float = 10.0
    connections: int = 200
    seed: int = 1
    store: Kind = "sqlite"
    workers: int = 1
    think_seconds: float = 6.0
    progress: bool = False
    """A line now and then."""
    keep: Path | None = None
    """A folder for logs and the journal, which stays."""


@dataclass(slots=True)
class Soak:
    """What there is while it runs."""

    options: Options
    session: aiohttp.ClientSession
    kept: Kept
    gateway: Gateway
    storm: Storm
    findings: Findings = field(default_factory=Findings)
    samples: list[Taken] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)
    base: Usage | None = None
    growth: Growth | None = None
    metrics: dict[str, float] = field(default_factory=dict)
    store_bytes: int = 0

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.began


async def run(options: Options) -> Soak:
    """Everything, in order. The processes are gone when it returns."""
    async with AsyncExitStack() as stack:
        folder = options.keep or Path(
            stack.enter_context(
                tempfile.TemporaryDirectory(prefix="lockstitch-soak-", ignore_cleanup_errors=True)
            )
        )
        folder.mkdir(parents=True, exist_ok=True)
        kept = stack.enter_context(a_store(options.store, folder))
        session = await stack.enter_async_context(
            aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True))
        )
        findings = Findings(tells=options.progress)
        upstreams = [Upstream(name, mint, folder) for mint, name in enumerate(("one", "two"), 1)]
        for upstream in upstreams:
            stack.callback(upstream.kill)
            await upstream.start(session)
        gateway = Gateway(folder, kept.url, upstreams, options.workers)
        stack.callback(gateway.child.kill)
        await gateway.start(session)
        storm = Storm(upstreams, session, findings, options.seed)
        soak = Soak(options, session, kept, gateway, storm, findings)
        sample = Sample(CHAINS_CONTINUED, random.Random(f"{options.seed}/sample"))
        await _soaked(soak, sample)
        await _stopped(soak, sample)
        await afterwards.all_is_kept(kept.url, findings)
        await storm.forget()
        again = Gateway(folder, kept.url, upstreams, options.workers)
        stack.callback(again.child.kill)
        await again.start(session)
        await afterwards.all_go_on(f"{again.url}/v1", sample.points, findings)
        await storm.look()
        again.child.terminate()
        if await again.child.ended(DRAIN_SECONDS) != 0:
            findings.is_wrong("the end", "the second gateway did not end by itself with 0")
        for one in (gateway, again):
            _read_log(one, findings)
        return soak


async def _soaked(soak: Soak, sample: Sample) -> None:
    """The clients and the storm, until all are gone again."""
    options, findings = soak.options, soak.findings
    stop = asyncio.Event()
    shared = Shared(
        f"{soak.gateway.url}/v1",
        findings,
        sample,
        options.seed,
        options.think_seconds,
        stop,
        LONGEST_STALL_SECONDS,
        UNREAD_SECONDS,
    )
    await _first_words(shared)
    await asyncio.sleep(1.0)
    soak.base = soak.gateway.child.usage()
    everybody = clients(shared, options.connections)
    soak.began = time.monotonic()
    living = [asyncio.create_task(client.live(), name=client.name) for client in everybody]
    async with _alongside(_watch(soak)):
        async with _alongside(soak.storm.rage()):
            await _waited(soak, 60 * options.minutes)
        warm = min(WARM_UP_SECONDS, WARM_UP_SHARE * 60 * options.minutes)
        measured = leaks.after_warm_up(soak.samples, warm, options.workers)
        await soak.storm.calm()
        await _all_answered(everybody, findings)
        soak.metrics = await soak.gateway.metrics(soak.session)
        stop.set()
        await asyncio.wait(living, timeout=100)
    for task in living:
        if not task.done():
            findings.is_wrong("client failed", f"{task.get_name()} does not end")
            task.cancel()
    await asyncio.gather(*living, return_exceptions=True)
    soak.growth = Growth.of(measured, options.workers)
    soak.store_bytes = await soak.kept.size()
    for problem in soak.growth.problems():
        findings.is_wrong("leak", problem)
    for problem in leaks.store_problems(soak.store_bytes, findings.kept_bytes):
        findings.is_wrong("leak", problem)
    await _all_gone(soak)


async def _first_words(shared: Shared) -> None:
    """One turn at each upstream, so that what is opened once is open."""
    for model in ("ash", "birch", "cedar"):
        door = Door(shared.base, KEYS[tenant_of(model)])
        point = Point(model=model)
        body = {"model": model, "input": Talk(point, 1).next_items(point, Plan())}
        answer = await door.streamed(body)
        await door.close()
        assert answer.said == "completed", str(answer)


@asynccontextmanager
async def _alongside(work: object) -> AsyncIterator[None]:
    """Something that goes on until the block is over; its failure is one of the soak."""
    task = asyncio.ensure_future(work)  # type: ignore[call-overload]
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def _waited(soak: Soak, seconds: float) -> None:
    while soak.seconds < seconds:
        if not soak.gateway.child.is_running:
            raise RuntimeError(f"the gateway ended: {soak.gateway.child.said()[-3000:]}")
        await asyncio.sleep(0.5)


async def _watch(soak: Soak) -> None:
    """Samples, rules that were broken, and a line now and then if somebody looks."""
    next_line = PROGRESS_SECONDS
    while True:
        usage = soak.gateway.child.usage()
        size = await soak.kept.size()
        soak.samples.append(Taken(soak.seconds, usage, size, soak.findings.counts["turns"]))
        await soak.storm.look()
        if soak.seconds >= next_line:
            next_line += PROGRESS_SECONDS
            if soak.options.progress:
                print(_progress(soak), flush=True)
        await asyncio.sleep(SAMPLE_SECONDS)


def _progress(soak: Soak) -> str:
    last, counts = soak.samples[-1], soak.findings.counts
    return (
        f"{last.seconds:5.0f} s  {counts['turns']:6} turns  {soak.storm.struck:5} faults"
        f"  {soak.storm.kills} kills  {last.mib:5.0f} MiB  {last.usage.files} files"
        f"  {last.usage.threads} threads  {last.usage.cpu_seconds:.0f} s CPU"
        f"  store {last.store_bytes / 2**20:.0f} MiB"
        f"  wrong: {dict(soak.findings.wrong_counts) or 'nothing'}"
    )


async def _all_answered(everybody: list[Client], findings: Findings) -> None:
    """Nothing is broken any more: whoever asks is answered."""
    since = time.monotonic()
    while time.monotonic() < since + CALM_SECONDS:
        waiting = [client.name for client in everybody if client.done_at < since]
        if not waiting:
            return
        await asyncio.sleep(0.5)
    findings.is_wrong("not answered in the calm", ", ".join(waiting))


async def _all_gone(soak: Soak) -> None:
    """All clients have left: what was held for them is given back."""
    assert soak.base is not None
    gateway, options = soak.gateway.child, soak.options
    limit = soak.base.files + leaks.FILES_BACK[options.store] * options.workers
    until = time.monotonic() + LEAVE_SECONDS
    while (connections := gateway.connections()) and time.monotonic() < until:
        await asyncio.sleep(1.0)
    usage = gateway.usage()
    soak.findings.counts["connections after"] = connections
    if connections:
        soak.findings.is_wrong("leak", f"{connections} connections, and nobody is there")
    soak.findings.counts["files before"] = soak.base.files
    soak.findings.counts["files after"] = usage.files
    if usage.files > limit:
        soak.findings.is_wrong("leak", f"{usage.files} open files, {soak.base.files} before")
    metrics = await soak.gateway.metrics(soak.session)
    if metrics.get("streams"):
        soak.findings.is_wrong("leak", f"{metrics['streams']:g} streams run, and nobody is there")
    most = EVENTS_KEPT_BYTES * soak.options.workers
    if metrics.get("held_bytes", 0.0) > most:
        soak.findings.is_wrong("leak", f"{metrics['held_bytes']:g} bytes are held for nobody")


async def _stopped(soak: Soak, sample: Sample) -> None:
    """SIGTERM while streams run: they end well, and so does the process, in time."""
    findings = soak.findings
    doors = {tenant: Door(f"{soak.gateway.url}/v1", key) for tenant, key in KEYS.items()}
    points = (sample.points or [Point(model="both")])[:LAST_ORDERS]
    asked = []
    for point in points:
        items = Talk(point, 1).next_items(point, Plan(words=60, pace_ms=40))
        body = {"model": point.model, "input": items, **dict(point.settings)}
        body |= {"previous_response_id": point.tip} if point.tip else {}
        asked.append(asyncio.create_task(doors[tenant_of(point.model)].streamed(body)))
    await asyncio.sleep(1.5)
    soak.gateway.child.terminate()
    told = time.monotonic()
    for answer in await asyncio.gather(*asked):
        findings.counts[f"last orders {answer.said}"] += 1
        if answer.said != "completed":
            findings.is_wrong("last orders", str(answer))
    code = await soak.gateway.child.ended(DRAIN_SECONDS + 5)
    seconds = time.monotonic() - told
    for door in doors.values():
        await door.close()
    if code != 0 or seconds > DRAIN_SECONDS:
        findings.is_wrong("the end", f"exit code {code} after {seconds:.1f} s")


def _read_log(gateway: Gateway, findings: Findings) -> None:
    told, others = lines_of_json(gateway.child.said())
    for line in told:
        level, event = line.get("level"), line.get("event")
        findings.counts[f"log {level}: {event}"] += 1
        if level == "error":
            findings.is_wrong("log", f"{event}: {str(line)[:2500]}")
    traced = [line for line in others if "Traceback" in line or "never retrieved" in line]
    if traced:
        findings.is_wrong("log", "\n".join(others)[-4000:])
