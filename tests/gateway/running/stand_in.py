"""Stands in for a gateway, to be run: it answers one line for each line that it is sent.

`who` its process; `keys` their names; `wait` after a while; `die` not at all; `count` counts;
`take` takes from the allowance of the first key."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from contextlib import suppress

from lockstitch.core.errors import LockstitchError
from lockstitch.gateway.running.shared_allowance import allowance_here
from lockstitch.gateway.watching.metrics import Metrics
from tests.gateway.running.processes import BEGUN

WAIT_SECONDS = 0.6

LONG = ("wait", "hang")
"""What is asked for and takes its time; that it has begun is told at once."""


class StandIn:
    def __init__(self, config, store):
        self.config = config
        self.store = store
        self.metrics = Metrics()
        self.allowance = allowance_here()
        self.asked = set()
        self.servers = []

    async def start(self, sockets, ssl):
        for one in sockets:
            self.servers.append(await asyncio.start_server(self.connected, sock=one, ssl=ssl))

    async def drain(self, seconds):
        for server in self.servers:
            server.close()
        if self.asked:
            await asyncio.wait(self.asked, timeout=seconds)

    async def reload(self, config):
        self.config = config

    async def connected(self, reader, writer):
        with suppress(ConnectionError):
            while line := (await reader.readline()).decode().split():
                answering = asyncio.create_task(self.answer(line))
                self.asked.add(answering)
                if line[0] in LONG:
                    writer.write(BEGUN)
                try:
                    said = await answering
                    writer.write(said.encode() + b"\n")
                    await writer.drain()
                finally:
                    self.asked.discard(answering)
        writer.close()

    async def answer(self, line):
        match line:
            case ["who"]:
                return str(os.getpid())
            case ["keys"]:
                return ",".join(key.name for key in self.config.keys) or "none"
            case ["upstream"]:
                return self.config.upstreams[0].url
            case ["wait"]:
                await asyncio.sleep(WAIT_SECONDS)
                return "waited"
            case ["hang"]:
                await asyncio.sleep(3600)
            case ["count"]:
                self.metrics.events.inc()
                page = self.metrics.exposition()[0].decode()
                return page.split("\nlockstitch_events_total ")[1].split("\n")[0]
            case ["take"]:
                refused = self.allowance.take(self.config.keys[0], time.monotonic())
                return "taken" if refused is None else refused.of
            case ["die"]:
                os.kill(os.getpid(), signal.SIGKILL)
        return "what?"


class DiesAtOnce(StandIn):
    """Begins, and is gone."""

    async def start(self, sockets, ssl):
        await super().start(sockets, ssl)
        asyncio.get_running_loop().call_later(0.05, os._exit, 3)


class CannotBegin(StandIn):
    async def start(self, sockets, ssl):
        raise LockstitchError("The stand-in does not want to.")


class DrainsBadly(StandIn):
    async def drain(self, seconds):
        raise ZeroDivisionError("sk-not-to-be-seen-anywhere")
