"""Case A: a loop that remembers what it has sent by `id(obj)`.

A memory address is unique only while the object lives. Python reuses it, and then a new output
looks as if it had been sent already."""

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
"""How many objects are made at most until an address repeats: 15 MB. A few are enough."""


class Result(dict[str, Any]):
    """A temperature.

    Its size is unusual, so that a freed address stays free until the next result is made."""

    __slots__ = tuple(f"_room_{n}" for n in range(52))


class Thermometer:
    """A tool whose results reuse the memory addresses of freed results.

    In a process that runs for days this happens by chance; here it happens at once."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._addresses: set[int] = set()

    async def temperature(self, city: str) -> Result:
        """How warm it is in a city."""
        result = self._made(city=city, degrees=DEGREES[city])
        if id(result) in self._addresses:
            self._stage.tell("fault", f"{city}'s result reuses the address of a freed one")
        self._addresses.add(id(result))
        return result

    def _made(self, **values: Any) -> Result:
        gc.collect()
        # Holding the others makes the allocator try other addresses.
        others = []
        for _ in range(MOST_OBJECTS if self._addresses else 1):
            result = Result(values)
            if id(result) in self._addresses:
                break
            others.append(result)
        return result


async def naive(stage: Stage) -> Sequence[Mapping[str, Any]]:
    """Run a loop that decides by `id` which outputs it has not sent yet."""
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
            stage.tell("loop", f"{key}: its address is known, so it counts as sent")
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
    """Run the same tool with the Runner, which remembers what it has sent as a position."""
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
    """The tool only reads."""
    return 0


CASE: Final = Case(
    letter="A",
    title="A reused memory address",
    story="The loop remembers which outputs it has sent by id(obj). Python reuses the address of a"
    " freed object, so a new output looks already sent.",
    script=[
        call("temperature", {"city": "Oslo"}, call_id="call_oslo"),
        call("temperature", {"city": "Rome"}, call_id="call_rome"),
        call("temperature", {"city": "Lima"}, call_id="call_lima"),
        ANSWER,
    ],
    naive=naive,
    lockstitch=runner,
    lost="the output of a call was never sent.",
    refusal="No tool output found for function call",
    effects=_none,
    wanted_effects=0,
)
