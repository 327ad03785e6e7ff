"""A hundred streams at once: each is whole, and none hears another."""

import asyncio
import json

import aiohttp
import pytest

STREAMS = 100


async def over_sse(session, base_url, said):
    body = {"model": "m", "input": said, "stream": True, "store": False}
    async with session.post(f"{base_url}/responses", json=body) as answer:
        events = (await answer.text()).split("\n\n")[:-1]
    return [json.loads(event.split("data: ", 1)[1]) for event in events]


async def over_a_socket(session, base_url, said):
    events = []
    async with session.ws_connect(f"{base_url}/responses") as socket:
        await socket.send_json({"type": "response.create", "model": "m", "input": said})
        while not events or events[-1]["type"] != "response.completed":
            events.append(json.loads((await socket.receive(timeout=30)).data))
    return events


@pytest.mark.parametrize("tell", [over_sse, over_a_socket])
def test_a_hundred_streams_at_once_are_each_whole(emulator, tell):
    async def all_told():
        async with aiohttp.ClientSession(
            headers={"Authorization": "Bearer any"},
            connector=aiohttp.TCPConnector(limit=STREAMS),
        ) as session:
            texts = [f"speaker {number} " * 40 for number in range(STREAMS)]
            return texts, await asyncio.gather(
                *(tell(session, emulator.base_url, text) for text in texts)
            )

    for text, events in zip(*asyncio.run(all_told()), strict=True):
        assert [event["sequence_number"] for event in events] == list(range(len(events)))
        assert events[-1]["type"] == "response.completed"
        deltas = "".join(event.get("delta", "") for event in events)
        assert deltas == events[-1]["response"]["output"][0]["content"][0]["text"]
        assert text[:12] in deltas
