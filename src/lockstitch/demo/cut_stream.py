"""Case D: the stream breaks behind the call and before `response.completed`, and the process dies.

Run as a program it is that process: it ends by `kill -9` when it hears of the cut. The one that
takes the thread up again is the caller's."""

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

CUT: Final = "cut after=response.output_item.done how=reset"
"""The call was said to its end, and `response.completed` was not."""

LIFE_SECONDS: Final = 60.0
"""A first process that lives longer than this was not cut."""


class Desk:
    """A tool with an effect that must happen once: a line in a file."""

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
    """A loop that writes items to a session file as they come, and the outputs of a response when
    it is complete. If it is not, they are gone; the file says a call was made, and no more."""
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
        except Exception as cut:  # whichever library lies below the client
            if not mortal:
                raise
            stage.tell("fault", f"the stream broke off: {cut}")
            die(stage)
        if not outputs:
            return [json.loads(line) for line in file.read_text().splitlines()]
        for output in outputs:
            _write(file, output)


async def runner(stage: Stage, *, mortal: bool = False) -> Sequence[Mapping[str, Any]]:
    """The same tool, on a ledger: the output is on disk when the tool ends, whatever the stream
    does."""
    runner = Runner(
        client=stage.client,
        model=MODEL,
        tools=[Desk(stage).book],
        store=f"sqlite:///{stage.folder / 'threads.db'}",
        wait=CLAIM_SECONDS,  # only where nobody can tell that the first process has ended
    )
    async with runner:
        begun = bool(await runner.history("trip"))
        if not begun:
            stage.tell("user", ASKED)
        left: set[type[Event]] = {Retrying, CallEnded}
        async for event in runner.turn("trip", None if begun else ASKED):
            stage.tell_event(event)
            # The naive loop, too, has heard of the cut and has its output when it dies.
            left.discard(type(event))
            if mortal and not left:
                die(stage)
        return await runner.history("trip")


def die(stage: Stage) -> None:
    """As `kill -9`: nothing can be caught, nothing is tidied up."""
    stage.tell("process", "kill -9: all that was in memory is gone")
    os.kill(os.getpid(), getattr(signal, "SIGKILL", signal.SIGTERM))


MortalLoop = Callable[..., Awaitable[Sequence[Mapping[str, Any]]]]

LOOPS: Final[dict[str, MortalLoop]] = {"naive": naive, "runner": runner}


def _in_two_lives(name: str) -> Callable[[Stage], Awaitable[Sequence[Mapping[str, Any]]]]:
    """A loop whose first process dies, and which is then taken up again, from what is on disk."""

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
        stage.tell("process", "a new one takes the thread up")
        return await LOOPS[name](stage)

    return loop


def _write(file: Path, item: Mapping[str, Any]) -> None:
    with file.open("a") as session:
        session.write(json.dumps(item) + "\n")


def _output(call_id: str, said: str) -> Mapping[str, Any]:
    return {"type": "function_call_output", "call_id": call_id, "output": said}


CASE: Final = Case(
    letter="D",
    title="A cut stream",
    story="The stream breaks behind the call and before response.completed; the tool has run. The"
    " process is killed, and another one resumes.",
    script=[reply(call("book", {"flight": "LS 740"}, call_id="call_book"), faults=[CUT]), BOOKED],
    naive=_in_two_lives("naive"),
    lockstitch=_in_two_lives("runner"),
    refusal="No tool output found for function call",
    effects=bookings,
    wanted_effects=1,
)


def _live(name: str, base_url: str, folder: str) -> None:
    """The process that dies."""

    def told(line: Line) -> None:
        print(json.dumps([line.who, line.text]), flush=True)

    asyncio.run(LOOPS[name](Stage(base_url, Path(folder), told), mortal=True))  # type: ignore[arg-type]


if __name__ == "__main__":
    _live(*sys.argv[1:])
