"""The emulator with one reply for everything, and what its model was asked."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp

from lockstitch.emulator import ALWAYS, Asked, Reply, Script, Settings, Turn, VirtualClock, reply
from lockstitch.emulator.record import Record
from lockstitch.emulator.world import World
from lockstitch.testing import EmulatorThread


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

    script = Script([Turn(decide=speak, times=ALWAYS)])
    chosen = Settings(**settings)
    with EmulatorThread(
        script=script, faults=faults, clock=VirtualClock(), settings=chosen
    ) as running:
        yield Served(running.url, running.emulator.world, asked)


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
