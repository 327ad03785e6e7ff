"""The processes of a soak: started, watched, stopped. Each is a session of its own.

What the gateway says goes to a file, which is read at the end."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import psutil  # type: ignore[import-untyped]

from lockstitch.gateway.access.keys import hash_of

ROOT = Path(__file__).parents[1]
START_SECONDS = 60.0
_OF_THE_MACHINE = ("http_proxy", "https_proxy", "all_proxy", "openai_", "lockstitch_")

SILENCE_SECONDS = 4.0
UNREAD_SECONDS = 6.0
DRAIN_SECONDS = 20.0
EVENTS_KEPT_BYTES = 2 * 1024 * 1024
"""Small, so that it is full before the warm-up is over, and cannot be taken for a leak."""

EVERYBODY, STATELESS = "everybody", "stateless"
KEYS = {tenant: f"lsk_soak_{tenant}_{'0' * 32}" for tenant in (EVERYBODY, STATELESS)}
"""Of two tenants: one has the upstreams that keep state, and one the upstream that has none."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What a process and those it started take."""

    resident_bytes: int
    files: int
    threads: int
    cpu_seconds: float


class Child:
    """A process and those it started."""

    def __init__(self, arguments: Sequence[str], log: Path) -> None:
        self.log = log
        with log.open("ab") as written:
            self.process = subprocess.Popen(
                [sys.executable, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=written,
                stderr=written,
                cwd=ROOT,
                env=_environment(),
                start_new_session=True,
            )
        atexit.register(self.kill)

    @property
    def is_running(self) -> bool:
        return self.process.poll() is None

    def connections(self) -> int:
        """Those over TCP: to clients, and to upstreams."""
        made = [one for process in self._tree() for one in process.net_connections("tcp")]
        return sum(one.status != psutil.CONN_LISTEN for one in made)

    def usage(self) -> Usage:
        resident = files = threads = 0
        cpu = 0.0
        for one in self._tree():
            try:
                with one.oneshot():
                    resident += one.memory_info().rss
                    files += one.num_fds()
                    threads += one.num_threads()
                    times = one.cpu_times()
                    cpu += times.user + times.system
            except psutil.NoSuchProcess:
                continue
        return Usage(resident, files, threads, cpu)

    def _tree(self) -> list[psutil.Process]:
        first = psutil.Process(self.process.pid)
        return [first, *first.children(recursive=True)]

    async def ended(self, seconds: float) -> int | None:
        """Its exit code; None if it runs on."""
        until = time.monotonic() + seconds
        while self.is_running and time.monotonic() < until:
            await asyncio.sleep(0.05)
        return self.process.poll()

    def terminate(self) -> None:
        if self.is_running:
            self.process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End all of them at once."""
        atexit.unregister(self.kill)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def said(self) -> str:
        return self.log.read_text(errors="replace")


class Upstream:
    """One upstream, which can be killed and started again at the same address."""

    def __init__(self, name: str, mint: int, folder: Path) -> None:
        self.name = name
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._mint = mint
        self._log = folder / f"{name}.log"
        self._started = 0
        self.child: Child | None = None

    async def start(self, session: aiohttp.ClientSession) -> None:
        self._started += 1
        ids = self._mint * 1000 + self._started
        arguments = ["-m", "soak.provider", str(self.port), str(ids), str(self._mint)]
        self.child = Child(arguments, self._log)
        try:
            await answers(self.child, session, f"{self.url}/_emulator")
        except BaseException:
            self.kill()  # the time was up: whoever goes on finds it started, or not
            raise

    def kill(self) -> None:
        if self.child is not None:
            self.child.kill()
            self.child = None


class Gateway:
    """`lockstitch serve`."""

    def __init__(
        self, folder: Path, store: str, upstreams: Sequence[Upstream], workers: int
    ) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        first, second = upstreams
        (folder / "key").write_text("any\n")
        file = folder / f"gateway-{self.port}.toml"
        file.write_text(_configuration(self.port, store, first, second, workers))
        arguments = ["-m", "lockstitch", "serve", "--config", str(file)]
        self.child = Child(arguments, folder / f"gateway-{self.port}.log")

    async def start(self, session: aiohttp.ClientSession) -> None:
        await answers(self.child, session, f"{self.url}/health/ready")

    async def metrics(self, session: aiohttp.ClientSession) -> dict[str, float]:
        """All counters, those of one name added up; with labels, too."""
        async with session.get(f"{self.url}/metrics") as answer:
            page = await answer.text()
        found: dict[str, float] = {}
        for line in page.splitlines():
            if not line.startswith("#") and " " in line:
                name, _, value = line.rpartition(" ")
                plain = name.partition("{")[0].removeprefix("lockstitch_")
                found[plain] = found.get(plain, 0.0) + float(value)
                found[name] = float(value)
        return found


def _configuration(port: int, store: str, first: Upstream, second: Upstream, workers: int) -> str:
    lines = [
        f"store = {json.dumps(store)}",
        "[server]",
        f"port = {port}",
        f"workers = {workers}",
        f"drain_seconds = {DRAIN_SECONDS}",
        "[limits]",
        f"silence_seconds = {SILENCE_SECONDS}",
        f"unread_seconds = {UNREAD_SECONDS}",
        "unattended_seconds = 20",
        "idle_seconds = 20",
        f"events_kept_bytes = {EVENTS_KEPT_BYTES}",
        "[log]",
        'level = "warning"',
        "[metrics]",
        "open = true",
    ]
    for tenant, key in KEYS.items():
        lines += ["[[keys]]", f'name = "{tenant}"', f'hash = "{hash_of(key)}"']
        lines += ['upstreams = ["stateless"]'] if tenant == STATELESS else []
    for upstream, name, models, more in (
        (first, "first", ["ash", "both"], ""),
        (second, "second", ["birch", "both"], ""),
        (second, "stateless", ["cedar"], 'state = "gateway"'),
    ):
        lines += [
            "[[upstreams]]",
            f'name = "{name}"',
            f'url = "{upstream.url}/v1"',
            f"models = {json.dumps(models)}",
            'key_file = "key"',
            more,
        ]
    return "\n".join(lines) + "\n"


async def answers(child: Child, session: aiohttp.ClientSession, url: str) -> None:
    """Wait until a process answers. Raises RuntimeError if it does not, with the end of its log."""
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until:
        if not child.is_running:
            raise RuntimeError(f"{url}: it ended by itself: {child.said()[-2000:]}")
        try:
            async with session.get(url) as answer:
                if answer.status == 200:
                    return
        except (aiohttp.ClientError, OSError):
            pass
        await asyncio.sleep(0.1)
    raise RuntimeError(f"{url}: no answer within {START_SECONDS:g} s: {child.said()[-2000:]}")


def free_port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port: int = bound.getsockname()[1]
        return port


def _environment() -> dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.lower().startswith(_OF_THE_MACHINE)
    }
    return kept | {"PYTHONPATH": str(ROOT)}


def lines_of_json(text: str) -> tuple[list[dict[str, Any]], list[str]]:
    """The lines of a log that are JSON, and those that are not."""
    told: list[dict[str, Any]] = []
    others: list[str] = []
    for line in text.splitlines():
        try:
            told.append(json.loads(line))
        except ValueError:
            others.append(line)
    return told, others
