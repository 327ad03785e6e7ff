"""An agent that can be killed and watched: `python examples/watch.py --watch`.

Without a key it runs against an emulator that cuts its stream, so that there is something to see.
Kill it at any moment and run it again: it goes on, and books once. Another THREAD begins anew.
It needs: pip install '.[demo]'"""

import argparse
import asyncio
import os
import sys
from contextlib import AsyncExitStack
from pathlib import Path

from openai import AsyncOpenAI
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from lockstitch import Runner, tool
from lockstitch.runner import CallBegan, CallEnded, Event, Retrying, TextDelta, TurnEnded


@tool(effect="read")
async def find_flights(city: str) -> list[dict[str, str]]:
    """Find flights to a city."""
    await asyncio.sleep(0.3)
    return [{"flight": "LS 740", "leaves": "07:40"}, {"flight": "LS 1820", "leaves": "18:20"}]


@tool(effect="once")
async def book(flight: str) -> str:
    """Book a flight."""
    await asyncio.sleep(0.3)
    return f"{flight} is booked"


class Watch:
    """A turn as a table: one row for each call, what happened to the stream, what is said."""

    def __init__(self) -> None:
        self.calls: dict[str, list[str]] = {}
        self.notes: list[str] = []
        self.said = ""

    def see(self, event: Event) -> None:
        match event:
            case TextDelta(text, "text"):
                self.said += text
            case CallBegan():
                self.calls[event.call_id] = [event.name, event.arguments, "running"]
            case CallEnded():
                row = self.calls.setdefault(event.call_id, [event.name, "", ""])
                row[2] = "failed" if event.failed else event.outcome.value
            case Retrying():
                # What was heard of the answer comes again.
                self.said = ""
                self.notes.append(f"attempt {event.attempt}: {event.reason}")
            case TurnEnded():
                self.said = event.text

    def __rich__(self) -> Table:
        table = Table("call", "arguments", "state", caption=Text(self.said), expand=True)
        for row in self.calls.values():
            table.add_row(*map(Text, row))
        for note in self.notes:
            table.add_row("", Text(note, style="yellow"), "")
        return table


async def emulated(stack: AsyncExitStack) -> AsyncOpenAI:
    """A client of an emulator that says what follows from what was said last, and breaks once."""
    try:
        from lockstitch.emulator import (  # noqa: PLC0415
            ALWAYS,
            Emulator,
            Script,
            Settings,
            Turn,
            When,
            call,
            reply,
        )
    except ModuleNotFoundError as missing:
        sys.exit(
            f"There is no OPENAI_API_KEY, and the emulator needs {missing.name}, which is not"
            " installed. Run: pip install '.[demo]'"
        )

    cut = "cut after=response.output_item.done how=reset"
    booking = reply(call("book", {"flight": "LS 740"}), pace=0.02, faults=[cut])
    script = [
        Turn(reply(said, pace=0.02) if isinstance(said, str) else said, when=when, times=ALWAYS)
        for when, said in (
            (When(user="Book"), reply(call("find_flights", {"city": "Oslo"}), pace=0.02)),
            (When(tool="find_flights"), booking),
            (When(output="Outcome unknown"), "It may be booked, or not. Please look."),
            (When(tool="book"), "LS 740 is booked. It leaves at 07:40."),
        )
    ]
    # Every run is another provider, so its ids must be others.
    settings = Settings(seed=os.getpid())
    emulator = Emulator(script=Script(script), settings=settings)
    await stack.enter_async_context(emulator)
    return AsyncOpenAI(base_url=emulator.base_url, api_key="any")


async def main(arguments: argparse.Namespace) -> None:
    async with AsyncExitStack() as stack:
        own = "OPENAI_API_KEY" in os.environ
        client = await stack.enter_async_context(AsyncOpenAI() if own else await emulated(stack))
        runner = Runner(
            client=client,
            model=arguments.model,
            tools=[find_flights, book],
            store=f"sqlite:///{arguments.store}",
            wait=60,  # a process that was killed elsewhere keeps its thread for half a minute
        )
        await stack.enter_async_context(runner)
        begun = bool(await runner.history(arguments.thread))
        message = None if begun else "Book the early flight to Oslo."
        watch = Watch()
        if arguments.watch:
            stack.enter_context(Live(watch, console=Console(), refresh_per_second=20))
        async for event in runner.turn(arguments.thread, message):
            watch.see(event)
            if not arguments.watch and not isinstance(event, TextDelta):
                print(event)


def parsed(given: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "thread",
        nargs="?",
        default="trip",
        metavar="THREAD",
        help="the thread to go on with, or to begin (%(default)s)",
    )
    parser.add_argument("--watch", action="store_true", help="show the turn as a live table")
    parser.add_argument("--model", default="gpt-5.5", help="which model to ask (%(default)s)")
    parser.add_argument(
        "--store",
        type=Path,
        default=Path("watch.db"),
        metavar="FILE",
        help="where threads are kept (%(default)s)",
    )
    return parser.parse_args(given)


if __name__ == "__main__":
    asyncio.run(main(parsed(sys.argv[1:])))
