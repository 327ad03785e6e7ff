"""A turn of three calls, cut before every event of each of its answers, in every way there is.

The fault loop: the first event, the second, … until a turn is not cut. Ordinary runs take every
event in one mode of each transport and samples in the others; THOROUGH=1 takes all of them."""

from __future__ import annotations

import asyncio
import os
from itertools import count

import pytest

from lockstitch.core.facts import Mode
from lockstitch.emulator.faults import FAULTS
from lockstitch.runner import backoff
from tests.runner.stage import MODES, staged
from tests.runner.stage_three import THREE_CALLS, sail

CASE_SECONDS = 10.0
"""A turn takes some hundredths of a second; one that takes this long hangs."""
STRIDE = 1 if os.environ.get("THOROUGH") else 11
FEWEST_EVENTS = {1: 20, 2: 6}
"""In the answer that calls, and in the one that says the last word."""

COMMITS = FAULTS["cut"].settings["commit"].choices
CUTS = [f"cut how={how}" for how in FAULTS["cut"].settings["how"].choices]
CLOSES = [f"close code={code}" for code in FAULTS["close"].settings["code"].choices]
WAYS = {"http": CUTS, "websocket": CUTS + CLOSES}
CASES = [
    (transport, mode, f"{way} commit={commit}")
    for transport, ways in WAYS.items()
    for mode in MODES
    for way in ways
    for commit in COMMITS
]


@pytest.fixture(autouse=True)
def no_backoff(monkeypatch):
    monkeypatch.setattr(backoff, "FIRST_DELAY_SECONDS", 0.001)


def _numbers(transport, mode, way):
    """The events that are cut: all in one mode of each transport; else every eleventh, beginning
    with another one for each way."""
    fully = {"http": Mode.CHAIN, "websocket": Mode.CONVERSATION}[transport].value
    if mode == fully and way.startswith("cut") and way.endswith("commit=no"):
        return count()
    return count(CASES.index((transport, mode, way)) % STRIDE, STRIDE)


@pytest.mark.parametrize(("transport", "mode", "way"), CASES)
def test_a_turn_ends_right_wherever_it_is_cut(transport, mode, way):
    settings = {"transport": transport, "mode": mode}

    async def run():
        async with staged(THREE_CALLS) as stage:
            for answer, fewest in FEWEST_EVENTS.items():
                for point in ("after=end", "before=first-byte"):
                    assert await _survives(stage, f"{way} {point}", answer, **settings)
                for number in _numbers(transport, mode, way):
                    if not await _survives(stage, f"{way} before={number}", answer, **settings):
                        break
                assert number > fewest

    asyncio.run(run())


@pytest.mark.parametrize("way", CUTS)
@pytest.mark.parametrize("kind", ["chat", "messages"])
def test_a_turn_of_another_dialect_ends_right_wherever_it_is_cut(kind, way):
    async def run():
        async with staged(THREE_CALLS) as stage:
            for answer in (1, 2):
                for point in ("after=end", "before=first-byte", "before=end"):
                    fault = f"{way} {point}"
                    assert await _survives(stage, fault, answer, path="", kind=kind, mode="full")
                for number in count():
                    fault = f"{way} before={number}"
                    if not await _survives(stage, fault, answer, path="", kind=kind, mode="full"):
                        break
                assert number > 3

    asyncio.run(run())


async def _survives(stage, cut, answer, *, path="/v1/responses", **settings):
    """Play the turn; False if it was never cut."""
    stage.emulator.reset()
    fault = f"{cut} path={path} request={answer}"
    stage.emulator.fault(fault)
    try:
        async with asyncio.timeout(CASE_SECONDS):
            await sail(stage, thread=fault, **settings)
            assert stage.broken() == {}
    except BaseException as error:
        error.add_note(f"{fault}, {settings}")
        raise
    return stage.struck() > 0
