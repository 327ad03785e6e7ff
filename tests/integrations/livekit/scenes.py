"""LiveKit's plugin and ours as clients of the emulator, over real sockets."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager

import aiohttp
from livekit.agents import llm
from livekit.plugins import openai

from lockstitch.emulator import call
from lockstitch.integrations import livekit as in_step
from tests.emulator.realtime_door import PATIENCE_SECONDS, serving

THEIRS = openai.realtime.RealtimeModel
OURS = in_step.RealtimeModel


@llm.function_tool
async def get_weather(city: str) -> str:
    """The weather in a city."""
    return f"sunny in {city}"


def model_for(served, model_class, http, **options):
    return model_class(
        model="gpt-realtime",
        api_key="any",
        base_url=f"{served.url}/v1",
        http_session=http,
        **options,
    )


class Scene:
    """One session, what it heard, and what the provider has."""

    def __init__(self, served, session):
        self.served = served
        self.session = session
        self.heard = []
        session.on("openai_server_event_received", self.heard.append)
        self.generations = asyncio.Queue()
        session.on("generation_created", self.generations.put_nowait)

    async def until(self, type, nth=1):
        """Wait for the n-th event of this type; LiveKit has handled it when this returns."""
        arrived = asyncio.Event()

        def look(_):
            if sum(event["type"] == type for event in self.heard) >= nth:
                arrived.set()

        self.session.on("openai_server_event_received", look)
        look(None)
        await arrived.wait()
        self.session.off("openai_server_event_received", look)
        await asyncio.sleep(0)
        found = [event for event in self.heard if event["type"] == type]
        return found[nth - 1]

    @property
    def connection(self):
        return list(self.served.door.sessions.values())[-1]

    def provider(self):
        """The provider's items."""
        return self.connection.session.items()

    def order(self):
        return [item["id"] for item in self.provider()]

    def local(self):
        """The ids in the session's context."""
        return [item.id for item in self.session.chat_ctx.items]

    def sent(self, *types):
        """What the client sent of these types, without its event ids."""
        frames = [
            json.loads(entry.data)
            for entry in self.served.world.record.entries()
            if not entry.sent and entry.kind == "frame"
        ]
        return [
            {name: value for name, value in frame.items() if name != "event_id"}
            for frame in frames
            if not types or frame.get("type") in types
        ]

    def deleted(self):
        return [frame["item_id"] for frame in self.sent("conversation.item.delete")]

    def created(self):
        return [frame["item"]["id"] for frame in self.sent("conversation.item.create")]

    @property
    def broken(self):
        return self.served.world.record.broken


@asynccontextmanager
async def scene(model_class, *faults, session_class=None, served_with=None, **options):
    async with serving(*faults, **(served_with or {})) as served, aiohttp.ClientSession() as http:
        model = model_for(served, model_class, http, **options)
        session = model.session() if session_class is None else session_class(model)
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                yield Scene(served, session)
        finally:
            await session.aclose()


async def said_in(generation):
    """The text of a generation, and the functions that it calls."""
    text = ""
    async for message in generation.message_stream:
        async for piece in message.text_stream:
            text += piece
    return text, [called async for called in generation.function_stream]


def talk(*texts, prefix="t"):
    """A context of turns, user and agent by turns, with plain ids."""
    context = llm.ChatContext.empty()
    for at, text in enumerate(texts):
        role = "assistant" if at % 2 else "user"
        context.items.append(llm.ChatMessage(id=f"{prefix}{at}", role=role, content=[text]))
    return context


def output_of(called, said="sunny"):
    return llm.FunctionCallOutput(
        call_id=called.call_id, name=called.name, output=said, is_error=False
    )


__all__ = [
    "OURS",
    "THEIRS",
    "Scene",
    "call",
    "get_weather",
    "output_of",
    "said_in",
    "scene",
    "talk",
]
