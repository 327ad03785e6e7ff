"""The real Codex against the emulator: they understand each other, and Codex gets over every fault.

After each test the emulator must have had nothing to refuse, unless the test says what: the
fixture `emulator` sees to that."""

from __future__ import annotations

from pathlib import Path

import pytest

from lockstitch.emulator import Settings, reasoning
from lockstitch.testing import EmulatorThread
from tests.real_codex.codex_cli import CodexCli, needs_codex
from tests.real_codex.drafts import patches, runs
from tests.real_codex.requests import Wire, asked, conversation, output_of

pytestmark = needs_codex

PATCH = "*** Begin Patch\n*** Add File: receipt.txt\n+charged\n*** End Patch\n"
CHARGE = "echo charged | tee -a ledger.txt"
A_CALL = ["user: go", "call call_1", "output call_1"]
POST, UPGRADE = "POST /v1/responses", "GET /v1/responses"

# All ways in which a stream can break behind the call, where Codex asks again by itself.
BREAKS = (
    "cut after=response.output_item.done how=close",
    "cut after=response.output_item.done how=reset",
    "cut before=response.completed how=half-frame",
    "cut before=response.completed how=half-character",
    "fail",
    "error",
)
CLOSES = ("1000", "1001", "1006", "1009", "1011", "1012")


@pytest.fixture
def over_http(tmp_path: Path, emulator: EmulatorThread) -> CodexCli:
    return CodexCli(tmp_path, emulator.base_url)


@pytest.fixture
def over_websocket(tmp_path: Path, emulator: EmulatorThread) -> CodexCli:
    return CodexCli(tmp_path, emulator.base_url, supports_websockets=True)


@pytest.fixture(params=["over_http", "over_websocket"])
def codex(request: pytest.FixtureRequest) -> CodexCli:
    """The real Codex with all its patience, over each transport."""
    chosen: CodexCli = request.getfixturevalue(request.param)
    return chosen


def ledger(codex: CodexCli) -> str:
    """What `CHARGE` left behind, each time that it ran."""
    return (codex.project / "ledger.txt").read_text()


def sockets(emulator: EmulatorThread) -> list[list[Wire]]:
    """What was asked on each WebSocket."""
    asked_on: dict[int, list[Wire]] = {}
    for entry in emulator.entries():
        if entry.what == "frame response.create":
            asked_on.setdefault(entry.connection, []).append(entry.readable()["data"])
    return list(asked_on.values())


def told(emulator: EmulatorThread) -> list[str]:
    """The ids of the responses that were told to their end."""
    ends = [entry for entry in emulator.entries() if entry.what == "response.completed"]
    return [end.readable()["data"]["response"]["id"] for end in ends]


def assert_full(request: Wire) -> None:
    """The request says everything itself."""
    assert request.get("previous_response_id") is None
    assert request["input"][0]["role"] == "developer"


# --- whole turns -------------------------------------------------------------------------------


def test_a_command_is_run_and_its_output_accepted(codex, emulator):
    emulator.say(runs("call_1", CHARGE))
    emulator.say("done")

    assert codex.run("go").said == ["done"]

    assert ledger(codex) == "charged\n"
    (output,) = [item for item in asked(emulator)[-1]["input"] if "output" in item]
    assert (output["type"], output["call_id"]) == ("function_call_output", "call_1")
    assert output["output"].endswith("charged\n")


def test_a_patch_is_applied_and_its_output_accepted(codex, emulator):
    emulator.say(patches("call_1", PATCH))
    emulator.say("done")

    assert codex.run("go").said == ["done"]

    assert (codex.project / "receipt.txt").read_text() == "charged\n"
    (output,) = [item for item in asked(emulator)[-1]["input"] if "output" in item]
    assert (output["type"], output["call_id"]) == ("custom_tool_call_output", "call_1")


def test_a_resumed_conversation_is_sent_back_with_its_reasoning(codex, emulator):
    emulator.say(reasoning("Why not?"), runs("call_1", CHARGE), patches("call_2", PATCH))
    emulator.say(reasoning("It is done."), "done")
    assert codex.run("go").said == ["done"]

    assert codex.resume("and now?").said == ["You said: and now?"]

    assert conversation(asked(emulator)[-1]) == [
        "user: go",
        "reasoning",
        "call call_1",
        "call call_2",
        "output call_1",
        "output call_2",
        "reasoning",
        "assistant: done",
        "user: and now?",
    ]


# --- broken streams ----------------------------------------------------------------------------


@pytest.mark.parametrize("fault", BREAKS)
def test_a_turn_whose_stream_breaks_behind_a_call_ends_with_the_call_run_once(
    codex, emulator, fault
):
    emulator.say(runs("call_1", CHARGE), faults=(fault,))
    emulator.say("done")

    assert codex.run("go").said == ["done"]

    assert ledger(codex) == "charged\n"
    assert_full(asked(emulator)[-1])
    assert conversation(asked(emulator)[-1]) == A_CALL


def test_reasoning_that_no_response_completed_is_accepted_with_its_call(codex, emulator):
    cut = "cut after=response.output_item.done nth=2 how=reset"
    emulator.say(reasoning("Why not?"), patches("call_1", PATCH), faults=(cut,))
    emulator.say("done")

    assert codex.run("go").said == ["done"]

    assert conversation(asked(emulator)[-1]) == ["user: go", "reasoning", *A_CALL[1:]]


def test_half_a_call_is_neither_run_nor_sent_back(codex, emulator):
    cut = "cut after=response.function_call_arguments.delta nth=3"
    emulator.say(runs("call_1", CHARGE), faults=(cut,))
    emulator.say("done")

    assert codex.run("go").said == ["done"]

    assert not (codex.project / "ledger.txt").exists()
    assert conversation(asked(emulator)[-1]) == ["user: go"]


@pytest.mark.parametrize("fault", BREAKS)
def test_a_conversation_that_ended_in_a_cut_is_resumed(tmp_path, emulator, fault):
    codex = CodexCli(tmp_path, emulator.base_url, request_max_retries=0, stream_max_retries=0)
    emulator.say(runs("call_1", CHARGE), faults=(fault,))
    assert codex.run("go").code == 1

    assert codex.resume("go on").said == ["You said: go on"]

    request = asked(emulator)[-1]
    assert conversation(request) == [*A_CALL, "user: go on"]
    assert output_of("call_1", request).endswith("charged\n")


def test_a_stream_that_falls_silent_is_given_up_and_asked_for_again(tmp_path, emulator):
    codex = CodexCli(tmp_path, emulator.base_url, stream_idle_timeout_ms=2000)
    emulator.say(runs("call_1", CHARGE), faults=("stall after=response.output_item.done",))
    emulator.say("done")

    assert codex.run("go").said == ["done"]

    assert ledger(codex) == "charged\n"
    assert conversation(asked(emulator)[-1]) == A_CALL


def test_an_incomplete_response_ends_the_turn_and_its_call_is_sent_with_the_next(codex, emulator):
    emulator.say(runs("call_1", CHARGE), faults=("incomplete",))
    assert codex.run("go").code == 1

    assert codex.resume("go on").said == ["You said: go on"]

    assert ledger(codex) == "charged\n"
    assert "output call_1" in conversation(asked(emulator)[-1])


@pytest.mark.parametrize(
    ("transport", "rule"),
    [("over_http", "duplicate-item"), ("over_websocket", "output-without-call")],
)
def test_a_call_that_is_told_twice_is_run_twice_and_ends_the_turn(
    request, emulator, broken, transport, rule
):
    """The event is the same, id and all: Codex does not look."""
    codex = request.getfixturevalue(transport)
    emulator.say(runs("call_1", CHARGE), faults=("duplicate at=response.output_item.done",))

    assert codex.run("go").code == 1

    assert ledger(codex) == "charged\ncharged\n"
    broken[rule] = 1


def test_a_call_that_is_told_behind_the_end_of_its_response_is_lost(codex, emulator):
    emulator.say(runs("call_1", CHARGE), faults=("late at=response.output_item.done",))
    assert codex.run("go").said == []

    assert codex.resume("go on").said == ["You said: go on"]

    assert not (codex.project / "ledger.txt").exists()
    assert conversation(asked(emulator)[-1]) == ["user: go", "user: go on"]


# --- refused requests --------------------------------------------------------------------------


@pytest.mark.parametrize("status", ["500", "502", "503"])
@pytest.mark.parametrize("nth", [1, 2])
def test_a_request_that_meets_a_broken_server_is_sent_again_as_it_was(
    over_http, emulator, status, nth
):
    emulator.say(runs("call_1", CHARGE))
    emulator.say("done")
    emulator.fault(f"status code={status} path=/v1/responses request={nth}")

    assert over_http.run("go").said == ["done"]

    assert ledger(over_http) == "charged\n"
    requests = asked(emulator)
    assert len(requests) == 3
    assert requests[nth - 1]["input"] == requests[nth]["input"]


def test_a_client_that_asks_too_often_waits_as_long_as_it_is_told(over_http, emulator):
    emulator.say("done")
    emulator.fault("status code=429 retry_after=2 path=/v1/responses")

    assert over_http.run("go").said == ["done"]

    posts = [entry for entry in emulator.entries() if entry.what == POST and not entry.sent]
    first, second = (entry.at for entry in posts)
    assert second - first >= 2


def test_an_answer_that_was_lost_on_the_way_is_asked_for_again(over_http, emulator):
    emulator.say(runs("call_1", CHARGE))
    emulator.fault("lose path=/v1/responses request=2 how=reset")

    assert over_http.run("go").code == 0

    assert ledger(over_http) == "charged\n"
    assert [conversation(request) for request in asked(emulator)] == [["user: go"], A_CALL, A_CALL]


# --- WebSocket ---------------------------------------------------------------------------------


def test_a_connection_is_warmed_up_and_each_request_continues_the_one_before(
    over_websocket, emulator
):
    emulator.say(runs("call_1", CHARGE))
    emulator.say("done")

    assert over_websocket.run("go").said == ["done"]

    ((warm_up, first, second),) = sockets(emulator)
    assert warm_up["generate"] is False
    assert [first["previous_response_id"], second["previous_response_id"]] == told(emulator)[:2]
    assert conversation(first) == ["user: go"]
    assert conversation(second) == ["output call_1"]


@pytest.mark.parametrize("code", CLOSES)
def test_a_socket_that_is_closed_behind_a_call_is_followed_by_one_with_a_full_request(
    over_websocket, emulator, code
):
    close = f"close code={code} after=response.output_item.done"
    emulator.say(runs("call_1", CHARGE), faults=(close,))
    emulator.say("done")

    assert over_websocket.run("go").said == ["done"]

    assert ledger(over_websocket) == "charged\n"
    _, (again,) = sockets(emulator)
    assert_full(again)
    assert conversation(again) == A_CALL


def test_an_anchor_that_the_provider_forgot_is_followed_by_a_full_request(
    over_websocket, emulator, broken
):
    emulator.say(runs("call_1", CHARGE))
    emulator.say("done")
    # With the model, frames alone are counted: a handshake names none.
    emulator.fault("forget what=cache model=gpt-5.5 request=3")

    assert over_websocket.run("go").said == ["done"]

    broken["anchor-not-found"] = 1
    assert ledger(over_websocket) == "charged\n"
    (_, _, delta), (again,) = sockets(emulator)
    assert conversation(delta) == ["output call_1"]
    assert_full(again)
    assert conversation(again) == A_CALL


@pytest.mark.parametrize("fault", ["status code=500", "status code=429 retry_after=1"])
def test_a_frame_that_meets_an_error_is_followed_by_a_full_request(over_websocket, emulator, fault):
    emulator.say(runs("call_1", CHARGE))
    emulator.say("done")
    emulator.fault(f"{fault} model=gpt-5.5 request=3")

    assert over_websocket.run("go").said == ["done"]

    assert ledger(over_websocket) == "charged\n"
    _, (again,) = sockets(emulator)
    assert_full(again)
    assert conversation(again) == A_CALL


def test_an_answer_that_was_lost_with_its_socket_is_asked_for_again(over_websocket, emulator):
    emulator.say(runs("call_1", CHARGE))
    emulator.fault("lose model=gpt-5.5 request=3 how=reset")

    assert over_websocket.run("go").code == 0

    assert ledger(over_websocket) == "charged\n"
    assert conversation(asked(emulator)[-1]) == A_CALL


def test_a_server_that_does_not_speak_websocket_is_asked_over_http(over_websocket, emulator):
    emulator.say(runs("call_1", CHARGE))
    emulator.say("done")
    emulator.fault("refuse-upgrade code=426")

    assert over_websocket.run("go").said == ["done"]

    emulator.expect(requests={UPGRADE: 1, POST: 2})
    assert conversation(asked(emulator)[-1]) == A_CALL


def test_a_handshake_that_fails_each_time_ends_over_http(tmp_path, make_emulator):
    emulator = make_emulator(faults=["refuse-upgrade code=500 times=always"])
    codex = CodexCli(tmp_path, emulator.base_url, supports_websockets=True, stream_max_retries=1)

    assert codex.run("go").said == ["You said: go"]

    emulator.expect(requests={POST: 1})
    assert len(emulator.requests(UPGRADE)) > 2


@pytest.mark.parametrize("answer", ["at rest", "at work"])
def test_a_connection_that_reached_its_limit_is_followed_by_one_with_a_full_request(
    tmp_path, make_emulator, answer
):
    emulator = make_emulator(settings=Settings(connection_seconds=2))
    codex = CodexCli(tmp_path, emulator.base_url, supports_websockets=True)
    at_work = ("stall after=response.output_item.done",) if answer == "at work" else ()
    emulator.say(runs("call_1", f"{CHARGE}; sleep 2.5"), faults=at_work)
    emulator.say("done")

    assert codex.run("go").said == ["done"]

    assert ledger(codex) == "charged\n"
    assert emulator.violations() == {}
    _, *_, (again,) = sockets(emulator)
    assert_full(again)
    assert conversation(again) == A_CALL
