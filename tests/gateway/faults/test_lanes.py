"""Lanes share a connection to their upstream, and so its faults: each of them ends well."""

from __future__ import annotations

import asyncio
import json

import aiohttp
import pytest

from lockstitch.store.memory import MemoryStore
from tests.gateway.faults.playing import ASK, KEYS, LOOK, TOOLS, is_whole, output, script, user
from tests.gateway.faults.serving import (
    MODEL,
    TERMINAL,
    Answer,
    providers,
    serving,
    upstream,
    wellformed,
)

LANES = ("one", "two", "three")
FAULTS = [
    "cut how=reset before=12",
    "cut how=half-frame before=5",
    "cut",
    "close code=1006 before=20",
    "close code=1000",
    "close code=1011 after=response.created",
    "lose",
    "stall seconds=3600 before=9",
    "error before=12",
    "fail before=12",
    "status code=500",
    "status code=503",
    "forget what=cache",
]


async def _asked(socket, asks):
    """Ask on all lanes at once; what each of them heard."""
    heard = {lane: Answer("websocket") for lane in asks}
    for lane, body in asks.items():
        frame = {"type": "response.create", "model": MODEL, "tools": TOOLS, "stream_id": lane}
        await socket.send_str(json.dumps(frame | body))
    left = set(asks)
    async with asyncio.timeout(10):
        while left:
            message = await socket.receive()
            assert message.type is aiohttp.WSMsgType.TEXT, message
            event = json.loads(message.data)
            lane = event["stream_id"]
            assert lane in left, event
            heard[lane].events.append(event)
            if event["type"] in (*TERMINAL, "error"):
                left.remove(lane)
    for answer in heard.values():
        wellformed(answer)
    return heard


@pytest.mark.parametrize("stored", [True, False], ids=["stored", "not stored"])
@pytest.mark.parametrize("fault", FAULTS)
def test_what_strikes_one_lane_leaves_no_lane_without_an_end(fault, stored):
    async def run():
        settings = {} if stored else {"store": False, "include": ["reasoning.encrypted_content"]}
        async with (
            providers("a", script=script, settings={"pace": 0.0005}) as (provider,),
            serving(MemoryStore(), upstream(provider, silence_seconds=0.4)) as base,
            aiohttp.ClientSession(headers={"authorization": "Bearer any"}) as session,
            session.ws_connect(f"{base}/responses") as socket,
        ):
            provider.fault(f"{fault} path=/v1/responses request=2")
            first = {lane: settings | {"input": [user(lane), user(ASK)]} for lane in LANES}
            heard = await _asked(socket, first)
            again = {lane: first[lane] for lane in LANES if heard[lane].said != "completed"}
            if again:
                heard |= await _asked(socket, again)
            # The outputs alone, each behind its own lane's anchor; one lane forks another.
            following = {
                lane: settings
                | {"previous_response_id": answer.id, "input": [output(key) for key in KEYS]}
                for lane, answer in heard.items()
            }
            following["fork"] = following["one"]
            provider.fault("forget what=cache path=/v1/responses")
            for lane, answer in (await _asked(socket, following)).items():
                assert answer.said == "completed", answer
                (run,) = [one for one in provider.runs if one.id == answer.id]
                name = "one" if lane == "fork" else lane
                is_whole(list(run.context), asked=[name, ASK], texts=[LOOK])
            assert set(provider.broken()) <= {"anchor-not-found"}, provider.broken()

    asyncio.run(run())
