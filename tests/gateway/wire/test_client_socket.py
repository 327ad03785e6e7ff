from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import aiohttp
import uvloop
from aiohttp import WSMsgType, web
from hypothesis import given, settings
from hypothesis import strategies as st
from websockets.asyncio.client import connect

from lockstitch.gateway.wire.client_socket import ClientSocket
from lockstitch.gateway.wire.flow import Flow
from lockstitch.gateway.wire.outlet import HIGH_WATER_BYTES
from tests.gateway.building import until
from tests.gateway.wire.playing import Paused, app_serving, close_frame, deaf_client
from tests.gateway.wire.test_frames import LENGTHS

UPGRADE = (
    b"GET / HTTP/1.1\r\nhost: x\r\nupgrade: websocket\r\nconnection: upgrade\r\n"
    b"sec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
)


@asynccontextmanager
async def sockets(talk, **options):
    """A server that talks to every client that way; its address."""

    async def handler(request: web.Request) -> web.StreamResponse:
        socket = await ClientSocket.accept(request, **options)
        await talk(socket)
        return socket.socket

    async with app_serving(handler) as address:
        yield address


async def echoing(socket: ClientSocket) -> None:
    async for message in socket.socket:
        assert message.type is WSMsgType.TEXT
        assert isinstance(message.data, bytes)
        socket.send(message.data)


@settings(max_examples=30)
@given(texts=st.lists(st.text(max_size=2000), max_size=6))
def test_any_texts_come_back_unchanged(texts):
    async def go():
        async with (
            sockets(echoing) as (host, port),
            connect(f"ws://{host}:{port}/") as client,
        ):
            for text in texts:
                await client.send(text)
            assert [await client.recv() for _ in texts] == texts

    uvloop.run(go())


def test_every_length_comes_back_from_aiohttp(run):
    async def go():
        async with (
            sockets(echoing) as (host, port),
            aiohttp.ClientSession() as session,
            session.ws_connect(f"http://{host}:{port}/", max_msg_size=0) as client,
        ):
            for length in LENGTHS:
                await client.send_str("x" * length)
                assert await client.receive_str() == "x" * length

    run(go())


def test_compression_is_declined_and_pings_are_answered(run):
    async def go():
        async with (
            sockets(echoing) as (host, port),
            connect(f"ws://{host}:{port}/", compression="deflate") as client,
        ):
            assert not client.protocol.extensions
            await (await client.ping())
            await client.send("still here")
            assert await client.recv() == "still here"

    run(go())


def test_a_goodbye_has_its_code_and_as_much_of_its_reason_as_fits(run):
    async def go():
        async def talk(socket: ClientSocket) -> None:
            socket.send(b"last")
            await socket.close(4001, "ä" * 100)
            socket.send(b"too late")

        async with sockets(talk) as (host, port), connect(f"ws://{host}:{port}/") as client:
            assert await client.recv() == "last"
            await client.wait_closed()
            assert client.close_code == 4001
            assert client.close_reason == "ä" * 61

    run(go())


def test_nothing_is_sent_behind_our_own_goodbye(run):
    async def go():
        async def talk(socket: ClientSocket) -> None:
            closing = asyncio.create_task(socket.close(1001))
            await asyncio.sleep(0.01)
            assert not socket.gone
            socket.send(b"too late")
            await closing

        async with sockets(talk) as address:
            reader, writer = await asyncio.open_connection(*address)
            writer.write(UPGRADE)
            await reader.readuntil(b"\r\n\r\n")
            await asyncio.sleep(0.05)
            writer.write(b"\x88\x80\0\0\0\0")
            assert await reader.read() == close_frame(1001)
            writer.close()

    run(go())


def test_nothing_is_sent_behind_the_clients_goodbye(run):
    async def go():
        seen = asyncio.get_running_loop().create_future()

        async def talk(socket: ClientSocket) -> None:
            async for _ in socket.socket:
                pass
            socket.send(b"too late")
            seen.set_result((socket.written, socket.socket.close_code))

        async with sockets(talk) as (host, port):
            async with connect(f"ws://{host}:{port}/") as client:
                await client.close(1001)
            assert await seen == (0, 1001)

    run(go())


def test_a_message_that_is_too_long_ends_the_connection(run):
    async def go():
        async def talk(socket: ClientSocket) -> None:
            async for _ in socket.socket:
                pass

        async with (
            sockets(talk, largest_message=1000) as (host, port),
            connect(f"ws://{host}:{port}/") as client,
        ):
            await client.send("x" * 1001)
            await client.wait_closed()
            assert client.close_code == 1009

    run(go())


def test_a_client_that_never_reads_holds_its_line_back_and_is_given_up(run):
    async def go():
        line = Paused()
        lost = asyncio.Event()
        largest = 0
        frame = b"x" * 10_000

        async def talk(socket: ClientSocket) -> None:
            nonlocal largest
            flow = Flow(socket, lost.set, patience_seconds=0.2, watch_seconds=0.02)
            flow.follow(line)
            while not lost.is_set():
                if not line.is_paused:
                    socket.send(frame)
                    largest = max(largest, socket.backlog)
                await asyncio.sleep(0)
            assert socket.gone

        async with sockets(talk) as address:
            client = deaf_client(address, UPGRADE)
            await lost.wait()
            client.close()
            assert HIGH_WATER_BYTES < largest < HIGH_WATER_BYTES + 2 * len(frame)

    run(go())


def test_a_client_that_reads_late_gets_every_frame(run):
    async def go():
        line = Paused()
        count, frame = 3000, b"x" * 10_000

        async def talk(socket: ClientSocket) -> None:
            Flow(socket, lambda: None).follow(line)
            for number in range(count):
                while line.is_paused:
                    await asyncio.sleep(0.001)
                socket.send(b"%d " % number + frame)
            await socket.close()

        async with (
            sockets(talk) as (host, port),
            connect(f"ws://{host}:{port}/", max_queue=4) as client,
        ):
            await until(lambda: line.is_paused)
            got = [message async for message in client]
            assert [int(message.partition(" ")[0]) for message in got] == list(range(count))

    run(go())
