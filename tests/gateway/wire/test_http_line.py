from __future__ import annotations

import asyncio
import ssl
import struct
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from socket import SO_LINGER, SOL_SOCKET

import pytest
import uvloop
from hypothesis import given, settings
from hypothesis import strategies as st

from lockstitch.gateway.lines import LineFailure
from tests.gateway.building import until
from tests.gateway.wire.playing import (
    Heard,
    answer_to,
    asking,
    heard_of,
    lines_to,
    request_read,
    saying,
    serving,
)

SMALL = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi"
HEAD = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
STREAM = HEAD + b"3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n"


def test_an_answer_is_heard_from_its_head_to_its_end(run):
    heard = run(heard_of(b"HTTP/1.1 429 No\r\nRetry-After: 3\r\ncontent-length: 2\r\n\r\nhi"))
    assert heard.status == 429
    assert heard.headers == [("Retry-After", "3"), ("content-length", "2")]
    assert heard.body == b"hi"
    assert heard.is_whole


def test_the_request_arrives_as_it_was_asked(run):
    async def go():
        got = []

        async def talk(reader, writer):
            got.append(await request_read(reader))
            writer.write(SMALL)

        async with serving(talk) as url, lines_to(url + "/api/v1") as lines:
            body = b"x" * 3_000_000
            await answer_to(lines, target="/responses?a=1", headers=[("X-Y", "z")], body=body)
            (head, received), name = got[0], url.removeprefix("http://")
            assert head == (
                f"POST /api/v1/responses?a=1 HTTP/1.1\r\nhost: {name}\r\n"
                "accept-encoding: identity\r\ncontent-length: 3000000\r\nX-Y: z\r\n\r\n"
            )
            assert received == body

    run(go())


@settings(max_examples=40)
@given(
    pieces=st.lists(st.binary(min_size=1, max_size=2000), min_size=1, max_size=8),
    cuts=st.lists(st.integers(0, 4000), max_size=6),
)
def test_any_bytes_in_any_chunks_arrive_unchanged(pieces, cuts):
    data = HEAD + b"".join(b"%x\r\n%b\r\n" % (len(p), p) for p in pieces) + b"0\r\n\r\n"
    places = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    sent = [data[a:b] for a, b in pairwise(places)]
    heard = uvloop.run(heard_of(*sent))
    assert heard.body == b"".join(pieces)
    assert heard.is_whole


def test_what_came_at_once_is_heard_at_once(run):
    heard = run(heard_of(STREAM))
    assert heard.pieces == [b"onetwo"]


def test_a_body_without_a_length_ends_with_the_connection(run):
    heard = run(heard_of(b"HTTP/1.1 200 OK\r\n\r\nuntil", b" the end"))
    assert heard.body == b"until the end"
    assert heard.is_whole


def test_interim_answers_are_not_heard(run):
    heard = run(heard_of(b"HTTP/1.1 100 Continue\r\n\r\n", SMALL))
    assert heard.status == 200
    assert heard.is_whole


def test_an_answer_to_head_has_no_body(run):
    heard = run(heard_of(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n", method="HEAD", body=b""))
    assert heard.is_whole
    assert heard.body == b""


@pytest.mark.parametrize("how", ["close", "reset"])
@pytest.mark.parametrize("answer", [STREAM, SMALL], ids=["chunks", "length"])
def test_an_answer_that_is_cut_anywhere_breaks_and_is_whole_nowhere(run, how, answer):
    """The fault loop: after no byte, after one, and so on, until nothing is cut."""

    async def go():
        cut = 0

        async def talk(reader, writer):
            await request_read(reader)
            writer.write(answer[:cut])
            await writer.drain()
            if how == "reset":
                # Let it arrive: a reset also takes back what was not read.
                await asyncio.sleep(0.002)
                raw = writer.get_extra_info("socket")
                raw.setsockopt(SOL_SOCKET, SO_LINGER, struct.pack("ii", 1, 0))
                writer.transport.abort()

        async with serving(talk) as url, lines_to(url) as lines:
            for cut in range(len(answer)):
                heard = await answer_to(lines)
                assert not heard.is_whole, cut
                assert heard.failure is not None
                assert heard.failure.sent
                assert b"onetwo".startswith(heard.body) or b"hi".startswith(heard.body)
                assert heard.body in {b"", b"h"} or answer is STREAM
            cut = len(answer)
            assert (await answer_to(lines)).is_whole
            assert lines._turns._value == 1000

    run(go())


def test_bad_framing_breaks_behind_what_was_good(run):
    heard = run(heard_of(HEAD + b"3\r\none\r\nzz\r\n"))
    assert heard.body == b"one"
    assert heard.failure is not None
    assert "no HTTP answer" in str(heard.failure)


def test_a_head_without_end_breaks(run):
    heard = run(heard_of(b"HTTP/1.1 200 OK\r\nx: ", *[b"y" * 10_000] * 10))
    assert heard.status is None
    assert heard.failure is not None


def test_silence_breaks_a_line_before_and_inside_of_its_answer(run):
    async def go():
        said = b""

        async def talk(reader, writer):
            await request_read(reader)
            writer.write(said)
            await reader.read()

        async with serving(talk) as url, lines_to(url, silence_seconds=0.05) as lines:
            for before in (b"", HEAD + b"3\r\none\r\n"):
                said = before
                heard = await answer_to(lines)
                assert "said nothing for 0.05 seconds" in str(heard.failure)

    run(go())


def test_a_line_that_goes_on_saying_something_is_not_silent(run):
    async def go():
        async def talk(reader, writer):
            await request_read(reader)
            writer.write(HEAD)
            for _ in range(12):
                await asyncio.sleep(0.05)
                writer.write(b"1\r\nx\r\n")
            writer.write(b"0\r\n\r\n")

        async with serving(talk) as url, lines_to(url, silence_seconds=0.5) as lines:
            heard = await answer_to(lines)
            assert heard.body == b"x" * 12

    run(go())


def test_a_paused_line_reads_nothing_and_is_not_silent(run):
    async def go():
        async def talk(reader, writer):
            await request_read(reader)
            writer.write(HEAD)
            await writer.drain()
            await asyncio.sleep(0.05)
            writer.write(b"3\r\none\r\n0\r\n\r\n")
            await reader.read()

        async with serving(talk) as url, lines_to(url, silence_seconds=0.1) as lines:
            heard = Heard()
            line = await lines.ask(asking(), heard)
            await heard.first.wait()
            line.pause()
            line.pause()
            await asyncio.sleep(0.3)
            assert not heard.is_over
            assert heard.pieces == []
            line.resume()
            line.resume()
            assert (await heard.over()).body == b"one"

    run(go())


def test_a_line_that_is_left_is_never_heard_again_and_its_connection_is_closed(run):
    async def go():
        closed = asyncio.Event()

        async def talk(reader, writer):
            await request_read(reader)
            writer.write(HEAD + b"3\r\none\r\n")
            with suppress(ConnectionError):
                await reader.read()
            closed.set()

        async with serving(talk) as url, lines_to(url) as lines:
            heard = Heard()
            line = await lines.ask(asking(), heard)
            await heard.first.wait()
            line.leave()
            line.leave()
            line.pause()
            line.resume()
            await closed.wait()
            assert not heard.is_over
            assert lines._turns._value == 1000

    run(go())


@pytest.mark.parametrize("call", ["begun", "heard"])
def test_a_listener_may_leave_from_its_own_call(run, call):
    async def go():
        async with serving(saying(STREAM)) as url, lines_to(url) as lines:
            heard = Heard()
            told = getattr(heard, call)

            def leaves(*given):
                told(*given)
                line.leave()

            setattr(heard, call, leaves)
            line = await lines.ask(asking(), heard)
            whole = b"" if call == "begun" else b"onetwo"
            await until(lambda: heard.status == 200 and heard.body == whole)
            await asyncio.sleep(0.05)  # for more of it, if it were wrong
            assert heard.body == whole
            assert not heard.is_over

    run(go())


def test_an_answer_before_the_whole_request_was_read_is_heard(run):
    async def go():
        async def talk(reader, writer):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 413 X\r\nconnection: close\r\ncontent-length: 2\r\n\r\nno")
            await writer.drain()
            await asyncio.sleep(0.05)

        async with serving(talk) as url, lines_to(url) as lines:
            heard = await answer_to(lines, body=b"x" * 20_000_000)
            assert (heard.status, heard.body, heard.is_whole) == (413, b"no", True)

    run(go())


def test_an_address_of_ipv6_is_asked(run):
    async def go():
        try:
            async with serving(saying(SMALL), host="::1") as url, lines_to(url) as lines:
                assert (await answer_to(lines)).is_whole
        except OSError:
            pytest.skip("no IPv6 here")

    run(go())


@pytest.fixture(scope="module")
def certified(tmp_path_factory: pytest.TempPathFactory) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """A server that is `localhost`, and a client that trusts it."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path_factory.mktemp("tls") / "both.pem"
    pem = serialization.Encoding.PEM
    path.write_bytes(
        key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        + certificate.public_bytes(pem)
    )
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server.load_cert_chain(path)
    return server, ssl.create_default_context(cafile=str(path))


def test_an_upstream_behind_tls_is_asked_and_kept(run, certified):
    async def go():
        server, client = certified
        async with (
            serving(saying(STREAM, then_close=False), ssl=server) as url,
            lines_to(url.replace("127.0.0.1", "localhost"), ssl=client) as lines,
        ):
            for _ in range(3):
                heard = await answer_to(lines, body=b"x" * 300_000)
                assert heard.body == b"onetwo"
                assert heard.is_whole
            assert lines.opened == 1

    run(go())


def test_a_certificate_for_another_name_is_refused_before_anything_is_sent(run, certified):
    async def go():
        server, client = certified
        async with (
            serving(saying(SMALL), ssl=server) as url,
            lines_to(url, ssl=client) as lines,
        ):
            with pytest.raises(LineFailure) as raised:
                await lines.ask(asking(), Heard())
            assert not raised.value.sent
            assert lines._turns._value == 1000

    async def quiet():
        work = asyncio.create_task(go())
        # The server's side of the refused handshake is its own affair.
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)
        await work

    run(quiet())


@pytest.mark.parametrize("answer", [STREAM, SMALL, HEAD + b"3\r\none\r\nzz\r\n"])
@pytest.mark.parametrize("then_close", [True, False])
def test_a_listener_that_pauses_at_the_head_hears_the_rest_after_it_resumes(
    run, answer, then_close
):
    """Whoever has to wait for something between the head and the body can."""

    async def go():
        async with (
            serving(saying(answer, then_close=then_close)) as url,
            lines_to(url) as lines,
        ):
            heard = Heard()
            begun = heard.begun

            def pauses(*given):
                begun(*given)
                line.pause()

            heard.begun = pauses
            line = await lines.ask(asking(), heard)
            await heard.first.wait()
            await asyncio.sleep(0.03)
            assert heard.pieces == []
            assert not heard.is_over
            line.resume()
            assert heard.pieces == []
            await heard.over()
            assert heard.body in {b"onetwo", b"hi", b"one"}
            assert heard.is_whole == (heard.body != b"one")
            assert lines._turns._value == 1000

    run(go())


def test_a_line_that_is_paused_before_its_head_hears_nothing_at_all(run):
    async def go():
        async with serving(saying(STREAM)) as url, lines_to(url) as lines:
            heard = Heard()
            line = await lines.ask(asking(), heard)
            line.pause()
            await asyncio.sleep(0.03)
            assert heard.status is None
            line.resume()
            line.pause()
            await asyncio.sleep(0.03)
            assert heard.status is None
            line.resume()
            assert (await heard.over()).body == b"onetwo"

    run(go())


def test_an_answer_whose_connection_was_lost_while_it_was_paused_is_told_in_order(run):
    async def go():
        async with (
            serving(saying(HEAD + b"3\r\none\r\n", then_close=False)) as url,
            lines_to(url) as lines,
        ):
            heard = Heard()
            begun = heard.begun

            def pauses(*given):
                begun(*given)
                line.pause()

            heard.begun = pauses
            line = await lines.ask(asking(), heard)
            await heard.first.wait()
            # What a failed keep-alive probe of the system does.
            line.connection._transport.abort()
            await asyncio.sleep(0.02)
            assert heard.pieces == []
            line.resume()
            await heard.over()
            assert heard.body == b"one"
            assert heard.failure is not None
            assert lines._turns._value == 1000

    run(go())


def test_a_line_whose_connection_was_lost_can_still_be_paused_between_head_and_body(run):
    async def go():
        async with serving(saying(STREAM, then_close=False)) as url, lines_to(url) as lines:
            heard = Heard()
            begun = heard.begun

            def pauses(*given):
                begun(*given)
                line.pause()

            heard.begun = pauses
            line = await lines.ask(asking(), heard)
            # As TLS may: bytes that were read already come although the line is paused.
            line.pause()
            line.connection.data_received(STREAM)
            line.connection._transport.abort()
            await asyncio.sleep(0.02)
            assert heard.status is None
            line.resume()
            await heard.first.wait()
            await asyncio.sleep(0.02)
            assert heard.pieces == []
            line.resume()
            assert (await heard.over()).body == b"onetwo"
            assert heard.is_whole
            assert lines._turns._value == 1000

    run(go())


@pytest.mark.parametrize("paused", [False, True])
def test_a_listener_that_fails_is_told_that_its_line_broke(run, paused):
    async def go():
        raised = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: raised.append(context))
        async with (
            serving(saying(HEAD + b"3\r\none\r\n", then_close=False)) as url,
            lines_to(url) as lines,
        ):
            heard = Heard()

            def fails(*_):
                raise RuntimeError("on purpose")

            heard.heard = fails
            line = await lines.ask(asking(), heard)
            if paused:
                begun = heard.begun
                heard.begun = lambda *given: (begun(*given), line.pause())
                await heard.first.wait()
                line.resume()
            await heard.over()
            assert heard.failure is not None
            assert len(raised) == 1
            assert lines._turns._value == 1000

    run(go())
