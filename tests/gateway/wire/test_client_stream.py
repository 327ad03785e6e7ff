from __future__ import annotations

import asyncio

import aiohttp
import pytest
import uvloop
from aiohttp import web
from hypothesis import given, settings
from hypothesis import strategies as st

from lockstitch.gateway.wire.client_stream import ClientStream
from lockstitch.gateway.wire.flow import Flow
from lockstitch.gateway.wire.heads import Unwritable
from lockstitch.gateway.wire.outlet import HIGH_WATER_BYTES
from tests.gateway.wire.playing import (
    answer_to,
    app_serving,
    deaf_client,
    lines_to,
    request_read,
    serving,
)
from tests.gateway.wire.relaying import Relay

GET = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"
# The most that one call of `data_received` brings, on either loop.
LARGEST_READ = 256 * 1024


def streaming(*pieces: bytes, status: int = 200, headers=()):
    async def handler(request: web.Request) -> web.StreamResponse:
        await request.read()
        stream = await ClientStream.begin(request, status, headers)
        for piece in pieces:
            stream.write(piece)
            await asyncio.sleep(0)
        stream.end()
        return stream.response

    return handler


async def raw(address, sent: bytes) -> bytes:
    """Everything that comes back until the server closes, or nothing more comes."""
    reader, writer = await asyncio.open_connection(*address)
    writer.write(sent)
    got = piece = await reader.read(1 << 16)
    try:
        while piece:
            async with asyncio.timeout(0.15):
                piece = await reader.read(1 << 16)
            got += piece
        got += b"<closed>"
    except TimeoutError:
        pass
    writer.close()
    return got


def test_a_second_request_is_answered_on_the_same_connection(run):
    async def go():
        async with (
            app_serving(streaming(b"one", b"two")) as (host, port),
            lines_to(f"http://{host}:{port}") as lines,
        ):
            for _ in range(4):
                heard = await answer_to(lines)
                assert (heard.body, heard.is_whole) == (b"onetwo", True)
            assert lines.opened == 1

    run(go())


def test_the_end_is_there_before_the_handler_is_done(run):
    async def go():
        async def handler(request: web.Request) -> web.StreamResponse:
            stream = await ClientStream.begin(request, 200, [])
            stream.write(b"one")
            stream.end()
            stream.end()
            stream.write(b"two")
            await asyncio.sleep(1)
            return stream.response

        async with app_serving(handler) as address:
            assert (await raw(address, GET)).endswith(b"3\r\none\r\n0\r\n\r\n")

    run(go())


def test_requests_that_came_at_once_are_answered_in_their_order(run):
    async def go():
        turn = 0

        async def handler(request: web.Request) -> web.StreamResponse:
            nonlocal turn
            turn += 1
            return await streaming(b"%d" % turn, request.path.encode())(request)

        async with app_serving(handler) as address:
            got = await raw(address, b"".join(GET.replace(b"/ ", b"/%d " % n) for n in range(5)))
            bodies = [b"1\r\n%d\r\n2\r\n/%d\r\n0\r\n\r\n" % (n + 1, n) for n in range(5)]
            heads = [part.partition(b"\r\n\r\n") for part in got.split(b"HTTP/1.1 200 OK")[1:]]
            assert [head[2] for head in heads] == bodies

    run(go())


@settings(max_examples=40)
@given(pieces=st.lists(st.binary(max_size=3000), max_size=8))
def test_any_bytes_in_any_pieces_arrive_unchanged(pieces):
    async def go():
        async with (
            app_serving(streaming(*pieces)) as (host, port),
            aiohttp.ClientSession(f"http://{host}:{port}") as session,
        ):
            for _ in range(2):
                async with session.post("/") as answer:
                    assert await answer.read() == b"".join(pieces)

    uvloop.run(go())


def test_headers_go_on_but_those_about_a_connection_do_not(run):
    async def go():
        headers = [
            ("Content-Type", "text/event-stream"),
            ("x-twice", "1"),
            ("x-twice", "2"),
            ("Connection", "close, x-hop"),
            ("X-Hop", "1"),
            ("Content-Length", "99"),
            ("Transfer-Encoding", "gzip, chunked"),
        ]
        async with app_serving(streaming(b"x", status=418, headers=headers)) as address:
            got = await raw(address, GET)
            lines = got.partition(b"\r\n\r\n")[0].decode().split("\r\n")
            assert lines[0].startswith("HTTP/1.1 418 ")
            assert sorted(line for line in lines[1:] if line[:4] not in {"Date", "Serv"}) == [
                "Content-Type: text/event-stream",
                "Transfer-Encoding: chunked",
                "x-twice: 1",
                "x-twice: 2",
            ]
            assert got.endswith(b"\r\n\r\n1\r\nx\r\n0\r\n\r\n")

    run(go())


@pytest.mark.parametrize("bad", [("x", "a\r\ny: z"), ("x\n", "a"), ("x", "\0")])
def test_a_header_that_would_be_two_is_refused_and_another_answer_can_be_given(run, bad):
    async def go():
        async def handler(request: web.Request) -> web.StreamResponse:
            with pytest.raises(Unwritable):
                await ClientStream.begin(request, 200, [bad])
            return await streaming(b"sorry", status=502)(request)

        async with app_serving(handler) as address:
            got = await raw(address, GET)
            assert got.startswith(b"HTTP/1.1 502 ")
            assert got.count(b"HTTP/1.1") == 1

    run(go())


@pytest.mark.parametrize("wish", [b"", b"connection: keep-alive\r\n"])
def test_a_client_of_http_1_0_gets_a_body_that_ends_with_the_connection(run, wish):
    async def go():
        async with app_serving(streaming(b"one", b"two")) as address:
            got = await raw(address, b"GET / HTTP/1.0\r\n" + wish + b"\r\n")
            head, _, body = got.partition(b"\r\n\r\n")
            assert body == b"onetwo<closed>"
            assert b"chunked" not in head
            assert b"keep-alive" not in head

    run(go())


def test_a_client_that_wants_to_close_is_closed(run):
    async def go():
        async with app_serving(streaming(b"one")) as address:
            got = await raw(address, b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
            assert got.endswith(b"3\r\none\r\n0\r\n\r\n<closed>")

    run(go())


@pytest.mark.parametrize(("method", "status"), [("HEAD", 200), ("GET", 204), ("GET", 304)])
def test_an_answer_that_cannot_have_a_body_has_none_and_the_connection_lives(run, method, status):
    async def go():
        async with (
            app_serving(streaming(b"one", status=status)) as (host, port),
            lines_to(f"http://{host}:{port}") as lines,
        ):
            got = await raw((host, port), GET.replace(b"GET", method.encode()))
            assert got.endswith(b"\r\n\r\n")
            assert got.count(b"\r\n\r\n") == 1
            if status != 200:
                for _ in range(3):
                    assert (await answer_to(lines, method=method, body=b"")).status == status
                assert lines.opened == 1

    run(go())


@pytest.mark.parametrize("version", [b"1.0", b"1.1"])
def test_an_answer_that_is_cut_is_seen_to_be_cut(run, version):
    async def go():
        async def handler(request: web.Request) -> web.StreamResponse:
            stream = await ClientStream.begin(request, 200, [])
            stream.write(b"one")
            await asyncio.sleep(0.02)
            stream.cut()
            stream.write(b"two")
            stream.end()
            return stream.response

        async with app_serving(handler) as address:
            request = b"GET / HTTP/%b\r\nhost: x\r\n\r\n" % version
            if version == b"1.1":
                assert (await raw(address, request)).endswith(b"3\r\none\r\n<closed>")
            else:
                with pytest.raises(ConnectionResetError):
                    await raw(address, request)

    run(go())


def test_a_handler_that_fails_inside_of_its_answer_leaves_a_cut_one(run):
    async def go():
        async def handler(request: web.Request) -> web.StreamResponse:
            stream = await ClientStream.begin(request, 200, [])
            stream.write(b"one")
            raise RuntimeError("on purpose")

        async with app_serving(handler) as address:
            assert (await raw(address, GET)).endswith(b"3\r\none\r\n<closed>")

    run(go())


def test_writing_to_a_client_that_went_away_does_nothing(run):
    async def go():
        result = asyncio.get_running_loop().create_future()

        async def handler(request: web.Request) -> web.StreamResponse:
            stream = await ClientStream.begin(request, 200, [])
            while not stream.gone:
                stream.write(b"x" * 1000)
                await asyncio.sleep(0.001)
            written = stream.written
            for _ in range(20):
                stream.write(b"x")
            stream.end()
            result.set_result(stream.written == written)
            return stream.response

        async with app_serving(handler) as address:
            reader, writer = await asyncio.open_connection(*address)
            writer.write(GET)
            await reader.readuntil(b"\r\n\r\n")
            writer.transport.abort()
            assert await result

    run(go())


def endless(size: int):
    """An upstream that says this much as fast as it is read; how much it has said."""
    said = [0]

    async def talk(reader, writer):
        await request_read(reader)
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % size)
        piece = bytes(range(256)) * 256
        while said[0] < size:
            writer.write(piece)
            await writer.drain()
            said[0] += len(piece)

    return talk, said


def test_a_client_that_never_reads_holds_little_and_not_for_long(run):
    async def go():
        talk, said = endless(200 * 1024 * 1024)
        relays: list[Relay] = []
        over = asyncio.Event()

        async with serving(talk) as url, lines_to(url) as lines:

            async def handler(request: web.Request) -> web.StreamResponse:
                relay = Relay(request, patience_seconds=0.3, watch_seconds=0.05)
                relays.append(relay)
                try:
                    return await relay.run(lines)
                finally:
                    over.set()

            async with app_serving(handler) as address:
                client = deaf_client(address, GET)
                await over.wait()
                client.close()
                (relay,) = relays
                assert relay.is_lost
                # What a read brings more, and its chunk's own bytes.
                assert relay.largest_backlog > HIGH_WATER_BYTES
                assert relay.largest_backlog <= HIGH_WATER_BYTES + LARGEST_READ + 64
                # The rest of it is in the buffers of the system.
                assert said[0] < 40 * 1024 * 1024
                assert lines._turns._value == 1000

    run(go())


def test_a_client_that_reads_late_gets_every_byte(run):
    async def go():
        size = 24 * 1024 * 1024
        talk, said = endless(size)
        async with serving(talk) as url, lines_to(url) as lines:

            async def handler(request: web.Request) -> web.StreamResponse:
                return await Relay(request).run(lines)

            async with (
                app_serving(handler) as (host, port),
                aiohttp.ClientSession(f"http://{host}:{port}") as session,
                session.post("/") as answer,
            ):
                # aiohttp's client reads on its own, up to a limit.
                await asyncio.sleep(0.2)
                assert said[0] < size
                assert await answer.read() == bytes(range(256)) * (size // 256)

    run(go())


def test_a_client_that_does_not_take_the_end_is_given_up_after_it(run):
    async def go():
        streams: list[ClientStream] = []

        async def handler(request: web.Request) -> web.StreamResponse:
            stream = await ClientStream.begin(request, 200, [])
            streams.append(stream)
            flow = Flow(stream, lambda: None, patience_seconds=0.1, watch_seconds=0.02)
            stream.write(b"x" * 20_000_000)
            stream.end()
            flow.stop()
            return stream.response

        async with app_serving(handler) as address:
            client = deaf_client(address, GET)
            while not streams:
                await asyncio.sleep(0.01)
            assert streams[0].backlog > HIGH_WATER_BYTES
            while not streams[0].gone:
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.01)
            assert streams[0].backlog == 0
            client.close()

    run(go())
