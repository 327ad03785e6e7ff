"""Turns in processes that are killed at an exact point, and resumed by others.

Run as `python -m tests.runner.killing URL`, a provider's for a first turn that imports everything.
Then it reads `Life`s, one a line, and says how each ended. A life is a fork of this process, and a
start costs milliseconds. The rest is in `killing_checks`."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from openai import AsyncOpenAI

from lockstitch.core.calls import Life as LifeOfCall
from lockstitch.core.exchanges import Exchange
from lockstitch.core.facts import Mode
from lockstitch.ledgers import Ledger
from lockstitch.runner import CallEnded, Runner, TurnEnded
from lockstitch.store.journal import CLAIM_SECONDS, kept_ledger
from lockstitch.store.memory import MemoryStore
from tests.runner.killing_points import (
    PATIENCE_SECONDS,
    TOOLS,
    Here,
    Point,
    PointedStore,
    passing,
    written_down,
)

THREAD = "thread"
GRACE_SECONDS = 5.0


class Life(Struct, frozen=True, kw_only=True):
    """One turn in a process of its own."""

    url: str
    folder: str
    mode: str
    message: str | None = None
    again: str | None = None
    """What the user says if the first message is not on disk: nobody was told that it is."""
    ends: Point | None = None
    later: bool = False
    """So much later that the claim of a process that was killed has run out."""


class CallLeft(Struct, frozen=True):
    """A call, as it stood in the store when a life began."""

    call_id: str
    name: str
    life: LifeOfCall
    output: str | None = None


class Report(Struct, frozen=True, kw_only=True):
    """What a life found, and what came of it."""

    calls: list[CallLeft]
    in_flight: int
    """Requests of which nobody wrote down what became of them."""
    text: str | None = None
    history: list[dict[str, Any]] = []
    unsettled: int = 0
    response: str | None = None
    conversation: str | None = None
    passed: bool = False
    """Was it at the point at which it was to end?"""
    error: str | None = None


class Death(Struct, frozen=True):
    """How a life ended."""

    signal: int
    """0 where it came to its own end."""
    interrupted: bool = False
    report: Report | None = None


_clients: dict[str, AsyncOpenAI] = {}


async def live(life: Life) -> Report:
    """One turn, from where the thread stands."""
    ahead = CLAIM_SECONDS + 1 if life.later else 0.0
    path = Path(life.folder) / "agent.db"
    async with await PointedStore.open(path, now=lambda: time.time() + ahead) as store:
        before = await kept_ledger(store, THREAD)
        found = _found(before)
        message = life.again if before is None and life.message is None else life.message
        text = None
        async with _runner(life, store) as runner:
            async for event in runner.turn(THREAD, message):
                if isinstance(event, CallEnded):
                    written_down("told", event.call_id)
                elif isinstance(event, TurnEnded):
                    text = event.text
                if passing(f"after {type(event).__name__}"):
                    await asyncio.Event().wait()  # whoever watches may be interrupted, too
        after = await kept_ledger(store, THREAD)
        assert after is not None
        tip = after.links[after.tip]
        return msgspec.structs.replace(
            found,
            text=text,
            history=after.history(),
            unsettled=len(after.unsettled()),
            response=tip.id if isinstance(tip, Exchange) else None,
            conversation=after.conversation,
            passed=Here.was_there,
        )


def _runner(life: Life, store: PointedStore) -> Runner:
    return Runner(
        client=_clients[life.url],
        model="gpt-5.5",
        tools=TOOLS,
        store=store,
        mode=life.mode,
        grace=GRACE_SECONDS,
    )


def _found(ledger: Ledger | None) -> Report:
    if ledger is None:
        return Report(calls=[], in_flight=0)
    calls = [
        CallLeft(
            call.item.key or "",
            call.item.name or "",
            call.life,
            None if call.output is None else str(ledger.wire(call.output)["output"]),
        )
        for call in ledger.calls.values()
    ]
    in_flight = [exchange for exchange in ledger.doubts() if exchange.in_flight]
    return Report(calls=calls, in_flight=len(in_flight))


_INTERRUPTED = 130
"""As a shell has it: 128 and the number of SIGINT."""


def _fork(life: Life) -> tuple[int, int]:
    reading, writing = os.pipe()
    process = os.fork()
    if process:
        os.close(writing)
        return process, reading
    code = 1
    try:
        os.close(reading)
        # Whoever started the tests may have ignored them, and that is inherited.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.alarm(PATIENCE_SECONDS)
        Here.folder, Here.ends = Path(life.folder), life.ends
        report = asyncio.run(live(life))
        code = 0
    except KeyboardInterrupt:
        report, code = Report(calls=[], in_flight=0), _INTERRUPTED
    except BaseException:
        report = Report(calls=[], in_flight=0, error=traceback.format_exc())
    with os.fdopen(writing, "wb") as pipe:
        pipe.write(msgspec.json.encode(report))
    os._exit(code)


def lived(life: Life) -> Death:
    """A life, from its start to its end."""
    process, pipe = _fork(life)
    with os.fdopen(pipe, "rb") as reading:
        said = reading.read()
    _, status = os.waitpid(process, 0)
    if os.WIFSIGNALED(status):
        return Death(os.WTERMSIG(status))
    report = msgspec.json.decode(said, type=Report)
    return Death(0, os.WEXITSTATUS(status) == _INTERRUPTED, report)


async def _warm(url: str) -> None:
    """A turn without an effect in this process: what it imports need not be imported by others."""
    for mode in Mode:
        async with AsyncOpenAI(base_url=url, api_key="any") as client:
            runner = Runner(client=client, model="gpt-5.5", store=MemoryStore(), mode=mode)
            async for _ in runner.turn(THREAD, "Hello."):
                pass


def _say(what: Struct | None) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(what) + b"\n")
    sys.stdout.buffer.flush()


def main(url: str) -> None:
    asyncio.run(_warm(url))
    _say(None)
    for line in sys.stdin.buffer:
        life = msgspec.json.decode(line, type=Life)
        if life.url not in _clients:
            # It has no connection yet. It reads certificates, and that takes long.
            _clients[life.url] = AsyncOpenAI(base_url=life.url, api_key="any")
        assert threading.active_count() == 1  # no other would live on in a fork
        _say(lived(life))


if __name__ == "__main__":
    main(*sys.argv[1:])
