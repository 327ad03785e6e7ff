"""Case D: the stream breaks after the tool call and before `response.completed`.

Run as a program, this file is the first process, which is killed with `kill -9` when its stream
breaks. The caller's process then resumes the conversation."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from lockstitch.demo.playing import MODEL, Case, Line, Stage
from lockstitch.emulator import call, reply
from lockstitch.runner import CallEnded, Event, Retrying, Runner, tool
from lockstitch.store.journal import CLAIM_SECONDS

ASKED: Final = "Book the early flight to Oslo."
BOOKED: Final = "LS 740 is booked."

FAULTS: Final = (
    "stall after=response.output_item.done seconds=0.3",
    "cut before=response.completed how=reset",
)
"""The call is complete, and the tool has time to finish before the connection breaks."""

BROKEN: Final = "the connection breaks before response.completed"

LIFE_SECONDS: Final = 60.0
"""If the first process lives longer than this, its stream did not break."""


class Desk:
    """A tool with an effect that must happen once: it writes a line to a file."""

    def __init__(self, stage: Stage) -> None:
        self._file = stage.folder / "bookings.txt"

    def book(self, flight: str) -> str:
        """Book a flight."""
        with self._file.open("a") as file:
            file.write(f"{flight}\n")
        return f"{flight} is booked"


def bookings(folder: Path) -> int:
    file = folder / "bookings.txt"
    return len(file.read_text().splitlines()) if file.exists() else 0


async def naive(stage: Stage, *, mortal: bool = False) -> Sequence[Mapping[str, Any]]:
    """Run a loop that saves each item when it arrives, but tool outputs only when the response is
    complete. If the stream breaks, the session file has a call without its output."""
    desk, file = Desk(stage), stage.folder / "session.jsonl"
    tools: list[Any] = [tool(desk.book).for_responses()]
    if not file.exists():
        stage.tell("user", ASKED)
        _write(file, {"role": "user", "content": ASKED})
    while True:
        history: list[Any] = [json.loads(line) for line in file.read_text().splitlines()]
        outputs: list[Mapping[str, Any]] = []
        stream = await stage.client.responses.create(
            model=MODEL, input=history, tools=tools, store=False, stream=True
        )
        try:
            async for event in stream:
                if event.type != "response.output_item.done":
                    continue
                item = event.item.to_dict()
                stage.tell_item(item)
                _write(file, item)
                if event.item.type == "function_call":
                    said = desk.book(**json.loads(event.item.arguments))
                    outputs.append(_output(event.item.call_id, said))
                    stage.tell_item(outputs[-1])
        except Exception:  # which one depends on the HTTP library of the client
            if not mortal:
                raise
            stage.tell("fault", BROKEN)
            die(stage)
        if not outputs:
            return [json.loads(line) for line in file.read_text().splitlines()]
        for output in outputs:
            _write(file, output)


async def runner(stage: Stage, *, mortal: bool = False) -> Sequence[Mapping[str, Any]]:
    """Run the same tool with the Runner, which saves an output as soon as the tool ends."""
    runner = Runner(
        client=stage.client,
        model=MODEL,
        tools=[Desk(stage).book],
        store=f"sqlite:///{stage.folder / 'threads.db'}",
        wait=CLAIM_SECONDS,  # used only if the end of the first process cannot be detected
    )
    async with runner:
        begun = bool(await runner.history("trip"))
        if not begun:
            stage.tell("user", ASKED)
        left: set[type[Event]] = {Retrying, CallEnded}
        async for event in runner.turn("trip", None if begun else ASKED):
            if isinstance(event, Retrying):
                stage.tell("fault", BROKEN)
            else:
                stage.tell_event(event)
            # Like the other loop, it has seen the fault and has its output when it is killed.
            left.discard(type(event))
            if mortal and not left:
                die(stage)
        return await runner.history("trip")


def die(stage: Stage) -> None:
    """Kill this process as `kill -9` does, without any cleanup."""
    stage.tell("process", "kill -9: everything in memory is lost")
    os.kill(os.getpid(), getattr(signal, "SIGKILL", signal.SIGTERM))


MortalLoop = Callable[..., Awaitable[Sequence[Mapping[str, Any]]]]

LOOPS: Final[dict[str, MortalLoop]] = {"naive": naive, "runner": runner}


def _in_two_lives(name: str) -> Callable[[Stage], Awaitable[Sequence[Mapping[str, Any]]]]:
    """Return a loop whose first process is killed, and which then resumes from disk."""

    async def loop(stage: Stage) -> Sequence[Mapping[str, Any]]:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", __name__, name, stage.base_url, str(stage.folder)),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
        )
        try:
            async with asyncio.timeout(LIFE_SECONDS):
                said, _ = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
        stage.lines += [Line(*json.loads(line)) for line in said.splitlines()]
        stage.tell("process", "a new process resumes the conversation")
        return await LOOPS[name](stage)

    return loop


def _write(file: Path, item: Mapping[str, Any]) -> None:
    with file.open("a") as session:
        session.write(json.dumps(item) + "\n")


def _output(call_id: str, said: str) -> Mapping[str, Any]:
    return {"type": "function_call_output", "call_id": call_id, "output": said}


CASE: Final = Case(
    letter="D",
    title="A dropped stream",
    story="The connection breaks after the tool call. The tool has already run. Then the process is"
    " killed, and a new one resumes the conversation.",
    script=[
        reply(call("book", {"flight": "LS 740"}, call_id="call_book"), faults=FAULTS),
        BOOKED,
    ],
    naive=_in_two_lives("naive"),
    lockstitch=_in_two_lives("runner"),
    lost="the flight is booked, but the conversation cannot be resumed.",
    refusal="No tool output found for function call",
    effects=bookings,
    wanted_effects=1,
)


def _live(name: str, base_url: str, folder: str) -> None:
    """Be the process that is killed."""

    def told(line: Line) -> None:
        print(json.dumps([line.who, line.text]), flush=True)

    asyncio.run(LOOPS[name](Stage(base_url, Path(folder), told), mortal=True))  # type: ignore[arg-type]


if __name__ == "__main__":
    _live(*sys.argv[1:])
