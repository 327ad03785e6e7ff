"""Events that pass in the bytes they came in: which do, and that it changes nothing else."""

from __future__ import annotations

import asyncio
import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lockstitch.gateway.deciding.retrying import Shown
from lockstitch.gateway.events import (
    WATCHED,
    Splitter,
    block_in_chunk,
    block_in_frame,
    is_plain,
    is_plain_frame,
    lone,
)
from lockstitch.gateway.showing.passages import MOST_WAITING
from lockstitch.gateway.showing.streams import Log, Stream
from tests.gateway.building import run
from tests.generated import examples

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
    assert is_plain(chunk_of(block))
    assert block_in_chunk(chunk_of(block)) == block
    assert Splitter().feed(block) == (block, [lone(block)])


@pytest.mark.parametrize("type", sorted(WATCHED))
def test_what_something_follows_from_is_never_passed_on(type):
    event = {"type": type, "item": {}}
    assert not is_plain(chunk_of(block_of(event)))
    assert not is_plain_frame(json.dumps(event).encode())


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
    # A length may have zeros before it: it is the same chunk.
    assert is_plain(chunk) is (chunk == b"0" + CHUNK)


PLAIN_CHUNK = re.compile(
    rb"([0-9a-f]{1,6})\r\n(?:event: [a-z_.]+\n)?data: "
    rb'\{"type": ?"response\.(?!output_item\.done")[a-z_]+\.[a-z_.]+",[^\r\n]*\}\n\n\r\n'
)
"""What a plain chunk is, in full."""

EDITED = st.sampled_from([CHUNK, *map(chunk_of, map(block_of, PLAIN))])


@settings(max_examples=examples(400))
@given(st.lists(st.tuples(EDITED, st.integers(0, 120), st.sampled_from(b"\r\n}.,e8z")), max_size=8))
def test_what_was_passed_on_before_does_not_change_what_is_plain(edits):
    """Chunks of one length, one byte apart, one after the other."""
    for chunk, at, byte in edits:
        other = bytearray(chunk)
        other[at % len(chunk)] = byte
        for one in (bytes(other), chunk):
            found = PLAIN_CHUNK.fullmatch(one)
            true = found is not None and int(found[1], 16) == len(one) - len(found[1]) - 4
            assert is_plain(one) is true


def test_a_frame_of_a_lane_or_of_many_lines_is_read_in_full():
    data = json.dumps(DELTA).encode()
    assert is_plain_frame(data)
    assert block_in_frame(data) == b"event: %b\ndata: %b\n\n" % (DELTA["type"].encode(), data)
    assert not is_plain_frame(json.dumps({**DELTA, "stream_id": "a"}).encode())
    assert not is_plain_frame(json.dumps(DELTA, indent=1).encode())
    assert not is_plain_frame(b"")


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
    def __init__(self, *, framed=False):
        self.framed = framed
        self.raw = []
        self.blocks = []
        self.passes = self.raw.append

    def begin(self, status, headers):
        """It has no head."""

    def show(self, block, events):
        self.blocks.append(block)

    def end(self):
        """Nothing more is shown."""


def flowing(*, framed=False):
    stream = Stream(Passing(framed=framed), Log())
    stream.begin(200, ())
    stream.shown = Shown.MORE
    return stream


def passed(stream, chunk=CHUNK):
    return stream.passage(framed=False).chunk(chunk)


def test_what_is_passed_on_is_counted_numbered_and_kept():
    async def main():
        stream = flowing()
        assert passed(stream)
        assert stream.sink.raw == [CHUNK]
        assert (stream.events, stream.number) == (1, 7)
        nameless = block_of({"type": "response.output_text.delta", "delta": "b"})
        assert passed(stream, chunk_of(nameless))
        assert stream.log.blocks == [BLOCK, nameless]
        assert stream.log.size == len(CHUNK + chunk_of(nameless))
        assert stream.events == 2
        eighth = block_of({**DELTA, "sequence_number": 8})
        stream.show(eighth, (lone(eighth),))
        assert (stream.events, stream.number) == (3, 8)
        assert stream.log.blocks == [BLOCK, nameless, eighth]

    run(main())


def test_the_number_of_what_was_passed_on_is_known_also_when_it_was_put_away():
    async def main():
        stream = flowing()
        assert passed(stream)
        assert stream.log.since(6) == BLOCK
        assert stream.number == 7

    run(main())


def test_a_frame_that_is_passed_on_is_kept_as_lines():
    async def main():
        stream = flowing(framed=True)
        payload = json.dumps(DELTA).encode()
        assert stream.passage(framed=True).frame(payload)
        assert stream.sink.raw == [payload]
        assert (stream.events, stream.number) == (1, 7)
        assert stream.log.blocks == [block_in_frame(payload)]

    run(main())


def test_what_was_passed_on_is_put_away_before_it_is_too_much():
    async def main():
        stream = flowing()
        passage = stream.passage(framed=False)
        for _ in range(MOST_WAITING):
            assert passage.chunk(CHUNK)
        assert not passage.chunk(CHUNK)
        stream.show(BLOCK, (lone(BLOCK),))
        assert not passage.waiting
        assert passed(stream)
        assert stream.events == MOST_WAITING + 2
        assert len(stream.log.blocks) == MOST_WAITING + 2

    run(main())


def test_nothing_is_passed_on_before_what_is_held():
    async def main():
        stream = flowing()
        passage = stream.passage(framed=False)
        future = asyncio.get_running_loop().create_future()
        stream.hold(future)
        assert not passage.chunk(CHUNK)
        assert not passed(stream)
        stream.show(BLOCK, (lone(BLOCK),))
        future.set_result(None)
        await stream.clear()
        assert stream.sink.blocks == [BLOCK]
        assert passed(stream)

    run(main())


def test_nothing_is_passed_on_past_whoever_follows():
    async def main():
        stream = flowing()
        passage = stream.passage(framed=False)
        assert passage.chunk(CHUNK)
        heard = []
        stop = stream.log.follow(heard.append)
        assert not passage.chunk(CHUNK)
        assert not passed(stream)
        stream.show(BLOCK, (lone(BLOCK),))
        assert heard == [BLOCK]
        stop()
        assert passed(stream)

    run(main())


def test_nothing_is_passed_on_before_the_client_knows_of_the_answer():
    async def main():
        stream = flowing()
        stream.shown = Shown.BEGUN
        assert not passed(stream)

    run(main())


def test_nothing_is_passed_on_to_who_speaks_otherwise_or_has_gone():
    async def main():
        stream = flowing()
        assert not stream.passage(framed=True).frame(json.dumps(DELTA).encode())
        stream.sink.passes = None
        assert not passed(stream)
        stream = flowing()
        stream.broken = ValueError()
        assert not passed(stream)

    run(main())
