"""`lockstitch chat`: a chat in the terminal, on the Runner. A living example, and a small one.

All that must last is in the store. So there is nothing to save, nothing to load, and nothing that
can be lost when this is killed."""

from __future__ import annotations

import asyncio
import os
import secrets
import shlex
import signal
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from lockstitch.cli.app import CLEAN, INTERRUPTED, TROUBLE
from lockstitch.cli.chat_lines import Lines
from lockstitch.cli.chat_screen import Screen
from lockstitch.cli.chat_tools import Toolbox
from lockstitch.cli.missing_parts import needs
from lockstitch.cli.runner_commands import MODEL, MODES
from lockstitch.cli.streams import complain
from lockstitch.core.calls import Life
from lockstitch.core.continuation import Reason, Refuse
from lockstitch.ledgers import Ledger
from lockstitch.runner import PendingCall, Runner, TurnFailed, Waiting
from lockstitch.store.contract import Store
from lockstitch.store.data_folder import data_folder, made
from lockstitch.store.errors import ConversationBusy
from lockstitch.store.journal import CLAIM_SECONDS, Journal
from lockstitch.store.opening import open_store
from lockstitch.store.urls import public_url

GRACE_SECONDS: Final = 2.0
"""What a tool gets to end by itself when somebody presses Ctrl-C and looks on."""

STORE_FILE: Final = "chat.db"

INSTRUCTIONS: Final = (
    "You help somebody at a terminal. You can read, list and write files in the working folder, and"
    " run commands there. Be brief."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    thread: str | None = None
    model: str
    store: str | None = None
    base_url: str | None = None
    mode: str
    yes_to: tuple[str, ...] = ()


def run(options: Options) -> int:
    """Talk until there is nothing more to read, or Ctrl-C; the exit code."""
    tools = Toolbox(Path.cwd(), options.yes_to)
    return asyncio.run(_chat(options, tools))


async def _chat(options: Options, tools: Toolbox) -> int:
    screen = Screen()
    thread = options.thread or time.strftime("chat-%Y%m%d-%H%M%S")
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(_client(options, screen))
        store = await stack.enter_async_context(open_store(options.store or _own_store()))
        screen.note(f"Thread {thread} in {store.url}.")
        screen.note("Ctrl-C stops a turn; once more, the chat.")
        goes_on = await _goes_on(store, thread, options.mode, screen)
        runner = Runner(
            client=client,
            model=options.model,
            tools=tools.tools,
            store=store,
            instructions=INSTRUCTIONS,
            mode=options.mode,
            grace=GRACE_SECONDS,
        )
        await stack.enter_async_context(runner)
        chat = Chat(runner, thread, tools, screen, Lines(sys.stdin.fileno() if sys.stdin else -1))
        code = await chat.run(goes_on=goes_on)
        screen.note(_how_to_go_on(options, thread))
        return code


class Chat:
    """One thread, and somebody who types."""

    def __init__(
        self, runner: Runner, thread: str, tools: Toolbox, screen: Screen, lines: Lines
    ) -> None:
        self._runner = runner
        self._thread = thread
        self._tools = tools
        self._screen = screen
        self._lines = lines
        self._turn: asyncio.Task[Waiting | None] | None = None
        self._stopping = False
        self._leaving = False

    async def run(self, *, goes_on: bool) -> int:
        """Message, turn, message, turn; at first only a turn, if one ``goes_on``."""
        loop = asyncio.get_running_loop()
        with suppress(NotImplementedError):  # Windows
            loop.add_signal_handler(signal.SIGINT, self._interrupt)
            loop.add_signal_handler(signal.SIGTERM, self._leave)
        code = CLEAN
        message = None if goes_on else await self._message()
        while not self._leaving and (goes_on or message is not None):
            try:
                await self._until_said(message)
            except TurnFailed as failed:
                self._screen.break_line()
                complain(str(failed))
                code = TROUBLE
            goes_on, message = False, await self._message()
        return INTERRUPTED if self._leaving else code

    async def _until_said(self, message: str | None) -> None:
        """A turn, and again each time somebody was asked and has answered."""
        waiting = await self._stoppable(message, {})
        while waiting is not None and waiting.for_approval and not self._leaving:
            answers = {}
            for call in waiting.for_approval:
                answer = await self._answer(call)
                if answer is None:
                    self._screen.note("Nobody answered: the call waits in the thread.")
                    return
                answers[call.call_id] = answer
            waiting = await self._stoppable(None, answers)

    async def _stoppable(self, message: str | None, approve: dict[str, bool]) -> Waiting | None:
        """A turn that Ctrl-C stops. The thread stays whole: what runs gets an honest outcome."""
        self._stopping = False
        self._turn = asyncio.create_task(self._shown(message, approve))
        try:
            await asyncio.wait([self._turn])
            if not self._turn.cancelled():
                return self._turn.result()
            self._screen.note("Stopped. Everything up to this point is saved.")
            return None
        finally:
            self._turn = None

    async def _shown(self, message: str | None, approve: dict[str, bool]) -> Waiting | None:
        waiting = None
        async for event in self._runner.turn(self._thread, message, approve=approve):
            self._screen.show(event)
            if isinstance(event, Waiting):
                waiting = event
        return waiting

    async def _message(self) -> str | None:
        """What somebody types next; None if nobody does."""
        while not self._leaving:
            self._screen.prompt("> ")
            line = await self._typed()
            if line is None or line.strip():
                return line
        return None

    async def _answer(self, call: PendingCall) -> bool | None:
        """May this call run? None if nobody says."""
        self._screen.ask(call)
        if self._screen.is_terminal:
            self._lines.drop()
        while True:
            self._screen.prompt("   Run it? y(es), n(o), a(lways this tool): ")
            line = await self._typed()
            match (line or "").strip().lower():
                case "y" | "yes":
                    return True
                case "n" | "no":
                    return False
                case "a" | "always":
                    self._tools.trust(call.name)
                    return True
            if line is None:
                return None
            self._screen.note("Say y, n or a.")

    async def _typed(self) -> str | None:
        line = await self._lines.next()
        if line is not None:
            self._screen.typed()
        return line

    def _interrupt(self) -> None:
        """Ctrl-C: the turn first; if there is none, or it was stopped already, the chat."""
        if self._turn is None or self._stopping:
            self._leave()
        else:
            self._stop()

    def _stop(self) -> None:
        assert self._turn is not None
        self._stopping = True
        self._screen.note("Stopping …")
        self._turn.cancel()

    def _leave(self) -> None:
        self._leaving = True
        self._lines.end()
        if self._turn is not None and not self._stopping:
            self._stop()


def _how_to_go_on(options: Options, thread: str) -> str:
    """The command that goes on with this thread, where it is and as it was asked."""
    if options.store is not None and options.store.startswith("memory:"):
        return "The thread was kept in memory, and is gone."
    words = ["lockstitch", "chat", thread]
    if options.store is not None:
        # A password is not shown, and without it the command would lead elsewhere.
        secret = public_url(options.store) != options.store
        words += ["--store", "URL" if secret else options.store]
    if options.base_url is not None and options.base_url != os.environ.get("OPENAI_BASE_URL"):
        words += ["--base-url", public_url(options.base_url)]
    if options.model != MODEL:
        words += ["--model", options.model]
    if options.mode != MODES[0]:
        words += ["--mode", options.mode]
    return f"To continue: {shlex.join(words)}"


async def _goes_on(store: Store, thread: str, mode: str, screen: Screen) -> bool:
    """Is there something to do in this thread before anybody says anything? Say what."""
    try:
        journal = await Journal.open(store, thread)
    except ConversationBusy as busy:
        screen.note(f"{busy} Waiting for it, for at most {CLAIM_SECONDS:g} seconds …")
        journal = await Journal.open(store, thread, wait=CLAIM_SECONDS)
    async with journal:
        ledger = journal.ledger
        plan = ledger.plan(mode, conversation=ledger.conversation)
        if isinstance(plan, Refuse) and plan.reason is Reason.NOTHING_NEW:
            return False
        for line in _in_flight(ledger):
            screen.note(line)
    screen.note("Going on from there.")
    return True


def _in_flight(ledger: Ledger) -> Sequence[str]:
    """What had not ended when this thread was left."""
    said = [f"{call.named} {_HAD[call.life]}." for call in ledger.unsettled()]
    said += ["A request was under way." for _ in ledger.doubts()]
    return said or ["What was said last has had no answer."]


_HAD: Final = {
    Life.ANNOUNCED: "was asked for, and has not been started",
    Life.STARTED: "had been started, and nothing says how it ended",
}


@asynccontextmanager
async def _client(options: Options, screen: Screen) -> AsyncIterator[Any]:
    """A client of the provider; without a key and an address, of an emulator in this process."""
    with needs("chat", "openai", "sqlite"):
        from openai import AsyncOpenAI
    key = os.environ.get("OPENAI_API_KEY")
    if key or options.base_url:
        # Servers on one's own machine want none; the client wants one.
        async with AsyncOpenAI(api_key=key or "none", base_url=options.base_url) as client:
            screen.note(f"{options.model} at {client.base_url}")
            yield client
        return
    with needs("chat without OPENAI_API_KEY", "emulator", "openai", "sqlite"):
        from lockstitch.emulator import Emulator, Settings
    # A provider of its own each time: its ids must not be those of an earlier one.
    settings = Settings(seed=secrets.randbits(32))
    async with Emulator(settings=settings) as emulator:
        screen.note(
            "There is no OPENAI_API_KEY, so this talks to an emulator. It repeats what you\n"
            "say, and calls the tools that you name: list_folder, read_file, write_file,\n"
            'run_shell; as in: read_file {"path": "README.md"}'
        )
        async with AsyncOpenAI(api_key="any", base_url=emulator.base_url) as client:
            yield client


def _own_store() -> str:
    """A file in the data folder of whoever runs this."""
    return f"sqlite:///{made(data_folder(os.environ)) / STORE_FILE}"
