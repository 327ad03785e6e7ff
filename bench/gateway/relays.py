"""The relays that are compared, each one process tree on a port of its own; the whole table.

One worker each: what is compared is the price of an event, not the number of cores."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench.gateway import installing
from bench.gateway.answers import KEY, MODEL, Transport
from bench.gateway.installing import NotMeasured
from bench.gateway.processes import ROOT, Child, free_port

OURS, NGINX, BARE, LITELLM = "lockstitch serve", "nginx", "bare aiohttp", "LiteLLM"
DIRECT = "direct"

_START_SECONDS = 30
_LITELLM_START_SECONDS = 180
"""It imports for ten seconds where nobody else is busy."""


@dataclass(frozen=True, slots=True)
class Relay:
    name: str
    port: int
    child: Child | None
    """None is no relay at all: the upstream itself."""

    def cpu_seconds(self) -> float:
        return self.child.cpu_seconds() if self.child else 0.0


@dataclass(frozen=True, slots=True)
class Kind:
    """One row of the table."""

    name: str
    start: Callable[[int, int, Path], Child]
    """Given its port, the upstream's port, and a folder of its own."""
    transports: tuple[Transport, ...] = ("http",)
    start_seconds: float = _START_SECONDS
    paced_streams: int | None = None
    """Fewer than the others where it would fall behind."""
    repeats: int | None = None
    """Fewer where one takes long."""
    burst_answers: int | None = None


def start(kind: Kind, upstream: int, folder: Path) -> Relay:
    """Raises NotMeasured."""
    folder.mkdir()
    port = free_port()
    child = kind.start(port, upstream, folder)
    try:
        child.wait_for_port(port, kind.start_seconds)
    except RuntimeError as failure:
        child.stop()
        raise NotMeasured(f"{kind.name} did not start: {failure}") from failure
    except BaseException:
        child.stop()
        raise
    return Relay(kind.name, port, child)


def _nginx(port: int, upstream: int, folder: Path) -> Child:
    program = installing.nginx()
    configuration = folder / "nginx.conf"
    configuration.write_text(
        _NGINX.format(
            port=port,
            upstream=upstream,
            folder=folder,
            user="user root;" if os.geteuid() == 0 else "",
        )
    )
    return Child([program, "-p", folder, "-c", configuration], log=folder / "log")


_NGINX = """\
{user}
daemon off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/log warn;
events {{ worker_connections 4096; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    keepalive_requests 1000000;
    tcp_nodelay on;
    map $http_upgrade $connection_kept {{ default upgrade; '' ''; }}
    upstream bench {{
        server 127.0.0.1:{upstream};
        keepalive 512;
        keepalive_requests 1000000;
    }}
    server {{
        listen 127.0.0.1:{port} backlog=1024;
        location / {{
            proxy_pass http://bench;
            proxy_http_version 1.1;
            proxy_buffering off;
            proxy_set_header Upgrade $http_upgrade;
            proxy_set_header Connection $connection_kept;
        }}
    }}
}}
"""


def _ours(port: int, upstream: int, folder: Path) -> Child:
    program = [sys.executable, "-m", "lockstitch", "serve"]
    if subprocess.run([*program, "--help"], capture_output=True, check=False).returncode:
        raise NotMeasured("this Lockstitch has no command `serve`")
    configuration = folder / "gateway.toml"
    configuration.write_text(
        f"store = {json.dumps(f'sqlite:///{folder}/journal.db')}\n"
        f'[server]\nhost = "127.0.0.1"\nport = {port}\n'
        f'[[upstreams]]\nname = "bench"\nurl = "http://127.0.0.1:{upstream}/v1"\n'
        '[log]\nlevel = "warning"\n'
    )
    return Child([*program, "--config", configuration], log=folder / "log")


def _bare(port: int, upstream: int, folder: Path) -> Child:
    found = os.pathsep.join(str(path) for path in (installing.packages(), ROOT) if path)
    return Child(
        [sys.executable, "-m", "bench.gateway.bare_relay", str(port), str(upstream)],
        log=folder / "log",
        environment={"PYTHONPATH": found},
    )


def _litellm(port: int, upstream: int, folder: Path) -> Child:
    program = installing.litellm()
    configuration = folder / "config.yaml"
    configuration.write_text(
        f"model_list:\n  - model_name: {MODEL}\n    litellm_params:\n"
        f"      model: openai/{MODEL}\n      api_key: bench\n"
        f"      api_base: http://127.0.0.1:{upstream}/v1\n"
    )
    return Child(
        [program, "--config", configuration, "--host", "127.0.0.1", "--port", str(port)],
        log=folder / "log",
        # Its list of prices would come from the internet otherwise.
        environment={
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
            "LITELLM_LOG": "ERROR",
            "LITELLM_MASTER_KEY": KEY,
        },
    )


KINDS = (
    Kind(NGINX, _nginx, ("http", "websocket")),
    Kind(OURS, _ours, ("http", "websocket")),
    Kind(BARE, _bare),
    Kind(
        LITELLM,
        _litellm,
        start_seconds=_LITELLM_START_SECONDS,
        paced_streams=8,
        repeats=2,
        burst_answers=1,
    ),
)
