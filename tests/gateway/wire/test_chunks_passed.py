"""Chunks that go past the parser: only whole ones, where a chunk begins, and in their order."""

from __future__ import annotations

import asyncio

import pytest

from lockstitch.gateway.wire.http_answer import Answer
from lockstitch.gateway.wire.http_line import HttpConnection

HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def chunk(body):
    return b"%x\r\n%b\r\n" % (len(body), body)


@pytest.mark.parametrize(
    ("data", "between"),
    [
        (HEAD, False),
        (HEAD + chunk(b"a\n\n"), True),
        (HEAD + chunk(b"a\n\n") * 2, True),
        (HEAD + chunk(b"a\n\n")[:-1], False),
        (HEAD + chunk(b"a\n\n") + b"5\r\n", False),
        (HEAD + chunk(b"a\n\n") + b"5;x=y\r\n", False),
        (HEAD + b"9\r\na\n\n\r\n", False),
        (HEAD + chunk(b"a\n\n") + b"0\r\n", False),
        (HEAD + chunk(b"a\n\n") + b"0\r\n\r\n", False),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\na\n\n\r\n", False),
    ],
)
def test_where_a_chunk_begins_is_known(data, between):
    whole = Answer("POST")
    whole.feed(data)
    assert whole.between_chunks is between
    bytewise = Answer("POST")
    for n in range(len(data)):
        bytewise.feed(data[n : n + 1])
    # The last byte alone does not tell.
    assert bytewise.between_chunks is False
    assert b"".join(bytewise.pieces) == b"".join(whole.pieces)


class Transport:
    def __init__(self):
        self.reads = True

    def is_closing(self):
        return False

    def write(self, data):
        """It goes nowhere."""

    def get_write_buffer_size(self):
        return 0

    def pause_reading(self):
        self.reads = False

    def resume_reading(self):
        self.reads = True

    def abort(self):
        """There is nothing."""


class Keeper:
    def freed(self, connection, *, reusable):
        """Nobody waits for it."""

    def lost(self, connection):
        """Nobody misses it."""


class Hearing:
    def __init__(self, *, passes):
        self.told = []
        self.passes = passes

    def passed(self, data):
        if self.passes and data.endswith(b"\n\n\r\n"):
            self.told.append(data)
            return True
        return False

    def begun(self, status, headers):
        """It is 200."""

    def heard(self, data):
        self.told.append(data)

    def ended(self):
        self.told.append("ended")

    def broke(self, failure):
        self.told.append("broke")


async def asked(*, passes):
    connection = HttpConnection(Keeper(), "n", silence_seconds=9, largest_head=9_999)
    connection.connection_made(Transport())
    hearing = Hearing(passes=passes)
    return connection, hearing, connection.ask("POST", b"", b"", hearing)


@pytest.mark.parametrize("passes", [True, False])
def test_an_answer_goes_on_behind_chunks_that_passed(passes):
    async def main():
        connection, hearing, _ = await asked(passes=passes)
        one, two = chunk(b"a\n\n"), chunk(b"b\n\n")
        for data in (HEAD + one, two, chunk(b"c\n\n")[:4], b"\n\n\r\n", two, b"0\r\n\r\n"):
            connection.data_received(data)
        passed = two if passes else b"b\n\n"
        assert hearing.told == [b"a\n\n", passed, b"c", b"\n\n", passed, "ended"]

    asyncio.run(main())


def test_nothing_passes_a_line_that_is_paused_or_what_was_held_then():
    async def main():
        connection, hearing, line = await asked(passes=True)
        connection.data_received(HEAD + chunk(b"a\n\n"))
        line.pause()
        connection.data_received(chunk(b"b\n\n"))
        line.resume()
        connection.data_received(chunk(b"c\n\n"))
        await asyncio.sleep(0)
        connection.data_received(chunk(b"d\n\n"))
        assert hearing.told == [b"a\n\n", b"b\n\nc\n\n", chunk(b"d\n\n")]

    asyncio.run(main())
