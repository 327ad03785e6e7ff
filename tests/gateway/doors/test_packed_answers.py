"""Answers that came packed although they were asked for as they are, through each door."""

from __future__ import annotations

import gzip
import zlib

import pytest
from aiohttp import web

from tests.gateway.building import (
    NOT_FOUND,
    both,
    encoded,
    message,
    refusing,
    run,
    sse,
    streaming,
    told_by,
)

PACKERS = {"gzip": gzip.compress, "deflate": zlib.compress, "br": bytes}


def packed(body, coding, kind="text/event-stream"):
    async def answer(asked):
        assert asked.request.headers["accept-encoding"] == "identity"
        named = {"content-type": kind, "content-encoding": coding}
        return web.Response(body=PACKERS[coding](body), headers=named)

    return answer


def served(work):
    async def main():
        async with both() as (up, gw):
            await work(up, gw)

    run(main())


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
@pytest.mark.parametrize("streamed", [True, False])
def test_a_response_is_unpacked_and_kept(coding, streamed):
    async def work(up, gw):
        events = told_by("resp_1", message("hi"))
        if streamed:
            up.then(packed(sse(events), coding))
            assert await gw.stream(input="x") == events
        else:
            up.then(packed(encoded(events[-1]["response"]), coding, "application/json"))
            assert (await gw.ask(input="x"))["id"] == "resp_1"
        assert len(up.asked) == 1
        up.then(refusing(NOT_FOUND, 404), streaming("resp_2", message("again")))
        assert (await gw.ask(input="y", previous_response_id="resp_1"))["id"] == "resp_2"

    served(work)


def test_a_refusal_is_unpacked_and_understood():
    async def work(up, gw):
        up.then(streaming("resp_1", message("hi")))
        await gw.ask(input="x")

        async def lost(asked):
            named = {"content-type": "application/json", "content-encoding": "gzip"}
            return web.Response(status=404, body=gzip.compress(encoded(NOT_FOUND)), headers=named)

        up.then(lost, streaming("resp_2", message("again")))
        assert (await gw.ask(input="y", previous_response_id="resp_1"))["id"] == "resp_2"

    served(work)


@pytest.mark.parametrize("coding", sorted(PACKERS))
def test_a_chat_arrives_whole_whatever_it_is_packed_with(coding):
    said = b'data: {"choices":[]}\n\ndata: [DONE]\n\n'

    async def work(up, gw):
        up.then(packed(said, coding))
        body = {"model": "m", "messages": [{"role": "user", "content": "x"}], "stream": True}
        async with gw.client.post(gw.url + "/chat/completions", json=body) as told:
            assert await told.read() == said
            assert told.headers.get("content-encoding") == ("br" if coding == "br" else None)

    served(work)


def test_a_response_in_a_coding_that_nobody_has_passes_as_it_came_and_is_asked_for_once():
    async def work(up, gw):
        up.then(packed(b"\x0b\x02\x80data", "br"))
        body = {"model": "m", "input": "x", "stream": True}
        async with gw.client.post(gw.url + "/responses", json=body) as told:
            assert (told.status, told.headers["content-encoding"]) == (200, "br")
            assert await told.read() == b"\x0b\x02\x80data"
        assert len(up.asked) == 1

    served(work)


@pytest.mark.parametrize("kind", ["Text/Event-Stream", "text/event-stream;charset=utf-8"])
def test_a_stream_is_one_however_its_type_is_spelled(kind):
    async def work(up, gw):
        events = told_by("resp_1", message("hi"))

        async def answer(asked):
            return web.Response(body=sse(events), headers={"content-type": kind})

        up.then(answer)
        ws = await gw.socket()
        await ws.send_json({"type": "response.create", "model": "m", "input": "x"})
        assert [(await ws.receive_json())["type"] for _ in events] == [e["type"] for e in events]
        await ws.close()

    served(work)
