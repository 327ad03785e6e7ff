"""A few doors of the emulator on a real socket, in a thread of its own: sync clients can use it."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp
from aiohttp import web

from lockstitch.emulator.chat.http import ChatDoor
from lockstitch.emulator.clock import VirtualClock
from lockstitch.emulator.faults import Faults
from lockstitch.emulator.ids import Ids
from lockstitch.emulator.limits import LARGEST_BODY_BYTES
from lockstitch.emulator.messages.http import MessagesDoor
from lockstitch.emulator.model.replies import Asked, Reply, reply
from lockstitch.emulator.models_http import ModelsDoor
from lockstitch.emulator.record import Record
from lockstitch.emulator.wire.reception import Reception
from lockstitch.emulator.world import Settings, World

DOORS = (ChatDoor, MessagesDoor, ModelsDoor)


@dataclass
class Served:
    url: str
    world: World
    # What the model was asked, in order.
    asked: list[Asked]

    @property
    def record(self) -> Record:
        return self.world.record

    def sent_events(self) -> list[tuple[str, Any]]:
        """The events that went out: their names, and their JSON as they were framed."""
        return [
            (entry.what, entry.readable()["data"])
            for entry in self.record.entries()
            if entry.kind == "event"
        ]


@contextmanager
def serving(
    said: Reply | Callable[[Asked], Reply] | None = None, *faults: str, **settings: Any
) -> Iterator[Served]:
    asked: list[Asked] = []

    def speak(what: Asked) -> Reply:
        asked.append(what)
        return said(what) if callable(said) else said or reply("Hello.")

    clock = VirtualClock()
    chosen = Settings(**settings)
    world = World(
        clock=clock,
        ids=Ids(chosen.seed),
        faults=Faults(faults),
        record=Record(clock.now),
        speak=speak,
        settings=chosen,
    )
    with _listening(world) as url:
        yield Served(url, world, asked)


def raw_stream(url: str, body: dict[str, Any], **headers: str) -> tuple[list[str], str]:
    """The lines that came whole, and how it ended: `ended`, or an error's name."""
    return asyncio.run(_raw_stream(url, body, headers))


async def _raw_stream(
    url: str, body: dict[str, Any], headers: dict[str, str]
) -> tuple[list[str], str]:
    came = b""
    how = "ended"
    headers = {"Authorization": "Bearer any", **headers}
    async with aiohttp.ClientSession() as session:
        try:
            async with session.post(url, json=body, headers=headers) as response:
                async for data in response.content.iter_any():
                    came += data
        except aiohttp.ClientError as error:
            how = type(error).__name__
    whole = came if how == "ended" else came[: came.rfind(b"\n") + 1]
    return whole.decode().splitlines(), how


@contextmanager
def _listening(world: World) -> Iterator[str]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    runner = asyncio.run_coroutine_threadsafe(_started(world), loop).result(10)
    try:
        host, port = runner.addresses[0][:2]
        yield f"http://{host}:{port}"
    finally:
        asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


async def _started(world: World) -> web.AppRunner:
    reception = Reception(world)
    application = web.Application(client_max_size=LARGEST_BODY_BYTES)
    for door in DOORS:
        application.add_routes(door(world, reception).routes())
    runner = web.AppRunner(application, handler_cancellation=True, shutdown_timeout=1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    return runner
