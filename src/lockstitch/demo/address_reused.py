"""Case A: "already sent" remembered as `id(obj)`.

An address names an object only while the object lives. The next one may be made in the same place,
and then a fresh output looks as if it had been sent."""

from __future__ import annotations

import gc
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from lockstitch.demo.playing import MODEL, Case, Stage
from lockstitch.emulator import call
from lockstitch.runner import Runner, tool

ASKED: Final = "How warm is it in Oslo, Rome and Lima?"
ANSWER: Final = "Rome is the warmest, with 24 degrees."
DEGREES: Final = {"Oslo": 4, "Rome": 24, "Lima": 19}

MOST_OBJECTS: Final = 20_000
"""How many are made, at most, until an address comes again: 15 MB. It is a handful in practice."""


class Result(dict[str, Any]):
    """What a thermometer says.

    It is of a size that hardly anything else has, so that a place which one leaves is free for the
    next, whatever the process does meanwhile."""

    __slots__ = tuple(f"_room_{n}" for n in range(52))


class Thermometer:
    """A tool whose results stand where earlier ones stood, as soon as those are gone.

    In a process that runs for days this happens by itself; here it is hurried."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._addresses: set[int] = set()

    async def temperature(self, city: str) -> Result:
        """How warm it is in a city."""
        result = self._made(city=city, degrees=DEGREES[city])
        if id(result) in self._addresses:
            self._stage.tell("fault", f"{city}'s result is made where an older one was freed")
        self._addresses.add(id(result))
        return result

    def _made(self, **values: Any) -> Result:
        gc.collect()
        # They are kept until the right one comes: the allocator must go on to other addresses.
        others = []
        for _ in range(MOST_OBJECTS if self._addresses else 1):
            result = Result(values)
            if id(result) in self._addresses:
                break
            others.append(result)
        return result


async def naive(stage: Stage) -> Sequence[Mapping[str, Any]]:
    """A loop that sends what it has not sent yet, and tells the two apart by `id`."""
    thermometer = Thermometer(stage)
    tools: list[Any] = [tool(thermometer.temperature).for_responses()]
    sent: set[int] = set()
    stage.tell("user", ASKED)
    history: list[Mapping[str, Any]] = [{"role": "user", "content": ASKED}]
    response = await stage.client.responses.create(model=MODEL, input=ASKED, tools=tools)
    while True:
        results: dict[str, Result] = {}
        for item in response.output:
            history.append(item.to_dict())
            stage.tell_item(item.to_dict())
            if item.type == "function_call":
                results[item.call_id] = await thermometer.temperature(**json.loads(item.arguments))
        if not results:
            return history
        fresh = {key: result for key, result in results.items() if id(result) not in sent}
        for key in results.keys() - fresh.keys():
            stage.tell("loop", f"{key}: its output has been sent, as its address says")
        outputs: list[Any] = [_output(key, result) for key, result in fresh.items()]
        for output in outputs:
            stage.tell_item(output)
        history += outputs
        sent.update(id(result) for result in fresh.values())
        response = await stage.client.responses.create(
            model=MODEL, input=outputs, tools=tools, previous_response_id=response.id
        )
        results, fresh = {}, {}


async def runner(stage: Stage) -> Sequence[Mapping[str, Any]]:
    """The same tool, on a ledger: an output is where it stands there, and "sent" is a position."""
    thermometer = Thermometer(stage)
    look = tool(effect="read")(thermometer.temperature)
    async with Runner(client=stage.client, model=MODEL, tools=[look], store="memory:") as runner:
        stage.tell("user", ASKED)
        async for event in runner.turn("weather", ASKED):
            stage.tell_event(event)
        return await runner.history("weather")


def _output(call_id: str, result: Result) -> Mapping[str, Any]:
    return {"type": "function_call_output", "call_id": call_id, "output": json.dumps(result)}


def _none(folder: Path) -> int:
    """It reads, and changes nothing."""
    return 0


CASE: Final = Case(
    letter="A",
    title="A re-used address",
    story='"Already sent" is remembered as id(obj). The object goes, a fresh output is made in its'
    " place, and is taken for sent.",
    script=[
        call("temperature", {"city": "Oslo"}, call_id="call_oslo"),
        call("temperature", {"city": "Rome"}, call_id="call_rome"),
        call("temperature", {"city": "Lima"}, call_id="call_lima"),
        ANSWER,
    ],
    naive=naive,
    lockstitch=runner,
    refusal="No tool output found for function call",
    effects=_none,
    wanted_effects=0,
)
