"""The same script, killed at the same point: a tool has ended, and the stream is still open.

The real Codex CLI was killed there (the captured session): the output is not in its rollout, and
the model is told that the call was aborted. A runner has the output, and sends it."""

from __future__ import annotations

import json

import pytest

import lockstitch
from lockstitch.core.outcomes import UNKNOWN_TEXT
from lockstitch.emulator import Script, call, reply
from lockstitch.sessions.source import Source
from lockstitch.testing import EmulatorThread
from tests.runner.killing import Life
from tests.runner.killing_checks import Lives, outputs_of
from tests.runner.killing_points import Point
from tests.sessions.written import CAPTURES, DATA, messages

NAME = "G_sigkill_tool_done_stream_open"
ROLLOUT = CAPTURES / NAME / "leg1" / "rollout.jsonl"
WIRE = json.loads((DATA / "emulator" / "captures" / f"{NAME}.json").read_text())
((KILLED,), (RESUMED,)) = WIRE["legs"]

(CALL,) = KILLED["says"]["items"]
CALL_ID = CALL["call_id"]
EFFECT = "charged\n"
MODES = ("full", "previous_response_id", "conversation")


def words(item):
    return item["content"][0]["text"]


@pytest.fixture(scope="module")
def lives():
    with Lives() as lives:
        yield lives


@pytest.fixture
def provider():
    """Says what the provider of the captured session said, and stays silent where it did."""
    made = call(CALL["name"], CALL["arguments"], call_id=CALL_ID)
    silent = "stall after=response.output_item.done seconds=600"
    (last,) = RESUMED["says"]["items"]
    script = Script([reply(made, faults=[silent]), reply(words(last))])
    with EmulatorThread(script=script) as emulator:
        yield emulator


def killed_and_resumed(lives, provider, folder, mode, point):
    """A runner with the users' words of the captured session: what its second life found and did,
    and the outputs that it sent."""
    first, second = (words(leg["asks"]["input"][-1]) for leg in (KILLED, RESUMED))
    life = {"url": provider.base_url, "folder": str(folder), "mode": mode}
    death = lives.run(Life(**life, message=first, ends=point))
    assert death.signal == point.signal
    report = lives.run(Life(**life, message=second, later=True)).report
    assert report.error is None, report.error
    assert report.in_flight == 1  # the stream was open
    assert provider.violations() == {}
    return report, outputs_of(provider.requests("POST /v1/responses")[-1]["input"])


def test_a_killed_codex_has_lost_the_output_of_a_tool_that_had_ended():
    lines = map(json.loads, ROLLOUT.read_text().splitlines())
    kept = [line["payload"] for line in lines if line["type"] == "response_item"]
    (finding,) = lockstitch.check(kept)
    assert (finding.code, finding.key) == ("LS001", CALL_ID)
    (message,) = messages(Source(ROLLOUT))
    assert "has no output; it finished with exit code 0" in message


def test_a_resumed_codex_tells_the_model_that_the_call_was_aborted():
    assert outputs_of(RESUMED["asks"]["input"]) == {CALL_ID: "aborted"}


@pytest.mark.parametrize("mode", MODES)
def test_a_killed_runner_keeps_the_output_of_a_tool_that_had_ended(lives, provider, tmp_path, mode):
    point = Point("after CallSettled")
    report, sent = killed_and_resumed(lives, provider, tmp_path, mode, point)
    (found,) = report.calls
    assert found.output == "exit code 0\n"
    assert sent == {CALL_ID: found.output}
    assert (tmp_path / "ledger.txt").read_text() == EFFECT
    assert lockstitch.check(report.history) == []
    assert report.text == words(RESUMED["says"]["items"][-1])


@pytest.mark.parametrize("mode", MODES)
def test_a_runner_that_is_killed_before_it_has_the_output_denies_nothing(
    lives, provider, tmp_path, mode
):
    point = Point("after exec_command")
    report, sent = killed_and_resumed(lives, provider, tmp_path, mode, point)
    assert sent == {CALL_ID: UNKNOWN_TEXT}
    assert (tmp_path / "ledger.txt").read_text() == EFFECT
    assert report.text == words(RESUMED["says"]["items"][-1])
