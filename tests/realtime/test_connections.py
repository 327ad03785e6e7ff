"""Connections: what they give, how they end, and what cannot be had."""

from __future__ import annotations

import asyncio
import json
import socket

import pytest
from aiohttp import WSMsgType, web
from openai import AsyncOpenAI

from lockstitch.realtime import ConnectionLost
from lockstitch.realtime.connection import event_of, hang_up
from lockstitch.realtime.openai_connection import openai_realtime
from lockstitch.realtime.websocket import websocket
from lockstitch.upstream.contract import Fate, UpstreamFailure
from tests.deaf_server import DeafServer
from tests.realtime.stage import KINDS, MODEL, staged, within


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_sent_is_answered_and_a_closed_connection_says_so(kind):
    async def scene():
        async with staged() as stage:
            connection = await stage.connect(kind)()
            assert event_of(await connection.receive())["type"] == "session.created"
            await connection.send({"type": "input_audio_buffer.clear"})
            assert event_of(await connection.receive())["type"] == "input_audio_buffer.cleared"
            await connection.close()
            with pytest.raises(ConnectionLost):
                await connection.receive()
            with pytest.raises(ConnectionLost):
                await connection.send({"type": "input_audio_buffer.clear"})
            await connection.close()

    within(scene)


@pytest.mark.parametrize("kind", KINDS)
def test_a_server_that_does_not_hear_our_goodbye_is_left_all_the_same(kind):
    async def scene():
        async with DeafServer() as deaf, AsyncOpenAI(base_url=deaf.url, api_key="any") as client:
            at = f"{deaf.url.replace('http', 'ws', 1)}/v1/realtime?model={MODEL}"
            connect = openai_realtime(client, MODEL) if kind == "openai" else websocket(at, key="k")
            connection = await connect()
            await connection.send({"type": "input_audio_buffer.clear"})
            await connection.receive()
            await hang_up(connection)
            async with asyncio.timeout(8):  # the libraries alone would take longer
                await deaf.left.wait()

    within(scene)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "cut", ["after=0 how=close", "after=0 how=reset", "before=0 how=half-frame"]
)
def test_a_connection_that_is_cut_is_lost(kind, cut):
    async def scene():
        async with staged(faults=[f"cut {cut}"]) as stage:
            connection = await stage.connect(kind)()
            with pytest.raises(ConnectionLost, match="The connection ended"):
                await _heard_to_its_end(connection)
            await connection.close()

    within(scene)


async def _heard_to_its_end(connection):
    while True:
        await connection.receive()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("status", "fate"), [(401, Fate.REFUSED), (503, Fate.BUSY)])
def test_a_refused_handshake_says_whether_to_try_again(kind, status, fate):
    async def scene():
        async with staged(faults=[f"status code={status}"]) as stage:
            with pytest.raises(UpstreamFailure, match=str(status)) as refused:
                await stage.connect(kind)()
            assert refused.value.fate is fate

    within(scene)


def _closed_port():
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return listening.getsockname()[1]


def test_a_server_that_is_not_there_may_be_there_later():
    async def scene():
        port = _closed_port()
        async with AsyncOpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="any") as client:
            for connect in (
                websocket(f"ws://127.0.0.1:{port}/v1/realtime"),
                openai_realtime(client, MODEL),
            ):
                with pytest.raises(UpstreamFailure) as failure:
                    await connect()
                assert failure.value.fate is Fate.BUSY

    within(scene)


def test_what_is_no_url_will_never_be_one():
    async def scene():
        with pytest.raises(UpstreamFailure, match="is not a URL") as failure:
            await websocket("not a url")()
        assert failure.value.fate is Fate.REFUSED

    within(scene)


def test_headers_and_key_go_with_the_handshake():
    async def scene():
        came = asyncio.get_running_loop().create_future()

        async def handle(request):
            came.set_result(request.headers)
            answering = web.WebSocketResponse()
            await answering.prepare(request)
            async for message in answering:
                assert message.type is WSMsgType.TEXT
            return answering

        runner = web.ServerRunner(web.Server(handle))
        await runner.setup()
        listening = socket.create_server(("127.0.0.1", 0))
        await web.SockSite(runner, listening).start()
        url = f"ws://127.0.0.1:{listening.getsockname()[1]}/"
        connection = await websocket(url, key="secret", headers={"X-Own": "1"})()
        headers = await came
        assert (headers["Authorization"], headers["X-Own"]) == ("Bearer secret", "1")
        assert "secret" not in repr(connection)
        await connection.close()
        await runner.cleanup()

    within(scene)


@pytest.mark.parametrize("received", ["{", b"\xff", "[]", "1", "null", "[" * 100_000])
def test_what_is_no_event_ends_the_connection(received):
    with pytest.raises(ConnectionLost, match="The server sent what is no"):
        event_of(received)


def test_an_event_may_come_decoded():
    assert event_of({"type": "a"}) == event_of('{"type": "a"}') == event_of(b'{"type":"a"}')


def test_an_event_with_half_a_character_is_read_like_any_other():
    whole = {"type": "response.output_text.delta", "delta": "Hi \N{REPLACEMENT CHARACTER}"}
    said = json.dumps(whole | {"delta": "Hi \ud83d"})
    assert event_of(said) == event_of(said.encode()) == whole
