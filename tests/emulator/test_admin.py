"""`/_emulator/…`: read, steer and check an emulator over HTTP."""

import http.client
import json
import urllib.parse

import pytest

from lockstitch.emulator import Settings, VirtualClock


def ask(emulator, method, path, body=None, headers=None):
    """A status and the JSON that came with it."""
    connection = http.client.HTTPConnection(urllib.parse.urlsplit(emulator.url).netloc, timeout=5)
    sent = {"Authorization": "Bearer any"} | (headers or {})
    if method != "GET":
        sent.setdefault("Content-Type", "application/json")
    data = None if body is None else json.dumps(body)
    connection.request(method, path, data, sent)
    answer = connection.getresponse()
    said = json.loads(answer.read() or b"null")
    connection.close()
    return answer.status, said


def create(emulator, **fields):
    return ask(emulator, "POST", "/v1/responses", {"model": "m", "input": "hi", **fields})


def test_what_was_asked_and_answered_can_be_read(emulator):
    create(emulator)
    create(emulator, previous_response_id="resp_gone")
    _, overview = ask(emulator, "GET", "/_emulator")
    assert overview["requests"] == {"POST /v1/responses": 2}
    assert overview["violations"] == {"anchor-not-found": 1}
    _, requests = ask(emulator, "GET", "/_emulator/requests")
    assert [entry["data"]["input"] for entry in requests["entries"]] == ["hi", "hi"]
    headers = dict(requests["entries"][0]["headers"])
    assert headers["Authorization"] == "[secret]"
    _, violations = ask(emulator, "GET", "/_emulator/violations")
    (entry,) = violations["entries"]
    assert entry["broke"] == "anchor-not-found"
    assert entry["data"]["error"]["code"] == "previous_response_not_found"
    _, record = ask(emulator, "GET", "/_emulator/record")
    assert [entry["direction"] for entry in record["entries"]] == ["in", "out", "in", "out"]


def test_turns_can_be_added_while_it_runs(emulator):
    turns = {"turns": [{"text": "first"}, {"call": "look", "arguments": {"at": 1}}]}
    assert ask(emulator, "POST", "/_emulator/turns", turns) == (200, {"turns_left": 2})
    assert create(emulator)[1]["output"][0]["content"][0]["text"] == "first"
    assert create(emulator)[1]["output"][0]["name"] == "look"


def test_faults_can_be_armed_listed_and_cleared(emulator):
    status, listed = ask(emulator, "POST", "/_emulator/faults", {"fault": "status code=503"})
    assert status == 200
    assert listed["faults"] == [{"fault": "status code=503", "struck": 0, "spent": False}]
    assert create(emulator)[0] == 503
    ask(emulator, "POST", "/_emulator/faults", {"faults": ["status", "lock"]})
    bare = {"Content-Type": ""}
    assert ask(emulator, "DELETE", "/_emulator/faults", headers=bare) == (200, {"faults": []})
    assert create(emulator)[0] == 200


def test_what_is_stored_can_be_read_and_forgotten(emulator):
    _, made = create(emulator)
    _, conversation = ask(emulator, "POST", "/v1/conversations", {})
    _, state = ask(emulator, "GET", "/_emulator/state")
    assert state["responses"] == [made["id"]]
    assert state["conversations"][0]["id"] == conversation["id"]
    ask(emulator, "POST", "/_emulator/forget", {"response": made["id"]})
    assert ask(emulator, "GET", f"/v1/responses/{made['id']}")[0] == 404


def test_a_reset_makes_it_as_it_was(emulator):
    create(emulator)
    ask(emulator, "POST", "/_emulator/faults", {"fault": "status times=always"})
    assert ask(emulator, "POST", "/_emulator/reset", {}) == (200, {"reset": True})
    assert create(emulator)[0] == 200
    assert ask(emulator, "GET", "/_emulator")[1]["requests"] == {"POST /v1/responses": 1}


def test_expectations_that_came_true_are_200_and_others_are_409_with_reasons(emulator):
    ask(emulator, "POST", "/_emulator/faults", {"fault": "lock"})
    ask(emulator, "POST", "/_emulator/turns", {"turns": [{"text": "a"}, {"text": "b"}]})
    create(emulator)
    right = {"violations": 0, "requests": {"POST /v1/responses": 1}}
    assert ask(emulator, "POST", "/_emulator/assert", right) == (200, {"ok": True})
    wrong = {
        "violations": {"duplicate-item": 1},
        "requests": {"POST /v1/responses": 2},
        "faults_struck": True,
        "turns_used": True,
    }
    status, said = ask(emulator, "POST", "/_emulator/assert", wrong)
    assert status == 409
    assert said["problems"] == [
        "Expected POST /v1/responses x2, got x1.",
        "Expected violations: duplicate-item x1; got: none.",
        "The fault `lock` was never triggered.",
        "Turns of the script that were not used: 1.",
    ]


def test_an_expectation_without_any_request_is_409_unless_none_is_expected(emulator):
    status, said = ask(emulator, "POST", "/_emulator/assert", {"violations": 0})
    assert status == 409
    assert "No request reached the emulator" in said["problems"][0]
    none = {"requests": 0}
    assert ask(emulator, "POST", "/_emulator/assert", none) == (200, {"ok": True})


def test_a_virtual_clock_can_be_moved_and_the_real_one_not(emulator, make_emulator):
    status, said = ask(emulator, "POST", "/_emulator/clock", {"advance": 1})
    assert status == 400
    assert "real clock" in said["error"]
    virtual = make_emulator(clock=VirtualClock(flowing=False))
    before = ask(virtual, "POST", "/_emulator/clock", {"advance": 0})[1]["now"]
    assert ask(virtual, "POST", "/_emulator/clock", {"advance": 9})[1]["now"] == before + 9


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/_emulator/faults", {"fault": "explode"}),
        ("/_emulator/faults", {"fautl": "cut"}),
        ("/_emulator/turns", {"turns": [{"say": "x"}]}),
        ("/_emulator/turns", []),
        ("/_emulator/assert", {"violatons": 0}),
        ("/_emulator/speak", {"text": "nobody listens"}),
    ],
)
def test_a_mistake_is_told_and_changes_nothing(emulator, path, body):
    status, said = ask(emulator, "POST", path, body)
    assert status == 400
    assert said["error"]
    assert create(emulator)[0] == 200


def test_a_web_page_cannot_change_anything_unasked(emulator):
    """Without this type a browser asks the server first, and gets no leave."""
    body = {"fault": "status times=always"}
    status, _ = ask(emulator, "POST", "/_emulator/faults", body, {"Content-Type": "text/plain"})
    assert status == 415
    assert create(emulator)[0] == 200


def test_a_key_that_was_chosen_is_needed_here_too(make_emulator):
    locked = make_emulator(settings=Settings(key="sesame"))
    assert ask(locked, "GET", "/_emulator")[0] == 401
    assert ask(locked, "GET", "/_emulator", headers={"Authorization": "Bearer sesame"})[0] == 200
    assert create(locked)[0] == 401
