"""An emulator in a thread, for clients of every kind."""

import threading
import urllib.request

import pytest
from openai import BadRequestError, OpenAI

from lockstitch.emulator import CannotListen, NotAsExpected, Settings, VirtualClock, call
from lockstitch.testing import EmulatorThread


def client_of(emulator):
    return OpenAI(base_url=emulator.base_url, api_key="any", max_retries=0)


def test_what_is_said_inline_is_answered_in_order(emulator):
    emulator.say("one")
    emulator.say(call("look", {"at": 2}), "and more")
    client = client_of(emulator)
    assert client.responses.create(model="m", input="x").output_text == "one"
    second = client.responses.create(model="m", input="x")
    assert [item.type for item in second.output] == ["function_call", "message"]


def test_a_test_can_say_what_it_expected(emulator):
    client = client_of(emulator)
    client.responses.create(model="m", input="x")
    emulator.expect(violations=0, requests={"POST /v1/responses": 1})
    with pytest.raises(BadRequestError):
        client.responses.create(model="m", input="x", previous_response_id="resp_gone")
    with pytest.raises(NotAsExpected, match="Expected 0 violations, got 1: anchor-not-found"):
        emulator.expect(violations=0)
    assert emulator.violations() == {"anchor-not-found": 1}
    assert [body["input"] for body in emulator.requests("POST /v1/responses")] == ["x", "x"]


@pytest.mark.parametrize(
    "expected",
    [
        {},
        {"violations": 0},
        {"violations": {}},
        {"faults_struck": True},
        {"turns_used": True},
        {"requests": {"POST /v1/responses": 0}},
    ],
)
def test_an_expectation_fails_if_no_request_came_at_all(emulator, expected):
    with pytest.raises(NotAsExpected, match=r"No request reached the emulator.*pass requests=0"):
        emulator.expect(**expected)


def test_a_test_can_say_that_no_request_or_so_many_are_expected(emulator):
    emulator.expect(requests=0, violations=0)
    client_of(emulator).responses.create(model="m", input="x")
    emulator.expect(requests=1)
    with pytest.raises(NotAsExpected, match="Expected 0 requests, got 1: POST /v1/responses x1"):
        emulator.expect(requests=0)


def test_what_a_test_itself_asks_the_emulator_is_no_request(emulator):
    urllib.request.urlopen(f"{emulator.url}/_emulator").close()
    with pytest.raises(NotAsExpected, match=r"No request reached the emulator"):
        emulator.expect(violations=0)


def test_it_can_be_told_to_forget_and_to_begin_anew(emulator):
    client = client_of(emulator)
    made = client.responses.create(model="m", input="x")
    emulator.forget(made.id)
    with pytest.raises(BadRequestError, match="not found"):
        client.responses.create(model="m", input="y", previous_response_id=made.id)
    emulator.reset()
    assert emulator.entries() == []


def told_by(running):
    """Everything an emulator sends for one streamed response."""
    client = client_of(running)  # kept: what is collected in the middle of a stream closes it
    client.responses.create(model="m", input="x", stream=True).response.read()
    client.close()
    return [entry.data for entry in running.entries() if entry.sent]


def test_the_same_seed_and_a_virtual_clock_give_the_same_bytes(make_emulator):
    def told(seed):
        return told_by(make_emulator(clock=VirtualClock(), settings=Settings(seed=seed)))

    first = told(5)
    assert told(5) == first
    assert told(6) != first


def test_only_a_virtual_clock_can_be_moved(emulator, make_emulator):
    with pytest.raises(TypeError, match="VirtualClock"):
        emulator.advance(1)
    standing = make_emulator(clock=VirtualClock(flowing=False))
    before = standing.emulator.clock.now()
    standing.advance(5)
    assert standing.emulator.clock.now() == before + 5


def test_it_leaves_no_thread_behind():
    before = set(threading.enumerate())
    with EmulatorThread() as running:
        assert running.url
        running.stop()
    assert {thread for thread in threading.enumerate() if thread.name == "emulator"} <= before


def test_an_emulator_that_cannot_start_says_why(emulator, monkeypatch):
    taken = int(emulator.url.rpartition(":")[2])
    second = EmulatorThread()
    start = second.emulator.start
    monkeypatch.setattr(second.emulator, "start", lambda: start(port=taken))
    with pytest.raises(CannotListen, match=f":{taken}: it is in use. Choose another --port"):
        second.start()
