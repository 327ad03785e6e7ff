from __future__ import annotations

import asyncio
import base64
import hashlib
import socket
from contextlib import asynccontextmanager

import picows
import pytest
import uvloop
from hypothesis import given, settings
from hypothesis import strategies as st
from websockets.asyncio.server import serve

from lockstitch.gateway.lines import LineFailure
from lockstitch.gateway.wire.frames import text_frame
from lockstitch.gateway.wire.heads import Unwritable
from lockstitch.gateway.wire.socket_line import HandshakeRefused, SocketLimits, open_socket
from tests.gateway.building import until
from tests.gateway.wire.playing import close_frame, serving


class Frames:
    """Listens, and keeps everything."""

    def __init__(self) -> None:
        self.got: list[bytes] = []
        self.end: tuple[int, str] | None = None
        self.over = asyncio.Event()
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []

    def frame(self, payload: bytes) -> None:
        assert self.end is None
        self.got.append(payload)
        for count, future in self._waiting:
            if len(self.got) >= count and not future.done():
                future.set_result(None)

    def closed(self, code: int, reason: str) -> None:
        assert self.end is None
        self.end = (code, reason)
        self.over.set()

    async def frames(self, count: int) -> list[bytes]:
        if len(self.got) < count:
            future = asyncio.get_running_loop().create_future()
            self._waiting.append((count, future))
            await future
        return self.got


@asynccontextmanager
async def echoing(**options):
    async def talk(connection):
        async for message in connection:
            await connection.send(message)

    async with serve(talk, "127.0.0.1", 0, max_size=None, **options) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1/responses"


def shaking(*pieces: bytes, then_close: bool = True, accept: bool = True):
    """A server that accepts the handshake and then says exact bytes; it keeps what it was told."""
    told = bytearray()

    async def talk(reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        told.extend(head.encode())
        key = next(
            line.partition(":")[2].strip()
            for line in head.split("\r\n")
            if line.lower().startswith("sec-websocket-key")
        )
        magic = key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        said = base64.b64encode(hashlib.sha1(magic.encode()).digest())
        if accept:
            writer.write(
                b"HTTP/1.1 101 X\r\nupgrade: websocket\r\nconnection: upgrade\r\n"
                b"sec-websocket-accept: %b\r\n\r\n" % said
            )
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0.002)
        if not then_close:
            while more := await reader.read(1000):
                told.extend(more)

    return talk, told


async def heard_of(*pieces: bytes, limits: SocketLimits | None = None, **options) -> Frames:
    frames = Frames()
    talk, _ = shaking(*pieces, **options)
    async with serving(talk) as url:
        opened = await open_socket(url, (), frames, limits=limits)
        await frames.over.wait()
        assert not opened.usable
        with pytest.raises(LineFailure):
            opened.send(b"too late")
        opened.pause()
        opened.resume()
        opened.leave()
        await opened.close()
    return frames


@settings(max_examples=30)
@given(texts=st.lists(st.text(max_size=2000), max_size=6))
def test_any_texts_come_back_unchanged(texts):
    async def go():
        async with echoing() as url:
            frames = Frames()
            opened = await open_socket(url, (), frames)
            for text in texts:
                opened.send(text.encode())
            assert await frames.frames(len(texts)) == [text.encode() for text in texts]
            await opened.close()
            assert frames.end is None

    uvloop.run(go())


def test_large_texts_come_back_unchanged(run):
    async def go():
        async with echoing() as url:
            frames = Frames()
            opened = await open_socket(url, (), frames)
            texts = [b"x" * length for length in (0, 125, 126, 65535, 65536, 9_000_000)]
            for text in texts:
                opened.send(text)
            assert await frames.frames(len(texts)) == texts
            assert opened.backlog == 0
            await opened.close()

    run(go())


def test_the_handshake_is_ours_and_offers_no_extension(run):
    async def go():
        talk, told = shaking(then_close=False)
        async with serving(talk) as url:
            opened = await open_socket(
                url.replace("http", "ws") + "/v1/responses?a=b",
                [
                    ("Authorization", "Bearer k"),
                    ("OpenAI-Beta", "responses_websockets=2026-02-06"),
                    ("Sec-WebSocket-Extensions", "permessage-deflate"),
                    ("Sec-WebSocket-Key", "AAAA"),
                    ("Connection", "keep-alive"),
                    ("Host", "elsewhere"),
                ],
                Frames(),
            )
            lines = told.decode().split("\r\n")
            names = [line.partition(":")[0].lower() for line in lines[1:-2]]
            assert lines[0] == "GET /v1/responses?a=b HTTP/1.1"
            assert "Authorization: Bearer k" in lines
            assert f"Host: {url.removeprefix('http://')}" in lines
            assert "sec-websocket-extensions" not in names
            assert len(names) == len(set(names))
            opened.leave()

    run(go())


@pytest.mark.parametrize("bad", [("x", "a\r\ny: z"), ("x\n", "a"), ("x", "\0")])
def test_a_header_that_would_be_two_is_refused(run, bad):
    async def go():
        with pytest.raises(Unwritable):
            await open_socket("ws://127.0.0.1:1/", [bad], Frames())

    run(go())


@pytest.mark.parametrize("status", [401, 426, 429, 503, 529])
def test_a_refused_handshake_has_its_status_and_its_body(run, status):
    async def go():
        answer = b"HTTP/1.1 %d No\r\nretry-after: 3\r\ncontent-length: 2\r\n\r\n{}" % status
        talk, _ = shaking(answer, accept=False)
        async with serving(talk) as url:
            with pytest.raises(HandshakeRefused) as raised:
                await open_socket(url, (), Frames())
            assert not raised.value.sent
            assert raised.value.status == status
            assert raised.value.body == b"{}"
            if status != 529:
                assert ("retry-after", "3") in raised.value.headers

    run(go())


def test_a_redirect_is_not_followed(run):
    async def go():
        talk, _ = shaking(b"HTTP/1.1 302 X\r\nlocation: ws://127.0.0.1:1/\r\n\r\n", accept=False)
        async with serving(talk) as url:
            with pytest.raises(HandshakeRefused) as raised:
                await open_socket(url, [("authorization", "k")], Frames())
            assert raised.value.status == 302

    run(go())


@pytest.mark.parametrize(
    "said", [b"", b"HTTP/1.1 101", b"SSH-2.0\r\n\r\n", b"HTTP/1.1 101 X\r\n\r\n"]
)
def test_a_handshake_that_is_none_fails_with_nothing_sent(run, said):
    async def go():
        talk, _ = shaking(said, accept=False)
        async with serving(talk) as url:
            with pytest.raises(LineFailure) as raised:
                await open_socket(url, (), Frames())
            assert not raised.value.sent

    run(go())


def test_a_handshake_that_is_not_answered_fails_within_the_limit(run):
    async def go():
        talk, _ = shaking(accept=False, then_close=False)
        async with serving(talk) as url:
            with pytest.raises(LineFailure, match=r"within 0\.1 seconds") as raised:
                await open_socket(url, (), Frames(), limits=SocketLimits(open_seconds=0.1))
            assert not raised.value.sent

    run(go())


def test_an_upstream_that_is_not_there_fails_with_nothing_sent(run):
    async def go():
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            with pytest.raises(LineFailure) as raised:
                await open_socket(f"ws://127.0.0.1:{taken.getsockname()[1]}/", (), Frames())
            assert not raised.value.sent

    run(go())


def test_a_message_in_parts_is_heard_as_one(run):
    parts = b"\x01\x03one" + b"\x89\x01p" + b"\x00\x03two" + b"\x80\x05three"
    frames = run(heard_of(parts, text_frame(b"next"), close_frame(1000)))
    assert frames.got == [b"onetwothree", b"next"]
    assert frames.end == (1000, "")


@pytest.mark.parametrize(
    ("said", "code"),
    [
        (close_frame(1000, "fin"), 1000),
        (close_frame(4001, "own"), 4001),
        (b"\x88\x00", 1005),
        (b"", 1006),
        (text_frame(b"torn")[:4], 1006),
        (b"\xc1\x01x", 1002),
        (b"\x80\x01x", 1002),
        (b"\x01\x01x\x81\x01y", 1002),
        (b"\x82\x01x", 1003),
        (b"\x8b\x00", 1002),
        (b"\x81\x80\0\0\0\0", 1002),
        (text_frame(b"x" * 2000), 1009),
        (b"\x01\x7e\x03\xe8" + b"x" * 1000 + b"\x80\x7e\x03\xe8" + b"x" * 1000, 1009),
    ],
    ids=[
        "goodbye",
        "own code",
        "no code",
        "lost",
        "torn",
        "compressed",
        "goes on",
        "begins twice",
        "binary",
        "unknown",
        "masked",
        "too long",
        "too long in parts",
    ],
)
def test_the_end_is_told_once_with_its_code_and_what_was_good_was_heard(run, said, code):
    limits = SocketLimits(largest_message_bytes=1500)
    frames = run(heard_of(text_frame(b"good"), said, limits=limits))
    assert frames.got == [b"good"]
    assert frames.end is not None
    assert frames.end[0] == code
    if code in {1000, 4001}:
        assert frames.end[1] in {"fin", "own"}


def test_frames_cut_anywhere_are_heard_up_to_the_last_whole_one(run):
    """The fault loop: after no byte, after one, and so on, until nothing is cut."""

    async def go():
        said = text_frame(b"one") + text_frame(b"y" * 130) + b"\x01\x01a\x80\x01b"
        for cut in range(len(said) + 1):
            talk, _ = shaking(said[:cut])
            frames = Frames()
            async with serving(talk) as url:
                await open_socket(url, (), frames)
                await frames.over.wait()
                whole = (cut >= 5) + (cut >= 5 + 134) + (cut >= len(said))
                assert frames.got == [b"one", b"y" * 130, b"ab"][:whole], cut
                assert frames.end is not None
                assert frames.end[0] == 1006

    run(go())


def test_pings_are_answered(run):
    async def go():
        talk, told = shaking(b"\x89\x02hi", then_close=False)
        async with serving(talk) as url:
            opened = await open_socket(url, (), Frames())
            await until(lambda: len(told.partition(b"\r\n\r\n")[2]) >= 8)
            pong = told.partition(b"\r\n\r\n")[2]
            assert pong[:2] == b"\x8a\x82"
            mask, masked = pong[2:6], pong[6:8]
            assert bytes(a ^ b for a, b in zip(masked, mask, strict=False)) == b"hi"
            opened.leave()

    run(go())


QUICK = SocketLimits(ping_seconds=0.05, pong_seconds=0.05)


def test_an_upstream_that_answers_no_ping_is_given_up(run):
    frames = run(heard_of(then_close=False, limits=QUICK))
    assert frames.end is not None
    assert frames.end[0] == 1006
    assert "ping" in frames.end[1]


def test_an_upstream_that_answers_pings_may_say_nothing_for_long(run):
    async def go():
        async with echoing(ping_interval=None) as url:
            frames = Frames()
            limits = SocketLimits(ping_seconds=0.05, pong_seconds=5.0)
            opened = await open_socket(url, (), frames, limits=limits)
            await asyncio.sleep(0.4)
            assert frames.end is None
            opened.send(b"still here")
            assert await frames.frames(1) == [b"still here"]
            await opened.close()

    run(go())


def test_a_paused_connection_reads_nothing_and_is_not_given_up(run):
    async def go():
        async with echoing(ping_interval=None) as url:
            frames = Frames()
            opened = await open_socket(url, (), frames, limits=QUICK)
            opened.pause()
            opened.pause()
            opened.send(b"later")
            await asyncio.sleep(0.3)
            assert frames.got == []
            assert frames.end is None
            opened.resume()
            opened.resume()
            assert await frames.frames(1) == [b"later"]
            await opened.close()

    run(go())


def test_a_paused_connection_holds_its_upstream_back(run):
    async def go():
        sent = 0

        async def talk(connection):
            nonlocal sent
            for _ in range(2000):
                await connection.send("x" * 100_000)
                sent += 100_000

        async with serve(talk, "127.0.0.1", 0) as server:
            url = f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
            frames = Frames()
            opened = await open_socket(url, (), frames)
            opened.pause()
            await asyncio.sleep(0.3)
            assert sent < 50_000_000
            opened.leave()
            await asyncio.sleep(0.02)
            assert frames.end is None

    run(go())


@pytest.mark.parametrize("how", ["close", "leave"])
def test_who_ends_a_connection_itself_hears_nothing_more(run, how):
    async def go():
        async with echoing() as url:
            frames = Frames()
            opened = await open_socket(url, (), frames)
            opened.send(b"one")
            if how == "close":
                await opened.close(1000, "ä" * 100)
            else:
                opened.leave()
            await asyncio.sleep(0.05)
            assert frames.end is None
            assert not opened.usable

    run(go())


def test_an_upstream_that_does_not_answer_a_goodbye_is_not_waited_for(run, monkeypatch):
    monkeypatch.setattr("lockstitch.gateway.wire.socket_line.CLOSE_SECONDS", 0.05)

    async def go():
        talk, told = shaking(then_close=False)
        async with serving(talk) as url:
            opened = await open_socket(url, (), Frames())
            await opened.close(1001, "bye")
            assert told.partition(b"\r\n\r\n")[2][:1] == b"\x88"

    run(go())


def test_a_listener_that_fails_ends_the_connection(run):
    async def go():
        talk, _ = shaking(b"", text_frame(b"x"), then_close=False)
        frames = Frames()

        def fails(payload: bytes) -> None:
            raise RuntimeError("on purpose")

        frames.frame = fails
        # A frame that came together with the handshake is told from the loop, which hears of it.
        asyncio.get_running_loop().set_exception_handler(lambda _, context: None)
        async with serving(talk) as url:
            await open_socket(url, (), frames)
            await frames.over.wait()
            assert frames.end is not None
            assert frames.end[0] == picows.WSCloseCode.INTERNAL_ERROR.value

    run(go())


def test_who_pauses_inside_of_a_frame_hears_the_next_one_after_resuming(run):
    async def go():
        said = text_frame(b"one") + text_frame(b"two") + text_frame(b"three") + close_frame(1000)
        talk, _ = shaking(said)
        frames = Frames()
        heard = frames.frame

        def pauses(payload: bytes) -> None:
            heard(payload)
            opened.pause()

        frames.frame = pauses
        async with serving(talk) as url:
            opened = await open_socket(url, (), frames)
            for expected in ([b"one"], [b"one", b"two"], [b"one", b"two", b"three"]):
                await frames.frames(len(expected))
                await asyncio.sleep(0.05)  # for more of them, if it were wrong
                assert frames.got == expected
                assert frames.end is None
                opened.resume()
            await frames.over.wait()
            assert frames.end == (1000, "")

    run(go())


def test_frames_that_came_with_the_handshake_are_heard_once_the_connection_is_there(run):
    async def go():
        talk, _ = shaking(text_frame(b"limit reached") + close_frame(1008, "enough"))
        frames = Frames()
        async with serving(talk) as url:
            opened = await open_socket(url, (), frames)
            assert frames.got == []
            await frames.over.wait()
            assert frames.got == [b"limit reached"]
            assert frames.end == (1008, "enough")
            assert not opened.usable

    run(go())


def test_who_gives_up_opening_leaves_no_connection_behind(run):
    async def go():
        asked, may_answer, closed = asyncio.Event(), asyncio.Event(), asyncio.Event()
        answered, _ = shaking(then_close=False)

        async def talk(reader, writer):
            asked.set()
            await may_answer.wait()
            try:
                await answered(reader, writer)
            finally:
                closed.set()

        frames = Frames()
        async with serving(talk) as url:
            opening = asyncio.create_task(open_socket(url, (), frames))
            await asked.wait()
            opening.cancel()
            with pytest.raises(asyncio.CancelledError):
                await opening
            may_answer.set()
            await closed.wait()
            assert frames.end is None

    run(go())
