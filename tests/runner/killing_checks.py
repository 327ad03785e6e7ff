"""The script of the turns that are killed, and what must be true after each: nothing is lost,
nothing is done twice, and the provider saw nothing wrong."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Self
from urllib.request import Request, urlopen

import msgspec

import lockstitch
from lockstitch.core.calls import Life as LifeOfCall
from lockstitch.core.outcomes import UNKNOWN_TEXT
from lockstitch.emulator import ALWAYS, Script, Turn, call, reasoning, reply
from lockstitch.testing import EmulatorThread
from tests.runner.killing import CallLeft, Death, Life, Report
from tests.runner.killing_points import Effect, Point

USER = "Book the early flight."
FINAL = "It is booked."
NAMES = ("book", "note", "look")
ARGUMENTS = {"book": {"flight": "LS 1"}, "note": {"text": "early"}, "look": {}}
NOT_RUN = "It was not run"
WHOLE, ONE_BY_ONE = 0.0, 0.002
"""Seconds between two events: an answer is there at once, or still being said when a life ends."""


def script(pace: float) -> Script:
    """A model that knows what it was told last: two calls at once, then a third, then a word. What
    it was not told about it asks for, with the same call ids as before."""

    def decide(asked):
        if asked.output is None:
            return reply(reasoning("Early."), _call("book"), _call("note"), pace=pace)
        left = NAMES[NAMES.index(asked.tool) + 1 :]
        return reply(_call(left[0]) if left else FINAL, pace=pace)

    return Script([Turn(decide=decide, times=ALWAYS)])


def _call(name):
    return call(name, ARGUMENTS[name], call_id=f"call_{name}")


class Lives:
    """Starts lives, each a fork of one warm process."""

    def __init__(self) -> None:
        with EmulatorThread() as emulator:
            self._server = subprocess.Popen(
                [sys.executable, "-m", "tests.runner.killing", emulator.base_url],
                cwd=Path(__file__).parents[2],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
            assert self._heard() == b"null"  # it is warm

    def run(self, life: Life) -> Death:
        assert self._server.stdin is not None
        self._server.stdin.write(msgspec.json.encode(life) + b"\n")
        self._server.stdin.flush()
        return msgspec.json.decode(self._heard(), type=Death)

    def _heard(self) -> bytes:
        assert self._server.stdout is not None
        return self._server.stdout.readline().strip()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.communicate()


def ended_and_resumed(
    lives: Lives,
    emulator: EmulatorThread,
    folder: Path,
    mode: str,
    ends: Point,
    *,
    faults: Sequence[str] = (),
) -> bool:
    """A life that ends at a point, and one that finishes its turn; False if there was no such
    point. Everything that must be true is checked."""
    emulator.reset()
    for fault in faults:
        emulator.fault(fault)
    folder.mkdir()
    url = emulator.base_url
    first = Life(url=url, folder=str(folder), mode=mode, message=USER, ends=ends)
    death = lives.run(first)
    if death.signal == 0 and not death.interrupted:
        assert death.report is not None
        assert death.report.text == FINAL, death.report.error
        assert not death.report.passed
        return False
    by = signal.SIGINT if death.interrupted else death.signal
    assert by == ends.signal, death
    done_before, told = effects(folder), lines(folder / "told", str)
    # Who was interrupted has let go of the thread; the claim of who was killed has to run out.
    later = not death.interrupted
    second = Life(url=url, folder=str(folder), mode=mode, again=USER, later=later)
    resumed = lives.run(second).report
    assert resumed is not None
    assert resumed.error is None, resumed.error
    if death.interrupted:
        check_left_in_order(resumed)
    else:
        check_nothing_was_given_up(resumed)
    check_resumed(resumed, done_before, effects(folder), told)
    check_context(resumed, context_of(emulator, mode, resumed))
    assert emulator.violations() == {}
    return True


def check_left_in_order(found: Report) -> None:
    """Who was only interrupted wrote down what became of everything that was under way."""
    assert found.in_flight == 0
    assert [one for one in found.calls if one.life is LifeOfCall.STARTED] == []


def check_nothing_was_given_up(found: Report) -> None:
    """Who was killed had no time to write that it does not know, or did not run, something."""
    given = [one.output for one in found.calls if one.output is not None]
    assert [output for output in given if output.startswith((UNKNOWN_TEXT, NOT_RUN))] == []


def check_resumed(
    resumed: Report, done_before: list[Effect], done: list[Effect], told: list[str]
) -> None:
    """The turn came to its end, with each tool's effect as often as is right."""
    assert resumed.text == FINAL
    assert resumed.unsettled == 0
    assert lockstitch.check(resumed.history) == []
    left = {one.call_id: one for one in resumed.calls}
    assert all(left[call_id].output is not None for call_id in told)
    outputs = outputs_of(resumed.history)
    for name in NAMES:
        before = [effect for effect in done_before if effect.tool == name]
        after = [effect for effect in done if effect.tool == name]
        call_id = f"call_{name}"
        check_call(name, left.get(call_id), outputs[call_id], before, after)


def check_call(
    name: str, left: CallLeft | None, said: str, before: list[Effect], after: list[Effect]
) -> None:
    """What became of a call that was left so: what the model was told, and the effects it had."""
    if left is not None and left.life is LifeOfCall.STARTED:
        if name == "book":
            # It may have had its effect: it is not run again, and the model hears of that.
            assert said == UNKNOWN_TEXT
            assert after == before
            assert len(after) <= 1
        else:
            assert len(after) == len(before) + 1
            assert after[-1].attempt == 2
            assert said == f"{name} by {after[-1].process}"
            assert len({effect.key for effect in after}) == 1
        return
    if left is not None and left.output is not None:
        assert said == left.output
        assert after == before
    if said.startswith(UNKNOWN_TEXT):
        assert len(after) <= 1
    elif said.startswith(NOT_RUN):
        assert after == []
    else:
        (effect,) = after
        assert said == f"{name} by {effect.process}"


def check_context(resumed: Report, context: list[dict]) -> None:
    """What the model saw last: every call and its output once, and no message twice."""
    assert lockstitch.check(context) == []
    types = Counter(item.get("type") or "message" for item in context)
    assert types["function_call"] == types["function_call_output"] == len(NAMES)
    assert outputs_of(context) == outputs_of(resumed.history)
    assert [item.get("role") for item in context if "role" in item] in (
        ["user"],
        ["user", "assistant"],
    )


def context_of(emulator: EmulatorThread, mode: str, resumed: Report) -> list[dict]:
    """What the provider has of the conversation; without the last word, where it keeps nothing."""
    if mode == "full":
        return emulator.requests("POST /v1/responses")[-1]["input"]
    kept = f"conversations/{resumed.conversation}/items"
    seen = f"responses/{resumed.response}/input_items"
    path = kept if mode == "conversation" else seen
    asked = Request(
        f"{emulator.base_url}/{path}?limit=100&order=asc", headers={"Authorization": "Bearer any"}
    )
    with urlopen(asked) as answer:
        return msgspec.json.decode(answer.read())["data"]


def outputs_of(items: list[dict]) -> dict[str, str]:
    """What each call was answered with. Raises if one was answered twice."""
    outputs: dict[str, str] = {}
    for item in items:
        if item.get("type") == "function_call_output":
            assert item["call_id"] not in outputs
            outputs[item["call_id"]] = item["output"]
    return outputs


def effects(folder: Path) -> list[Effect]:
    return lines(folder / "effects", Effect)


def lines(path: Path, kind):
    there = path.read_bytes().splitlines() if path.exists() else []
    return [msgspec.json.decode(line, type=kind) for line in there]
