"""A gateway in a thread of its own, on a real port, so that clients of every kind can talk to it;
and an emulator that keeps nothing, for a gateway that keeps everything."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable
from typing import Any

from lockstitch import open_store
from lockstitch.emulator import refusals
from lockstitch.gateway.config.model import Config, Upstream
from lockstitch.gateway.server import Gateway
from lockstitch.testing import EmulatorThread

LOOPBACK = "127.0.0.1"
PATIENCE_SECONDS = 10.0
"""A gateway that does not start or stop within this is broken."""


class GatewayThread:
    """A running gateway. It keeps its port and its store when it is started again."""

    def __init__(self, store: str, *upstreams: Upstream, **config: Any) -> None:
        self.config = Config(store=store, upstreams=upstreams, **config)
        self.gateway: Gateway | None = None
        self._port = 0
        self._loop: asyncio.AbstractEventLoop
        self._thread: threading.Thread | None = None
        self._over: asyncio.Event
        self._begun = threading.Event()
        self._failure: BaseException | None = None

    @property
    def base_url(self) -> str:
        """What a client is given as its base URL."""
        return f"http://{LOOPBACK}:{self._port}/v1"

    def start(self) -> GatewayThread:
        self._begun.clear()
        self._failure = None
        self._thread = threading.Thread(target=self._run, name="gateway", daemon=True)
        self._thread.start()
        assert self._begun.wait(PATIENCE_SECONDS), "the gateway does not start"
        if self._failure is not None:
            raise self._failure
        return self

    def stop(self) -> None:
        """End it at once: what runs is broken off."""
        if self._thread is None:
            return
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join(PATIENCE_SECONDS)
        assert not self._thread.is_alive(), "the gateway does not stop"
        self._thread = None
        if self._failure is not None:
            raise self._failure

    def restart(self) -> None:
        """What it knows afterwards, it knows from its store."""
        self.stop()
        self.start()

    def running(self) -> int:
        """How many answers are under way."""
        assert self.gateway is not None
        return len(self.gateway.world.running)

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:
            self._failure = error
        finally:
            self._begun.set()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._over = asyncio.Event()
        store = await open_store(self.config.store)
        try:
            listening = socket.create_server((LOOPBACK, self._port))
            listening.setblocking(False)
            self._port = listening.getsockname()[1]
            self.gateway = Gateway(self.config, store)
            await self.gateway.start([listening], None)
            self._begun.set()
            await self._over.wait()
            await self.gateway.drain(0)
        finally:
            await store.close()


def upstream(emulator: EmulatorThread, name: str = "emulator", **settings: Any) -> Upstream:
    return Upstream(**({"name": name, "url": emulator.base_url} | settings))


def keeping_nothing(emulator: EmulatorThread) -> EmulatorThread:
    """A provider without state: it answers what is whole and asks it to keep nothing, and knows of
    no response when it is over."""
    responses = emulator.emulator.responses
    accept: Callable[..., Any] = responses.start

    def start(request: dict[str, Any], **more: Any) -> Any:
        for anchor in ("previous_response_id", "conversation"):
            if request.get(anchor) is not None:
                raise refusals.unsupported_parameter(anchor, "nothing is kept here")
        if request.get("store") is not False:
            raise refusals.unsupported_parameter("store", "nothing is kept here")
        return accept(request, **more)

    responses.start = start  # type: ignore[method-assign]
    return emulator


def gone(emulator: EmulatorThread) -> None:
    """It cannot be reached any more; what it was asked can still be read."""
    emulator._wait(emulator.emulator.stop())
