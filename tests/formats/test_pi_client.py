"""The real pi resumes what was repaired: the provider accepts the request, and the answer arrives.

Each test takes a session that pi wrote, or one in pi's format, damages it, looks at what pi does
with it, repairs it, and lets pi resume it against the emulator, which is strict. `make
test-clients` runs these tests."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import lockstitch
from lockstitch.emulator import call as calls
from lockstitch.testing import EmulatorThread
from tests.formats.pi import (
    HEADER,
    assistant,
    call,
    chain,
    compaction,
    entry,
    linear,
    other,
    result,
    text,
    thinking,
    user,
)
from tests.formats.pi_cli import APIS, PiCli, entries, needs_pi
from tests.formats.sample import json_lines
from tests.formats.test_pi import check, mend

pytestmark = needs_pi

Records = list[dict[str, Any]]

PATHS = {
    "openai-completions": "POST /v1/chat/completions",
    "openai-responses": "POST /v1/responses",
    "anthropic-messages": "POST /v1/messages",
}
HALF = call("call_1", partialJson='{"comm')
MADE_UP = "No result provided"


@pytest.fixture(params=APIS)
def pi(request: pytest.FixtureRequest, tmp_path: Path, emulator: EmulatorThread) -> PiCli:
    return PiCli(tmp_path, emulator.url, request.param)


@pytest.fixture
def chat_pi(tmp_path: Path, emulator: EmulatorThread) -> PiCli:
    return PiCli(tmp_path, emulator.url)


def resumes(pi: PiCli, emulator: EmulatorThread) -> str:
    """Resume the session. The request that was sent, as text: it was accepted, and answered."""
    before = len(emulator.entries())
    emulator.say("I go on.")
    run = pi.run("go on")
    assert (run.code, run.stdout) == (0, "I go on.\n"), run
    sent = [one for one in emulator.entries()[before:] if not one.sent]
    assert len(sent) == 1
    return json.dumps(sent[0].readable().get("data"))


def bash(call_id: str, command: str) -> Any:
    return calls("bash", {"command": command}, call_id=call_id)


# --- broken sessions ---------------------------------------------------------------------------


def branch_without_results() -> Records:
    return [
        *chain(user("go"), assistant(call("call_1")), result("call_1", "it was 21 degrees")),
        entry("b1", "e002", user("another way")),
    ]


def compaction_in_a_pair() -> Records:
    records = chain(user("go"), assistant(call("call_1")), result("call_1"), assistant(text("ok")))
    return [*records, compaction("c1", "e004", "e003"), entry("c2", "c1", user("well?"))]


SENT_BROKEN: dict[str, Callable[[], Records]] = {
    "orphan": lambda: chain(user("go"), result("call_1"), assistant(text("done"))),
    "duplicate": lambda: chain(
        user("go"), assistant(call("call_1")), result("call_1"), result("call_1", "again")
    ),
    "too late": lambda: chain(
        user("go"), assistant(call("call_1")), user("and?"), result("call_1"), assistant(text("ok"))
    ),
    "compaction in a pair": compaction_in_a_pair,
    "repaired elsewhere": lambda: chain(
        user("go"), assistant(text("I"), HALF, stop="aborted"), result("call_1", MADE_UP), user("?")
    ),
    "no call id": lambda: chain(
        user("go"), assistant(call("call_1")), result("call_1"), result("")
    ),
}
"""What pi sends as it is, and providers reject."""

REPAIRED_EACH_TIME: dict[str, Callable[[], Records]] = {
    "open": lambda: chain(user("go"), assistant(call("call_1"))),
    "one of two open": lambda: chain(
        user("go"), assistant(call("call_1"), call("call_2")), result("call_2"), user("and?")
    ),
    "branch": branch_without_results,
}
"""What pi repairs by itself whenever it sends it: it says that there was no result."""

HARMLESS: dict[str, Callable[[], Records]] = {
    "reused id": lambda: chain(
        user("go"), assistant(call("call_1")), assistant(call("call_1")), result("call_1")
    ),
    "half a call": lambda: chain(user("go"), assistant(thinking(), HALF), user("and?")),
    "last entry goes": lambda: [
        *chain(user("go"), assistant(text("one"))),
        entry("b1", "e001", assistant(text("two"))),
        entry("b2", "e002", result("call_1")),
    ],
    "version 1": lambda: linear(user("go"), assistant(call("call_1")), user("and?")),
    "version 2": lambda: [
        {**HEADER, "version": 2},
        *chain(
            user("go"),
            assistant(call("call_1")),
            {"role": "hookMessage", "customType": "x", "content": "hm", "display": True},
            result("call_1"),
        )[1:],
    ],
    "a label": lambda: [
        *chain(user("go"), result("call_1"), assistant(text("done"))),
        other("x1", "e003", "label", targetId="e002", label="here"),
    ],
}
"""The rest: what becomes of it depends on the provider."""

BROKEN = {**SENT_BROKEN, **REPAIRED_EACH_TIME, **HARMLESS}


@pytest.mark.parametrize("name", BROKEN)
def test_pi_resumes_every_repaired_session(pi, emulator, name):
    pi.put(BROKEN[name]())
    assert check(pi.session)
    mend(pi.session)
    assert check(pi.session) == []

    resumes(pi, emulator)

    assert emulator.violations() == {}
    assert check(pi.session) == []  # what pi wrote behind it is in its place


@pytest.mark.parametrize("name", SENT_BROKEN)
def test_unrepaired_pi_sends_them_and_the_provider_rejects_the_request(chat_pi, emulator, name):
    chat_pi.put(SENT_BROKEN[name]())
    assert chat_pi.run("go on").code == 1
    assert emulator.violations()


@pytest.mark.parametrize("name", REPAIRED_EACH_TIME)
def test_unrepaired_pi_says_that_there_was_no_result(chat_pi, emulator, name):
    chat_pi.put(REPAIRED_EACH_TIME[name]())
    assert MADE_UP in resumes(chat_pi, emulator)
    assert all(MADE_UP not in json.dumps(one) for one in entries(chat_pi.session))


def test_repaired_the_model_hears_what_really_happened(chat_pi, emulator):
    chat_pi.put(branch_without_results())
    mend(chat_pi.session)
    request = resumes(chat_pi, emulator)
    assert MADE_UP not in request
    assert "it was 21 degrees" in request


# --- what pi makes itself ----------------------------------------------------------------------


def test_a_session_whose_tool_was_killed_is_resumed(pi, emulator):
    emulator.say(bash("call_1", "echo one"))
    emulator.say("done")
    assert pi.run("turn 1").code == 0
    emulator.say(bash("call_2", "sleep 60"), bash("call_3", "sleep 60"))
    pi.run_and_kill("turn 2", when=lambda all_: any("call_3" in json.dumps(one) for one in all_))
    assert [code for code, _ in check(pi.session)] == ["LS001", "LS001"]
    before = pi.session.read_bytes()

    mend(pi.session)

    assert pi.session.read_bytes().startswith(before)
    request = resumes(pi, emulator)
    assert MADE_UP not in request
    assert request.count("Outcome unknown") == 2
    assert emulator.violations() == {}
    assert pi.session.read_bytes().startswith(before)  # pi took it as it is


def test_a_turn_that_broke_off_is_skipped_by_pi_and_not_judged(pi, emulator):
    emulator.say(text("hm")["text"])
    assert pi.run("turn 1").code == 0
    records = entries(pi.session)
    records[-1]["message"].update(content=[call("call_1")], stopReason="error")
    pi.put(records)
    assert check(pi.session) == []
    assert "call_1" not in resumes(pi, emulator)
    assert emulator.violations() == {}


def test_a_compacted_session_is_resumed_from_the_compaction(chat_pi, emulator):
    for turn in ("turn 1", "turn 2"):
        emulator.say(bash("call_1", "seq 1 60"))
        emulator.say("done")
        assert chat_pi.run(turn).code == 0
    emulator.say("A summary.")
    emulator.say("A summary of the turn.")
    assert chat_pi.command(type="compact")["success"]
    assert check(chat_pi.session) == []

    request = resumes(chat_pi, emulator)

    assert "A summary." in request
    assert "call_1" not in request
    assert emulator.violations() == {}


# --- torn lines --------------------------------------------------------------------------------


def test_a_torn_last_line_costs_pi_the_next_entry_unless_it_is_removed(chat_pi, emulator):
    chat_pi.put(chain(user("go"), assistant(text("one"))))
    whole = chat_pi.session.read_bytes()
    torn = whole + b'{"type":"message","id":"e003","parentId":"e002","mess'
    chat_pi.session.write_bytes(torn)
    resumes(chat_pi, emulator)
    lines = chat_pi.session.read_bytes().splitlines()
    assert b'"mess{"type"' in lines[4]  # what pi wrote next is glued to it, and lost

    chat_pi.session.write_bytes(torn)
    mend(chat_pi.session)
    assert chat_pi.session.read_bytes() == whole
    resumes(chat_pi, emulator)
    assert "go on" in resumes(chat_pi, emulator)
    assert check(chat_pi.session) == []


def test_a_torn_line_in_the_middle_costs_pi_all_before_it_unless_it_is_bridged(chat_pi, emulator):
    records = chain(user("the first words"), assistant(text("1")), user("2"), assistant(text("3")))
    chat_pi.put(records)
    lines = chat_pi.session.read_bytes().splitlines(keepends=True)
    lines[4] = lines[4][:60] + b"\n"
    chat_pi.session.write_bytes(b"".join(lines))
    assert "the first words" not in resumes(chat_pi, emulator)

    chat_pi.session.write_bytes(b"".join(lines))
    mend(chat_pi.session)
    assert "the first words" in resumes(chat_pi, emulator)
    assert emulator.violations() == {}


def test_a_session_without_its_header_is_erased_by_pi_unless_it_gets_one(chat_pi, emulator):
    records = chain(user("the first words"), assistant(text("1")))
    json_lines(records[1:], chat_pi.session)
    assert "the first words" not in resumes(chat_pi, emulator)
    assert "the first words" not in chat_pi.session.read_text()

    json_lines(records[1:], chat_pi.session)
    mend(chat_pi.session)
    assert "the first words" in resumes(chat_pi, emulator)
    assert emulator.violations() == {}


# --- lists of messages -------------------------------------------------------------------------


LISTS = (*(SENT_BROKEN.keys() - {"compaction in a pair"}), "open", "half a call", "reused id")


@pytest.mark.parametrize("name", sorted(LISTS))
def test_a_repaired_list_of_messages_is_sent_by_pi_as_it_is(chat_pi, emulator, name):
    history = [one["message"] for one in BROKEN[name]() if one["type"] == "message"]
    assert lockstitch.check(history)
    done = lockstitch.mend(history)
    chat_pi.put(chain(*done))
    assert MADE_UP not in resumes(chat_pi, emulator)
    assert emulator.violations() == {}
