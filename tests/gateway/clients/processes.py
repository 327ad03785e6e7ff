"""`lockstitch serve` as a process of its own, which can be killed."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

PATIENCE_SECONDS = 30.0


class ServeProcess:
    """A gateway that was started from the command line. It keeps its port and its store."""

    def __init__(self, folder: Path, config: str, **variables: str) -> None:
        """``config`` is the TOML file, without its store; ``variables`` are of its environment."""
        self._folder = folder
        self._file = folder / "gateway.toml"
        self._file.write_text(f'store = "sqlite:///{folder}/journal.db"\n{config}')
        with socket.create_server(("127.0.0.1", 0)) as free:
            self._port = free.getsockname()[1]
        self._variables = variables
        self._process: subprocess.Popen[str] | None = None

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._port}/v1"

    @property
    def log(self) -> str:
        return (self._folder / "gateway.log").read_text()

    def start(self) -> ServeProcess:
        command = [sys.executable, "-m", "lockstitch", "serve", "--config", str(self._file)]
        with (self._folder / "gateway.log").open("a") as log:
            self._process = subprocess.Popen(
                [*command, "--port", str(self._port)],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env={**os.environ, "XDG_DATA_HOME": str(self._folder), **self._variables},
            )
        assert self._process.stdout is not None
        said = ""
        while "Stop with Ctrl-C" not in said:
            line = self._process.stdout.readline()
            assert line, said + self.log
            said += line
        return self

    def kill(self) -> None:
        """End it as a power cut would."""
        self._end(signal.SIGKILL)

    def stop(self) -> int:
        """End it as a service manager does; its exit code."""
        return self._end(signal.SIGTERM)

    def _end(self, how: signal.Signals) -> int:
        if self._process is None:
            return 0
        process, self._process = self._process, None
        process.send_signal(how)
        process.communicate(timeout=PATIENCE_SECONDS)
        return process.returncode
