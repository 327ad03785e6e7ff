"""The real Codex through the gateway: it works as it does without, and what breaks behind the
gateway is mended before Codex sees it, or ends so that Codex gets over it.

After each test the emulator must have had nothing to refuse, unless the test says what: the
fixture `emulator` sees to that."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from lockstitch.emulator import Settings, reasoning
from lockstitch.testing import EmulatorThread
from tests.gateway.clients.gateways import GatewayThread, gone, keeping_nothing, upstream
from tests.gateway.clients.processes import ServeProcess
from tests.real_codex.codex_cli import CodexCli, needs_codex
from tests.real_codex.drafts import HELD, patches, runs
from tests.real_codex.requests import asked, conversation, output_of
from tests.real_codex.rollouts import ended

pytestmark = needs_codex

PATCH = "*** Begin Patch\n*** Add File: receipt.txt\n+charged\n*** End Patch\n"
CHARGE = "echo charged | tee -a ledger.txt"
A_CALL = ["user: go", "call call_1", "output call_1"]
POST, UPGRADE, FRAME = "POST /v1/responses", "GET /v1/responses", "frame response.create"
PATIENCE_SECONDS = 30.0

# Breaks in front of anything that Codex could act on: it never hears of them.
EARLY = (
    "cut before=first-byte how=reset",
    "cut after=response.created how=close",
    "cut after=response.in_progress how=half-frame",
)
# Breaks behind a call: Codex has it, and asks again with its output.
LATE = (
    "cut after=response.output_item.done how=close",
    "cut after=response.output_item.done how=reset",
    "cut before=response.completed how=half-frame",
    "cut before=response.completed how=half-character",
    "fail",
    "error",
)


class Stage:
    """Codex, a gateway and an emulator, each behind the other."""

    def __init__(self, folder: Path, emulator: EmulatorThread) -> None:
        self.folder = folder
        self.emulator = emulator
        self.gateway: GatewayThread
        self.codex: CodexCli
        self.second = 2
        """The number of the request that sends an output; a warm-up counts, too."""

    def set(self, *, client: str, **settings: Any) -> Stage:
        """``client``: how Codex speaks. ``settings`` are those of the gateway's upstream."""
        store = f"sqlite:///{self.folder}/journal.db"
        self.gateway = GatewayThread(store, upstream(self.emulator, **settings)).start()
        more = {"supports_websockets": True} if client == "websocket" else {}
        self.second += len(more)
        self.codex = CodexCli(self.folder, self.gateway.base_url, **more)
        return self

    def ledger(self) -> str:
        """What `CHARGE` left behind, each time that it ran."""
        return (self.codex.project / "ledger.txt").read_text()

    def last(self) -> Any:
        """What the emulator was asked last."""
        return asked(self.emulator)[-1]

    def stop(self) -> None:
        if hasattr(self, "gateway"):
            self.gateway.stop()


@pytest.fixture
def stage(tmp_path: Path, emulator: EmulatorThread) -> Iterator[Stage]:
    made = Stage(tmp_path, emulator)
    yield made
    made.stop()


@pytest.fixture(params=["http", "websocket"])
def played(request: pytest.FixtureRequest, stage: Stage) -> Stage:
    """Codex over each transport, and an upstream that speaks both."""
    return stage.set(client=request.param)


@pytest.fixture(params=[("http", "websocket"), ("websocket", "http")])
def translated(request: pytest.FixtureRequest, stage: Stage) -> Stage:
    """Codex over one transport, and an upstream that speaks only the other."""
    client, transport = request.param
    return stage.set(client=client, transport=transport)


# --- whole turns -------------------------------------------------------------------------------


def test_a_turn_with_a_command_and_a_patch_passes(played):
    played.emulator.say(reasoning("Why not?"), runs("call_1", CHARGE), patches("call_2", PATCH))
    played.emulator.say("done")

    assert played.codex.run("go").said == ["done"]

    assert played.ledger() == "charged\n"
    assert (played.codex.project / "receipt.txt").read_text() == "charged\n"
    played.emulator.expect(turns_used=True)


def test_a_turn_is_resumed(played):
    played.emulator.say(reasoning("Why not?"), runs("call_1", CHARGE))
    played.emulator.say("done")
    assert played.codex.run("go").said == ["done"]

    assert played.codex.resume("and now?").said == ["You said: and now?"]

    assert played.ledger() == "charged\n"
    sent = conversation(played.last())
    assert sent[-1] == "user: and now?"


def test_a_turn_is_resumed_through_a_gateway_that_was_started_again(played):
    played.emulator.say(runs("call_1", CHARGE))
    played.emulator.say("done")
    assert played.codex.run("go").said == ["done"]
    played.gateway.restart()

    assert played.codex.resume("and now?").said == ["You said: and now?"]

    assert played.ledger() == "charged\n"


def test_a_turn_is_compacted_in_its_middle(played):
    config = played.codex.home / "config.toml"
    config.write_text(f"model_auto_compact_token_limit = 20000\n{config.read_text()}")
    played.emulator.say(runs("call_1", CHARGE), input_tokens=50_000)
    played.emulator.say("a summary")
    played.emulator.say("done")
    assert played.codex.run("go").said == ["done"]

    assert played.codex.resume("and now?").said == ["You said: and now?"]

    assert played.ledger() == "charged\n"
    assert "call call_1" not in conversation(played.last())
    played.emulator.expect(turns_used=True)


def test_what_codex_says_of_itself_reaches_the_provider(played):
    played.codex.run("go")

    first = next(entry for entry in played.emulator.entries() if "/v1/responses" in entry.what)
    headers = {name.lower() for name, _ in first.readable()["headers"]}
    assert headers >= {
        "originator",
        "session-id",
        "thread-id",
        "x-client-request-id",
        "x-codex-turn-metadata",
    }
    assert ("openai-beta" in headers) is (first.what == UPGRADE)


def test_over_websocket_the_provider_sees_what_codex_sends(stage):
    stage.set(client="websocket")
    stage.emulator.say(runs("call_1", CHARGE))
    stage.emulator.say("done")

    assert stage.codex.run("go").said == ["done"]

    warm_up, first, second = stage.emulator.requests(FRAME)
    assert warm_up["generate"] is False
    assert conversation(first) == ["user: go"]
    assert conversation(second) == ["output call_1"]
    stage.emulator.expect(requests={UPGRADE: 1, POST: 0})


# --- one transport in front, the other behind --------------------------------------------------


def test_a_turn_passes_from_one_transport_to_the_other(translated):
    translated.emulator.say(runs("call_1", CHARGE))
    translated.emulator.say(patches("call_2", PATCH))
    translated.emulator.say("done")

    assert translated.codex.run("go").said == ["done"]

    assert translated.ledger() == "charged\n"
    assert (translated.codex.project / "receipt.txt").read_text() == "charged\n"
    translated.emulator.expect(turns_used=True)


def test_a_turn_is_resumed_from_one_transport_to_the_other(translated):
    translated.emulator.say(runs("call_1", CHARGE))
    translated.emulator.say("done")
    assert translated.codex.run("go").said == ["done"]
    translated.gateway.restart()

    assert translated.codex.resume("and now?").said == ["You said: and now?"]


@pytest.mark.parametrize("client", ["http", "websocket"])
@pytest.mark.parametrize("transport", ["http", "websocket"])
def test_a_provider_without_state_is_given_it(stage, client, transport):
    keeping_nothing(stage.emulator)
    stage.set(client=client, transport=transport, state="gateway")
    stage.emulator.say(reasoning("Why not?"), runs("call_1", CHARGE))
    stage.emulator.say(patches("call_2", PATCH))
    stage.emulator.say("done")
    assert stage.codex.run("go").said == ["done"]
    stage.gateway.restart()

    assert stage.codex.resume("and now?").said == ["You said: and now?"]

    assert stage.ledger() == "charged\n"
    assert output_of("call_1", stage.last()).endswith("charged\n")
    assert conversation(stage.last())[-1] == "user: and now?"


# --- broken streams ----------------------------------------------------------------------------


@pytest.mark.parametrize("fault", EARLY)
def test_a_stream_that_breaks_before_anything_was_said_is_mended_unseen(played, fault):
    played.emulator.say(runs("call_1", CHARGE))
    played.emulator.say("done", faults=(fault,))
    played.emulator.say("done")

    run = played.codex.run("go")

    assert run.said == ["done"]
    assert "Reconnecting" not in run.stdout + run.stderr
    assert played.ledger() == "charged\n"


@pytest.mark.parametrize("fault", LATE)
def test_a_stream_that_breaks_behind_a_call_ends_with_the_call_run_once(played, fault):
    played.emulator.say(runs("call_1", CHARGE), faults=(fault,))
    played.emulator.say("done")

    assert played.codex.run("go").said == ["done"]

    assert played.ledger() == "charged\n"
    assert conversation(played.last()) == A_CALL


@pytest.mark.parametrize("fault", LATE)
def test_a_stream_that_breaks_behind_a_call_does_so_in_the_other_transport(translated, fault):
    translated.emulator.say(runs("call_1", CHARGE), faults=(fault,))
    translated.emulator.say("done")

    assert translated.codex.run("go").said == ["done"]

    assert translated.ledger() == "charged\n"


def test_half_a_call_is_neither_run_nor_sent_back(played):
    cut = "cut after=response.function_call_arguments.delta nth=3"
    played.emulator.say(runs("call_1", CHARGE), faults=(cut,))
    played.emulator.say("done")

    assert played.codex.run("go").said == ["done"]

    assert not (played.codex.project / "ledger.txt").exists()


@pytest.mark.parametrize("code", ["1000", "1001", "1006", "1011", "1012"])
def test_a_socket_that_is_closed_between_two_requests_is_not_missed(stage, code):
    """Codex keeps its connection, and its delta of an output alone is answered."""
    stage.set(client="websocket")
    stage.emulator.say(
        runs("call_1", CHARGE), faults=(f"close code={code} after=response.completed",)
    )
    stage.emulator.say("done")

    run = stage.codex.run("go")

    assert run.said == ["done"]
    assert "Reconnecting" not in run.stdout + run.stderr
    assert stage.ledger() == "charged\n"
    assert conversation(stage.last()) == A_CALL


# --- lost anchors ------------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["cache", "everything"])
def test_an_anchor_that_the_provider_forgot_is_mended_unseen(stage, broken, what):
    stage.set(client="websocket")
    stage.emulator.say(runs("call_1", CHARGE))
    stage.emulator.say("done")
    # With the model, frames alone are counted: a handshake names none.
    stage.emulator.fault(f"forget what={what} model=gpt-5.5 request=3")

    assert stage.codex.run("go").said == ["done"]

    broken["anchor-not-found"] = 1
    assert stage.ledger() == "charged\n"
    _, _, delta, again = stage.emulator.requests(FRAME)
    assert conversation(delta) == ["output call_1"]
    assert again.get("previous_response_id") is None
    assert conversation(again) == A_CALL


def test_a_warm_up_that_the_provider_forgot_is_mended_unseen(stage, broken):
    stage.set(client="websocket")
    stage.emulator.say("done")
    stage.emulator.fault("forget what=cache model=gpt-5.5 request=2")

    assert stage.codex.run("go").said == ["done"]

    broken["anchor-not-found"] = 1
    assert stage.last()["input"][0]["role"] == "developer"
    assert conversation(stage.last()) == ["user: go"]


# --- refused requests --------------------------------------------------------------------------


@pytest.mark.parametrize("status", ["500", "502", "503"])
def test_a_request_that_meets_a_broken_server_is_sent_again(played, status):
    played.emulator.say(runs("call_1", CHARGE))
    played.emulator.say("done")
    played.emulator.fault(f"status code={status} model=gpt-5.5 request={played.second}")

    assert played.codex.run("go").said == ["done"]

    assert played.ledger() == "charged\n"


def test_an_answer_that_was_lost_on_the_way_is_asked_for_again(played):
    played.emulator.say(runs("call_1", CHARGE))
    played.emulator.fault(f"lose model=gpt-5.5 request={played.second} how=reset")

    assert played.codex.run("go").code == 0

    assert played.ledger() == "charged\n"


def test_an_upstream_that_refuses_the_handshake_is_asked_over_http(stage):
    stage.set(client="websocket")
    stage.emulator.say(runs("call_1", CHARGE))
    stage.emulator.say("done")
    stage.emulator.fault("refuse-upgrade code=426 times=always")

    assert stage.codex.run("go").said == ["done"]

    assert stage.ledger() == "charged\n"


# --- two upstreams -----------------------------------------------------------------------------


@pytest.fixture(params=["http", "websocket"])
def doubled(request, tmp_path, emulator, make_emulator):
    """Codex over each transport, and two upstreams: the second is for when the first is gone."""
    second = make_emulator(settings=Settings(seed=1))
    store = f"sqlite:///{tmp_path}/journal.db"
    one, two = upstream(emulator, "one", retries=0), upstream(second, "two")
    gateway = GatewayThread(store, one, two).start()
    more = {"supports_websockets": True} if request.param == "websocket" else {}
    yield CodexCli(tmp_path, gateway.base_url, **more), emulator, second
    gateway.stop()
    # Whose a sealed item is, the gateway may have to learn from the one that refuses it.
    assert second.violations() in ({}, {"unverified-reasoning": 1})


def test_a_turn_is_resumed_at_another_upstream_without_what_belongs_to_the_first(doubled):
    codex, one, two = doubled
    one.say(reasoning("Why not?"), runs("call_1", CHARGE))
    one.say("done")
    assert codex.run("go").said == ["done"]
    gone(one)

    assert codex.resume("and now?").said == ["You said: and now?"]

    assert conversation(asked(two)[-1]) == [*A_CALL, "assistant: done", "user: and now?"]


def test_a_turn_goes_on_at_another_upstream_when_the_first_is_gone(doubled):
    codex, one, two = doubled
    one.say(reasoning("Why not?"), runs("call_1", f"touch began; sleep 0.5; {CHARGE}"))
    two.say("done")

    with when_it_exists(codex.project / "began", lambda: gone(one)):
        run = codex.run("go")

    assert run.said == ["done"]
    assert (codex.project / "ledger.txt").read_text() == "charged\n"
    assert conversation(asked(two)[-1]) == A_CALL


# --- a client that goes away -------------------------------------------------------------------


def test_a_codex_that_was_killed_in_the_middle_of_an_answer_is_resumed(played):
    played.emulator.say(runs("call_1", CHARGE), faults=HELD)
    played.codex.run_and_kill("go", when=ended("call_1"))

    assert played.codex.resume("go on").said == ["You said: go on"]

    assert played.ledger() == "charged\n"
    assert conversation(played.last())[-1] == "user: go on"


# --- a gateway that goes away ------------------------------------------------------------------


def test_a_gateway_that_is_started_again_while_a_tool_runs_is_gone_on_with(played):
    waiting = "touch began; until [ -e restarted ]; do sleep 0.05; done"
    played.emulator.say(runs("call_1", f"{waiting}; {CHARGE}"))
    played.emulator.say("done")

    def restart():
        played.gateway.restart()
        (played.codex.project / "restarted").touch()

    with when_it_exists(played.codex.project / "began", restart):
        run = played.codex.run("go")

    assert run.said == ["done"]
    assert played.ledger() == "charged\n"


@pytest.mark.parametrize("client", ["http", "websocket"])
@pytest.mark.parametrize("when", ["while a tool runs", "in the middle of an answer"])
def test_a_gateway_that_was_killed_is_gone_on_with(tmp_path, emulator, client, when):
    """As it is run by people: a process of its own, with a file and a key."""
    key = hashlib.sha256(b"sk-x").hexdigest()
    serving = ServeProcess(
        tmp_path,
        f'''
[[upstreams]]
name = "emulator"
url = "{emulator.base_url}"
key_env = "KEY_OF_THE_UPSTREAM"
[[keys]]
name = "codex"
hash = "sha256:{key}"
''',
        KEY_OF_THE_UPSTREAM="sk-of-the-upstream",
    ).start()
    more = {"supports_websockets": True} if client == "websocket" else {}
    codex = CodexCli(tmp_path, serving.base_url, **more)
    waiting = "touch began; until [ -e restarted ]; do sleep 0.05; done"
    faults = HELD if when == "in the middle of an answer" else ()
    emulator.say(runs("call_1", f"{waiting}; {CHARGE}"), faults=faults)
    emulator.say("done")

    def restart():
        serving.kill()
        serving.start()
        (codex.project / "restarted").touch()

    try:
        with when_it_exists(codex.project / "began", restart):
            run = codex.run("go")
        assert run.said == ["done"], serving.log
        assert (codex.project / "ledger.txt").read_text() == "charged\n"
        assert codex.resume("and now?").said == ["You said: and now?"]
        assert "sk-" not in serving.log
        assert "Traceback" not in serving.log
    finally:
        assert serving.stop() == 0


@contextmanager
def when_it_exists(path: Path, then: Callable[[], object]) -> Iterator[None]:
    """Do something as soon as a tool of Codex has made this file."""
    failed: list[BaseException] = []

    def waiting() -> None:
        try:
            deadline = time.monotonic() + PATIENCE_SECONDS
            while not path.exists():
                assert time.monotonic() < deadline, "the tool was never run"
                time.sleep(0.02)
            then()
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=waiting)
    thread.start()
    try:
        yield
    finally:
        thread.join()
    assert failed == []
