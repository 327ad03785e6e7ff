"""An answer that ends at any byte: the client never sees a torn event, and never two beginnings."""

from __future__ import annotations

import asyncio
import json
import os

import pytest
from aiohttp import web

from lockstitch.store.memory import MemoryStore
from tests.gateway.faults.playing import ASK, TOOLS, script, user
from tests.gateway.faults.serving import Client, providers, serving, upstream, wellformed

STRIDE = 7 if os.environ.get("THOROUGH") else 97


async def _recorded():
    """The bytes of a real answer with calls."""
    async with (
        providers("a", script=script) as (provider,),
        Client(provider.url, "sse") as client,
    ):
        return (await client.ask(input=[user(ASK)], tools=TOOLS)).raw


class Cutting:
    """An upstream that gives so many bytes of an answer, and then all of it."""

    def __init__(self, body):
        self.body = body
        self.at = len(body)
        self.whole_ending = True
        self.asked = 0

    async def respond(self, request):
        await request.read()
        self.asked += 1
        at, self.at = self.at, len(self.body)
        answer = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await answer.prepare(request)
        await answer.write(self.body[:at])
        if at < len(self.body) and not self.whole_ending:
            request.transport.close()
        return answer

    async def start(self):
        app = web.Application()
        app.router.add_post("/v1/responses", self.respond)
        self.runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self.runner.setup()
        await web.TCPSite(self.runner, "127.0.0.1", 0).start()
        return f"http://127.0.0.1:{self.runner.addresses[0][1]}/v1"


def _begins_only(data):
    """Nothing but the beginning is in these bytes, so that it is tried again unseen."""
    *events, _ = data.split(b"\n\n")
    types = [json.loads(event.split(b"data: ", 1)[1])["type"] for event in events]
    return all(type_ in ("response.created", "response.in_progress") for type_ in types)


@pytest.mark.parametrize("ending", ["as if all were said", "torn"])
@pytest.mark.parametrize("transport", ["sse", "websocket"])
def test_an_answer_may_end_at_any_byte(transport, ending):
    async def run():
        body = await _recorded()
        cutting = Cutting(body)
        cutting.whole_ending = ending != "torn"
        told = upstream(await cutting.start(), transport="http")
        try:
            async with (
                serving(MemoryStore(), told) as base,
                Client(base, transport) as client,
            ):
                for at in range(len(transport), len(body), STRIDE):
                    cutting.at, cutting.asked = at, 0
                    answer = await client.ask(input=[user(ASK)], tools=TOOLS)
                    wellformed(answer)
                    # Bytes that the upstream said are the client's, unchanged, as far as they go.
                    if transport == "sse" and answer.said == "failed":
                        shown = answer.raw[: answer.raw.index(b"event: response.failed")]
                        assert body.startswith(shown)
                    again = _begins_only(body[:at])
                    assert cutting.asked == (2 if again else 1), at
                    assert answer.said == ("completed" if again else "failed"), at
                    if again and transport == "sse":
                        # A second beginning is not shown, not even the rest of it.
                        created, going, rest = body.split(b"\n\n", 2)
                        begun = body[:at].count(b"\n\n") == 1
                        shown = [created, rest] if begun else [created, going, rest]
                        assert answer.raw == b"\n\n".join(shown)
        finally:
            await cutting.runner.cleanup()

    asyncio.run(run())
