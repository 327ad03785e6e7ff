"""The realtime door on real sockets: bytes, both ways, and what is not just bytes."""

from __future__ import annotations

import asyncio
import json
import random
from contextlib import asynccontextmanager
from io import StringIO

import pytest
from aiohttp import WSMsgType, web
from msgspec.structs import replace

from lockstitch.gateway.config.model import Limits, LogSettings, RealtimeSettings
from lockstitch.gateway.watching import logs
from tests.gateway.building import (
    EACH_SECONDS,
    both,
    gateway,
    keys,
    provider,
    run,
    until,
    upstream,
)

ANY = {"up_transport": "both"}
CARRY_OUT = RealtimeSettings(deletes_in_flight="carry-out")


class Peer:
    """The provider's side of each connection: says what it is told to, hears everything."""

    def __init__(self, *greeting):
        self.greeting = greeting
        self.heard = []
        self.targets = []
        self.headers = []
        self.open = 0
        self.ws = None
        self.listening = asyncio.Event()
        self.listening.set()

    async def converse(self, request):
        ws = web.WebSocketResponse(max_msg_size=0)
        await ws.prepare(request)
        self.ws = ws
        self.targets.append(request.raw_path)
        self.headers.append(dict(request.headers))
        self.open += 1
        try:
            for frame in self.greeting:
                await ws.send_str(frame)
            while True:
                await self.listening.wait()
                frame = await ws.receive()
                if frame.type is not WSMsgType.TEXT:
                    return ws
                self.heard.append(frame.data)
        finally:
            self.open -= 1

    async def say(self, *events):
        for event in events:
            await self.ws.send_str(event if isinstance(event, str) else json.dumps(event))


@asynccontextmanager
async def connected(
    *greeting, target="/realtime?model=m", key=None, subprotocols=(), clock=None, **more
):
    async with both(**ANY, **more) as (up, gw):
        if clock is not None:
            gw.world.clock = clock
        peer = Peer(*greeting)
        up._converse = peer.converse
        headers = {"authorization": f"Bearer lsk_{key}"} if key else {}
        client = await gw.client.ws_connect(
            gw.url + target, headers=headers, protocols=subprotocols, max_msg_size=0
        )
        await until(lambda: peer.ws is not None)
        try:
            yield peer, client, gw
        finally:
            peer.listening.set()
            await client.close()
            await until(lambda: peer.open == 0)


async def hear(client):
    message = await client.receive(timeout=EACH_SECONDS)
    assert message.type is WSMsgType.TEXT, message
    return message.data


CALL = {"id": "f", "type": "function_call", "call_id": "c", "status": "completed"}
OUTPUT = {"id": "o", "type": "function_call_output", "call_id": "c"}
DELETE = '{ "type" : "conversation.item.delete", "item_id":"f", "event_id":"mine" }'


def added(item, previous=None):
    return {"type": "conversation.item.added", "previous_item_id": previous, "item": item}


def deleted(item_id):
    return {"type": "conversation.item.deleted", "item_id": item_id}


# --- bytes ---------------------------------------------------------------------------------------


def frames(seed, count):
    """Frames that concern nothing: audio of any size, events, and what is no event at all."""
    chance = random.Random(seed)
    made = []
    for n in range(count):
        audio = "".join(chance.choices("ABCDwxyz0189+/", k=chance.choice([0, 10, 4000])))
        kind = chance.choice(["input_audio_buffer.append", "response.output_audio.delta", "é.x"])
        event = {"type": kind, "audio": audio, "n": n, "x": [1.50, None, "ü\u2028"]}
        if n % 3:
            event["item"] = {"id": f"i{n}", "type": "function_call"}
        names = list(event)
        chance.shuffle(names)
        event = {name: event[name] for name in names}
        plain = chance.random() < 0.5
        style = chance.choice([{"indent": 1}, {"separators": (",", ":")}, {}])
        made.append(json.dumps(event, ensure_ascii=plain, **style))
    return [*made, "", "{", "[]", "no JSON", '{"type":7}', '"conversation.item.delete"', "\\u"]


@pytest.mark.parametrize("settings", [RealtimeSettings(), CARRY_OUT])
@pytest.mark.parametrize("guard", ["report", "off"])
def test_frames_that_concern_nothing_pass_byte_for_byte_in_both_directions(settings, guard):
    async def work():
        async with connected("first", realtime=settings, up_guard=guard) as (peer, client, _):
            assert await hear(client) == "first"
            upwards, downwards = frames(1, 150), frames(2, 150)

            async def talk():
                for frame in upwards:
                    await client.send_str(frame)

            async def listen():
                return [await hear(client) for _ in downwards]

            _, _, told = await asyncio.gather(talk(), peer.say(*downwards), listen())
            assert told == downwards
            await until(lambda: len(peer.heard) == len(upwards))
            assert peer.heard == upwards

    run(work())


def test_a_frame_of_megabytes_passes_in_both_directions():
    async def work():
        async with connected() as (peer, client, _):
            large = json.dumps({"type": "conversation.item.create", "x": "é" * 2_000_000})
            await client.send_str(large)
            await until(lambda: peer.heard)
            assert peer.heard == [large]
            await peer.say(large)
            assert await hear(client) == large

    run(work())


def test_a_frame_that_is_too_large_ends_the_connection():
    async def work():
        limits = Limits(body_bytes=10_000)
        async with connected(limits=limits) as (peer, client, _):
            await client.send_str("x" * 20_000)
            end = await client.receive(timeout=EACH_SECONDS)
            assert (end.type, end.data) == (WSMsgType.CLOSE, 1009)
            assert peer.heard == []

    run(work())


# --- the rules -----------------------------------------------------------------------------------


def test_a_held_delete_goes_on_as_it_came_when_the_call_is_settled():
    async def work():
        async with connected(realtime=CARRY_OUT) as (peer, client, gw):
            await peer.say(added(CALL))
            await hear(client)
            await client.send_str(DELETE)
            await client.send_str("behind it")
            await until(lambda: peer.heard)
            assert peer.heard == ["behind it"]
            await peer.say(added(OUTPUT, "f"), deleted("f"))
            assert json.loads(await hear(client)) == added(OUTPUT, "f")
            assert json.loads(await hear(client)) == deleted("f")
            await until(lambda: len(peer.heard) == 3)
            assert peer.heard[1] == DELETE
            own = json.loads(peer.heard[2])
            assert (own["type"], own["item_id"]) == ("conversation.item.delete", "o")
            # Its refusal is nobody's business.
            await peer.say({"type": "error", "error": {"event_id": own["event_id"]}}, "next")
            assert await hear(client) == "next"
            page = gw.world.metrics.exposition()[0].decode()
            for what in ("delete_held", "delete_carried_out", "output_deleted"):
                assert f'lockstitch_realtime_total{{what="{what}"}} 1.0' in page

    run(work())


def test_a_held_delete_is_dropped_when_its_time_is_up_and_so_is_the_next():
    async def work():
        settings = RealtimeSettings(deletes_in_flight="carry-out", held_seconds=0.1)
        async with connected(realtime=settings) as (peer, client, _):
            await peer.say(added(CALL))
            await hear(client)
            for _ in range(2):
                await client.send_str(DELETE)
                error = json.loads(await hear(client))["error"]
                assert (error["event_id"], error["code"]) == ("mine", "item_delete_call_in_flight")
            assert peer.heard == []

    run(work())


def test_a_client_that_leaves_takes_its_held_deletes_along():
    async def work():
        async with connected(realtime=CARRY_OUT) as (peer, client, gw):
            await peer.say(added(CALL))
            await hear(client)
            await client.send_str(DELETE)
            await until(gw.world.metrics.realtime.labels("delete_held")._value.get)
            await client.close()
            await until(lambda: peer.open == 0)
            assert peer.heard == []

    run(work())


def test_a_predecessor_that_is_gone_is_rewritten_and_nothing_else_is():
    async def work():
        async with connected() as (peer, client, _):
            message = {"id": "a", "type": "message"}
            await peer.say(added(message), added(CALL, "a"), added(OUTPUT, "f"), deleted("f"))
            for _ in range(4):
                await hear(client)
            late = '{"item":{"x": [1.0 ]},"previous_item_id":"f","type":"conversation.item.added"}'
            await peer.say(late)
            assert await hear(client) == late.replace('"f"', '"a"')

    run(work())


def test_a_create_behind_what_is_gone_goes_behind_what_is_there_and_is_counted():
    async def work():
        async with connected() as (peer, client, gw):
            await peer.say(added({"id": "a", "type": "message"}), deleted("a"))
            for _ in range(2):
                await hear(client)
            frame = '{"type":"conversation.item.create","previous_item_id":"a","item":{"x": 1}}'
            await client.send_str(frame)
            await until(lambda: peer.heard)
            assert peer.heard == [frame.replace('"a"', '"root"')]
            page = gw.world.metrics.exposition()[0].decode()
            assert 'lockstitch_realtime_total{what="create_redirected"} 1.0' in page

    run(work())


@pytest.mark.parametrize(
    ("path", "api"),
    [("/realtime?model=m", "realtime"), ("/realtime/other", "realtime"), ("/else", "responses")],
)
def test_a_connection_is_counted_as_what_it_is(path, api):
    async def work():
        async with connected(target=path) as (_, client, gw):
            await client.close()
            counted = gw.world.metrics.requests.labels(api, "up", "1xx")._value
            await until(counted.get)
            assert counted.get() == 1

    run(work())


def test_the_guard_of_a_key_turns_it_off():
    async def work():
        async with connected(key="a", keys=keys("a", guard="off")) as (peer, client, _):
            await peer.say(added(CALL))
            await hear(client)
            await client.send_str(DELETE)
            await until(lambda: peer.heard)
            assert peer.heard == [DELETE]

    run(work())


# --- who may come in, and where to ---------------------------------------------------------------


def test_the_upstream_is_the_first_that_has_the_model():
    async def work():
        async with (
            provider() as one,
            provider() as two,
            gateway(
                upstream(one, "chat", apis=("chat",), transport="both"),
                upstream(one, "http", transport="http"),
                upstream(one, "one", models=("gpt-4*",), transport="both"),
                upstream(two, "two", models=("gpt-rt*",), transport="websocket"),
            ) as gw,
        ):
            peers = []
            for up in (one, two):
                peers.append(Peer())
                up._converse = peers[-1].converse
            for target in ("?model=gpt-rt-2&x=%20", "", "?model=gpt-4o"):
                client = await gw.client.ws_connect(gw.url + "/realtime" + target)
                await client.close()
            await until(lambda: not any(peer.open for peer in peers))
            assert peers[0].targets == ["/v1/realtime", "/v1/realtime?model=gpt-4o"]
            assert peers[1].targets == ["/v1/realtime?model=gpt-rt-2&x=%20"]
            status, body = await handshake(gw, "/v1/realtime?model=other")
            assert status == 404
            assert b"model_not_found" in body
            assert len(peers[0].targets + peers[1].targets) == 3

    run(work())


async def handshake(gw, target, *headers):
    """How an upgrade is answered."""
    reader, writer = await gw.talk()
    lines = [f"GET {target} HTTP/1.1", "host: x", "upgrade: websocket", "connection: upgrade"]
    lines += ["sec-websocket-version: 13", "sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==", *headers]
    writer.write("\r\n".join([*lines, "", ""]).encode())
    head = await reader.readuntil(b"\r\n\r\n")
    length = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    body = await reader.readexactly(int(length[0].split(b":")[1])) if length else b""
    writer.close()
    return int(head.split()[1]), body


def test_a_key_is_needed_and_does_not_go_on():
    async def work():
        async with connected(key="a", keys=keys("a")) as (peer, _, gw):
            assert "lsk_a" not in str(peer.headers)
            assert (await handshake(gw, "/v1/realtime?model=m"))[0] == 401
            bad = await handshake(gw, "/v1/realtime?model=m", "authorization: Bearer lsk_b")
            assert bad[0] == 401
            assert len(peer.targets) == 1

    run(work())


async def flood(client, frames):
    """More than its upstream reads: it is held back in the middle of a frame, any time."""
    for _ in range(frames):
        await client.send_str("x" * 100_000)


async def ending(client):
    end = await client.receive(timeout=EACH_SECONDS)
    assert end.type is WSMsgType.CLOSE, end
    return end.data, end.extra


@pytest.mark.parametrize("target", ["/realtime?model=m", "/anything"])
def test_a_key_that_is_taken_back_ends_what_passes_for_it(target):
    async def work():
        both_keys = keys("a", "b")
        async with connected(target=target, key="a", keys=both_keys) as (peer, client, gw):
            gw.world.reload(replace(gw.world.config, keys=both_keys[:1]))
            await client.send_str("still there")
            await until(lambda: peer.heard)
            gw.world.reload(replace(gw.world.config, keys=both_keys[1:]))
            code, why = await ending(client)
            assert code == 1008
            assert "taken back, or has expired" in why
            await until(lambda: peer.open == 0)
            assert gw.world.passing == set()

    run(work())


def test_a_key_that_expires_ends_what_passes_for_it():
    async def work():
        now = 1000.0
        expiring = keys("a", expires=1000.1)
        async with connected(key="a", keys=expiring, clock=lambda: now) as (peer, client, _):
            await peer.say("hello")
            assert await hear(client) == "hello"
            now = 1000.1
            assert (await ending(client))[0] == 1008

    run(work())


def test_a_key_whose_time_is_shortened_ends_what_passes_for_it_then():
    async def work():
        now = 1000.0
        expiring = keys("a", expires=5000.0)
        async with connected(key="a", keys=expiring, clock=lambda: now) as (_, client, gw):
            gw.world.reload(replace(gw.world.config, keys=keys("a", expires=1000.1)))
            now = 2000.0
            assert (await ending(client))[0] == 1008

    run(work())


def test_keys_where_there_were_none_end_what_passes_without_one():
    async def work():
        async with connected() as (_, client, gw):
            gw.world.reload(replace(gw.world.config, keys=keys("a")))
            assert (await ending(client))[0] == 1008

    run(work())


def test_a_key_that_is_taken_back_ends_also_what_waits_for_an_upstream_that_does_not_read():
    async def work():
        limits = Limits(unread_bytes=20_000)
        async with connected(key="a", keys=keys("a"), limits=limits) as (peer, client, gw):
            peer.listening.clear()
            await client.send_str("wakes it up")
            (between,) = gw.world.passing
            flooding = asyncio.create_task(flood(client, 500))
            await until(lambda: between.is_full(limits.unread_bytes))
            gw.world.reload(replace(gw.world.config, keys=keys("b")))
            assert (await ending(client))[0] == 1008
            flooding.cancel()
            await asyncio.wait([flooding])

    run(work())


def test_a_page_shows_its_key_in_a_subprotocol_and_it_does_not_go_on(caplog):
    logs.configure(LogSettings())
    shown = "openai-insecure-api-key.lsk_a"

    async def work():
        async with connected(subprotocols=("realtime", shown), keys=keys("a")) as (
            peer,
            client,
            gw,
        ):
            assert client.protocol == "realtime"
            assert "lsk_a" not in str(peer.headers)
            alone = await handshake(gw, "/v1/realtime", "sec-websocket-protocol: realtime")
            assert alone[0] == 401
        async with connected(subprotocols=(shown,), keys=keys("a")) as (peer, client, _):
            assert client.protocol is None
            assert "lsk_a" not in str(peer.headers)
        async with connected(subprotocols=("realtime", shown)) as (peer, _, _):
            assert "Bearer lsk_a" in peer.headers[0].values()

    with caplog.at_level("DEBUG"):
        run(work())
    assert "lsk_a" not in caplog.text


def test_an_upstream_that_refuses_is_told_in_its_own_words():
    async def work():
        async with both(**ANY) as (up, gw):

            async def no(request):
                return web.Response(status=403, body=b"not you")

            up._converse = no
            assert (await handshake(gw, "/v1/realtime?model=m")) == (403, b"not you")

    run(work())


def test_an_upstream_that_is_not_there_is_said_to_be_so():
    async def work():
        async with both(up_url="http://127.0.0.1:1/v1", **ANY) as (_, gw):
            assert (await handshake(gw, "/v1/realtime?model=m"))[0] == 502

    run(work())


# --- the end -------------------------------------------------------------------------------------


def test_the_providers_end_is_the_clients():
    async def work():
        async with connected() as (peer, client, _):
            await peer.say("last")
            await peer.ws.close(code=4001, message=b"session_expired")
            assert await hear(client) == "last"
            end = await client.receive(timeout=EACH_SECONDS)
            assert (end.type, end.data, end.extra) == (WSMsgType.CLOSE, 4001, "session_expired")

    run(work())


def test_a_connection_that_is_lost_ends_with_a_code_that_may_be_sent():
    async def work():
        async with connected() as (peer, client, _):
            peer.ws._req.transport.abort()
            end = await client.receive(timeout=EACH_SECONDS)
            assert (end.type, end.data) == (WSMsgType.CLOSE, 1011)

    run(work())


def test_a_gateway_that_ends_says_goodbye_to_both():
    async def work():
        async with connected() as (peer, client, gw):
            await gw.gateway.drain(0)
            end = await client.receive(timeout=EACH_SECONDS)
            assert (end.type, end.data) == (WSMsgType.CLOSE, 1001)
            await until(lambda: peer.open == 0)

    run(work())


def test_a_binary_frame_ends_it():
    async def work():
        async with connected() as (peer, client, _):
            await client.send_bytes(b"{}")
            end = await client.receive(timeout=EACH_SECONDS)
            assert (end.type, end.data) == (WSMsgType.CLOSE, 1003)
            assert peer.heard == []

    run(work())


def test_an_upstream_that_closes_at_once_is_heard_to_its_end():
    async def work():
        async with both(**ANY) as (up, gw):

            async def brief(request):
                ws = web.WebSocketResponse()
                await ws.prepare(request)
                await ws.send_str("no")
                await ws.close(code=4002)
                return ws

            up._converse = brief
            client = await gw.client.ws_connect(gw.url + "/realtime?model=m")
            assert await hear(client) == "no"
            end = await client.receive(timeout=EACH_SECONDS)
            assert (end.type, end.data) == (WSMsgType.CLOSE, 4002)
            await client.close()

    run(work())


def test_an_upstream_that_does_not_read_holds_its_client_back():
    async def work():
        limits = Limits(unread_bytes=20_000)
        async with connected(limits=limits) as (peer, client, gw):
            peer.listening.clear()
            await client.send_str("wakes it up")
            flooding = asyncio.create_task(flood(client, 500))
            (between,) = gw.world.passing
            await until(lambda: between.is_full(limits.unread_bytes))
            await asyncio.sleep(0.3)
            assert not flooding.done()
            peer.listening.set()
            await flooding
            await until(lambda: len(peer.heard) == 501)

    run(work())


# --- what is told of it --------------------------------------------------------------------------


def test_the_log_has_one_line_that_says_what_was_done_and_no_secret():
    async def work():
        async with connected(target="/realtime?model=m&secret=hush", key="a", keys=keys("a")) as (
            peer,
            client,
            gw,
        ):
            await peer.say(added(CALL), '{"type":"error","error":{"message":"sk-hush"}}')
            await hear(client)
            await hear(client)
            await client.send_str(DELETE)
            await hear(client)
            await client.close()
            await until(lambda: gw.gateway._open == 0)

    written = StringIO()
    logs.configure(LogSettings(), stream=written)
    try:
        run(work())
    finally:
        logs.configure(LogSettings())
    said = [json.loads(line) for line in written.getvalue().splitlines()]
    (line,) = [line for line in said if line["event"] == "request"]
    assert line["path"] == "/v1/realtime"
    assert line["status"] == 101
    assert line["key"] == "a"
    assert line["upstream"] == "up"
    assert line["events"] == 3
    assert line["notes"] == ["delete_dropped: 1"]
    assert "hush" not in written.getvalue()
    assert "lsk_a" not in written.getvalue()
