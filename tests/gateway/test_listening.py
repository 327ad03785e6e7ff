"""Connections of clients, in plain bytes: slow ones, too many, too large, and forged requests."""

from __future__ import annotations

import asyncio
import gzip
import json
from io import StringIO

import pytest
from msgspec.structs import replace

from lockstitch.gateway.config import LogSettings
from lockstitch.gateway.watching import logs
from tests.gateway.building import EACH_SECONDS, QUICK, both, encoded, keys, open_files, run, until

BODY = encoded({"model": "m", "input": "x"})


def request(*headers, body=BODY, line="POST /v1/responses HTTP/1.1"):
    lines = [line, "host: x", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


async def said_to(gw, *pieces, wait=5.0):
    """All that is answered to these bytes until the gateway closes, or says nothing more."""
    reader, writer = await gw.talk()
    told = b""
    try:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0.01)
        async with asyncio.timeout(wait):
            while piece := await reader.read(65536):
                told += piece
    except (TimeoutError, ConnectionError):
        pass
    finally:
        writer.close()
    return told


def served(work, **more):
    async def main():
        async with both(**more) as (up, gw):
            await work(up, gw)

    run(main())


def statuses(told):
    parts = told.split(b"HTTP/1.1 ")[1:]
    return [int(part[:3]) for part in parts]


FORGED = {
    "a length and chunks": request(
        f"content-length: {len(BODY)}", "transfer-encoding: chunked", body=BODY
    ),
    "two lengths": request(f"content-length: {len(BODY)}", "content-length: 3"),
    "two equal lengths": request(f"content-length: {len(BODY)}", f"content-length: {len(BODY)}"),
    "a list of lengths": request(f"content-length: {len(BODY)}, {len(BODY)}"),
    "a length with a sign": request(f"content-length: +{len(BODY)}"),
    "a length that is none": request("content-length: 0x20"),
    "a negative length": request("content-length: -1"),
    "chunks and something else": request("transfer-encoding: chunked, identity", body=b"0\r\n\r\n"),
    "chunks twice": request(
        "transfer-encoding: chunked", "transfer-encoding: chunked", body=b"0\r\n\r\n"
    ),
    "chunks misspelled": request("transfer-encoding: xchunked", body=b"0\r\n\r\n"),
    "chunks with a vertical tab": request("transfer-encoding: \x0bchunked", body=b"0\r\n\r\n"),
    "a chunk whose size is none": request(
        "transfer-encoding: chunked", body=b"zz\r\n{}\r\n0\r\n\r\n"
    ),
    "a chunk with a sign": request("transfer-encoding: chunked", body=b"+2\r\n{}\r\n0\r\n\r\n"),
    "a chunk that is longer than it says": request(
        "transfer-encoding: chunked", body=b"2\r\n{}XX\r\n0\r\n\r\n"
    ),
    "a folded header": request("x-a: 1\r\n folded", f"content-length: {len(BODY)}"),
    "a space before the colon": request(f"content-length : {len(BODY)}"),
    "a header without a name": request(": x", f"content-length: {len(BODY)}"),
    "a bare CR in a header": request("x-a: 1\rx-b: 2", f"content-length: {len(BODY)}"),
    "a NUL in a header": request("x-a: 1\x002", f"content-length: {len(BODY)}"),
    "a line without a version": request(line="POST /v1/responses"),
    "another version": request(f"content-length: {len(BODY)}", line="POST /v1/responses HTTP/3.7"),
    "a tab in the line": request(line="POST\t/v1/responses HTTP/1.1"),
    "no method": request(line="/v1/responses HTTP/1.1"),
}


@pytest.mark.parametrize("name", sorted(FORGED))
def test_no_forged_request_smuggles_another(name):
    """Behind each stands a request to somewhere else: it must not be answered as one of its own
    unless the first was read to its very end."""
    smuggled = b"GET /v1/smuggled HTTP/1.1\r\nhost: x\r\n\r\n"

    async def work(up, gw):
        told = await said_to(gw, FORGED[name] + smuggled, wait=0.7)
        paths = [one.request.raw_path for one in up.asked]
        bodies = [one.body for one in up.asked if one.request.raw_path == "/v1/responses"]
        assert all(body == BODY for body in bodies), bodies
        if "/v1/smuggled" in paths:
            # Then it was a second request in good form, and the first one was answered.
            assert name in ("two equal lengths",), (name, statuses(told))
        for status in statuses(told)[:1]:
            assert status in (200, 400), (name, status)
        # And the gateway lives.
        assert (await gw.ask(input="x"))["http"] == 200

    served(work)


def test_bare_line_feeds_are_no_way_in():
    async def work(up, gw):
        raw = b"POST /v1/responses HTTP/1.1\nhost: x\ncontent-length: %d\n\n" % len(BODY) + BODY
        told = await said_to(gw, raw, wait=0.5)
        assert statuses(told)[:1] in ([], [200], [400])
        if statuses(told)[:1] == [200]:
            assert up.asked[-1].body == BODY

    served(work)


def test_chunks_with_extensions_and_trailers_are_one_body():
    async def work(up, gw):
        head = request("transfer-encoding: chunked", "connection: close", body=b"")
        size = b"%x" % len(BODY)
        told = await said_to(gw, head + size + b";a=b\r\n" + BODY + b"\r\n0\r\nx-t: 1\r\n\r\n")
        assert statuses(told) == [200]
        sent = up.asked[-1]
        assert sent.body == BODY
        assert "transfer-encoding" not in sent.request.headers
        assert "x-t" not in sent.request.headers
        assert sent.request.headers.getall("content-length") == [str(len(BODY))]

    served(work)


def test_requests_one_behind_the_other_are_answered_in_order():
    async def work(up, gw):
        one = request(f"content-length: {len(BODY)}")
        last = request(f"content-length: {len(BODY)}", "connection: close")
        told = await said_to(gw, one * 4 + last)
        assert statuses(told) == [200] * 5
        assert [told.find(f'"plain_{n}"'.encode()) for n in range(1, 6)] == sorted(
            told.find(f'"plain_{n}"'.encode()) for n in range(1, 6)
        )
        assert len(up.asked) == 5

    served(work)


def test_a_head_that_comes_byte_by_byte_is_not_waited_for():
    async def work(up, gw):
        began = asyncio.get_running_loop().time()
        reader, writer = await gw.talk()
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError, AssertionError)):  # noqa: PT012
            for byte in request(f"content-length: {len(BODY)}", "x: " + "y" * 5000):
                writer.write(bytes([byte]))
                await writer.drain()
                await asyncio.sleep(0.01)
                assert not reader.at_eof()
        assert asyncio.get_running_loop().time() - began < EACH_SECONDS
        writer.close()
        await until(lambda: gw.gateway._listener.count == 0)

    served(work, limits=replace(QUICK, request_seconds=0.3))


def test_a_second_head_that_comes_byte_by_byte_is_not_waited_for():
    async def work(up, gw):
        reader, writer = await gw.talk()
        writer.write(request(f"content-length: {len(BODY)}"))
        assert b" 200 " in await reader.readline()
        began = asyncio.get_running_loop().time()
        closed = False
        while asyncio.get_running_loop().time() - began < EACH_SECONDS and not closed:
            writer.write(b"G" if writer.transport.get_write_buffer_size() == 0 else b"")
            await asyncio.sleep(0.02)
            try:
                async with asyncio.timeout(0.001):
                    while await reader.read(65536):
                        pass
                    closed = True
            except (TimeoutError, ConnectionError) as error:
                closed = isinstance(error, ConnectionError)
        assert closed
        writer.close()

    served(work, limits=replace(QUICK, request_seconds=0.5, idle_seconds=0.5))


def test_a_body_that_does_not_come_is_not_waited_for():
    async def work(up, gw):
        told = await said_to(gw, request("content-length: 100", body=b"{"))
        assert statuses(told) == [408]
        assert up.asked == []

    served(work, limits=replace(QUICK, request_seconds=0.2))


def test_a_connection_that_says_nothing_is_closed():
    async def work(up, gw):
        began = asyncio.get_running_loop().time()
        assert await said_to(gw) == b""
        assert asyncio.get_running_loop().time() - began < EACH_SECONDS
        assert gw.gateway._listener.count == 0

    served(work, limits=replace(QUICK, request_seconds=0.2, idle_seconds=3 * EACH_SECONDS))


def test_only_so_many_connections_are_kept():
    async def work(up, gw):
        first = [await gw.talk() for _ in range(3)]
        await until(lambda: gw.gateway._listener.count == 3)
        reader, writer = await gw.talk()
        assert await reader.read() == b""
        writer.close()
        for _, one in first:
            one.close()
        await until(lambda: gw.gateway._listener.count == 0)
        told = await said_to(gw, request(f"content-length: {len(BODY)}", "connection: close"))
        assert statuses(told) == [200]

    served(work, limits=replace(QUICK, connections=3))


def test_a_client_whose_body_comes_behind_its_refusal_can_ask_again_on_the_same_connection():
    async def work(up, gw):
        reader, writer = await gw.talk()
        for _ in range(2):
            writer.write(request(f"content-length: {len(BODY)}", body=b""))
            head = await reader.readuntil(b"\r\n\r\n")
            assert statuses(head) == [401]
            length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
            await reader.readexactly(length)
            writer.write(BODY)
        writer.close()

    served(work, keys=keys("a"))


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_that_is_too_large_is_refused_before_it_is_all_there(chunked):
    async def work(up, gw):
        body = b"x" * 50_000
        if chunked:
            sent = request("transfer-encoding: chunked", "connection: close", body=b"")
            sent += b"%x\r\n" % len(body) + body + b"\r\n0\r\n\r\n"
        else:
            sent = request(f"content-length: {len(body)}", "connection: close", body=body)
        told = await said_to(gw, sent)
        assert statuses(told) == [413]
        assert up.asked == []

    served(work, limits=replace(QUICK, body_bytes=10_000))


def test_a_packed_body_is_unpacked_only_up_to_the_limit():
    async def work(up, gw):
        bomb = gzip.compress(b'{"model":"' + b"m" * 5_000_000 + b'"}')
        assert len(bomb) < 10_000
        sent = request(
            f"content-length: {len(bomb)}", "content-encoding: gzip", "connection: close", body=bomb
        )
        assert statuses(await said_to(gw, sent)) == [413]
        small = gzip.compress(BODY)
        length = f"content-length: {len(small)}"
        sent = request(length, "content-encoding: gzip", "connection: close", body=small)
        assert statuses(await said_to(gw, sent)) == [200]
        assert up.asked[-1].body == BODY
        assert "content-encoding" not in up.asked[-1].request.headers

    served(work, limits=replace(QUICK, body_bytes=10_000))


@pytest.mark.parametrize(
    "head",
    [
        "x-long: " + "y" * 40_000,
        "\r\n".join(f"x-{n}: {'y' * 50}" for n in range(3_000)),
    ],
    ids=["one long header", "many headers"],
)
def test_a_head_that_is_too_large_is_refused(head):
    async def work(up, gw):
        told = await said_to(gw, request(head, f"content-length: {len(BODY)}"))
        assert statuses(told)[:1] in ([], [400], [431])
        assert up.asked == []

    served(work)


def test_a_target_that_is_too_long_is_refused():
    async def work(up, gw):
        line = "GET /v1/" + "x" * 40_000 + " HTTP/1.1"
        assert statuses(await said_to(gw, request(line=line, body=b"")))[:1] in ([], [400], [414])
        assert up.asked == []

    served(work)


def test_what_is_refused_for_its_key_is_refused_before_its_body_is_there():
    async def work(up, gw):
        told = await said_to(gw, request("content-length: 1000000", body=b"{"), wait=1)
        assert statuses(told) == [401]

    served(work, keys=keys("a"))


def test_connections_that_come_and_go_leave_nothing_behind():
    async def work(up, gw):
        before = open_files()
        for n in range(60):
            _, writer = await gw.talk()
            if n % 3:
                writer.write(request(f"content-length: {len(BODY)}")[:n])
            writer.transport.abort()
        await until(lambda: gw.gateway._listener.count == 0)
        assert (await gw.ask(input="x"))["http"] == 200
        assert open_files() <= before + 4  # the two connections of one request

    served(work)


def test_expecting_to_go_on_is_answered():
    async def work(up, gw):
        sent = request(f"content-length: {len(BODY)}", "expect: 100-continue", "connection: close")
        told = await said_to(gw, sent[: -len(BODY)], BODY)
        assert statuses(told) == [100, 200]
        assert "expect" not in up.asked[-1].request.headers

    served(work)


SECRET = "sk-0123456789abcdefghij"

UNREADABLE = {
    "a space before the colon": request(f"authorization : Bearer {SECRET}"),
    "a line that is too long": request("authorization: Bearer " + SECRET * 2_000),
    "a target that is not ASCII": request(line=f"GET /v1/é?key={SECRET} HTTP/1.1"),
    "a target that is no path": request(line=f"GET {SECRET} HTTP/1.1"),
    "no version": request(line=f"GET /v1/{SECRET}"),
    "TLS": b"\x16\x03\x01\x02\x00\x01" + SECRET.encode() + b"\r\n\r\n",
    "a coding that nobody has": request("content-encoding: br", "content-length: 3", body=b"abc"),
    "a length that is none": request("content-length: x", f"authorization: Bearer {SECRET}"),
    "a body that is not packed as it says": request(
        "content-encoding: gzip", "content-length: 3", "connection: close", body=b"abc"
    ),
    "chunks that are none": request("transfer-encoding: chunked", body=b"2\r\n{}\r\nzz\r\n"),
}


def logged_of(work, **more):
    """What a gateway, and everything that it is made of, logs meanwhile."""
    written = StringIO()
    logs.configure(LogSettings(), stream=written)
    try:
        served(work, **more)
    finally:
        logs.configure(LogSettings())
    return [json.loads(line) for line in written.getvalue().splitlines()]


@pytest.mark.parametrize("name", sorted(UNREADABLE))
def test_what_cannot_be_read_is_refused_in_the_form_of_the_api_and_is_one_line_of_the_log(
    name, capfd
):
    async def work(up, gw):
        told = await said_to(gw, UNREADABLE[name], wait=2.0)
        head, _, body = told.partition(b"\r\n\r\n")
        assert head.split(b" ")[1] == b"400"
        assert b"content-type: application/json" in head.lower()
        error = json.loads(body)["error"]
        assert error["type"] == "invalid_request_error"
        assert SECRET not in error["message"]
        assert up.asked == []

    (line,) = logged_of(work)
    assert line["level"] == "info"
    assert SECRET not in json.dumps(line)
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("how", ["closes", "aborts"])
def test_a_client_that_goes_away_with_half_of_its_body_is_no_mistake_of_ours(how):
    async def work(up, gw):
        _, writer = await gw.talk()
        writer.write(request("content-length: 300", body=b"{"))
        await until(lambda: gw.gateway._open)
        writer.close() if how == "closes" else writer.transport.abort()
        await until(lambda: not gw.gateway._open)
        gone = gw.world.metrics.clients_gone
        assert next(one.value for one in gone.collect()[0].samples) == 1
        assert up.asked == []

    (line,) = logged_of(work)
    assert (line["level"], line["event"], line["status"]) == ("info", "request", 499)
    assert line["notes"] == ["client gone"]
