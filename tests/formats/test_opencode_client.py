"""The real opencode resumes sessions that broke, before and after their repair."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lockstitch.core.outcomes import UNKNOWN_TEXT
from lockstitch.dialects.opencode import PARTIAL_OUTPUT
from lockstitch.emulator import call
from lockstitch.sessions.files import check_file, mended, put_in_place
from lockstitch.sessions.source import Source
from lockstitch.testing import EmulatorThread
from tests.formats.opencode_client import OpencodeClient, needs_opencode

pytestmark = needs_opencode

PROMPT = "please do"


@pytest.fixture
def opencode(tmp_path: Path, emulator: EmulatorThread) -> OpencodeClient:
    return OpencodeClient(tmp_path, emulator.base_url)


def found(client: OpencodeClient) -> list[tuple[str, str | None]]:
    scan = check_file(Source(client.database))
    return [(one.finding.code, one.finding.key) for one in scan.findings()]


def repair(client: OpencodeClient) -> None:
    path = client.database
    with mended(Source(path), beside=path.parent) as ready:
        put_in_place(ready, path, backup=True)
    assert found(client) == []


def sent(emulator: EmulatorThread) -> list[dict[str, Any]]:
    """The messages of the last request, without the system's."""
    messages = emulator.requests("POST /v1/chat/completions")[-1]["messages"]
    return [message for message in messages if message["role"] != "system"]


def results(emulator: EmulatorThread) -> dict[str, str]:
    return {
        message["tool_call_id"]: message["content"]
        for message in sent(emulator)
        if message["role"] == "tool"
    }


def kill_while_a_tool_runs(client: OpencodeClient, emulator: EmulatorThread) -> None:
    """Of two calls made at once, one is done and the other has written its first line."""
    slow = {"command": "echo started; sleep 60; echo ended", "description": "slow"}
    read = {"filePath": str(client.project / "a.txt")}
    emulator.say(
        "Looking", call("bash", slow, call_id="call_slow"), call("read", read, call_id="call_read")
    )

    def running(parts: list[dict[str, Any]]) -> bool:
        states = {part["tool"]: part["state"] for part in parts if part["type"] == "tool"}
        output = states.get("bash", {}).get("metadata", {}).get("output")
        return output == "started\n" and states.get("read", {}).get("status") == "completed"

    client.run_and_kill(PROMPT, when=running)


def resume(client: OpencodeClient, emulator: EmulatorThread) -> None:
    emulator.say("resumed")
    run = client.resume("go on")
    assert (run.said, run.errors, run.code) == (["resumed"], [], 0)


def test_a_session_without_damage_is_clean(opencode, emulator):
    read = {"filePath": str(opencode.project / "a.txt")}
    emulator.say(call("read", read, call_id="call_read"))
    emulator.say("done")
    assert opencode.run(PROMPT).said == ["done"]
    assert found(opencode) == []


def test_the_model_learns_what_a_killed_tool_had_done_once_the_session_is_repaired(
    opencode, emulator
):
    kill_while_a_tool_runs(opencode, emulator)
    assert found(opencode) == [("LS010", "call_slow")]
    repair(opencode)
    resume(opencode, emulator)
    assert results(emulator)["call_slow"] == UNKNOWN_TEXT + PARTIAL_OUTPUT + "started\n"
    assert "1: hello" in results(emulator)["call_read"]
    emulator.expect(violations=0)
    assert found(opencode) == []


def test_without_a_repair_opencode_says_that_the_tool_was_interrupted_and_forgets_its_output(
    opencode, emulator
):
    kill_while_a_tool_runs(opencode, emulator)
    resume(opencode, emulator)
    assert results(emulator)["call_slow"] == "[Tool execution was interrupted]"
    assert found(opencode) == [("LS010", "call_slow")]


def test_a_call_that_the_model_did_not_finish_is_gone_after_the_repair(opencode, emulator):
    long = {"command": "echo " + "a very long text, " * 60, "description": "long"}
    emulator.say("Looking", call("bash", long, call_id="call_half"), pace=0.2)
    opencode.run_and_kill(
        PROMPT,
        when=lambda parts: any(part.get("state", {}).get("status") == "pending" for part in parts),
    )
    emulator.reset()
    assert found(opencode) == [("LS014", "call_half")]
    repair(opencode)
    resume(opencode, emulator)
    assert all("tool_calls" not in message for message in sent(emulator))
    emulator.expect(violations=0)


def test_without_a_repair_opencode_makes_up_a_call_that_the_model_never_made(opencode, emulator):
    long = {"command": "echo " + "a very long text, " * 60, "description": "long"}
    emulator.say("Looking", call("bash", long, call_id="call_half"), pace=0.2)
    opencode.run_and_kill(
        PROMPT,
        when=lambda parts: any(part.get("state", {}).get("status") == "pending" for part in parts),
    )
    emulator.reset()
    resume(opencode, emulator)
    made = [one for message in sent(emulator) for one in message.get("tool_calls", ())]
    assert [one["function"] for one in made] == [{"name": "bash", "arguments": "{}"}]


def test_a_result_without_a_call_id_is_rejected_until_it_is_removed(opencode, emulator):
    kill_while_a_tool_runs(opencode, emulator)
    opencode.change_tool("read", lambda part: part.update(callID=""))
    emulator.say("never said")
    run = opencode.resume("go on")
    assert "Invalid 'messages[2].tool_calls[1].id'" in run.errors[0]["data"]["message"]
    emulator.reset()
    assert ("LS002", None) in found(opencode)
    repair(opencode)
    resume(opencode, emulator)
    assert list(results(emulator)) == ["call_slow"]
    emulator.expect(violations=0)


@pytest.mark.parametrize("field", ["output", "time"])
def test_what_opencode_cannot_read_is_not_called_clean(opencode, emulator, field):
    kill_while_a_tool_runs(opencode, emulator)
    opencode.change_tool("read", lambda part: part["state"].pop(field))
    emulator.say("never said")
    run = opencode.resume("go on")
    assert run.errors
    assert not run.said
    with pytest.raises(Exception, match="a completed tool part without"):
        found(opencode)


def test_a_repaired_export_can_be_imported_and_resumed_elsewhere(opencode, emulator, tmp_path):
    kill_while_a_tool_runs(opencode, emulator)
    path = tmp_path / "session.json"
    path.write_text(opencode.export())
    with mended(Source(path), beside=tmp_path) as ready:
        assert [change.code for change in ready.changes] == ["LS010"]
        put_in_place(ready, path, backup=True)
    other = tmp_path / "other"
    other.mkdir()
    client = OpencodeClient(other, emulator.base_url)
    client.load(path)
    assert found(client) == []
    resume(client, emulator)
    assert results(emulator)["call_slow"] == UNKNOWN_TEXT + PARTIAL_OUTPUT + "started\n"
    emulator.expect(violations=0)
