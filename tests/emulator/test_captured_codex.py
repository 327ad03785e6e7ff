"""What the real Codex sent, sent again: eighteen captured conversations, word for word.

The emulator says what was said then, and breaks where it broke then; `ANSWERS` has what becomes of
each request. Big texts are elided in the data; ids, types and order are as they were captured."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from lockstitch.testing import EmulatorThread

CAPTURES = Path(__file__).parent.parent / "data/emulator/captures"
KEY = {"Authorization": "Bearer any"}
LONGEST_WAIT_SECONDS = 10

Wire = dict[str, Any]

# How an answer ended for the client; a refusal is told by its message.
WHOLE = "whole"
CUT = "ended before its end"
RESET = "torn down"
CLOSED = "closed with 1000"
LEFT = "left by the client"

TWICE = (
    "400 Duplicate item found with id fco_01a1e0ab-fd3e-7c61-9552-610f2f77c8d3. "
    "Remove duplicate items from your input and try again."
)
UNKNOWN = "400 Previous response with id 'resp_001' not found."

# The answer to each request, leg by leg. Leg 2 is `codex exec resume --last`.
ANSWERS = {
    "baseline": [[WHOLE, WHOLE]],
    # A call that was cut off behind its last event is run, and sent back with its output.
    "A_cut_function_call_eof": [[CUT, WHOLE], [WHOLE]],
    # So is reasoning that no response ever completed: its encrypted content is genuine.
    "B_cut_custom_tool_call_rst": [[RESET, WHOLE], [WHOLE]],
    "C_cut_while_slow_tool_runs": [[RESET, WHOLE]],
    # Half a call is forgotten.
    "D_cut_partial_function_call": [[CUT, WHOLE]],
    "E_cut_parallel_calls_slow_first": [[CUT, WHOLE]],
    # The output that the killed Codex did not write down is told as `aborted`.
    "G_sigkill_tool_done_stream_open": [[LEFT], [WHOLE]],
    "I1_torn_last_line": [[WHOLE, WHOLE], [WHOLE]],
    # Codex drops an output whose call it cannot read: nothing is left to refuse.
    "I2_corrupt_call_line_orphan_output": [[WHOLE, WHOLE], [WHOLE]],
    # Codex sends an output as often as it stands in its rollout.
    "I7_duplicate_output_line": [[WHOLE, WHOLE], [TWICE]],
    # A call id that is used again in a later round is another call.
    "J2_retry_reissues_same_call_id": [[CUT, WHOLE, WHOLE]],
    # A compaction that Codex does itself is an ordinary request, and a new beginning.
    "N1_midturn_autocompact": [[WHOLE, WHOLE, WHOLE], [WHOLE]],
    # Over WebSocket the first request of a leg is a warm-up.
    "W0_ws_baseline": [[WHOLE, WHOLE, WHOLE], [WHOLE, WHOLE]],
    "W1_ws_cut_close_after_call": [[WHOLE, CLOSED, WHOLE], [WHOLE, WHOLE]],
    "W3_ws_previous_response_not_found": [[WHOLE, WHOLE, UNKNOWN, WHOLE]],
    # The old Codex tried again without the call, and told it as `aborted` when it was resumed.
    "Z1_cut_custom_call_0.118.0": [[CUT, WHOLE], [WHOLE]],
    "Z4_tool_done_then_cut_0.118.0": [[CUT, WHOLE], [WHOLE]],
    "Z4_tool_done_then_cut_0.166.0": [[CUT, WHOLE], [WHOLE]],
}
VIOLATIONS = {
    "I7_duplicate_output_line": {"duplicate-item": 1},
    "W3_ws_previous_response_not_found": {"anchor-not-found": 1},
}


@pytest.mark.parametrize("name", ANSWERS)
def test_each_request_that_codex_sent_is_answered_as_the_provider_would(emulator, name):
    capture = json.loads((CAPTURES / f"{name}.json").read_text())

    answers = asyncio.run(_replayed(emulator, capture, ANSWERS[name]))

    assert answers == ANSWERS[name]
    assert emulator.violations() == VIOLATIONS.get(name, {})
    emulator.expect(faults_struck=True, turns_used=True)


def test_every_captured_conversation_is_replayed():
    assert {path.stem for path in CAPTURES.iterdir()} == set(ANSWERS)


async def _replayed(
    emulator: EmulatorThread, capture: Wire, expected: list[list[str]]
) -> list[list[str]]:
    """How each request was answered, leg by leg."""
    answers = []
    # A connection for each request: one that was cut is not used again.
    connector = aiohttp.TCPConnector(force_close=True)
    async with aiohttp.ClientSession(connector=connector, headers=KEY) as session:
        for leg, expects in zip(capture["legs"], expected, strict=True):
            replay = Replay(emulator, session)
            for step in leg:
                if "connects" in step:
                    await replay.connect()
                    continue
                # The server of the captures refused nothing that it was not told to refuse.
                says = step["says"] if expects[len(replay.answers)] != TWICE else None
                await replay.exchange(capture["every"] | step["asks"], says)
            answers.append(replay.answers)
            await replay.leave()
    return answers


class Replay:
    """One leg: a run of Codex, from its first request to its last."""

    def __init__(self, emulator: EmulatorThread, session: aiohttp.ClientSession) -> None:
        self.answers: list[str] = []
        self._emulator = emulator
        self._session = session
        self._socket: aiohttp.ClientWebSocketResponse | None = None
        # The emulator's ids of responses, by the captured ones.
        self._ids: dict[str, str] = {}

    async def connect(self) -> None:
        await self.leave()
        beta = {"openai-beta": "responses_websockets=2026-02-06"}
        self._socket = await self._session.ws_connect(
            f"{self._emulator.base_url}/responses", headers=beta, compress=15
        )

    async def leave(self) -> None:
        if self._socket is not None:
            await self._socket.close()

    async def exchange(self, request: Wire, says: Wire | None) -> None:
        """Send what Codex sent, to a model that says what it said, and note the answer."""
        if says and request.get("generate") is not False:
            _script(self._emulator, says)
        anchor = request.get("previous_response_id")
        if anchor:
            request = request | {"previous_response_id": self._ids[anchor]}
        answer = Answer(leaves=bool(says) and says.get("end") == "killed")
        reading = self._over_http if self._socket is None else self._over_websocket
        async with asyncio.timeout(LONGEST_WAIT_SECONDS):
            await reading(request, answer)
        self.answers.append(answer.how.replace(self._ids[anchor], anchor) if anchor else answer.how)
        if says and answer.events:
            self._ids[says["id"]] = answer.events[0]["response"]["id"]
            _assert_word_for_word(answer.events, says)

    async def _over_http(self, request: Wire, answer: Answer) -> None:
        url = f"{self._emulator.base_url}/responses"
        try:
            async with self._session.post(url, json=request) as response:
                if response.status != 200:
                    answer.refuse(response.status, (await response.json())["error"])
                    return
                async for line in response.content:
                    if line.startswith(b"data: ") and answer.hear(json.loads(line[6:])):
                        break
        except (aiohttp.ClientPayloadError, aiohttp.ClientOSError):
            answer.how = RESET

    async def _over_websocket(self, request: Wire, answer: Answer) -> None:
        assert self._socket is not None
        await self._socket.send_json(request)
        async for message in self._socket:
            event = json.loads(message.data)
            if event["type"] == "error":
                answer.refuse(event["status"], event["error"])
                return
            if answer.hear(event):
                return
        answer.how = f"closed with {self._socket.close_code}"


class Answer:
    """What came in answer to one request."""

    def __init__(self, *, leaves: bool) -> None:
        self.events: list[Wire] = []
        self.how = CUT
        self._leaves = leaves

    def hear(self, event: Wire) -> bool:
        """Take an event; whether the client has heard enough."""
        self.events.append(event)
        if self._leaves and event["type"] == "response.output_item.done":
            self.how = LEFT
        elif event["type"] == "response.completed":
            self.how = WHOLE
        return self.how != CUT

    def refuse(self, status: int, error: Wire) -> None:
        self.how = f"{status} {error['message']}"


def _script(emulator: EmulatorThread, says: Wire) -> None:
    """Let the emulator say what was said, and end it as it ended."""
    if "error" in says:
        assert says["error"]["error"]["code"] == "previous_response_not_found"
        emulator.fault("forget what=cache")
        return
    behind = f"after=response.output_item.done nth={len(says['items'])}"
    if "begun" in says:
        behind = "before=response.function_call_arguments.done"
    faults = {
        "completed": (),
        "close": (f"cut {behind} how=close",),
        "rst": (f"cut {behind} how=reset",),
        "killed": (f"stall {behind}",),
    }
    drafts = [*says["items"], *([says["begun"]] if "begun" in says else [])]
    emulator.say(*drafts, faults=faults[says["end"]], input_tokens=says.get("input_tokens"))


def _assert_word_for_word(events: list[Wire], says: Wire) -> None:
    """The items came as they were captured, but for the fields that the capture left out."""
    done = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    assert len(done) == len(says["items"])
    assert all(map(_has, done, says["items"]))
    if "begun" in says:
        (begun,) = (
            event["item"] for event in events if event["type"] == "response.output_item.added"
        )
        deltas = "".join(event.get("delta", "") for event in events)
        assert _has(begun | {"arguments": deltas}, says["begun"])
    if "input_tokens" in says:
        assert events[-1]["response"]["usage"]["input_tokens"] == says["input_tokens"]


def _has(came: Any, captured: Any) -> bool:
    if isinstance(captured, dict):
        return all(name in came and _has(came[name], value) for name, value in captured.items())
    if isinstance(captured, list):
        return len(came) == len(captured) and all(map(_has, came, captured))
    return bool(came == captured)
