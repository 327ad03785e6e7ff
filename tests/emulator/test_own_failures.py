"""When the emulator itself goes wrong, a client is told so, or cut off: never told nonsense."""

import http.client
import json
import urllib.parse

import pytest

from lockstitch.emulator import item

# Nobody can say this: a message has content.
UNSAYABLE = item("message", content=5)


def asked(emulator, **fields):
    connection = http.client.HTTPConnection(urllib.parse.urlsplit(emulator.url).netloc, timeout=5)
    headers = {"Authorization": "Bearer any", "Content-Type": "application/json"}
    body = json.dumps({"model": "m", "input": "x", **fields})
    connection.request("POST", "/v1/responses", body, headers)
    return connection.getresponse()


def test_an_answer_that_cannot_be_made_is_a_500(emulator, caplog):
    emulator.say(UNSAYABLE)
    answer = asked(emulator)
    assert answer.status == 500
    assert json.load(answer)["error"]["type"] == "server_error"
    assert "the emulator failed at POST /v1/responses" in caplog.text
    assert asked(emulator).status == 200


def test_a_stream_that_cannot_go_on_is_cut_and_has_no_answer_inside_it(emulator, caplog):
    emulator.say("first", UNSAYABLE)
    answer = asked(emulator, stream=True)
    assert answer.status == 200
    with pytest.raises((http.client.IncompleteRead, ConnectionError)) as cut:
        answer.read()
    assert b"HTTP/1.1" not in getattr(cut.value, "partial", b"")
    assert emulator.entries()[-1].what == "the emulator failed"
    assert "the emulator failed at POST /v1/responses" in caplog.text
    assert asked(emulator).status == 200
