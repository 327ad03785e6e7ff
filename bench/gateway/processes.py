"""Processes that the bench starts: what they cost, what they say, and their end.

Each is a session of its own, so that Ctrl-C reaches the bench alone, which then stops them."""

from __future__ import annotations

import atexit
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]

ROOT = Path(__file__).parents[2]
_STOP_SECONDS = 10
_OF_THE_MACHINE = ("http_proxy", "https_proxy", "all_proxy", "openai_", "litellm_", "lockstitch_")


class Child:
    """A process and those it started."""

    def __init__(
        self,
        arguments: Sequence[str | Path],
        *,
        log: Path,
        environment: Mapping[str, str] | None = None,
        spoken_to: bool = False,
    ) -> None:
        self._log = log
        pipe = subprocess.PIPE if spoken_to else subprocess.DEVNULL
        with log.open("ab") as written:
            self.process = subprocess.Popen(
                [str(argument) for argument in arguments],
                stdin=pipe,
                stdout=pipe if spoken_to else written,
                stderr=written,
                env={**_clean_environment(), **(environment or {})},
                cwd=ROOT if spoken_to else log.parent,
                start_new_session=True,
                text=True,
            )
        atexit.register(self.stop)

    def cpu_seconds(self) -> float:
        """User and system time of all of them so far."""
        return sum(_cpu_seconds(process) for process in self._tree())

    def resident_mib(self) -> float:
        return float(sum(process.memory_info().rss for process in self._tree())) / 2**20

    def wait_for_port(self, port: int, seconds: float) -> None:
        """Raises RuntimeError, with the end of its log, if it does not listen by then."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise RuntimeError(f"it ended by itself: {self.log_end()}")
            with socket.socket() as tried:
                if tried.connect_ex(("127.0.0.1", port)) == 0:
                    return
            time.sleep(0.05)
        raise RuntimeError(f"it did not listen within {seconds:.0f} s: {self.log_end()}")

    def log_end(self) -> str:
        return self._log.read_text(errors="replace")[-1500:].strip()

    def stop(self) -> None:
        atexit.unregister(self.stop)
        for sign in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self.process.pid, sign)
            except ProcessLookupError:
                break
            try:
                self.process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                continue
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()

    def _tree(self) -> list[psutil.Process]:
        first = psutil.Process(self.process.pid)
        return [first, *first.children(recursive=True)]


class Spoken(Child):
    """One of the bench's own processes: a line in, a line of JSON out."""

    def __init__(self, module: str, *, log: Path, packages: Path | None) -> None:
        found = os.pathsep.join(str(path) for path in (packages, ROOT) if path)
        super().__init__(
            [sys.executable, "-m", module],
            log=log,
            environment={"PYTHONPATH": found},
            spoken_to=True,
        )

    def ask(self, line: str) -> Any:
        assert self.process.stdin is not None
        print(line, file=self.process.stdin, flush=True)
        return self.heard()

    def heard(self) -> Any:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.process.args!r} ended by itself: {self.log_end()}")
        return json.loads(line)


def free_port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port: int = bound.getsockname()[1]
        return port


def stolen_seconds() -> float:
    """What the host of a virtual machine has given to others, on all processors, so far."""
    times = psutil.cpu_times()
    return float(getattr(times, "steal", 0.0))


def _cpu_seconds(process: psutil.Process) -> float:
    if sys.platform == "linux":
        # The process's own CPU clock, in nanoseconds, as clock_getcpuclockid(3) makes it; /proc
        # counts in hundredths of a second, which is much for a burst.
        return time.clock_gettime((~process.pid << 3) | 2)
    times = process.cpu_times()
    return float(times.user + times.system)


def _clean_environment() -> dict[str, str]:
    """Without what would make a relay leave this machine, or use somebody's key."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.lower().startswith(_OF_THE_MACHINE)
    }
