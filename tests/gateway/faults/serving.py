"""A gateway over real sockets, in the loop of a test: strict providers behind it, a store, and a
client that reads every byte.

What a client may see at all is in `wellformed`; what is played is in `playing`."""

from __future__ import annotations

import asyncio
import json
import socket
from collections import Counter
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import pairwise

import aiohttp

from lockstitch.emulator import Emulator, Settings
from lockstitch.gateway.config.model import Config, Limits, LogSettings, Upstream
from lockstitch.gateway.server import Gateway
from lockstitch.gateway.watching import logs
from lockstitch.store.memory import MemoryStore

MODEL = "gpt-5.5"
TRANSPORTS = ("sse", "json", "websocket")
SECONDS = 20.0
"""A test takes far less; one that takes this long hangs."""
SILENCE_SECONDS = 10.0
"""No upstream is silent so long unless it is told to be."""
CREATES = ("POST /v1/responses", "frame response.create")

TERMINAL = ("response.completed", "response.incomplete", "response.failed")
BEGINNING = ("response.created", "response.in_progress")


class Provider:
    """An emulator, and every run that it accepted."""

    def __init__(self, name, seed, script=None, **settings):
        self.name = name
        self.runs = []
        self.emulator = Emulator(
            script=script, settings=Settings(seed=seed, **settings.pop("settings", {})), **settings
        )
        start = self.emulator.responses.start

        def started(*args, **more):
            run = start(*args, **more)
            self.runs.append(run)
            return run

        self.emulator.responses.start = started

    @property
    def url(self):
        return self.emulator.base_url

    def fault(self, text):
        self.emulator.fault(text)

    def reset(self):
        self.emulator.reset()
        self.runs.clear()

    def forget(self):
        """Lose everything, as a provider that crashed would."""
        self.emulator.responses.forget()

    def broken(self):
        return dict(self.emulator.record.broken)

    def struck(self):
        return self.emulator.record.struck.total()

    def asked(self):
        """The requests for a response, as they came."""
        return [
            json.loads(entry.data)
            for entry in self.emulator.record.entries()
            if not entry.sent and entry.what in CREATES and entry.data
        ]

    def with_conversations(self):
        """What was done with conversations that it keeps, in order: "send" to one, or "look"."""
        done = []
        for entry in self.emulator.record.entries():
            if entry.sent:
                continue
            if entry.what.startswith("GET /v1/conversations/"):
                done.append("look")
            elif entry.what in CREATES and entry.data and "conversation" in json.loads(entry.data):
                done.append("send")
        return done

    def run_of(self, response):
        return next((run for run in self.runs if run.id == response), None)


@asynccontextmanager
async def providers(*names, script=None, **settings):
    """Emulators, none of which knows what another one made."""
    made = [
        Provider(name, seed, script() if script else None, **settings)
        for seed, name in enumerate(names, 1)
    ]
    for one in made:
        await one.emulator.start()
    try:
        yield made
    finally:
        for one in made:
            await one.emulator.stop()


class SlowStore(MemoryStore):
    """A store whose writes take their time, so that what runs ahead of them is seen."""

    seconds = 0.004

    async def begin(self, conversation, records, **how):
        await asyncio.sleep(self.seconds)
        return await super().begin(conversation, records, **how)

    async def append(self, claim, after, records, **how):
        await asyncio.sleep(self.seconds)
        await super().append(claim, after, records, **how)


class GatedStore(MemoryStore):
    """A store that writes only while its gate is open."""

    def __init__(self):
        super().__init__()
        self.gate = asyncio.Event()
        self.gate.set()

    async def begin(self, conversation, records, **how):
        await self.gate.wait()
        return await super().begin(conversation, records, **how)

    async def append(self, claim, after, records, **how):
        await self.gate.wait()
        await super().append(claim, after, records, **how)


def upstream(provider, **told):
    url = provider.url if isinstance(provider, Provider) else provider
    name = provider.name if isinstance(provider, Provider) else "other"
    told.setdefault("silence_seconds", SILENCE_SECONDS)
    return Upstream(**({"name": name, "url": url} | told))


@asynccontextmanager
async def serving(store, *upstreams, limits=None, **config):
    """A gateway that accepts connections; its address."""
    logs.configure(LogSettings(level="error", format="text"))
    told = Config(store="memory:", upstreams=upstreams, limits=limits or Limits(), **config)
    gateway = Gateway(told, store)
    listening = socket.create_server(("127.0.0.1", 0))
    listening.setblocking(False)
    await gateway.start([listening], None)
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
    finally:
        await gateway.drain(0.5)
        listening.close()


# --- the client --------------------------------------------------------------------------------


@dataclass
class Answer:
    """What a client saw of one answer."""

    transport: str
    status: int = 200
    headers: dict = field(default_factory=dict)
    raw: bytes = b""
    events: list = field(default_factory=list)
    torn: bytes = b""
    """What stood behind the last whole event."""
    closed: str = ""
    """How the connection ended, where it should not have."""

    @property
    def types(self):
        return [event["type"] for event in self.events]

    @property
    def response(self):
        """The response as it was at its end; None where there was no end."""
        if self.transport == "json":
            body = json.loads(self.raw)
            return body if self.status == 200 else None
        last = self.events[-1] if self.events else {}
        return last.get("response") if last.get("type") in TERMINAL else None

    @property
    def said(self):
        """completed, incomplete, failed, or error."""
        response = self.response
        return response["status"] if response is not None else "error"

    @property
    def id(self):
        return self.response["id"]

    @property
    def created(self):
        """The id that the response began with."""
        began = next((e for e in self.events if e["type"] == "response.created"), None)
        return began["response"]["id"] if began else self.id

    @property
    def error(self):
        """The error of a refusal."""
        if self.transport == "json" or (self.transport == "sse" and self.status != 200):
            return json.loads(self.raw)["error"]
        last = self.events[-1]
        if last["type"] == "error":
            return last.get("error", last)
        return last["response"]["error"]

    @property
    def messages(self):
        return [item for item in self.response["output"] if item["type"] == "message"]

    @property
    def calls(self):
        """The calls that were said to their end."""
        return [
            item["call_id"]
            for item in self.response["output"]
            if item["type"] == "function_call" and item["status"] == "completed"
        ]

    def __repr__(self):
        return (
            f"<Answer {self.transport} {self.status} {self.types or self.raw[:300]!r}"
            f" {self.torn!r} {self.closed}>"
        )


class Client:
    """Asks over one transport; a WebSocket is kept from answer to answer."""

    def __init__(self, base_url, transport, *, lane=None, seen=None, key="any"):
        self.base_url = base_url
        self.transport = transport
        self.lane = lane
        self.seen = seen
        """Called with each event at the moment that it is here."""
        self._session = aiohttp.ClientSession(
            headers={"authorization": f"Bearer {key}"},
            connector=aiohttp.TCPConnector(force_close=False),
        )
        self._socket = None

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        await self.close()

    async def close(self):
        if self._socket is not None:
            await self._socket.close()
        await self._session.close()

    async def ask(self, **body):
        body = {"model": MODEL} | body
        try:
            async with asyncio.timeout(SECONDS):
                match self.transport:
                    case "json":
                        return await self._whole(body)
                    case "sse":
                        return await self._streamed(body | {"stream": True})
                    case _:
                        return await self._framed(body)
        except TimeoutError:
            raise AssertionError(f"There was no end of the answer to {body}") from None

    async def get(self, path):
        async with self._session.get(self.base_url + path) as answer:
            return answer.status, json.loads(await answer.read())

    async def post(self, path, body):
        async with self._session.post(self.base_url + path, json=body) as answer:
            return answer.status, json.loads(await answer.read())

    async def _whole(self, body):
        async with self._session.post(f"{self.base_url}/responses", json=body) as answer:
            raw = await answer.read()
            return Answer("json", answer.status, dict(answer.headers), raw)

    async def _streamed(self, body):
        async with self._session.post(f"{self.base_url}/responses", json=body) as answer:
            heard = Answer("sse", answer.status, dict(answer.headers))
            left = b""
            try:
                async for data in answer.content.iter_any():
                    heard.raw += data
                    left += data
                    if heard.status == 200:
                        left = await self._events(heard, left)
            except aiohttp.ClientError as error:
                heard.closed = repr(error)
            heard.torn = left if heard.status == 200 else b""
            return heard

    async def _events(self, heard, data):
        *blocks, left = data.split(b"\n\n")
        for block in blocks:
            name, line = block.split(b"\n")
            event = json.loads(line.removeprefix(b"data: "))
            assert name == b"event: " + event["type"].encode(), block
            heard.events.append(event)
            if self.seen is not None:
                await self.seen(event)
        return left

    async def _framed(self, body):
        if self._socket is None or self._socket.closed:
            self._socket = await self._session.ws_connect(f"{self.base_url}/responses")
        frame = body | {"type": "response.create"}
        if self.lane is not None:
            frame["stream_id"] = self.lane
        await self._socket.send_str(json.dumps(frame))
        heard = Answer("websocket")
        async for message in self._socket:
            if message.type is not aiohttp.WSMsgType.TEXT:
                heard.closed = repr(message)
                break
            event = json.loads(message.data)
            assert event.get("stream_id") == self.lane, event
            heard.raw += message.data.encode() + b"\n"
            heard.events.append(event)
            if self.seen is not None:
                await self.seen(event)
            if event["type"] in (*TERMINAL, "error"):
                break
        else:
            heard.closed = f"the WebSocket ended: {self._socket.close_code}"
        return heard

    async def is_quiet(self, seconds=0.02):
        """Over a WebSocket: nothing comes behind the end of an answer."""
        if self._socket is None:
            return True
        try:
            message = await self._socket.receive(seconds)
        except TimeoutError:
            return True
        raise AssertionError(f"Behind the end of an answer came {message}")


# --- what a client may see ---------------------------------------------------------------------


def wellformed(answer, *, as_sent=False):
    """Check that a client can read this answer to its end, whatever became of it.

    ``as_sent``: the upstream repeats events or changes their order, and bytes pass unchanged."""
    assert not answer.closed, answer
    assert not answer.torn, answer
    if answer.transport == "json" or (answer.transport == "sse" and answer.status != 200):
        _is_a_body(answer)
        return
    if answer.transport == "sse":
        assert answer.headers["Content-Type"].startswith("text/event-stream"), answer
    types = answer.types
    if types == ["error"]:
        _is_an_error(answer.events[0])
        return
    assert types, answer
    ends = [n for n, type_ in enumerate(types) if type_ in (*TERMINAL, "error")]
    assert ends == [len(types) - 1], answer
    if as_sent:
        return
    assert types[0] == "response.created", answer
    assert types.count("response.created") == 1, answer
    assert types.count("response.in_progress") <= 1, answer
    # "sequence_number is optional on" an error.
    counted = [e for e in answer.events if e["type"] != "error" or "sequence_number" in e]
    numbers = [event["sequence_number"] for event in counted]
    assert all(a < b for a, b in pairwise(numbers)), (numbers, types)
    _adds_up(answer)


def _is_a_body(answer):
    body = json.loads(answer.raw)
    if answer.status == 200:
        assert body["object"] == "response", answer
        assert body["status"] in ("completed", "incomplete", "failed"), answer
        assert (body["error"] is not None) == (body["status"] == "failed"), answer
    else:
        assert answer.status >= 400, answer
        assert isinstance(body["error"]["message"], str), answer


def _is_an_error(event):
    told = event.get("error", event)
    assert isinstance(told["message"], str), event


def _adds_up(answer):
    """The end says what was said on the way: no item of another try, none twice, none missing."""
    done = [e["item"] for e in answer.events if e["type"] == "response.output_item.done"]
    added = [e["item"]["id"] for e in answer.events if e["type"] == "response.output_item.added"]
    assert len(set(added)) == len(added), answer
    if answer.said != "incomplete":  # what is struck before it is added is done all the same
        assert {item["id"] for item in done} <= set(added), answer
    if answer.said in ("completed", "incomplete"):
        output = {item["id"]: item for item in answer.response["output"]}
        assert len(output) == len(answer.response["output"]), answer
        for item in done:
            assert output[item["id"]] == item, answer
        if answer.said == "completed":
            assert set(output) == {item["id"] for item in done}, answer
    if answer.said == "incomplete":
        return  # the delta that was struck is in the item, and was never sent
    deltas = Counter()
    for event in answer.events:
        if event["type"] == "response.output_text.delta":
            deltas[event["item_id"]] += len(event["delta"])
    for item in done:
        if item["type"] == "message":
            assert deltas[item["id"]] == sum(len(p.get("text", "")) for p in item["content"]), item
