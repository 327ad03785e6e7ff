"""Clients that mean harm, or know no better: each is answered, recorded, and costs no more."""

import asyncio
import http.client
import io
import json
import logging
import socket
import struct
import time
import urllib.parse
from contextlib import closing

import aiohttp
import pytest

from lockstitch.emulator import Settings, VirtualClock
from lockstitch.emulator.limits import (
    LARGEST_BODY_BYTES,
    LONGEST_RECORDED_LINE_CHARACTERS,
    LONGEST_REFUSAL_CHARACTERS,
    MOST_NESTING_LEVELS,
)
from lockstitch.emulator.wire import listening, reception
from lockstitch.testing import EmulatorThread

KEY = {"Authorization": "Bearer any"}
# A key, and what else a request must have.
HEAD = b"Host: localhost\r\nAuthorization: Bearer any\r\n"
UPGRADE = (
    b"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
)
SECONDS = 20.0


@pytest.fixture(autouse=True)
def no_tracebacks(caplog):
    """Whatever a client does, nobody has to read a traceback."""
    caplog.set_level(logging.INFO)
    yield
    said = caplog.get_records("call")
    loud = [record for record in said if record.levelno >= logging.ERROR]
    assert not [f"{record.name}: {record.getMessage()}" for record in loud]


def address(emulator):
    parts = urllib.parse.urlsplit(emulator.url)
    return parts.hostname, parts.port


def raw(emulator, sent, *, half_closed=False):
    """The bytes of one answer, to bytes that were sent as they are."""
    with closing(socket.create_connection(address(emulator), SECONDS)) as peer:
        peer.sendall(sent)
        if half_closed:
            peer.shutdown(socket.SHUT_WR)
        came = b""
        while data := peer.recv(65_536):
            came += data
            head, found, body = came.partition(b"\r\n\r\n")
            if found and b"Content-Length: %d\r\n" % len(body) in head + b"\r\n":
                break
        return came


def answered(emulator, sent):
    """A status and the JSON of a raw answer, which has to be JSON."""
    head, _, body = raw(emulator, sent).partition(b"\r\n\r\n")
    assert b"Content-Type: application/json" in head
    return int(head.split()[1]), json.loads(body)


def ask(emulator, method, path, body=None, headers=KEY):
    connection = http.client.HTTPConnection(*address(emulator), timeout=SECONDS)
    connection.request(method, path, body, headers)
    answer = connection.getresponse()
    said = json.loads(answer.read() or b"null")
    connection.close()
    return answer.status, said


def post(line, body, headers=b""):
    length = b"Content-Length: %d\r\n" % len(body)
    return b"POST %b HTTP/1.1\r\n" % line + HEAD + headers + length + b"\r\n" + body


def create(emulator, **fields):
    body = json.dumps({"model": "m", "input": "hi", **fields})
    return ask(emulator, "POST", "/v1/responses", body)


def entries(emulator):
    return [entry.readable() for entry in emulator.entries()]


def eventually(is_so):
    end = time.monotonic() + SECONDS
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.005)


# Text that is none


def test_a_header_that_is_no_utf8_is_recorded_and_can_be_read(emulator):
    status, _ = answered(emulator, b"GET /v1/models HTTP/1.1\r\n" + HEAD + b"X-A: \xff\r\n\r\n")
    assert status == 200
    status, said = ask(emulator, "GET", "/_emulator/record")
    assert status == 200
    assert ["X-A", "\\udcff"] in said["entries"][0]["headers"]


def test_a_header_that_is_no_utf8_goes_to_the_record_file(make_emulator):
    file = io.StringIO()
    emulator = make_emulator(record=file)
    status, _ = answered(emulator, b"GET /v1/models HTTP/1.1\r\n" + HEAD + b"X-A: \xff\r\n\r\n")
    assert status == 200
    assert '"X-A"' in file.getvalue()


@pytest.mark.parametrize("path", [b"/v1/models", b"/_emulator"])
def test_a_key_that_is_no_utf8_is_the_wrong_key(make_emulator, path):
    emulator = make_emulator(settings=Settings(key="sesame"))
    sent = b"GET %b HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer \xff\r\n\r\n" % path
    status, said = answered(emulator, sent)
    assert status == 401
    assert said["error"]["code"] == "invalid_api_key"


def test_a_version_that_is_no_utf8_is_told_back(emulator):
    sent = b"GET /v1/models HTTP/1.1\r\n" + HEAD + b"anthropic-version: \xff\r\n\r\n"
    status, said = answered(emulator, sent)
    assert status == 400
    assert said["error"]["type"] == "invalid_request_error"


# What is no HTTP


@pytest.mark.parametrize(
    "sent",
    [
        b"FOO\r\n\r\n",
        b"\x00\x01\xff\r\n\r\n",
        bytes.fromhex("160301020001000104"),
        b"GET /v1/models HTTP/9.9\r\n" + HEAD + b"\r\n",
        b"GET /v1/models HTTP/1.1\r\n" + HEAD + b"X-A: " + b"a" * 20_000 + b"\r\n\r\n",
        b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\n" + HEAD + b"\r\n",
        b"POST /v1/responses HTTP/1.1\r\n" + HEAD + b"Transfer-Encoding: chunked\r\n\r\nZZ\r\n",
        b"POST / HTTP/1.1\r\n" + HEAD + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}x",
        b"POST / HTTP/1.1\r\n" + HEAD + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"GET http://[::1 HTTP/1.1\r\n" + HEAD + b"\r\n",
        b"GET /v1/models HTTP/1.1\r\nAuthorization: Bearer any\r\n\r\n",
        b"GET /v1/models HTTP/1.1\nHost: x\n\n",
        post(b"/v1/responses", b"hello", b"Content-Encoding: br\r\n"),
    ],
    ids=[
        "request line",
        "garbage",
        "tls",
        "version",
        "header too long",
        "line too long",
        "chunk",
        "two lengths",
        "length and chunks",
        "url",
        "no host",
        "line feeds",
        "compression",
    ],
)
def test_what_is_no_http_is_refused_in_the_form_of_the_provider_and_recorded(emulator, sent):
    status, said = answered(emulator, sent)
    assert status == 400
    assert set(said["error"]) == {"message", "type", "param", "code"}
    assert emulator.violations() == {"unreadable-request": 1}
    came, went = entries(emulator)
    assert (came["direction"], went["broke"]) == ("in", "unreadable-request")
    assert create(emulator)[0] == 200


def test_a_secret_in_a_request_that_cannot_be_read_is_not_recorded(emulator):
    answered(
        emulator,
        b"GET /v1/models HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer sk-1"
        + b"a" * 20_000
        + b"\r\n",
    )
    assert "sk-1" not in json.dumps(entries(emulator))


@pytest.mark.parametrize(
    ("line", "status", "rule"),
    [
        (b"OPTIONS * HTTP/1.1", 404, "unknown-path"),
        (b"CONNECT a:443 HTTP/1.1", 404, "unknown-path"),
        (b"GET /v1/models HTTP/1.1\r\nExpect: banana", 417, "unreadable-request"),
    ],
)
def test_what_aiohttp_would_answer_is_said_by_the_provider(emulator, line, status, rule):
    found, said = answered(emulator, line + b"\r\n" + HEAD + b"\r\n")
    assert found == status
    assert said["error"]["message"]
    assert emulator.violations() == {rule: 1}


@pytest.mark.parametrize("encoding", [b"gzip", b"deflate"])
def test_a_body_that_cannot_be_decompressed_is_unreadable(emulator, encoding):
    for path in (b"/v1/responses", b"/_emulator/faults"):
        headers = b"Content-Encoding: %b\r\nContent-Type: application/json\r\n" % encoding
        status, said = answered(emulator, post(path, b"hello", headers))
        assert status == 400
        assert "JSON body" in said["error"]["message"]
    assert emulator.violations() == {"unreadable-body": 1}


def test_a_compression_that_nobody_knows_is_refused(emulator):
    sent = post(b"/v1/responses", b"{}", b"Content-Encoding: banana\r\n")
    assert answered(emulator, sent)[0] == 415


@pytest.mark.parametrize("path", [b"/v1/responses", b"/v1/realtime?model=m"])
@pytest.mark.parametrize(
    "without",
    [
        b"Connection: Upgrade\r\n",
        b"Sec-WebSocket-Version: 13\r\n",
        b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n",
    ],
)
def test_a_handshake_that_is_not_right_is_refused(emulator, path, without):
    sent = b"GET %b HTTP/1.1\r\n" % path + HEAD + UPGRADE.replace(without, b"") + b"\r\n"
    status, _ = answered(emulator, sent)
    assert status == 400
    assert emulator.violations() == {"bad-handshake": 1}


# JSON that is too much


def nested(levels):
    return b"[" * levels + b"]" * levels


@pytest.mark.parametrize("levels", [MOST_NESTING_LEVELS, 900, 100_000])
def test_json_that_is_nested_too_deep_is_unreadable(emulator, levels):
    deep = b'{"model":"m","input":%b}' % nested(levels)
    for path in (b"/v1/responses", b"/v1/chat/completions"):
        assert answered(emulator, post(path, deep))[0] == 400
    assert emulator.violations() == {"unreadable-body": 2}
    assert ask(emulator, "GET", "/_emulator/record")[0] == 200


def test_json_as_deep_as_it_may_be_is_answered(emulator):
    tool = (
        b'{"model":"m","input":"t","stream":true,"tools":[{"type":"function","name":"t",'
        b'"strict":false,"parameters":%b1%b}]}'
    )
    levels = MOST_NESTING_LEVELS - 3
    body = tool % (b'{"a":' * levels, b"}" * levels)
    assert b"response.completed" in raw(
        emulator, post(b"/v1/responses", body, b"Connection: close\r\n")
    )
    many = json.dumps({"model": "m", "input": [{"role": "user", "content": "[{"}] * 300})
    assert ask(emulator, "POST", "/v1/responses", many)[0] == 200
    assert ask(emulator, "GET", "/_emulator/record")[0] == 200


@pytest.mark.parametrize("path", ["/v1/responses", "/v1/realtime?model=m"])
def test_a_frame_that_is_nested_too_deep_is_unreadable(emulator, path):
    async def scene():
        async with connected(emulator, path) as socket:
            await socket.send_str('{"type":"response.create","x":' + nested(900).decode() + "}")
            while (frame := await socket.receive_json(timeout=SECONDS))["type"] != "error":
                pass
            return frame

    assert asyncio.run(scene())["error"]["message"]
    assert emulator.violations() == {"unreadable-frame": 1}
    assert ask(emulator, "GET", "/_emulator/record")[0] == 200


@pytest.mark.parametrize(
    "body",
    [
        b'{"turns":[%b]}' % nested(900),
        b'{"turns":[%b]}' % nested(100_000),
        b'{"turns":["\xff"]}',
        b'{"turns":[{"text":"\\ud800"}]}',
    ],
)
def test_json_that_the_admin_cannot_read_is_told(emulator, body):
    headers = KEY | {"Content-Type": "application/json"}
    status, said = ask(emulator, "POST", "/_emulator/turns", body, headers)
    assert status == 400
    assert said["error"]


def test_a_body_that_is_too_large_is_refused_before_it_came(emulator):
    length = b"Content-Length: %d\r\n\r\n" % (LARGEST_BODY_BYTES + 1)
    kind = b"Content-Type: application/json\r\n"
    for path in (b"/v1/responses", b"/_emulator/faults"):
        status, said = answered(emulator, b"POST %b HTTP/1.1\r\n" % path + HEAD + kind + length)
        assert status == 413
        assert said["error"]["code"] == "request_too_large"
    assert [entry["kind"] for entry in entries(emulator)] == ["request", "response"]


# Resets


def connected(emulator, path):
    return _Connected(emulator.url + path)


class _Connected:
    def __init__(self, url):
        self._url = url

    async def __aenter__(self):
        self._session = aiohttp.ClientSession()
        return await self._session.ws_connect(self._url, headers=KEY, max_msg_size=0)

    async def __aexit__(self, *_):
        await self._session.close()


def test_a_reset_leaves_open_sessions_alone(emulator):
    async def scene():
        async with connected(emulator, "/v1/realtime?model=m") as older:
            await older.receive_json(timeout=SECONDS)
            await asyncio.to_thread(emulator.reset)
            async with connected(emulator, "/v1/realtime?model=m") as newer:
                await newer.receive_json(timeout=SECONDS)
                await older.close()
                await asyncio.to_thread(emulator.speak, "hello")
                said = await newer.receive_json(timeout=SECONDS)
                await newer.close()
        return said["type"]

    assert asyncio.run(scene()) == "input_audio_buffer.speech_started"
    eventually(lambda: not emulator.emulator.realtime.sessions)


def test_after_a_reset_the_same_requests_give_the_same_bytes(make_emulator):
    emulator = make_emulator(clock=VirtualClock(), settings=Settings(seed=3))

    def bodies():
        chat = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}]})
        return [
            create(emulator),
            create(emulator),
            ask(emulator, "POST", "/v1/conversations", "{}"),
            ask(emulator, "POST", "/v1/chat/completions", chat),
        ]

    first = bodies()
    emulator.advance(60)
    emulator.reset()
    assert bodies() == first


def test_what_runs_in_the_background_is_gone_after_a_reset(emulator):
    emulator.say("one two three four", pace=0.05)
    _, made = create(emulator, background=True)
    emulator.reset()
    time.sleep(0.8)
    assert ask(emulator, "GET", f"/v1/responses/{made['id']}")[0] == 404
    assert ask(emulator, "GET", "/_emulator/state")[1]["responses"] == []


def test_who_sleeps_through_a_reset_sleeps_as_long_as_meant():
    async def scene():
        clock = VirtualClock(flowing=False)
        clock.advance(100)
        asleep = asyncio.create_task(clock.sleep(5))
        await asyncio.sleep(0)
        clock.reset()
        clock.advance(4.5)
        await asyncio.sleep(0)
        assert not asleep.done()
        clock.advance(0.5)
        await asleep

    asyncio.run(scene())


# What is recorded


def test_a_request_without_a_key_is_recorded(emulator):
    assert ask(emulator, "POST", "/v1/responses", "{}", {"X-A": "b"})[0] == 401
    came, went = entries(emulator)
    assert (came["what"], came["kind"]) == ("POST /v1/responses", "request")
    assert ["X-A", "b"] in came["headers"]
    assert "data" not in came
    assert went["broke"] == "no-key"


def test_a_request_that_is_one_too_many_is_recorded(emulator, monkeypatch):
    monkeypatch.setattr(reception, "MOST_CONNECTIONS", 0)
    assert create(emulator)[0] == 503
    came, went = entries(emulator)
    assert came["what"] == "POST /v1/responses"
    assert went["broke"] == "too-many-connections"


def test_the_query_is_recorded_without_its_secrets(emulator):
    ask(emulator, "GET", "/v1/models?limit=2&api_key=sk-1&x")
    came = entries(emulator)[0]
    assert came["what"] == "GET /v1/models"
    assert came["query"] == "limit=2&api_key=[secret]&x"


@pytest.mark.parametrize("path", ["/v1/responses", "/v1/realtime?model=m"])
def test_a_frame_that_is_too_large_leaves_its_close_code(emulator, path, monkeypatch):
    monkeypatch.setattr(reception, "LARGEST_FRAME_BYTES", 1_000)

    async def scene():
        async with connected(emulator, path) as socket:
            await socket.send_str("x" * 2_000)
            async for _ in socket:
                pass
            return socket.close_code

    assert asyncio.run(scene()) == 1009
    closes = lambda: [each["what"] for each in entries(emulator) if each["kind"] == "close"]  # noqa: E731
    eventually(closes)
    assert closes() == ["1009"]


def test_a_huge_value_is_not_said_back(emulator):
    huge = "x" * 1_000_000
    for fields in ({"truncation": huge}, {huge: 1}, {"previous_response_id": f"resp_{huge}"}):
        status, said = create(emulator, **fields)
        assert status == 400
        assert len(json.dumps(said)) < 2 * LONGEST_REFUSAL_CHARACTERS

    async def scene():
        async with connected(emulator, "/v1/responses") as socket:
            await socket.send_json({"type": huge})
            return await socket.receive_str(timeout=SECONDS)

    assert len(asyncio.run(scene())) < 2 * LONGEST_REFUSAL_CHARACTERS
    lines = emulator.emulator.record.requests
    assert max(len(line) for line in lines) < 2 * LONGEST_RECORDED_LINE_CHARACTERS


# Connections


def test_idle_connections_beyond_the_limit_are_closed_oldest_first(emulator, monkeypatch):
    monkeypatch.setattr(listening, "MOST_CONNECTIONS", 3)
    idle = [socket.create_connection(address(emulator), SECONDS) for _ in range(6)]
    try:
        for each in idle[:3]:
            assert each.recv(1) == b""
        assert create(emulator)[0] == 200
        assert idle[3].recv(1) == b""
        idle[5].sendall(b"GET /v1/models HTTP/1.1\r\n" + HEAD + b"\r\n")
        assert idle[5].recv(12) == b"HTTP/1.1 200"
    finally:
        for each in idle:
            each.close()


def test_a_connection_that_is_in_use_is_not_closed_for_another(emulator, monkeypatch):
    monkeypatch.setattr(listening, "MOST_CONNECTIONS", 1)

    async def scene():
        async with connected(emulator, "/v1/responses") as open_socket:
            for _ in range(3):
                assert (await asyncio.to_thread(create, emulator))[0] == 200
            await open_socket.send_json({"type": "response.create", "model": "m", "input": "hi"})
            return await open_socket.receive_json(timeout=SECONDS)

    assert asyncio.run(scene())["type"] == "response.created"


@pytest.mark.parametrize("how", ["half-closed", "closed", "reset"])
@pytest.mark.parametrize("fields", [{"stream": True}, {"background": True, "stream": True}, {}])
def test_a_client_that_goes_away_leaves_no_traceback(emulator, fields, how):
    sent = post(b"/v1/responses", json.dumps({"model": "m", "input": "hi", **fields}).encode())
    for data in (sent, sent[:-5]):
        for _ in range(5):
            with closing(socket.create_connection(address(emulator), SECONDS)) as peer:
                # The request and its end are there before the emulator looks.
                emulator._loop.call_soon_threadsafe(time.sleep, 0.02)
                peer.sendall(data)
                if how == "half-closed":
                    peer.shutdown(socket.SHUT_WR)
                    peer.recv(65_536)
                elif how == "reset":
                    linger = struct.pack("ii", 1, 0)
                    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    assert create(emulator)[0] == 200


# Stopping

AT_ONCE_SECONDS = 15.0
"""Also on a busy machine."""


@pytest.fixture
def patient(monkeypatch):
    """An emulator that waits longer for its clients than anybody who says "at once"."""
    for module in (listening, reception):
        monkeypatch.setattr(module, "STOP_SECONDS", 2 * AT_ONCE_SECONDS)


@pytest.mark.parametrize("answers", [True, False])
@pytest.mark.parametrize("path", ["/v1/responses", "/v1/realtime?model=m"])
@pytest.mark.usefixtures("patient")
def test_a_stop_closes_idle_sockets_at_once(path, answers):
    emulator = EmulatorThread().start()
    peer = socket.create_connection(address(emulator), SECONDS)
    with closing(peer):
        peer.sendall(b"GET %b HTTP/1.1\r\n" % path.encode() + HEAD + UPGRADE + b"\r\n")
        peer.recv(65_536)
        eventually(lambda: emulator.emulator._reception._open)
        time.sleep(0.05)
        began = time.monotonic()
        stopping = asyncio.run_coroutine_threadsafe(emulator.emulator.stop(), emulator._loop)
        came = b""
        while b"\x88\x02\x03\xe9" not in came:
            came += peer.recv(65_536)
        if answers:
            peer.sendall(b"\x88\x82\0\0\0\0\x03\xe9")
        stopping.result(SECONDS)
        assert time.monotonic() - began < AT_ONCE_SECONDS
    emulator.stop()
    assert [each["what"] for each in entries_of(emulator) if each["kind"] == "close"] == ["1001"]


def entries_of(stopped):
    return [entry.readable() for entry in stopped.emulator.record.entries()]


@pytest.mark.parametrize("fields", [{"stream": True}, {"background": True, "stream": True}, {}])
@pytest.mark.usefixtures("patient")
def test_a_stop_breaks_off_what_stalls(fields):
    emulator = EmulatorThread(faults=["stall after=response.created"]).start()
    body = json.dumps({"model": "m", "input": "hi", **fields}).encode()
    with closing(socket.create_connection(address(emulator), SECONDS)) as peer:
        peer.sendall(post(b"/v1/responses", body))
        eventually(lambda: emulator.emulator.faults.all()[0].struck)
        began = time.monotonic()
        emulator.stop()
        assert time.monotonic() - began < AT_ONCE_SECONDS
    assert entries_of(emulator)[-1]["what"] == "the emulator stopped"


# Methods, hosts and faults


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PUT", "/v1/responses", "GET, HEAD, POST"),
        ("PATCH", "/v1/responses/resp_1", "DELETE, GET, HEAD"),
        ("GET", "/v1/chat/completions", "POST"),
        ("POST", "/v1/realtime", "GET, HEAD"),
        ("DELETE", "/v1/models", "GET, HEAD"),
        ("PUT", "/_emulator/faults", "DELETE, GET, HEAD, POST"),
    ],
)
def test_a_method_that_a_path_does_not_take_is_told(emulator, method, path, allowed):
    connection = http.client.HTTPConnection(*address(emulator), timeout=SECONDS)
    connection.request(method, path, headers=KEY)
    answer = connection.getresponse()
    assert answer.status == 405
    assert answer.headers["Allow"] == allowed
    assert json.loads(answer.read())["error"]["code"] == "method_not_supported"
    connection.close()
    assert emulator.violations() == {"wrong-method": 1}


@pytest.mark.parametrize(
    ("method", "path", "status", "type"),
    [
        ("GET", "/v1/messages", 405, "invalid_request_error"),
        ("POST", "/v1/messages/batches", 404, "not_found_error"),
    ],
)
def test_below_messages_all_is_said_in_the_form_of_anthropic(emulator, method, path, status, type):
    found, said = ask(emulator, method, path)
    assert found == status
    assert said["type"] == "error"
    assert said["error"]["type"] == type


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "10.0.0.1", "localhost.evil"])
def test_a_page_that_points_its_name_at_this_machine_is_not_answered(emulator, host):
    status, said = ask(emulator, "GET", "/_emulator", headers=KEY | {"Host": host})
    assert status == 403
    assert "localhost" in said["error"]


@pytest.mark.parametrize(
    "host", ["localhost", "localhost:80", "127.0.0.1:1", "[::1]:80", "a.localhost"]
)
def test_this_machine_by_any_of_its_names_is_answered(emulator, host):
    assert ask(emulator, "GET", "/_emulator", headers=KEY | {"Host": host})[0] == 200


@pytest.mark.parametrize("fault", ["close", "drip"])
def test_a_fault_of_streams_is_not_spent_by_what_is_none(make_emulator, fault):
    emulator = make_emulator(faults=[fault])
    assert ask(emulator, "GET", "/v1/models")[0] == 200
    assert emulator.emulator.faults.all()[0].left == 1


def test_a_stall_of_what_is_no_stream_is_on_record(make_emulator):
    emulator = make_emulator(faults=["stall seconds=0.01"])
    assert ask(emulator, "GET", "/v1/models")[0] == 200
    assert [each.get("fault") for each in entries(emulator)] == [None, "stall seconds=0.01", None]


def test_a_status_at_the_upgrade_of_a_session_is_answered_instead(make_emulator):
    emulator = make_emulator(faults=["status code=503"])
    upgrade = b"GET /v1/realtime?model=m HTTP/1.1\r\n" + HEAD + UPGRADE + b"\r\n"
    status, said = answered(emulator, upgrade)
    assert status == 503
    assert said["error"]["type"] == "server_error"
    assert emulator.emulator.record.struck == {"status code=503": 1}
    assert raw(emulator, upgrade.replace(b"Bearer any", b"None")).startswith(b"HTTP/1.1 401")
