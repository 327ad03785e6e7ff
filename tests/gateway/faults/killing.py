"""A gateway as a process of its own, `lockstitch serve`, that is killed at a moment of a stream."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import aiohttp

ROOT = Path(__file__).parents[3]
PATIENCE_SECONDS = 60.0
"""A gateway starts in a second or two; where others have the processor, in ten times that."""


def written(folder, store, upstreams):
    """The file that the process is told by."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    lines = [f'store = "{store}"', "[server]", f"port = {port}", "[log]", 'level = "error"']
    for one in upstreams:
        lines += ["[[upstreams]]", f'name = "{one.name}"', f'url = "{one.url}"', 'guard = "off"']
    file = folder / "gateway.toml"
    file.write_text("\n".join(lines) + "\n")
    return file, port


@asynccontextmanager
async def started(folder, store, upstreams):
    """A gateway in another process; its address, and how to kill it."""
    file, port = written(folder, store, upstreams)
    with (folder / "log").open("a") as log:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "lockstitch", "serve", "--config", str(file)),
            stdout=asyncio.subprocess.DEVNULL,
            stderr=log,
            env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
        )
    try:
        await _ready(f"http://127.0.0.1:{port}", process, folder / "log")

        def kill():
            os.kill(process.pid, signal.SIGKILL)

        yield f"http://127.0.0.1:{port}/v1", kill
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()


async def _ready(url, process, log):
    async with asyncio.timeout(PATIENCE_SECONDS), aiohttp.ClientSession() as session:
        while True:
            assert process.returncode is None, log.read_text()
            with suppress(aiohttp.ClientError):
                async with session.get(f"{url}/health/ready") as answer:
                    if answer.status == 200:
                        return
            await asyncio.sleep(0.02)


async def seen_until(base, transport, body, wanted, kill):
    """Ask, and kill the gateway when the first event is here that ``wanted`` says yes to; the
    events up to it."""
    events = []
    instead = None
    async with aiohttp.ClientSession(headers={"authorization": "Bearer any"}) as session:
        try:
            if transport == "sse":
                body = body | {"stream": True}
                async with session.post(f"{base}/responses", json=body) as answer:
                    left = b""
                    async for data in answer.content.iter_any():
                        *blocks, left = (left + data).split(b"\n\n")
                        for block in blocks:
                            events.append(json.loads(block.split(b"data: ", 1)[1]))
                            if wanted(events[-1]):
                                kill()
                                return events
                    instead = answer.status, left
            else:
                async with session.ws_connect(f"{base}/responses") as connection:
                    await connection.send_json(body | {"type": "response.create"})
                    async for message in connection:
                        events.append(json.loads(message.data))
                        if wanted(events[-1]):
                            kill()
                            return events
                    instead = connection.close_code
        except aiohttp.ClientError as error:
            instead = error
    came = [event["type"] for event in events]
    raise AssertionError(f"The event never came: {came}, then {instead!r}")
