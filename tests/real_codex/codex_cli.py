"""The real Codex CLI with a home of its own, which knows one provider.

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

import pytest

from tests.real_codex.rollouts import Record, read_records

BINARY = os.environ.get("LOCKSTITCH_CODEX", "")

needs_codex = pytest.mark.skipif(
    not BINARY, reason="runs the real Codex CLI: set LOCKSTITCH_CODEX to its binary"
)

LONGEST_RUN_SECONDS = 60
"""A run takes one second, or three on a busy machine."""
LONGEST_WAIT_SECONDS = 30
"""For a rollout to look as expected, and for a killed process to be gone."""
PAUSE_SECONDS = 0.02

_CONFIG = """\
model = "gpt-5.5"
model_provider = "local"
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false
[analytics]
enabled = false
[features]
plugins = false
apps = false
remote_plugin = false
[model_providers.local]
name = "local"
base_url = "{base_url}"
wire_api = "responses"
env_key = "LOCAL_API_KEY"
"""


@dataclass(frozen=True, slots=True)
class Run:
    """How one run of Codex ended."""

    code: int
    stdout: str
    stderr: str

    @property
    def thread(self) -> str:
        """The thread that it worked on; a run that failed has none."""
        assert self.code == 0, self.stderr
        for line in self.stdout.splitlines():
            event = json.loads(line)
            if event["type"] == "thread.started":
                return str(event["thread_id"])
        raise AssertionError(f"no thread was started:\n{self.stdout}")

    @property
    def said(self) -> list[str]:
        """What the model said to the user; of a run that failed, nothing counts."""
        assert self.code == 0, self.stdout + self.stderr
        events = map(json.loads, self.stdout.splitlines())
        items = [event["item"] for event in events if event["type"] == "item.completed"]
        return [item["text"] for item in items if item["type"] == "agent_message"]


class CodexCli:
    """Codex in a folder of its own. `settings` are those of its provider in `config.toml`."""

    def __init__(self, folder: Path, base_url: str, **settings: int) -> None:
        self.home = folder / "home"
        self.project = folder / "project"
        self.home.mkdir()
        self.project.mkdir()
        # JSON and TOML write numbers and booleans alike.
        lines = [f"{name} = {json.dumps(value)}\n" for name, value in settings.items()]
        (self.home / "config.toml").write_text(_CONFIG.format(base_url=base_url) + "".join(lines))

    def run(self, prompt: str) -> Run:
        """A new thread, to the end of its first turn."""
        return _finish(self._start(prompt))

    def resume(self, prompt: str, *, thread: str | None = None) -> Run:
        """The next turn of the last thread, or of the one that is named."""
        return _finish(self._start("resume", "--last" if thread is None else thread, prompt))

    def fork(self, prompt: str, *, thread: str) -> Run:
        """A new thread that begins with the history of another."""
        return _finish(self._start("fork", thread, prompt))

    def run_and_kill(self, prompt: str, *, when: Callable[[list[Record]], bool]) -> None:
        """A new thread, killed as soon as its rollout looks like this."""
        process = self._start(prompt)
        deadline = time.monotonic() + LONGEST_WAIT_SECONDS
        try:
            while not any(when(read_records(path)) for path in self.rollouts()):
                assert process.poll() is None, "Codex ended before it could be killed"
                assert time.monotonic() < deadline, "the rollout never came to look like that"
                time.sleep(PAUSE_SECONDS)
        finally:
            _kill(process)

    def rollouts(self) -> list[Path]:
        return sorted(self.home.glob("sessions/*/*/*/rollout-*.jsonl"))

    def rollout(self) -> Path:
        """The only rollout there is."""
        (path,) = self.rollouts()
        return path

    def forget(self) -> None:
        """Remove Codex's databases: what it knows of its threads must come from the rollouts."""
        for path in self.home.glob("*.sqlite*"):
            path.unlink()

    def _start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [BINARY, "exec", *arguments, "--skip-git-repo-check", "--json"],
            cwd=self.project,
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(self.home),
                "CODEX_HOME": str(self.home),
                "LOCAL_API_KEY": "sk-x",
                "NO_PROXY": "127.0.0.1",
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )


def _finish(process: subprocess.Popen[str]) -> Run:
    try:
        stdout, stderr = process.communicate(timeout=LONGEST_RUN_SECONDS)
    except subprocess.TimeoutExpired:
        _kill(process)
        raise
    return Run(process.returncode, stdout, stderr)


def _kill(process: subprocess.Popen[str]) -> None:
    # The whole group: the binary may be a launcher that started the program itself.
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=LONGEST_WAIT_SECONDS)
