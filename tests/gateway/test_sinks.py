"""Where events go: into an HTTP response, to a lane, or nowhere before the end."""

from __future__ import annotations

import asyncio
import json

import pytest

from lockstitch.gateway.config.model import Limits
from lockstitch.gateway.events import Heard, Splitter, peeked
from lockstitch.gateway.headers import REQUEST_ID
from lockstitch.gateway.showing.sinks import LaneSink, SseSink, UnseenSink
from tests.gateway.building import encoded, message, run, sse, told_by, until
from tests.gateway.wire.playing import Paused, app_serving

EVENTS = told_by("resp_1", message())
HEARD = [Heard(peeked(encoded(event)), encoded(event)) for event in EVENTS]
SSE = [("content-type", "text/event-stream")]


async def talking(address, request=b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"):
    reader, writer = await asyncio.open_connection(*address[:2])
    writer.write(request)
    return reader, writer


def sink_of(request, **more):
    return SseSink(
        request, lambda: [(REQUEST_ID, "req_1")], Limits(**{"unread_seconds": 5.0, **more})
    )


@pytest.mark.parametrize("framed", [False, True])
def test_events_go_out_as_lines_also_before_the_head_is_written(framed):
    async def main():
        async def handler(request):
            sink = sink_of(request)
            sink.begin(200, SSE)
            for heard, event in zip(HEARD, EVENTS, strict=True):
                sink.show(None if framed else sse([event]), (heard,))
                if event["sequence_number"] == 3:
                    await asyncio.sleep(0.01)
            sink.end()
            return await sink.finish()

        async with app_serving(handler) as address:
            reader, writer = await talking(address)
            told = await reader.read()
            writer.close()
        head, _, body = told.partition(b"\r\n\r\n")
        assert b"lockstitch-request-id: req_1" in head.lower()
        assert body.endswith(b"0\r\n\r\n")
        plain = b""
        while body:
            size, _, body = body.partition(b"\r\n")
            plain += body[: int(size, 16)]
            body = body[int(size, 16) + 2 :]
        assert plain == sse(EVENTS)

    run(main())


def test_the_last_event_does_not_wait_for_long():
    async def main():
        may_end = asyncio.Event()

        async def handler(request):
            sink = sink_of(request)
            sink.begin(200, SSE)
            sink.show(sse(EVENTS[:-1]), HEARD[:-1])
            sink.show(sse(EVENTS[-1:]), HEARD[-1:])
            await may_end.wait()
            sink.end()
            return await sink.finish()

        async with app_serving(handler) as address:
            reader, writer = await talking(address)
            told = await reader.readuntil(sse(EVENTS[-1:]))
            assert b"0\r\n\r\n" not in told
            may_end.set()
            assert await reader.read() == b"\r\n0\r\n\r\n"
            writer.close()

    run(main())


def test_a_client_that_goes_away_is_told_of_once_and_not_after_the_end():
    async def main():
        for over in (False, True):
            lost = []
            done = asyncio.Event()

            async def handler(request, over=over, lost=lost, done=done):
                sink = sink_of(request)
                sink.when_lost = lambda: lost.append(1)
                line = Paused()
                sink.follow(line)
                sink.begin(200, SSE)
                sink.show(sse(EVENTS[:1]), HEARD[:1])
                if over:
                    sink.end()
                await until(lambda: request.transport is None)
                await asyncio.sleep(1.2)
                sink.show(sse(EVENTS[1:2]), HEARD[1:2])
                assert not line.is_paused
                answer = await sink.finish()
                done.set()
                return answer

            async with app_serving(handler) as address:
                reader, writer = await talking(address)
                await reader.readuntil(b"\n\n")
                writer.transport.abort()
                await done.wait()
            assert lost == ([] if over else [1])

    run(main())


def test_a_second_line_takes_the_place_of_the_first():
    async def main():
        async def handler(request):
            sink = sink_of(request, unread_bytes=1000)
            first, second = Paused(), Paused()
            sink.follow(first)
            sink.begin(200, SSE)
            await asyncio.sleep(0.01)
            sink.show(b"x" * 10_000_000, ())
            assert first.is_paused
            sink.follow(second)
            assert second.is_paused
            assert not first.is_paused
            sink.end()
            return await sink.finish()

        async with app_serving(handler) as address:
            reader, writer = await talking(address)
            assert len(await reader.read()) > 10_000_000
            writer.close()

    run(main())


class Socket:
    def __init__(self):
        self.sent = []

    def send(self, payload):
        self.sent.append(json.loads(payload))


def test_a_lane_names_each_event_and_one_without_a_name_none():
    for name in ("a", None):
        socket = Socket()
        sink = LaneSink(socket, name)
        sink.begin(200, SSE)
        sink.show(sse(EVENTS), HEARD)
        sink.end()
        named = {} if name is None else {"stream_id": name}
        assert socket.sent == [{**event, **named} for event in EVENTS]


def test_an_event_that_has_its_lane_is_sent_as_it_came():
    class Exact(Socket):
        def send(self, payload):
            self.sent.append(payload)

    data = b'{ "type":"x" , "stream_id":"a"}'
    socket = Exact()
    LaneSink(socket, "a").show(None, [Heard(peeked(data), data)])
    assert socket.sent == [data]


def test_whoever_asked_for_no_stream_gets_the_end_alone():
    sink = UnseenSink()
    sink.begin(200, SSE)
    _, heard = Splitter().feed(sse(EVENTS))
    sink.show(sse(EVENTS), heard)
    sink.end()
    assert json.loads(sink.last.data) == EVENTS[-1]
