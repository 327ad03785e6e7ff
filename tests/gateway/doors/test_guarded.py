"""Chat Completions and Messages: judged, and passed on."""

from __future__ import annotations

import asyncio
import json

import pytest
from aiohttp import web

from tests.gateway.building import (
    both,
    encoded,
    gateway,
    keys,
    provider,
    raw,
    run,
    until,
    upstream,
)

CHAT = [
    {"role": "user", "content": "hi"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "call_1", "type": "function", "function": {"name": "t", "arguments": "{}"}}
        ],
    },
    {"role": "user", "content": "on"},
]
MESSAGES = [
    {"role": "user", "content": "hi"},
    {
        "role": "assistant",
        "content": [{"type": "tool_use", "id": "tu_1", "name": "t", "input": {}}],
    },
    {"role": "user", "content": "on"},
]
HISTORIES = pytest.mark.parametrize(
    ("path", "history"), [("/chat/completions", CHAT), ("/messages", MESSAGES)]
)


def served(work, **more):
    async def main():
        async with both(**more) as (up, gw):
            await work(up, gw)

    run(main())


async def post(gw, path, body, **headers):
    data = body if isinstance(body, bytes) else encoded({"model": "m", **body})
    async with gw.client.post(gw.url + path, data=data, headers=headers) as told:
        return told.status, await told.read()


@HISTORIES
def test_a_whole_history_passes_byte_for_byte(path, history):
    async def work(up, gw):
        up.then(raw(b'{"ok" : 1}', kind="application/json"))
        body = b'{ "model":"m", "messages": ' + encoded(history[:1]) + b' , "x":1.50}'
        assert await post(gw, path, body) == (200, b'{"ok" : 1}')
        assert up.asked[0].body == body
        assert up.asked[0].request.raw_path == "/v1" + path

    served(work, up_guard="refuse")


@HISTORIES
def test_a_broken_history_is_refused_in_the_form_of_its_api(path, history):
    async def work(up, gw):
        status, body = await post(gw, path, {"messages": history})
        assert status == 400
        told = json.loads(body)
        assert ("type" in told) == (path == "/messages")
        made = history[1].get("tool_calls", history[1]["content"])
        assert made[0]["id"] in told["error"]["message"]
        assert up.asked == []

    served(work, up_guard="refuse")


@HISTORIES
def test_a_broken_history_is_mended(path, history):
    async def work(up, gw):
        up.then(raw(b"{}", kind="application/json"))
        assert (await post(gw, path, {"messages": history}))[0] == 200
        sent = up.asked[0].json["messages"]
        assert sent[:2] == history[:2]
        assert "lockstitch" in json.dumps(sent[2])

    served(work, up_guard="mend")


@HISTORIES
def test_what_is_no_list_of_messages_is_refused(path, history):
    async def work(up, gw):
        for body in (b"{}x", b"[]", b'{"messages":"x"}', b'{"messages":[5]}'):
            assert (await post(gw, path, body))[0] == 400, body
        assert up.asked == []

    served(work)


def test_a_stream_passes_and_one_that_breaks_off_ends_with_an_error_in_its_form():
    async def work(up, gw):
        whole = b'data: {"choices":[]}\n\ndata: [DONE]\n\n'
        up.then(raw(whole))
        body = {"messages": CHAT[:1], "stream": True}
        assert await post(gw, "/chat/completions", body) == (200, whole)

        async def cut(asked):
            told = web.StreamResponse(headers={"content-type": "text/event-stream"})
            await told.prepare(asked.request)
            await told.write(b'data: {"choices":[1]}\n\ndata: {"torn')
            asked.request.transport.close()

        for path, history in (("/chat/completions", CHAT), ("/messages", MESSAGES)):
            up.then(cut)
            status, told = await post(gw, path, {"messages": history[:1], "stream": True})
            assert status == 200
            assert b"torn" not in told
            assert told.endswith(b"\n\n")
            assert b'"error"' in told.split(b"\n\n")[-2]

    served(work)


def test_what_never_left_goes_to_the_next_upstream_and_what_did_does_not():
    async def main():
        async with provider() as one, provider() as two:
            gone = upstream(one, "one", url="http://127.0.0.1:1/v1")
            async with gateway(gone, upstream(two, "two")) as gw:
                two.then(raw(b"{}", kind="application/json"))
                assert (await post(gw, "/chat/completions", {"messages": CHAT[:1]}))[0] == 200
            async with gateway(upstream(one, "one"), upstream(two, "two")) as gw:

                async def cut(asked):
                    asked.request.transport.abort()

                one.then(cut)
                assert (await post(gw, "/chat/completions", {"messages": CHAT[:1]}))[0] == 502
                assert len(one.asked) == len(two.asked) == 1

    run(main())


@HISTORIES
@pytest.mark.parametrize("guard", ["refuse", "mend", "off"])
def test_each_upstream_is_guarded_as_it_is_told_to_be(guard, path, history):
    async def main():
        async with provider() as made:
            first = "off" if guard != "off" else "refuse"
            away = upstream(made, "away", url="http://127.0.0.1:1/v1", guard=first)
            async with gateway(away, upstream(made, "next", guard=guard)) as gw:
                made.then(raw(b"{}", kind="application/json"))
                status, body = await post(gw, path, {"messages": history})
                if first == "refuse":
                    assert (status, made.asked) == (400, [])  # the first that it is for says no
                elif guard == "refuse":
                    assert (status, made.asked) == (400, [])
                    assert ("type" in json.loads(body)) == (path == "/messages")
                else:
                    assert status == 200
                    assert len(made.asked[0].json["messages"]) > len(history[:2])
                    assert "lockstitch" in json.dumps(made.asked[0].json["messages"][2])

    run(main())


def test_a_client_that_goes_away_lets_its_upstream_go():
    async def work(up, gw):
        async def slow(asked):
            told = web.StreamResponse(headers={"content-type": "text/event-stream"})
            await told.prepare(asked.request)
            while True:
                await told.write(b'data: {"choices":[]}\n\n')
                await asyncio.sleep(0.01)

        up.then(slow)
        reader, writer = await gw.talk()
        body = encoded({"model": "m", "messages": CHAT[:1], "stream": True})
        writer.write(
            b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n"
            % len(body)
            + body
        )
        await reader.readuntil(b"\n\n")
        writer.transport.abort()
        await until(lambda: up.gone)

    served(work)


def test_nothing_is_kept_and_no_key_goes_on():
    async def work(up, gw):
        up.then(raw(b"{}", kind="application/json"))
        await post(gw, "/chat/completions", {"messages": CHAT[:1]}, authorization="Bearer lsk_a")
        assert "lsk_a" not in str(up.asked[0].request.raw_headers)
        assert gw.store.calls == []

    served(work, keys=keys("a"))
