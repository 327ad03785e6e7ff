"""LiveKit's engine on a line in memory, whose other end is a provider of our own."""

from __future__ import annotations

import asyncio
import json

import aiohttp

from lockstitch.integrations import livekit as in_step
from tests.mirror.provider import Provider


class Line:
    """A connection whose other end is the provider, as LiveKit uses one of aiohttp's."""

    def __init__(self, provider):
        self.provider = provider
        self.told = asyncio.Queue()

    async def receive(self):
        return await self.told.get()

    async def send_str(self, text):
        event = json.loads(text)
        if event["type"].startswith("conversation."):
            self.provider.receive(event)

    async def close(self):
        self.told.put_nowait(aiohttp.WSMessage(aiohttp.WSMsgType.CLOSED, None, None))


class Telling(Provider):
    """It says why, as LiveKit expects."""

    def tell(self, type, **fields):
        if type == "error":
            fields["error"] = {"message": "no", "type": "invalid", **fields["error"]}
        super().tell(type, **fields)

    def finishes(self, item):
        if item["type"] == "message":
            delta = item["content"][0]["text"]
            self.tell("response.output_text.delta", item_id=item["id"], delta=delta)
        super().finishes(item)


class OnALine(in_step.RealtimeSession):
    line = None

    async def _create_ws_conn(self):
        self._remote_chat_ctx = self._view
        return self.line


class Prompt(Line):
    """A line on which everything is told at once."""

    async def send_str(self, text):
        await super().send_str(text)
        while self.provider.outbox:
            event = json.dumps(self.provider.outbox.popleft())
            self.told.put_nowait(aiohttp.WSMessage(aiohttp.WSMsgType.TEXT, event, None))
