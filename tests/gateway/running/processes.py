"""A gateway as a process of its own, with a stand-in: to be asked, signalled and watched."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import ssl
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[3]
PATHS = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(ROOT)]))
PATIENCE_SECONDS = 40
BEGUN = b"begun\n"

PROGRAM = """
import sys
from lockstitch.core.errors import LockstitchError
from lockstitch.gateway.config import Options, load
from lockstitch.gateway.running import run, serve, supervising

supervising.CRASHES_ALLOWED = 3
options = Options(config=sys.argv[1])
gateway = "tests.gateway.running.stand_in:" + sys.argv[2]
ready = lambda config: print(config.server.port, flush=True)
try:
    sys.exit(
        run(
            serve(
                load(options),
                load=lambda: load(options, again=True),
                ready=ready,
                gateway=gateway,
                check_seconds=0.1,
            )
        )
    )
except LockstitchError as error:
    print(f"lockstitch: {error}", file=sys.stderr)
    sys.exit(2)
"""


class Serving:
    """A running process. What it logs goes to a file, so that it never waits for a reader."""

    def __init__(self, file, gateway, log):
        self.log_file = log
        self.port = None
        with log.open("w") as stream:
            self.process = subprocess.Popen(
                [sys.executable, "-c", PROGRAM, str(file), gateway],
                stdout=subprocess.PIPE,
                stderr=stream,
                text=True,
                env=os.environ | {"PYTHONPATH": PATHS, "KEY": "sk-secret-of-the-upstream"},
            )

    def begin(self):
        can_read, _, _ = select.select([self.process.stdout], [], [], PATIENCE_SECONDS)
        said = self.process.stdout.readline() if can_read else ""
        assert said, self.said
        self.port = int(said)
        return self

    @property
    def said(self):
        return self.log_file.read_text()

    @property
    def log(self):
        return [json.loads(line) for line in self.said.splitlines() if line.startswith("{")]

    def events(self):
        return [line["event"] for line in self.log]

    def connect(self, context=None):
        made = socket.create_connection(("127.0.0.1", self.port), PATIENCE_SECONDS)
        return context.wrap_socket(made, server_hostname="localhost") if context else made

    def ask(self, line, context=None):
        with self.connect(context) as connection:
            connection.sendall(f"{line}\n".encode())
            return heard(connection)

    def signal(self, number):
        self.process.send_signal(number)

    def end(self):
        """Wait for its end; the exit code."""
        return self.process.wait(PATIENCE_SECONDS)


def begin(connection, what):
    """Ask for what takes its time, and wait until it has begun."""
    connection.sendall(f"{what}\n".encode())
    # No more than this: what comes next is for whoever hears it.
    assert connection.recv(len(BEGUN), socket.MSG_WAITALL) == BEGUN


def heard(connection):
    return connection.makefile().readline().strip()


@contextmanager
def started(tmp_path, text="", gateway="StandIn", upstream=None, **server):
    """A process that may or may not come to serve. Its upstream takes connections, and says
    nothing, unless another one is named."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = upstream or f"http://127.0.0.1:{silent.getsockname()[1]}/v1"
        with _process(tmp_path, text, gateway, url, server) as one:
            yield one


@contextmanager
def _process(tmp_path, text, gateway, url, server):
    file = tmp_path / "gateway.toml"
    settings = {"port": 0, "drain_seconds": 3} | server
    lines = [f"{name} = {json.dumps(value)}" for name, value in settings.items()]
    store = "" if "store =" in text else f'store = "sqlite:///{tmp_path}/gateway.db"\n'
    upstream = f'[[upstreams]]\nname = "a"\nurl = "{url}"\nkey_env = "KEY"\n'
    file.write_text(store + text + "\n[server]\n" + "\n".join(lines) + "\n" + upstream)
    serving = Serving(file, gateway, tmp_path / "log")
    try:
        yield serving
    finally:
        if serving.process.poll() is None:
            serving.signal(signal.SIGKILL)
            serving.process.wait()
        serving.process.stdout.close()
        assert "sk-secret" not in serving.said


@contextmanager
def serving(tmp_path, text="", gateway="StandIn", upstream=None, **server):
    """A process that serves."""
    with started(tmp_path, text, gateway, upstream, **server) as one:
        yield one.begin()


def until(true, seconds=PATIENCE_SECONDS):
    """Wait until something is true."""
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        if true():
            return
        time.sleep(0.02)
    raise AssertionError("it never came true")


def is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"


def trusting(certificate):
    return ssl.create_default_context(cafile=str(certificate))
