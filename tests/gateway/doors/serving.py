"""A small server that has the doors of this folder and nothing else, and clients for it."""

from __future__ import annotations

import asyncio
import itertools
import json
import socket
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any, cast

import aiohttp
import openai
import pytest
from aiohttp import web
from msgspec import Raw

from lockstitch.gateway.config.model import Config, Key, Limits, Upstream
from lockstitch.gateway.config.secrets import Secret
from lockstitch.gateway.events import TERMINAL, Splitter, body_of
from lockstitch.gateway.keeping.notes import AskedNote
from lockstitch.gateway.keeping.recordings import Recording
from lockstitch.gateway.responding.mishaps import refusal_for
from lockstitch.gateway.responding.passing import refused
from lockstitch.gateway.server import _door
from lockstitch.gateway.world import Caller, World
from lockstitch.store.contract import Store
from lockstitch.store.memory import MemoryStore
from lockstitch.testing import EmulatorThread

# What does not come within this never comes.
SECONDS = 60.0

KEY = {"authorization": "Bearer sk-upstream"}

TENANTS = ("anna", "bert")


class Serving:
    """A running server."""

    def __init__(self, world: World, url: str) -> None:
        self.world = world
        self.url = url
        self.callers: list[Caller] = []
        self.heard: list[bytearray] = []
        """What was answered to each `get`, so far."""
        self._clients: list[openai.AsyncOpenAI] = []

    def client(self, tenant: str = "anna") -> openai.AsyncOpenAI:
        made = openai.AsyncOpenAI(base_url=self.url, api_key=tenant, max_retries=0)
        self._clients.append(made)
        return made

    async def get(self, path: str, tenant: str = "anna") -> tuple[int, bytes]:
        """What is answered, byte by byte."""
        headers = {"authorization": f"Bearer {tenant}"}
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"{self.url}{path}", headers=headers) as answer,
        ):
            told = bytearray()
            self.heard.append(told)
            async for piece in answer.content.iter_any():
                told += piece
            return answer.status, bytes(told)

    async def close(self) -> None:
        for client in self._clients:
            await client.close()


@asynccontextmanager
async def serving(
    *upstreams: Upstream,
    store: Store | None = None,
    unknown: str = "pass",
    allowed: Sequence[str] | None = None,
    limits: Limits | None = None,
) -> AsyncIterator[Serving]:
    """A server with two tenants, and a key for each that may use ``allowed``."""
    keys = tuple(
        Key(name=name, hash="", upstreams=None if allowed is None else tuple(allowed))
        for name in TENANTS
    )
    config = Config(
        store="memory:",
        upstreams=upstreams,
        keys=keys,
        unknown_chains=unknown,
        limits=limits or Limits(),
    )
    world = World(config, store or MemoryStore())
    world.connect()
    by_name = {key.name: key for key in keys}
    numbers = itertools.count(1)

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        tenant = request.headers.get("authorization", "").removeprefix("Bearer ")
        headers = [*request.headers.items()]
        caller = Caller(
            request_id=f"req_{next(numbers)}", key=by_name[tenant], headers=headers, notes=[]
        )
        served.callers.append(caller)
        try:
            return await _answered(world, caller, request)
        except Exception as error:
            return refused(caller, refusal_for(error, world, caller))

    runner = web.ServerRunner(web.Server(handle), shutdown_timeout=1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    served = Serving(world, f"http://127.0.0.1:{port}/v1")
    try:
        yield served
    finally:
        await served.close()
        await runner.cleanup()
        await world.close()


async def _answered(world: World, caller: Caller, request: web.BaseRequest) -> web.StreamResponse:
    door, ids = _door(request.method, request.path.removeprefix("/v1/").split("/"))
    return await door(world, caller, request, *ids)


def run(work: Coroutine[Any, Any, Any]) -> Any:
    """Run a test to its end; whatever a callback of the loop raised fails it."""

    async def bounded() -> Any:
        raised: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: raised.append(context))
        async with asyncio.timeout(SECONDS):
            result = await work
        assert raised == []
        return result

    return asyncio.run(bounded())


async def until(true: Callable[[], Any]) -> None:
    async with asyncio.timeout(SECONDS):
        while not true():
            await asyncio.sleep(0.01)


def at(emulator: EmulatorThread, name: str = "emulator", **told: Any) -> Upstream:
    """An emulator as an upstream, with a key of its own."""
    return Upstream(name=name, url=emulator.base_url, key=Secret("sk-upstream"), **told)


def nobody() -> str:
    """An address where nobody listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{free.getsockname()[1]}/v1"


# --- responses that were answered through the gateway ------------------------------------------


def raw(item: Any) -> bytes:
    return json.dumps(item).encode()


def said(text: str) -> list[bytes]:
    return [raw({"role": "user", "content": text})]


async def keep(
    world: World,
    response: bytes,
    *,
    upstream: str = "emulator",
    tenant: str = "anna",
    items: Sequence[bytes] = (),
    stream: bytes | None = None,
    **note: Any,
) -> Recording:
    """Write a response down as the gateway does that passes it on, whole or as a stream."""
    asked = AskedNote(upstream=upstream, model="gpt-5.5", created=1_700_000_000, **note)
    brief = note.get("stored", True)
    recording = Recording(world.exchanges, tenant, asked, items or said("Hi."), brief=brief)
    if stream is None:
        recording.told(response, body_of(response))
    else:
        hear(recording, stream)
    if recording.ending is None:
        recording.left()
    await recording.close()
    return recording


def hear(recording: Recording, stream: bytes) -> None:
    for heard in Splitter().feed(stream)[1]:
        event = heard.event
        if event.type == "response.created":
            recording.opened(body_of(event.response).id or "")
        elif event.type == "response.output_item.done":
            recording.done(bytes(event.item), event.output_index, event.sequence_number)
        elif event.type in TERMINAL:
            recording.ended(event.type, event.sequence_number, Raw(event.response))


async def ask(url: str, **body: Any) -> tuple[dict[str, Any], bytes]:
    """A response of an upstream: the object, and the bytes it came in."""
    async with aiohttp.ClientSession() as session:
        given = {"model": "gpt-5.5", "input": "Hi."} | body
        async with session.post(f"{url}/responses", json=given, headers=KEY) as answer:
            told = await answer.read()
            assert answer.status == 200, told
    if not body.get("stream"):
        return json.loads(told), told
    last = Splitter().feed(told)[1][-1]
    return json.loads(bytes(last.event.response)), told


def read_events(stream: bytes) -> list[dict[str, Any]]:
    """The events of a stream, which must be well formed and in order."""
    assert stream == b"" or stream.endswith(b"\n\n")
    events = []
    for block in stream.split(b"\n\n")[:-1]:
        if block.startswith(b":"):
            continue
        first, second = block.split(b"\n")
        event = json.loads(second.removeprefix(b"data: "))
        assert first == b"event: " + event["type"].encode()
        events.append(event)
    numbers = [event["sequence_number"] for event in events]
    assert numbers == sorted(set(numbers))
    return events


async def refusal(work: Any) -> tuple[int, dict[str, Any]]:
    """How a request was refused."""
    with pytest.raises(openai.APIStatusError) as raised:
        await work
    return raised.value.status_code, cast("dict[str, Any]", raised.value.body)
