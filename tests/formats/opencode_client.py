"""The real opencode with a home of its own, which knows one provider.

Nothing of the caller's environment reaches it but PATH; it talks to loopback only, and every wait
has an end."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

BINARY = os.environ.get("LOCKSTITCH_OPENCODE", "")

needs_opencode = pytest.mark.skipif(
    not BINARY, reason="runs the real opencode: set LOCKSTITCH_OPENCODE to its binary"
)

LONGEST_RUN_SECONDS = 120
"""A run takes three seconds, or more on a busy machine."""
LONGEST_WAIT_SECONDS = 60
"""For a session to look as expected, and for a killed process to be gone."""
PAUSE_SECONDS = 0.02


class OpencodeClient:
    """opencode in a folder of its own."""

    def __init__(self, folder: Path, base_url: str) -> None:
        self.folder = folder
        self.project = folder / "project"
        for name in ("project", "home"):
            (folder / name).mkdir()
        (self.project / "a.txt").write_text("hello\n")
        model = {"name": "m", "tool_call": True, "limit": {"context": 200_000, "output": 4000}}
        provider = {
            "npm": "@ai-sdk/openai-compatible",
            "name": "Local",
            "options": {"baseURL": base_url, "apiKey": "sk-x"},
            "models": {"m": model},
        }
        settings = {
            "autoupdate": False,
            "share": "disabled",
            "snapshot": False,
            "enabled_providers": ["local"],
            "permission": {"*": "allow"},
            "model": "local/m",
            "small_model": "local/m",
            "provider": {"local": provider},
        }
        (self.project / "opencode.json").write_text(json.dumps(settings))

    @property
    def database(self) -> Path:
        return self.folder / "data" / "opencode" / "opencode.db"

    def run(self, prompt: str, *arguments: str) -> Run:
        """A new session, to the end of its first turn."""
        return _finish(self._start(prompt, *arguments))

    def resume(self, prompt: str) -> Run:
        """The next turn of the last session."""
        return self.run(prompt, "--continue")

    def export(self) -> str:
        """The only session, as `opencode export` prints it."""
        with closing(sqlite3.connect(self.database)) as connection:
            ((session,),) = connection.execute("SELECT id FROM session").fetchall()
        return _output(self._open("export", session))

    def load(self, exported: Path) -> None:
        """Import a session."""
        assert "Imported session" in _output(self._open("import", str(exported)))

    def run_and_kill(self, prompt: str, *, when: Callable[[list[dict[str, Any]]], bool]) -> None:
        """A new session, killed as soon as its parts look like this."""
        process = self._start(prompt)
        deadline = time.monotonic() + LONGEST_WAIT_SECONDS
        try:
            while not when(self.parts()):
                assert process.poll() is None, "opencode ended before it could be killed"
                assert time.monotonic() < deadline, "the session never came to look like that"
                time.sleep(PAUSE_SECONDS)
        finally:
            _kill(process)

    def parts(self) -> list[dict[str, Any]]:
        """All parts that are stored."""
        if not self.database.exists():
            return []
        try:
            with closing(sqlite3.connect(f"file:{self.database}?mode=ro", uri=True)) as connection:
                found = connection.execute("SELECT data FROM part ORDER BY id").fetchall()
        except sqlite3.OperationalError:  # its tables are still being made
            return []
        return [json.loads(data) for (data,) in found]

    def change_tool(self, name: str, change: Callable[[dict[str, Any]], None]) -> None:
        """Change the part of a tool in the database."""
        with closing(sqlite3.connect(self.database)) as connection:
            for row, data in connection.execute("SELECT id, data FROM part").fetchall():
                part = json.loads(data)
                if part.get("tool") == name:
                    change(part)
                    values = (json.dumps(part), row)
                    connection.execute("UPDATE part SET data = ? WHERE id = ?", values)
            connection.commit()

    def _start(self, prompt: str, *arguments: str) -> subprocess.Popen[str]:
        return self._open("run", "--format", "json", "--title", "t", *arguments, prompt)

    def _open(self, *arguments: str) -> subprocess.Popen[str]:
        folders = {
            f"XDG_{name.upper()}_HOME": str(self.folder / name)
            for name in ("data", "config", "state", "cache")
        }
        return subprocess.Popen(
            [BINARY, *arguments],
            cwd=self.project,
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(self.folder / "home"),
                "OPENCODE_DISABLE_AUTOUPDATE": "1",
                "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
                "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
                "OPENCODE_DISABLE_MODELS_FETCH": "1",
                "OPENCODE_DISABLE_SHARE": "1",
                "NO_PROXY": "127.0.0.1",
                # It installs its plugin API on every first start, and does without if it cannot.
                "npm_config_registry": "http://127.0.0.1:9",
                **folders,
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )


class Run:
    """How one run of opencode ended."""

    def __init__(self, code: int, stdout: str, stderr: str) -> None:
        self.code = code
        events = [json.loads(line) for line in stdout.splitlines()]
        self.said = [event["part"]["text"] for event in events if event["type"] == "text"]
        self.errors = [event["error"] for event in events if event["type"] == "error"]
        self.stderr = stderr


def _finish(process: subprocess.Popen[str]) -> Run:
    stdout, stderr = _communicate(process)
    return Run(process.returncode, stdout, stderr)


def _output(process: subprocess.Popen[str]) -> str:
    stdout, stderr = _communicate(process)
    assert process.returncode == 0, stderr
    return stdout


def _communicate(process: subprocess.Popen[str]) -> tuple[str, str]:
    try:
        return process.communicate(timeout=LONGEST_RUN_SECONDS)
    except subprocess.TimeoutExpired:
        _kill(process)
        raise


def _kill(process: subprocess.Popen[str]) -> None:
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=LONGEST_WAIT_SECONDS)
