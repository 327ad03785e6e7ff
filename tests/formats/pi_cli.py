"""The real pi with a home of its own, which knows one provider: the emulator.

Nothing of the caller's environment reaches it but PATH; it talks to loopback only, and every wait
has an end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.formats.sample import json_lines

BINARY = os.environ.get("LOCKSTITCH_PI", "")

needs_pi = pytest.mark.skipif(
    not BINARY, reason="runs the real pi: set LOCKSTITCH_PI to its binary"
)

APIS = ("openai-completions", "openai-responses", "anthropic-messages")

LONGEST_RUN_SECONDS = 90
"""A run takes two seconds, or ten on a busy machine."""
PAUSE_SECONDS = 0.02

MODELS = {"anthropic-messages": "claude-sonnet-4-5"}
DEFAULT_MODEL = "gpt-5.5"


@dataclass(frozen=True, slots=True)
class Run:
    """How one run of pi ended."""

    code: int
    stdout: str
    stderr: str


class PiCli:
    """pi in a folder of its own."""

    def __init__(self, folder: Path, url: str, api: str = "openai-completions") -> None:
        self.home = folder / "home"
        self.project = folder / "project"
        self.session = folder / "session.jsonl"
        (self.home / "agent").mkdir(parents=True)
        self.project.mkdir()
        model = MODELS.get(api, DEFAULT_MODEL)
        self.model = f"local/{model}"
        provider = {
            "baseUrl": url if api == "anthropic-messages" else f"{url}/v1",
            "api": api,
            "apiKey": "sk-x",
            "models": [{"id": model, "input": ["text"], "reasoning": False}],
        }
        self._configure("models.json", {"providers": {"local": provider}})
        self._configure(
            "settings.json",
            {
                "retry": {"enabled": False, "provider": {"maxRetries": 0}},
                "compaction": {"enabled": False, "keepRecentTokens": 40},
            },
        )

    def put(self, records: list[dict[str, Any]]) -> None:
        """Make these entries the session. pi does not resume one whose folder is not there."""
        header = {**records[0], "cwd": str(self.project)}
        json_lines([header, *records[1:]], self.session)

    def run(self, prompt: str) -> Run:
        """The next turn of the session, to its end."""
        return _finish(self._start("-p", prompt))

    def run_and_kill(self, prompt: str, *, when: Callable[[list[dict[str, Any]]], bool]) -> None:
        """A turn, killed as soon as the session looks like this."""
        process = self._start("-p", prompt)
        deadline = time.monotonic() + LONGEST_RUN_SECONDS
        try:
            while not when(entries(self.session)):
                assert process.poll() is None, "pi ended before it could be killed"
                assert time.monotonic() < deadline, "the session never came to look like that"
                time.sleep(PAUSE_SECONDS)
        finally:
            _kill(process)

    def command(self, **command: Any) -> dict[str, Any]:
        """Send one command to pi's RPC mode, and return its response."""
        process = self._start("--mode", "rpc", stdin=subprocess.PIPE)
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps({"id": "1", **command}) + "\n")
            process.stdin.flush()
            for line in process.stdout:
                event: dict[str, Any] = json.loads(line)
                if event.get("type") == "response":
                    return event
            raise AssertionError("pi ended without a response")
        finally:
            _kill(process)

    def _configure(self, name: str, value: Any) -> None:
        (self.home / "agent" / name).write_text(json.dumps(value))

    def _start(self, *arguments: str, stdin: int = subprocess.DEVNULL) -> subprocess.Popen[str]:
        common = ("--model", self.model, "--session", str(self.session), "--no-extensions")
        return subprocess.Popen(
            [BINARY, *common, *arguments],
            cwd=self.project,
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(self.home),
                "PI_CODING_AGENT_DIR": str(self.home / "agent"),
                "PI_OFFLINE": "1",
                "PI_TELEMETRY": "0",
                "NO_PROXY": "127.0.0.1",
            },
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )


def entries(path: Path) -> list[dict[str, Any]]:
    """The entries of a session so far."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines(keepends=True) if "\n" in line]


def _finish(process: subprocess.Popen[str]) -> Run:
    try:
        stdout, stderr = process.communicate(timeout=LONGEST_RUN_SECONDS)
    except subprocess.TimeoutExpired:
        _kill(process)
        raise
    return Run(process.returncode, stdout, stderr)


def _kill(process: subprocess.Popen[str]) -> None:
    # The whole group: pi's tools run in processes of their own.
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=LONGEST_RUN_SECONDS)
