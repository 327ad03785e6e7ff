"""An answer that is cut at every event, in every way there is, between events and inside them.

Ordinary runs take every event in one way and samples in the others; THOROUGH=1 takes all."""

from __future__ import annotations

import asyncio
import os
from itertools import count

import pytest

from lockstitch.emulator.faults import FAULTS
from tests.gateway.faults.playing import script
from tests.gateway.faults.serving import providers
from tests.gateway.faults.weathering import weathers

STRIDE = 1 if os.environ.get("THOROUGH") else 9
HOWS = FAULTS["cut"].settings["how"].choices
CODES = FAULTS["close"].settings["code"].choices
COMMITS = FAULTS["cut"].settings["commit"].choices
FEWEST_EVENTS = {"first": 25, "outputs": 8, "full": 8, "conversation": 8}
CASES = [
    (transport, shape, f"{way} commit={commit}")
    for transport in ("sse", "websocket")
    for shape in FEWEST_EVENTS
    for way in (
        *(f"cut how={how}" for how in HOWS),
        *(f"close code={code}" for code in CODES if transport == "websocket"),
    )
    for commit in COMMITS
]


def _numbers(case):
    """All where a call is said, in the commonest way; else every n-th, each from another one on."""
    if case[1] == "first" and case[2] == "cut how=reset commit=no":
        return count()
    return count(CASES.index(case) % STRIDE, STRIDE)


@pytest.mark.parametrize("case", CASES, ids=" ".join)
def test_wherever_an_answer_is_cut_the_conversation_goes_on_whole(case):
    transport, shape, way = case

    async def run():
        async with providers("a", script=script) as made:
            for number in _numbers(case):
                if await weathers(made, f"{way} before={number}", transport, shape) is None:
                    break
            assert number >= FEWEST_EVENTS[shape]

    asyncio.run(run())


@pytest.mark.parametrize("size", [1, 7, 100])
@pytest.mark.parametrize("transport", ["sse", "websocket"])
def test_events_may_come_in_pieces_of_any_size(transport, size):
    async def run():
        async with providers("a", script=script) as made:
            for shape in ("first", "outputs"):
                fault = f"drip bytes={size} seconds=0"
                answer = await weathers(made, fault, transport, shape)
                assert answer.said == "completed"

    asyncio.run(run())


@pytest.mark.parametrize("fault", ["fail", "incomplete", "error", "stall seconds=0"])
@pytest.mark.parametrize("transport", ["sse", "websocket", "json"])
def test_an_answer_may_end_early_at_any_event(transport, fault):
    async def run():
        async with providers("a", script=script) as made:
            for number in count(1 + len(transport) % STRIDE, STRIDE):
                if await weathers(made, f"{fault} before={number}", transport, "first") is None:
                    break
            assert number > 20

    asyncio.run(run())
