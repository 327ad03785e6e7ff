"""The Realtime door on a real socket, and a client that says and hears plain events."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from lockstitch.emulator import (
    ALWAYS,
    Asked,
    Draft,
    Emulator,
    Reply,
    Script,
    Settings,
    SpeechStep,
    Turn,
    reply,
)
from lockstitch.emulator.clock import Clock
from lockstitch.emulator.realtime.websocket import RealtimeDoor
from lockstitch.emulator.world import World
from tests.emulator.realtime_events import Fields, check

# Longer than anything here takes; what is waited for comes, or the test fails.
PATIENCE_SECONDS = 10.0


@dataclass
class Served:
    emulator: Emulator
    # What the model was asked, and what it says next; when that is used up it says "Hello."
    asked: list[Asked] = field(default_factory=list)
    said: list[Reply] = field(default_factory=list)

    @property
    def url(self) -> str:
        return self.emulator.url

    @property
    def world(self) -> World:
        return self.emulator.world

    @property
    def door(self) -> RealtimeDoor:
        return self.emulator.realtime

    def say(self, *drafts: Draft | str, **settings: Any) -> None:
        self.said.append(reply(*drafts, **settings))

    @asynccontextmanager
    async def client(
        self,
        *,
        headers: dict[str, str] | None = None,
        protocols: tuple[str, ...] = (),
        greeted: bool = True,
        **settings: Any,
    ) -> AsyncIterator["Client"]:
        """A client whose session, unless it is left alone, is told to answer in text."""
        async with (
            aiohttp.ClientSession() as http,
            http.ws_connect(
                f"{self.url}/v1/realtime?model=gpt-realtime",
                headers={"Authorization": "Bearer any"} if headers is None else headers,
                protocols=protocols,
            ) as socket,
        ):
            client = Client(socket)
            if greeted:
                await client.until("session.created")
                await client.update(output_modalities=["text"], **settings)
            yield client


class Client:
    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.socket = socket
        self.heard: list[Fields] = []

    async def send(self, type: str, **fields: Any) -> None:
        await self.socket.send_json({"type": type, **fields})

    async def update(self, **settings: Any) -> None:
        await self.send("session.update", session={"type": "realtime", **settings})
        await self.until("session.updated")

    async def hear(self) -> Fields:
        async with asyncio.timeout(PATIENCE_SECONDS):
            event: Fields = await self.socket.receive_json()
        check(event)
        self.heard.append(event)
        return event

    async def until(self, name: str, nth: int = 1) -> list[Fields]:
        """Everything heard from now on, through the n-th event of this name."""
        heard = []
        while nth:
            heard.append(await self.hear())
            nth -= heard[-1]["type"] == name
        return heard

    async def to_the_end(self) -> int | None:
        """Hear everything that still comes; the close code."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            async for message in self.socket:
                event = message.json()
                check(event)
                self.heard.append(event)
        return self.socket.close_code


@asynccontextmanager
async def serving(
    *faults: str,
    speech: Iterable[SpeechStep] = (),
    clock: Clock | None = None,
    speak: Callable[[Asked], Reply] | None = None,
    **settings: Any,
) -> AsyncIterator[Served]:
    asked: list[Asked] = []
    said: list[Reply] = []

    def answer(what: Asked) -> Reply:
        asked.append(what)
        if speak is not None:
            return speak(what)
        return said.pop(0) if said else reply("Hello.")

    script = Script([Turn(decide=answer, times=ALWAYS)], speech=tuple(speech))
    running = Emulator(script=script, faults=faults, clock=clock, settings=Settings(**settings))
    async with running:
        yield Served(running, asked, said)
