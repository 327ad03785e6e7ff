"""What the tests of the clients share: an official client on an emulator, and all that is heard."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any

import httpx2
import msgspec
from anthropic import AsyncAnthropic
from openai import AsyncOpenAI

from lockstitch.core.facts import Ending, Mode
from lockstitch.testing import EmulatorThread
from lockstitch.upstream.anthropic_messages import AnthropicMessages
from lockstitch.upstream.contract import (
    Delta,
    Ended,
    Fate,
    Heard,
    ItemDone,
    Opened,
    Request,
    Upstream,
    UpstreamFailure,
)
from lockstitch.upstream.openai_chat import OpenAIChat
from lockstitch.upstream.openai_responses import OpenAIResponses
from lockstitch.upstream.openai_websocket import OpenAIWebSocket

# Made once: reading the certificates takes longer than most tests.
NO_TLS = ssl.create_default_context()
# An answer that does not come within this never comes.
SECONDS = 10.0
MODEL = "gpt-5.5"
CLAUDE = "claude-opus-4-6"
USER = {"role": "user", "content": "hello"}

UPSTREAMS = ("responses", "websocket", "chat", "messages")
OF_RESPONSES = ("responses", "websocket")


@asynccontextmanager
async def opened(kind: str, url: str, **settings: Any) -> AsyncIterator[Any]:
    """A client of this kind; `url` is that of the emulator, without a path."""
    http = httpx2.AsyncClient(verify=NO_TLS)
    settings = {"api_key": "any", "timeout": SECONDS, "http_client": http, **settings}
    upstream: Any
    if kind == "messages":
        async with AsyncAnthropic(base_url=url, **settings) as anthropic:
            yield AnthropicMessages(anthropic)
        return
    makers = {"responses": OpenAIResponses, "websocket": OpenAIWebSocket, "chat": OpenAIChat}
    async with AsyncOpenAI(base_url=f"{url}/v1", **settings) as openai:
        upstream = makers[kind](openai)
        try:
            yield upstream
        finally:
            await upstream.close()


def asked(kind: str, *items: Any, **fields: Any) -> Request:
    settings = {"max_tokens": 500} if kind == "messages" else {}
    settings |= fields.pop("settings", {})
    model = CLAUDE if kind == "messages" else MODEL
    return Request(model=model, items=items or (USER,), settings=settings, **fields)


def going_on(kind: str, mode: Mode, anchor: str, *items: Any, **settings: Any) -> Request:
    return asked(kind, *items, mode=mode, anchor=anchor, settings=settings)


async def hear(upstream: Upstream, request: Request) -> tuple[list[Heard], UpstreamFailure | None]:
    """All that is heard of a request, and how it failed."""
    heard: list[Heard] = []
    try:
        async for each in upstream.stream(request):
            heard.append(each)  # noqa: PERF401 - what came before a failure counts
    except UpstreamFailure as failure:
        return heard, failure
    return heard, None


async def hear_whole(upstream: Upstream, request: Request) -> list[Heard]:
    heard, failure = await hear(upstream, request)
    assert failure is None, failure
    return heard


async def fate_of(upstream: Upstream, request: Request) -> Fate:
    heard, failure = await hear(upstream, request)
    assert failure is not None, heard
    return failure.fate


def once(
    kind: str, emulator: EmulatorThread, request: Request | None = None, **settings: Any
) -> tuple[list[Heard], UpstreamFailure | None]:
    """One request with a client of its own."""

    async def run() -> tuple[list[Heard], UpstreamFailure | None]:
        async with opened(kind, emulator.url, **settings) as upstream:
            return await hear(upstream, request or asked(kind))

    return within(run)


def within(work: Callable[[], Awaitable[Any]], seconds: float = 3 * SECONDS) -> Any:
    async def bounded() -> Any:
        async with asyncio.timeout(seconds):
            return await work()

    return asyncio.run(bounded())


# Parts of what was heard


def items_of(heard: Sequence[Heard]) -> list[Any]:
    return [msgspec.json.decode(each.item) for each in heard if isinstance(each, ItemDone)]


def raw_items_of(heard: Sequence[Heard]) -> list[bytes]:
    return [each.item for each in heard if isinstance(each, ItemDone)]


def deltas_of(heard: Sequence[Heard], kind: str = "text") -> str:
    return "".join(each.text for each in heard if isinstance(each, Delta) and each.kind == kind)


def id_of(heard: Sequence[Heard]) -> str:
    (begun,) = [each for each in heard if isinstance(each, Opened)]
    assert begun.id is not None
    return begun.id


def end_of(heard: Sequence[Heard]) -> Ended:
    assert isinstance(heard[-1], Ended)
    assert sum(isinstance(each, Ended) for each in heard) == 1
    return heard[-1]


def ending_of(heard: Sequence[Heard]) -> Ending:
    return end_of(heard).ending


async def first(upstream: Upstream, request: Request, count: int) -> list[Heard]:
    """The first of an answer, which is then let go of."""
    heard: list[Heard] = []
    stream: Any = upstream.stream(request)
    async with aclosing(stream):
        async for each in stream:
            heard.append(each)
            if len(heard) == count:
                break
    return heard
