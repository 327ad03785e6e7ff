"""What the tests of the gateway share: answers of an upstream, a scripted upstream, a gateway.

Borders are real sockets on loopback; the store is one in memory whose every call can fail."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import socket
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import aiohttp
from aiohttp import WSMsgType, web

from lockstitch.gateway.access.keys import hash_of
from lockstitch.gateway.config.model import Config, Key, Limits, Upstream
from lockstitch.gateway.keeping.journal import Exchanges
from lockstitch.gateway.keeping.notes import AskedNote
from lockstitch.gateway.keeping.recordings import Recording
from lockstitch.gateway.server import Gateway
from lockstitch.store.contract import Claim, Found
from lockstitch.store.errors import CannotWrite
from lockstitch.store.memory import MemoryStore

SECONDS = 60.0
"""What does not come within this never comes; also not where others have the processor."""

EACH_SECONDS = 20.0
"""The same, of one of several things that a test waits for: it says which it was."""

QUICK = Limits(request_seconds=2.0, idle_seconds=5.0, silence_seconds=5.0, unattended_seconds=5.0)


# --- running -----------------------------------------------------------------------------------


def run(work: Coroutine[Any, Any, Any], *, quiet: bool = True, collect: bool = True) -> Any:
    """Run a coroutine to its end. What a callback of the loop raised fails the test, and so does
    a task that is left behind. ``collect``: errors that nobody looked at, too."""
    raised: list[dict[str, Any]] = []

    async def bounded() -> Any:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: raised.append(context))
        async with asyncio.timeout(SECONDS):
            result = await work
        left = await tasks_left()
        if collect:
            gc.collect()
        await asyncio.sleep(0)
        if quiet:
            assert raised == [], raised
        assert left == [], left
        return result

    return asyncio.run(bounded())


async def tasks_left(seconds: float = 2.0) -> list[str]:
    """The other tasks that do not end by themselves within a moment."""
    me = asyncio.current_task()
    ends = asyncio.get_running_loop().time() + seconds
    while True:
        left = [repr(task) for task in asyncio.all_tasks() if task is not me]
        if not left or asyncio.get_running_loop().time() > ends:
            return left
        await asyncio.sleep(0.01)


async def until(true: Callable[[], Any], seconds: float = EACH_SECONDS) -> Any:
    """Wait until it is so."""
    ends = asyncio.get_running_loop().time() + seconds
    while not (found := true()):
        assert asyncio.get_running_loop().time() < ends, "it never came to that"
        await asyncio.sleep(0.005)
    return found


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


# --- what a response says ----------------------------------------------------------------------


def encoded(value: Any) -> bytes:
    return json.dumps(value).encode()


def message(text: str = "fine", id: str | None = "msg_1", **more: Any) -> dict[str, Any]:
    named = {} if id is None else {"id": id}
    part = {"type": "output_text", "text": text, "annotations": []}
    return {"type": "message", "role": "assistant", "content": [part], **named, **more}


def call(key: str = "call_1", id: str | None = "fc_1", **more: Any) -> dict[str, Any]:
    named = {} if id is None else {"id": id}
    made = {"type": "function_call", "call_id": key, "name": "look", "arguments": "{}"}
    return {**made, **named, **more}


def output(key: str = "call_1", text: str = "seen") -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": key, "output": text}


def user(text: str = "hi") -> dict[str, Any]:
    return {"type": "message", "role": "user", "content": text}


def response(id: str, *items: Any, status: str = "completed", **more: Any) -> dict[str, Any]:
    return {"id": id, "object": "response", "status": status, "output": list(items), **more}


def told_by(id: str, *items: Any, ending: str = "completed", **more: Any) -> list[dict[str, Any]]:
    """The events of one response, with a delta for each item."""
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": response(id, status="in_progress", **more)},
        {"type": "response.in_progress", "response": response(id, status="in_progress", **more)},
    ]
    for n, item in enumerate(items):
        events.append({"type": "response.output_item.added", "output_index": n, "item": item})
        events.append({"type": "response.output_text.delta", "output_index": n, "delta": "…"})
        events.append({"type": "response.output_item.done", "output_index": n, "item": item})
    whole = response(id, *items, status=ending, **more)
    events.append({"type": f"response.{ending}", "response": whole})
    return [{**event, "sequence_number": n} for n, event in enumerate(events)]


def sse(events: Sequence[dict[str, Any]]) -> bytes:
    return b"".join(
        b"event: %b\ndata: %b\n\n" % (event["type"].encode(), encoded(event)) for event in events
    )


def error_body(message: str, code: str | None = None, **more: Any) -> dict[str, Any]:
    found = {"message": message, "type": "invalid_request_error", "param": None, "code": code}
    return {"error": {**found, **more}}


NOT_FOUND = error_body(
    "Previous response with id 'resp_x' not found.",
    "previous_response_not_found",
    param="previous_response_id",
)


# --- an upstream that says what it is told -----------------------------------------------------

Answer = Callable[["Asked"], Awaitable[web.StreamResponse | None]]


class Asked:
    """One request as the upstream got it: over HTTP, or a frame of a WebSocket."""

    def __init__(self, provider: Provider, request: web.Request, body: bytes) -> None:
        self.provider = provider
        self.request = request
        self.body = body
        self.socket: web.WebSocketResponse | None = None

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Provider:
    """An upstream on a real socket. `answers` are used up one after the other; then the last
    stays, or a plain answer is given."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.answers: deque[Answer] = deque()
        self.url = ""
        self.count = 0
        self.open_sockets = 0
        self.sockets: list[web.WebSocketResponse] = []
        self.gone = 0
        """How many answers nobody listened to until their end."""

    def then(self, *answers: Answer) -> None:
        self.answers.extend(answers)

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        if request.headers.get("upgrade", "").lower() == "websocket":
            return await self._converse(request)
        asked = Asked(self, request, await request.read())
        self.asked.append(asked)
        answer = self.answers.popleft() if self.answers else plain
        try:
            said = await answer(asked)
        except (ConnectionError, asyncio.CancelledError):
            self.gone += 1
            raise
        return said if said is not None else web.Response(status=500)

    async def _converse(self, request: web.Request) -> web.StreamResponse:
        ws = web.WebSocketResponse()
        await ws.prepare(request)
        self.sockets.append(ws)
        self.open_sockets += 1
        tasks: set[asyncio.Task[Any]] = set()
        try:
            async for frame in ws:
                if frame.type is not WSMsgType.TEXT:
                    continue
                asked = Asked(self, request, frame.data.encode())
                asked.socket = ws
                self.asked.append(asked)
                answer = self.answers.popleft() if self.answers else plain
                task = asyncio.ensure_future(answer(asked))
                tasks.add(task)
        finally:
            self.open_sockets -= 1
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        return ws


@asynccontextmanager
async def provider() -> AsyncIterator[Provider]:
    made = Provider()
    app = web.Application(client_max_size=1 << 30)
    app.router.add_route("*", "/{path:.*}", made._serve)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.05)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    made.url = "http://{}:{}/v1".format(*runner.addresses[0][:2])
    try:
        yield made
    finally:
        for ws in made.sockets:
            with suppress(Exception):
                await ws.close()
        await runner.cleanup()


async def plain(asked: Asked) -> web.StreamResponse | None:
    asked.provider.count += 1
    n = asked.provider.count
    return await streaming(f"plain_{n}", message(f"answer {n}", f"msg_p{n}"))(asked)


def streaming(id: str, *items: Any, ending: str = "completed", **more: Any) -> Answer:
    """Answers as it was asked: whole, as a stream, or in frames."""
    return saying(told_by(id, *items, ending=ending, **more))


def saying(events: Sequence[dict[str, Any]], *, then: str = "end", pace: float = 0.0) -> Answer:
    """Says these events. ``then``: "end" the stream, "cut" it, or "hang"."""

    async def answer(asked: Asked) -> web.StreamResponse | None:
        if asked.socket is not None:
            lane = asked.json.get("stream_id")
            for event in events:
                if pace:
                    await asyncio.sleep(pace)
                named = event if lane is None else {**event, "stream_id": lane}
                await asked.socket.send_str(json.dumps(named))
            if then == "cut":
                transport = asked.request.transport
                assert transport is not None
                transport.abort()
            return None
        if asked.json.get("stream") is not True:
            return web.json_response(events[-1]["response"])
        told = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await told.prepare(asked.request)
        for event in events:
            if pace:
                await asyncio.sleep(pace)
            await told.write(sse([event]))
        if then == "cut":
            assert asked.request.transport is not None
            asked.request.transport.close()
        if then == "hang":
            while asked.request.transport is not None:
                await asyncio.sleep(0.01)
            raise ConnectionResetError
        return told

    return answer


def raw(body: bytes, *, status: int = 200, kind: str = "text/event-stream") -> Answer:
    async def answer(asked: Asked) -> web.StreamResponse | None:
        return web.Response(status=status, body=body, headers={"content-type": kind})

    return answer


def refusing(body: Any, status: int = 400) -> Answer:
    """Says no, over HTTP or in a frame."""

    async def answer(asked: Asked) -> web.StreamResponse | None:
        if asked.socket is None:
            return web.json_response(body, status=status)
        lane = asked.json.get("stream_id")
        named = {} if lane is None else {"stream_id": lane}
        await asked.socket.send_json({"type": "error", "status": status, **named, **body})
        return None

    return answer


# --- a store whose calls can fail --------------------------------------------------------------

WRITES = frozenset({"begin", "append"})
"""The calls that write records."""


class Faulty(MemoryStore):
    """A store in memory. `fails` is asked before each call, by its name and the conversation."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[str] = []
        self.fails: Callable[[str, str], bool] = lambda call, name: False
        self.delay: Callable[[str, str], Awaitable[None]] | None = None
        self.claimed: dict[str, int] = {}

    def fail_nth(self, n: int) -> None:
        """Fail the n-th call from now, from 0."""
        begun = len(self.calls)
        self.fails = lambda call, name: len(self.calls) - begun == n + 1

    async def _called(self, call: str, name: str) -> None:
        self.calls.append(call)
        if self.delay is not None:
            await self.delay(call, name)
        if self.fails(call, name):
            raise CannotWrite(f"{call} failed, as it was told to")

    async def claim(
        self, conversation: str, *, owner: str, seconds: float, wait: float = 0
    ) -> Claim:
        await self._called("claim", conversation)
        made = await super().claim(conversation, owner=owner, seconds=seconds, wait=wait)
        self.claimed[conversation] = made.token
        return made

    async def begin(
        self,
        conversation: str,
        records: Sequence[Any],
        *,
        owner: str,
        seconds: float,
        release: bool = False,
    ) -> Claim | None:
        await self._called("begin", conversation)
        made = await super().begin(
            conversation, records, owner=owner, seconds=seconds, release=release
        )
        if made is not None and not release:
            self.claimed[conversation] = made.token
        return made

    async def release(self, claim: Claim) -> None:
        await self._called("release", claim.conversation)
        await super().release(claim)
        self._released(claim)

    async def append(
        self, claim: Claim, after: int, records: Sequence[Any], *, release: bool = False
    ) -> None:
        await self._called("append", claim.conversation)
        await super().append(claim, after, records, release=release)
        if release:
            self._released(claim)

    def _released(self, claim: Claim) -> None:
        if self.claimed.get(claim.conversation) == claim.token:
            del self.claimed[claim.conversation]

    async def read(
        self, conversation: str, *, after: int = 0, limit: int | None = None
    ) -> AsyncIterator[Any]:
        await self._called("read", conversation)
        async for record in super().read(conversation, after=after):
            yield record

    async def find(self, name: Any) -> list[Found]:
        await self._called("find", str(name))
        return await super().find(name)

    async def delete(self, conversation: str) -> bool:
        await self._called("delete", conversation)
        self.claimed.pop(conversation, None)
        return await super().delete(conversation)


async def tried_again(exchanges: Exchanges, tenant: str, shown: str, response: str) -> None:
    """A response that was shown under one id broke off, and was answered as another."""
    recording = Recording(exchanges, tenant, AskedNote(upstream="up"), [])
    recording.opened(shown)
    await recording.lead_to(response)
    await recording.close()


# --- a gateway ---------------------------------------------------------------------------------


class Running:
    """A gateway that listens, and a client for it."""

    def __init__(
        self, gateway: Gateway, store: Faulty, port: int, client: aiohttp.ClientSession
    ) -> None:
        self.gateway = gateway
        self.world = gateway.world
        self.store = store
        self.port = port
        self.client = client
        self.url = f"http://127.0.0.1:{port}/v1"

    async def ask(self, **body: Any) -> Any:
        """The answer to a request without a stream; its HTTP status is in `http`."""
        key = body.pop("key", None)
        path = body.pop("path", "/responses")
        headers = {"authorization": f"Bearer {key}"} if key else {}
        async with self.client.post(
            self.url + path, json={"model": "m", **body}, headers=headers
        ) as told:
            return await told.json() | {"http": told.status}

    async def stream(self, **body: Any) -> list[dict[str, Any]]:
        """The events of a stream; of a refusal, that alone."""
        key = body.pop("key", None)
        headers = {"authorization": f"Bearer {key}"} if key else {}
        async with self.client.post(
            self.url + "/responses",
            json={"model": "m", "stream": True, **body},
            headers=headers,
        ) as told:
            if told.content_type != "text/event-stream":
                body = await told.read()
                found = json.loads(body) if told.content_type == "application/json" else {}
                return [found | {"http": told.status}]
            return events_in(await told.read())

    async def socket(self, key: str | None = None) -> aiohttp.ClientWebSocketResponse:
        headers = {"authorization": f"Bearer {key}"} if key else {}
        return await self.client.ws_connect(self.url + "/responses", headers=headers)

    async def talk(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection in plain bytes."""
        return await asyncio.open_connection("127.0.0.1", self.port)


def events_in(body: bytes) -> list[dict[str, Any]]:
    """The events of a stream, read without any code of the gateway."""
    found = []
    text = body.decode()
    assert text.endswith("\n\n") or not text, text[-200:]
    for block in text.split("\n\n"):
        lines = [line[5:].strip() for line in block.split("\n") if line.startswith("data:")]
        if lines:
            found.append(json.loads("\n".join(lines)))
    return found


async def next_end(ws: aiohttp.ClientWebSocketResponse, lane: str | None = None) -> Any:
    """The event that ends the next answer of a lane."""
    ends = {"response.completed", "response.failed", "response.incomplete", "error"}
    while True:
        message = await ws.receive(timeout=EACH_SECONDS)
        assert message.type is WSMsgType.TEXT, message
        event = json.loads(message.data)
        if event["type"] in ends and (lane is None or event.get("stream_id") == lane):
            return event


KEYS = ("lsk_a", "lsk_b")


def keys(*names: str, **more: Any) -> tuple[Key, ...]:
    """Keys of these names; each is `lsk_` and its name."""
    return tuple(Key(name=name, hash=hash_of(f"lsk_{name}"), **more) for name in names)


def upstream(made: Provider, name: str = "up", **more: Any) -> Upstream:
    return Upstream(**({"name": name, "url": made.url, "retries": 1, "transport": "http"} | more))


@asynccontextmanager
async def gateway(
    *upstreams: Upstream, store: Faulty | None = None, limits: Limits = QUICK, **more: Any
) -> AsyncIterator[Running]:
    kept = store or Faulty()
    made = Gateway(Config(store="memory:", upstreams=upstreams, limits=limits, **more), kept)
    listening = socket.create_server(("127.0.0.1", 0))
    listening.setblocking(False)
    port = listening.getsockname()[1]
    await made.start([listening], None)
    client = aiohttp.ClientSession(auto_decompress=False)
    try:
        yield Running(made, kept, port, client)
    finally:
        await client.close()
        await made.drain(0.3)


@asynccontextmanager
async def both(**more: Any) -> AsyncIterator[tuple[Provider, Running]]:
    """An upstream, and a gateway in front of it. What is named `up_…` is for the upstream."""
    for_upstream = {k.removeprefix("up_"): more.pop(k) for k in list(more) if k.startswith("up_")}
    async with provider() as made, gateway(upstream(made, **for_upstream), **more) as running:
        yield made, running
