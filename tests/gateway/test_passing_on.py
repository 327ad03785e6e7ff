"""Events that pass in the bytes they came in: which do, and that it changes nothing else."""

from __future__ import annotations

import asyncio
import json

import pytest

from lockstitch.gateway.deciding.retrying import Shown
from lockstitch.gateway.events import WATCHED, Splitter, lone, plain_in, plain_in_frame
from lockstitch.gateway.showing.streams import Log, Stream
from tests.gateway.building import run

DELTA = {"type": "response.output_text.delta", "sequence_number": 7, "delta": 'a"type" {b}\n'}
PLAIN = [
    DELTA,
    {"type": "response.output_item.added", "item": {"type": "message"}},
    {"type": "response.content_part.done", "part": {"type": "output_text"}},
    {"type": "response.function_call_arguments.done", "arguments": "{}"},
]


def block_of(event, name=True):
    line = f"data: {json.dumps(event, separators=(',', ':'))}\n\n".encode()
    return f"event: {event['type']}\n".encode() + line if name else line


def chunk_of(block):
    return b"%x\r\n%b\r\n" % (len(block), block)


@pytest.mark.parametrize("name", [True, False])
@pytest.mark.parametrize("event", PLAIN)
def test_a_chunk_of_one_event_that_nothing_follows_from_is_known(event, name):
    block = block_of(event, name)
    assert plain_in(chunk_of(block)) == block
    assert Splitter().feed(block) == (block, [lone(block)])


@pytest.mark.parametrize("type", sorted(WATCHED))
def test_what_something_follows_from_is_never_passed_on(type):
    event = {"type": type, "item": {}}
    assert plain_in(chunk_of(block_of(event))) is None
    assert plain_in_frame(json.dumps(event).encode()) is None


BLOCK = block_of(DELTA)
CHUNK = chunk_of(BLOCK)


@pytest.mark.parametrize(
    "chunk",
    [
        b"",
        BLOCK,
        CHUNK[:-1],
        CHUNK + b"0\r\n\r\n",
        CHUNK + CHUNK,
        chunk_of(BLOCK[:-1]),
        chunk_of(BLOCK + BLOCK),
        chunk_of(b": comment\n\n" + BLOCK),
        chunk_of(BLOCK.replace(b",", b",\r", 1)),
        chunk_of(BLOCK.replace(b",", b",\n", 1)),
        chunk_of(BLOCK.replace(b"\ndata", b"\nid: 1\ndata")),
        chunk_of(b"data: null\n\n"),
        b"0" + CHUNK,
        b"+" + CHUNK,
        b"%x\r\n%b\r\n" % (len(BLOCK) + 1, BLOCK),
        b"%x;a=b\r\n%b\r\n" % (len(BLOCK), BLOCK),
        chunk_of(block_of({"sequence_number": 1, **DELTA})),
    ],
)
def test_what_may_be_anything_else_is_read_in_full(chunk):
    found = plain_in(chunk)
    # A length may have zeros before it: it is the same chunk.
    assert found is None or chunk == b"0" + CHUNK


def test_a_frame_of_a_lane_or_of_many_lines_is_read_in_full():
    data = json.dumps(DELTA).encode()
    assert plain_in_frame(data) == b"event: %b\ndata: %b\n\n" % (DELTA["type"].encode(), data)
    assert plain_in_frame(json.dumps({**DELTA, "stream_id": "a"}).encode()) is None
    assert plain_in_frame(json.dumps(DELTA, indent=1).encode()) is None
    assert plain_in_frame(b"") is None


@pytest.mark.parametrize(
    "block",
    [
        b"data: {}",
        b"data: {}\n",
        b": data: {}\n\n",
        b"data: {}\r\n\n",
        b"data: {\ndata: }\n\n",
        b"data:{}\ndata: {}\n\n",
        b"data: {no\n\n",
        b"data: {}\n\ndata: {}\n\n",
        b"id: 1\n\n",
    ],
)
def test_only_one_event_of_one_line_is_a_lone_one(block):
    assert lone(block) is None


class Passing:
    framed = False

    def __init__(self):
        self.raw = []
        self.blocks = []
        self.passes = self.raw.append

    def begin(self, status, headers):
        """It has no head."""

    def show(self, block, events):
        self.blocks.append(block)

    def end(self):
        """Nothing more is shown."""


def flowing():
    stream = Stream(Passing(), Log())
    stream.begin(200, ())
    stream.shown = Shown.MORE
    return stream


def test_what_is_passed_on_is_counted_numbered_and_kept():
    async def main():
        stream = flowing()
        assert stream.pass_on(CHUNK, BLOCK)
        assert stream.sink.raw == [CHUNK]
        assert (stream.events, stream.number) == (1, 7)
        assert stream.log.blocks == [BLOCK]
        nameless = block_of({"type": "response.output_text.delta", "delta": "b"})
        assert stream.pass_on(chunk_of(nameless), nameless)
        assert stream.number == 7

    run(main())


def test_nothing_is_passed_on_before_what_is_held():
    async def main():
        stream = flowing()
        future = asyncio.get_running_loop().create_future()
        stream.hold(future)
        assert not stream.pass_on(CHUNK, BLOCK)
        stream.show(BLOCK, (lone(BLOCK),))
        future.set_result(None)
        await stream.clear()
        assert stream.sink.blocks == [BLOCK]
        assert stream.pass_on(CHUNK, BLOCK)

    run(main())


def test_nothing_is_passed_on_before_the_client_knows_of_the_answer():
    async def main():
        stream = flowing()
        stream.shown = Shown.BEGUN
        assert not stream.pass_on(CHUNK, BLOCK)

    run(main())


def test_nothing_is_passed_on_to_who_speaks_otherwise_or_has_gone():
    async def main():
        stream = flowing()
        assert not stream.pass_on(b"{}", BLOCK, framed=True)
        stream.sink.passes = None
        assert not stream.pass_on(CHUNK, BLOCK)
        stream = flowing()
        stream.broken = ValueError()
        assert not stream.pass_on(CHUNK, BLOCK)

    run(main())
