"""Everything else under `/v1` passes as it is, in both directions."""

from __future__ import annotations

import asyncio
import gzip

import pytest
from aiohttp import WSMsgType, web
from msgspec.structs import replace

from tests.gateway.building import (
    EACH_SECONDS,
    QUICK,
    both,
    gateway,
    keys,
    open_files,
    provider,
    run,
    until,
    upstream,
)


def served(work, **more):
    async def main():
        async with both(**{"up_transport": "both", **more}) as (up, gw):
            await work(up, gw)

    run(main())


def saying(body, status=200, headers=()):
    async def answer(asked):
        return web.Response(body=body, status=status, headers=dict(headers))

    return answer


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"])
def test_a_request_passes_with_its_method_path_query_and_body(method):
    async def work(up, gw):
        up.then(saying(b"\x00\xffbytes", 207, [("x-a", "1"), ("content-type", "a/b")]))
        sent = None if method in ("GET", "HEAD") else b"\x01body"
        async with gw.client.request(
            method, gw.url + "/files/a%2Fb?q=1&q=%20", data=sent, headers={"x-b": "2"}
        ) as told:
            assert told.status == 207
            assert told.headers["x-a"] == "1"
            assert told.headers["content-type"] == "a/b"
            assert await told.read() == (b"" if method == "HEAD" else b"\x00\xffbytes")
        asked = up.asked[0]
        assert asked.request.method == method
        assert asked.request.raw_path == "/v1/files/a%2Fb?q=1&q=%20"
        assert asked.body == (sent or b"")
        assert asked.request.headers["x-b"] == "2"

    served(work)


@pytest.mark.parametrize("status", [204, 304, 404, 418, 500])
def test_every_status_passes(status):
    async def work(up, gw):
        up.then(saying(b"" if status in (204, 304) else b"no", status))
        async with gw.client.get(gw.url + "/x") as told:
            assert told.status == status

    served(work)


def test_a_large_answer_passes_in_pieces():
    async def work(up, gw):
        body = bytes(range(256)) * 20_000
        up.then(saying(body))
        async with gw.client.get(gw.url + "/files/1/content") as told:
            assert await told.read() == body

    served(work)


def test_an_answer_that_breaks_off_does_not_look_whole():
    async def work(up, gw):
        async def cut(asked):
            told = web.StreamResponse(headers={"content-type": "audio/mpeg"})
            await told.prepare(asked.request)
            await told.write(b"half")
            asked.request.transport.close()

        up.then(cut)
        reader, writer = await gw.talk()
        writer.write(b"GET /v1/audio HTTP/1.1\r\nhost: x\r\n\r\n")
        told = await reader.read()
        writer.close()
        assert b"half" in told
        assert not told.endswith(b"0\r\n\r\n")

    served(work)


def test_an_upstream_that_is_not_there_is_said_to_be_so():
    async def work(up, gw):
        async with gw.client.get(gw.url + "/files") as told:
            assert told.status == 502

    served(work, up_url="http://127.0.0.1:1/v1")


def test_frames_pass_in_both_directions_and_so_does_the_end():
    async def work(up, gw):
        async def echo(request):
            ws = web.WebSocketResponse()
            await ws.prepare(request)
            up.open_sockets += 1
            await ws.send_str("hello")
            async for frame in ws:
                if frame.data == "close":
                    await ws.close(code=4000, message=b"enough")
                else:
                    await ws.send_str("echo " + frame.data)
            up.open_sockets -= 1
            return ws

        up._converse = echo
        ws = await gw.client.ws_connect(gw.url + "/realtime?model=m")
        assert (await ws.receive(timeout=EACH_SECONDS)).data == "hello"
        for n in range(20):
            await ws.send_str(str(n))
        assert [(await ws.receive(timeout=EACH_SECONDS)).data for _ in range(20)] == [
            f"echo {n}" for n in range(20)
        ]
        await ws.send_str("close")
        end = await ws.receive(timeout=EACH_SECONDS)
        assert end.type is WSMsgType.CLOSE
        assert (end.data, end.extra) == (4000, "enough")
        await until(lambda: up.open_sockets == 0)
        ws = await gw.client.ws_connect(gw.url + "/realtime?model=m")
        await until(lambda: up.open_sockets == 1)
        await ws.close()
        await until(lambda: up.open_sockets == 0)

    served(work)


@pytest.mark.parametrize("unread_bytes", [1024, 65535, 65536])
def test_frames_pass_whatever_may_wait_for_a_client_that_does_not_read(unread_bytes):
    async def work(up, gw):
        ws = await gw.client.ws_connect(gw.url + "/realtime?model=m")
        (theirs,) = await until(lambda: up.sockets)
        await theirs.send_str("x" * 100_000)
        assert len((await ws.receive(timeout=EACH_SECONDS)).data) == 100_000
        await ws.close()

    served(work, limits=replace(QUICK, unread_bytes=unread_bytes))


def test_a_binary_frame_of_a_client_ends_its_websocket_and_says_why():
    async def work(up, gw):
        ws = await gw.client.ws_connect(gw.url + "/realtime?model=m")
        await ws.send_bytes(b"\x00\xff")
        end = await ws.receive(timeout=EACH_SECONDS)
        assert end.type is WSMsgType.CLOSE
        assert (end.data, end.extra) == (1003, "The gateway passes text frames only.")
        await until(lambda: up.open_sockets == 0)
        assert up.asked == []

    served(work)


def test_a_binary_frame_of_an_upstream_ends_the_websocket_and_says_why():
    async def work(up, gw):
        ws = await gw.client.ws_connect(gw.url + "/realtime?model=m")
        (theirs,) = await until(lambda: up.sockets)
        await theirs.send_bytes(b"\x00\xff")
        end = await ws.receive(timeout=EACH_SECONDS)
        assert end.type is WSMsgType.CLOSE
        assert end.data == 1003
        assert "binary" in end.extra

    served(work)


def test_a_client_is_read_no_faster_than_its_upstream_reads():
    frames, size = 60, 1_000_000

    async def work(up, gw):
        go, heard, sent = asyncio.Event(), 0, 0

        async def slow(request):
            nonlocal heard
            ws = web.WebSocketResponse()
            await ws.prepare(request)
            request.transport.pause_reading()
            await go.wait()
            request.transport.resume_reading()
            async for frame in ws:
                heard += len(frame.data)
            return ws

        async def talk():
            nonlocal sent
            for _ in range(frames):
                await ws.send_str("x" * size)
                sent += 1

        up._converse = slow
        ws = await gw.client.ws_connect(gw.url + "/realtime?model=m")
        talking = asyncio.create_task(talk())
        before = -1
        while before < sent:  # until nothing moves any more
            before = sent
            await asyncio.sleep(0.3)
        assert sent < frames
        go.set()
        await talking
        await ws.close()
        await until(lambda: heard == frames * size)

    served(work)


def test_a_websocket_that_passes_is_told_goodbye_when_the_gateway_ends():
    async def work(up, gw):
        ws = await gw.client.ws_connect(gw.url + "/realtime?model=m")
        (theirs,) = await until(lambda: up.sockets)
        draining = asyncio.create_task(gw.gateway.drain(0.1))
        end = await ws.receive(timeout=EACH_SECONDS)
        assert end.type is WSMsgType.CLOSE
        assert (end.data, end.extra) == (1001, "The gateway is shutting down.")
        await until(lambda: theirs.closed)
        assert theirs.close_code == 1000
        await draining

    served(work)


def test_a_websocket_that_an_upstream_refuses_is_refused_with_its_status():
    async def work(up, gw):
        async def no(request):
            return web.Response(status=403, body=b"not you")

        up._converse = no
        reader, writer = await gw.talk()
        writer.write(
            b"GET /v1/realtime HTTP/1.1\r\nhost: x\r\nupgrade: websocket\r\nconnection: upgrade\r\n"
            b"sec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
        )
        assert b" 403 " in await reader.readline()
        writer.close()

    served(work)


def test_no_key_goes_on_and_none_is_needed_twice():
    async def work(up, gw):
        up.then(saying(b"x"))
        async with gw.client.get(gw.url + "/files") as told:
            assert told.status == 401
        async with gw.client.get(
            gw.url + "/files", headers={"authorization": "Bearer lsk_a"}
        ) as told:
            assert told.status == 200
        assert "lsk_a" not in str(up.asked[0].request.raw_headers)

    served(work, keys=keys("a"))


def test_a_client_that_goes_away_before_an_answer_leaves_nothing_behind():
    async def work(up, gw):
        before = open_files()
        go = asyncio.Event()

        async def waits(asked):
            await go.wait()
            return web.Response(body=b"late")

        up.then(waits)
        _, writer = await gw.talk()
        writer.write(b"GET /v1/files HTTP/1.1\r\nhost: x\r\n\r\n")
        await until(lambda: up.asked)
        writer.transport.abort()
        await asyncio.sleep(0.05)
        go.set()
        await until(lambda: gw.gateway._open == 0)
        assert open_files() <= before + 3

    served(work)


@pytest.mark.parametrize(
    ("coding", "unpacked"), [("gzip", True), ("x-gzip", False), ("gzip, aws-chunked", False)]
)
def test_a_body_is_said_to_be_packed_as_long_as_it_is(coding, unpacked):
    async def work(up, gw):
        up.then(saying(b"{}"))
        sent = gzip.compress(b"what is sent")
        named = {"content-encoding": coding}
        async with gw.client.post(gw.url + "/files", data=sent, headers=named) as told:
            assert told.status == 200
        (asked,) = up.asked
        assert asked.body == (b"what is sent" if unpacked else sent)
        assert asked.request.headers.get("content-encoding") == (None if unpacked else coding)

    served(work)


@pytest.mark.parametrize(
    ("path", "to"),
    [
        ("/messages/count_tokens", "anthropic"),
        ("/messages/batches/1", "anthropic"),
        ("/chat/completions/1", "openai"),
        ("/files", "openai"),
    ],
)
def test_what_belongs_to_an_api_goes_to_an_upstream_of_that_api(path, to):
    async def main():
        async with provider() as one, provider() as two:
            some = (
                upstream(one, "openai", apis=("responses", "chat")),
                upstream(two, "anthropic", apis=("messages",)),
            )
            async with gateway(*some) as gw:
                for made in (one, two):
                    made.then(saying(b"{}"))
                async with gw.client.post(gw.url + path, json={}) as told:
                    assert told.status == 200
                assert [len(one.asked), len(two.asked)] == ([1, 0] if to == "openai" else [0, 1])

    run(main())


def test_what_belongs_to_an_api_that_no_upstream_has_is_refused_in_its_form():
    async def work(up, gw):
        async with gw.client.post(gw.url + "/messages/count_tokens", json={}) as told:
            assert told.status == 404
            assert (await told.json())["type"] == "error"
        assert up.asked == []

    served(work, up_apis=("responses",))
