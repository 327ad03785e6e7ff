from __future__ import annotations

import gzip
from collections import deque
from contextlib import suppress
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstitch.gateway.wire.http_answer import Answer, BadAnswer

OK = b"HTTP/1.1 200 OK\r\n"


def fed(data: bytes, *, method: str = "POST", cuts: list[int] | None = None) -> Answer:
    answer = Answer(method, largest_head=4096)
    places = sorted({0, len(data), *(cut for cut in cuts or [] if cut < len(data))})
    for start, end in pairwise(places):
        answer.feed(data[start:end])
    return answer


def chunked(pieces: list[bytes], extension: bytes = b"") -> bytes:
    return b"".join(b"%x%b\r\n%b\r\n" % (len(p), extension, p) for p in pieces if p)


CUTS = st.lists(st.integers(0, 400), max_size=12)
PIECES = st.lists(st.binary(max_size=40), max_size=6)


@given(pieces=PIECES, cuts=CUTS, extension=st.sampled_from([b"", b";a=b", b';a="b"']))
def test_a_body_in_chunks_is_the_same_however_it_is_cut(pieces, cuts, extension):
    data = OK + b"transfer-encoding: chunked\r\n\r\n" + chunked(pieces, extension)
    answer = fed(data + b"0\r\nx-trailer: 1\r\n\r\n", cuts=cuts)
    assert b"".join(answer.pieces) == b"".join(pieces)
    assert answer.whole
    assert answer.reusable
    assert answer.headers == [("transfer-encoding", "chunked")]


@given(body=st.binary(max_size=200), cuts=CUTS)
def test_a_body_with_a_length_is_the_same_however_it_is_cut(body, cuts):
    answer = fed(OK + b"content-length: %d\r\n\r\n%b" % (len(body), body), cuts=cuts)
    assert b"".join(answer.pieces) == body
    assert answer.whole
    assert answer.reusable


@given(body=st.binary(max_size=200), cuts=CUTS)
def test_a_body_without_either_lasts_until_the_connection_ends(body, cuts):
    answer = fed(OK + b"\r\n" + body, cuts=cuts)
    assert b"".join(answer.pieces) == body
    assert answer.until_eof
    assert not answer.whole


@given(data=st.binary(max_size=300), cuts=CUTS, start=st.sampled_from([b"", OK, OK + b"\r\n"]))
def test_any_bytes_are_an_answer_or_a_bad_one(data, cuts, start):
    with suppress(BadAnswer):
        fed(start + data, cuts=cuts)


def test_interim_answers_are_passed_over():
    interim = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n"
    answer = fed(interim + OK + b"x: y\r\ncontent-length: 1\r\n\r\nz")
    assert answer.status == 200
    assert answer.headers == [("x", "y"), ("content-length", "1")]
    assert answer.pieces == [b"z"]


def test_interim_answers_without_end_are_bad():
    answer = Answer("POST", largest_head=4096)
    with pytest.raises(BadAnswer):
        deque(map(answer.feed, [b"HTTP/1.1 102 Processing\r\n\r\n"] * 1000))


@pytest.mark.parametrize("status", [204, 304])
def test_an_answer_that_cannot_have_a_body_ends_with_its_head(status):
    answer = fed(b"HTTP/1.1 %d X\r\n\r\n" % status)
    assert answer.whole
    assert answer.reusable
    assert not answer.until_eof


def test_an_answer_to_head_has_the_length_of_a_body_that_does_not_come():
    answer = fed(OK + b"content-length: 100\r\n\r\n", method="HEAD")
    assert answer.whole
    assert answer.reusable
    assert answer.pieces == []


def test_a_body_behind_an_answer_to_head_spoils_the_connection():
    answer = fed(OK + b"content-length: 3\r\n\r\nabc", method="HEAD")
    assert answer.whole
    assert not answer.reusable
    assert answer.pieces == []


@pytest.mark.parametrize("extra", [b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", b"garbage"])
def test_bytes_behind_the_end_spoil_the_connection_but_not_the_answer(extra):
    answer = fed(OK + b"content-length: 1\r\n\r\nz" + extra)
    assert answer.whole
    assert answer.pieces == [b"z"]
    assert answer.status == 200
    assert not answer.reusable


def test_a_server_that_closes_is_not_asked_again():
    assert not fed(OK + b"connection: close\r\ncontent-length: 1\r\n\r\nz").reusable
    assert not fed(b"HTTP/1.0 200 OK\r\ncontent-length: 1\r\n\r\nz").reusable


@pytest.mark.parametrize(
    "data",
    [
        b"SSH-2.0-x\r\n",
        b"HTTP/2 200\r\n\r\n",
        OK + b"content-length: 1\r\ncontent-length: 2\r\n\r\nz",
        OK + b"content-length: 1\r\ntransfer-encoding: chunked\r\n\r\nz",
        OK + b"content-length: -1\r\n\r\n",
        OK + b"transfer-encoding: chunked\r\n\r\nzz\r\n",
        OK + b"transfer-encoding: chunked\r\n\r\n1\r\nabc\r\n",
        OK + b"transfer-encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
        OK + b"x y: z\r\n\r\n",
        b"HTTP/1.1 101 X\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n",
        b"HTTP/1.1 101 X\r\n\r\n",
        OK + b"x: " + b"y" * 5000 + b"\r\n\r\n",
        OK + b"".join(b"x%d: y\r\n" % n for n in range(1000)) + b"\r\n",
    ],
)
def test_what_is_no_answer_is_bad(data):
    with pytest.raises(BadAnswer):
        fed(data)


@pytest.mark.parametrize(
    "start",
    [
        b"HTTP/1.1 200 ",
        OK + b"x: ",
        OK + b"transfer-encoding: chunked\r\n\r\n1;",
        OK + b"transfer-encoding: chunked\r\n\r\n1\r\na\r\n0\r\nx: ",
    ],
)
def test_what_never_comes_to_a_body_is_bad_after_a_while(start):
    answer = Answer("POST", largest_head=4096)
    answer.feed(start)
    answer.pieces.clear()
    with pytest.raises(BadAnswer):
        deque(map(answer.feed, [b"y" * 1000] * 10))


@given(pieces=PIECES, cuts=CUTS)
def test_a_packed_body_is_unpacked_and_none_of_its_chunks_can_be_handed_on(pieces, cuts):
    packed = gzip.compress(b"".join(pieces))
    parts = [packed[n : n + 7] for n in range(0, len(packed), 7)]
    head = OK + b"Content-Encoding: gzip\r\ntransfer-encoding: chunked\r\n\r\n"
    answer = fed(head + chunked(parts), cuts=cuts)
    assert not answer.between_chunks
    answer.feed(b"0\r\n\r\n")
    assert b"".join(answer.pieces) == b"".join(pieces)
    assert answer.headers == [("transfer-encoding", "chunked")]
    assert answer.whole


@pytest.mark.parametrize(
    "body", [b"{}", gzip.compress(b"hello")[:-3]], ids=["not packed", "broken off"]
)
def test_a_packed_body_that_cannot_be_unpacked_to_its_end_is_bad(body):
    head = b"content-encoding: gzip\r\ncontent-length: %d\r\n\r\n" % len(body)
    with pytest.raises(BadAnswer, match="packed"):
        fed(OK + head + body)


def test_a_packed_body_to_the_end_of_the_connection_is_whole_only_if_it_is_unpacked():
    packed = gzip.compress(b"hello")
    answer = fed(OK + b"content-encoding: gzip\r\n\r\n" + packed[:-1])
    assert answer.breaks_off
    answer.feed(packed[-1:])
    assert not answer.breaks_off


def test_what_is_packed_in_a_way_that_is_not_known_says_so_as_it_came():
    answer = fed(OK + b"content-encoding: br\r\ncontent-length: 2\r\n\r\nhi")
    assert answer.headers == [("content-encoding", "br"), ("content-length", "2")]
    assert answer.pieces == [b"hi"]


def test_a_part_of_what_is_packed_stays_as_it_came():
    answer = fed(b"HTTP/1.1 206 Part\r\ncontent-encoding: gzip\r\ncontent-length: 2\r\n\r\nhi")
    assert answer.headers[0] == ("content-encoding", "gzip")
    assert answer.pieces == [b"hi"]
    assert answer.whole
